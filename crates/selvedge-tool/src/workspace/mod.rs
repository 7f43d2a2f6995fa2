//! The files a tool may touch: a directory handle, and paths below it.
//!
//! A path is resolved from the handle, component by component, by the kernel.
//! No string comparison decides what is inside. Symlinks are resolved once, by
//! `cap-std`, which never leaves the handle; what comes out has no symlink in it
//! and is then opened without following any, so that a directory swapped for a
//! symlink in between leads to an error and never to another place.

mod path;
mod place;
mod walk;

pub use path::PathError;
pub(crate) use path::refuse_git;
pub(crate) use place::{FILE_BYTES_MAX, Place};
pub(crate) use walk::Walk;

use std::fs::File;
use std::io::{self, ErrorKind, IoSliceMut};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use rustix::fs::{Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::{ReadWriteFlags, preadv2};

/// A directory that tools work in.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    dir: Dir,
}

impl Workspace {
    /// Opens a directory as a workspace.
    pub fn open(root: &Path) -> std::io::Result<Self> {
        let root = root.canonicalize()?;
        let dir = Dir::open_ambient_dir(&root, ambient_authority())?;
        Ok(Self { root, dir })
    }

    /// A folder in it, as a workspace of its own: nothing leads out of that, either.
    pub(crate) fn below(&self, text: &str) -> Result<Self, PathError> {
        let place = self.existing(text)?;
        let opened = self.open_dir(&place);
        let opened = opened.map_err(|source| PathError::from_io(text, source))?;
        Ok(Self {
            root: self.root.join(&place),
            dir: Dir::from_std_file(File::from(opened)),
        })
    }

    /// Where it is, for commands and messages. Files go through `dir`.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The handle that files are reached by.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// The path from the root that a text names, before any file is looked at.
    pub(crate) fn relative(&self, text: &str) -> Result<PathBuf, PathError> {
        path::relative(&self.root, text)
    }

    /// Where a path leads, symlinks resolved: relative to the root, and empty for
    /// the root itself. It must exist.
    pub(crate) fn existing(&self, text: &str) -> Result<PathBuf, PathError> {
        let relative = self.relative(text)?;
        self.canonical(&relative)
            .map_err(|source| PathError::from_io(text, source))
    }

    /// Where a file would be written: like [`Self::existing`], but the end of the
    /// path may be missing. Nothing is created.
    pub(crate) fn destination(&self, text: &str) -> Result<PathBuf, PathError> {
        let relative = self.relative(text)?;
        let mut known = relative.as_path();
        let mut missing = Vec::new();
        let mut place = loop {
            match self.canonical(known) {
                Ok(place) => break place,
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    let (Some(name), Some(parent)) = (known.file_name(), known.parent()) else {
                        return Err(PathError::from_io(text, error));
                    };
                    missing.push(name);
                    known = parent;
                }
                Err(error) => return Err(PathError::from_io(text, error)),
            }
        };
        // Missing, yet there: only a symlink that leads nowhere is both.
        if let Some(name) = missing.last()
            && self.dir.symlink_metadata(place.join(name)).is_ok()
        {
            return Err(PathError::Malformed {
                path: text.into(),
                reason: "it is a symlink that leads nowhere",
            });
        }
        place.extend(missing.into_iter().rev());
        refuse_git(text, &place)?;
        Ok(place)
    }

    /// Opens a regular file for reading, without ever waiting for a writer.
    pub fn open_file(&self, text: &str) -> Result<(File, PathBuf), PathError> {
        let relative = self.relative(text)?;
        let (file, place) = match self.open_straight(&relative, ResolveFlags::empty()) {
            Some(file) => (file, relative),
            None => self
                .canonical(&relative)
                .and_then(|place| Ok((self.open_at(&place)?, place)))
                .map_err(|source| PathError::from_io(text, source))?,
        };
        place::regular(text, &file)?;
        Ok((file, place))
    }

    /// A short regular file that the system has in memory, without any waiting, so
    /// that no other thread is needed. `None` for all else.
    pub(crate) fn read_at_once(&self, text: &str) -> Option<Vec<u8>> {
        let relative = self.relative(text).ok()?;
        let file = self.open_straight(&relative, ResolveFlags::CACHED)?;
        let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let bytes = usize::try_from(metadata.len()).ok()?;
        if bytes > AT_ONCE_BYTES_MAX {
            return None;
        }
        let mut content = vec![0; bytes];
        let mut whole = [IoSliceMut::new(&mut content)];
        let read = preadv2(&file, &mut whole, 0, ReadWriteFlags::NOWAIT).ok()?;
        (read == bytes).then_some(content)
    }

    /// Opens a path that is its own resolution, as nearly all are, in one step.
    /// `None` leaves it to the way that resolves symlinks and finds the words for
    /// what is wrong.
    fn open_straight(&self, relative: &Path, also: ResolveFlags) -> Option<File> {
        let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        if relative.as_os_str().is_empty() || !relative.components().all(is_plain) {
            return None;
        }
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | also;
        let opened = openat2(&self.dir, relative, READ, Mode::empty(), resolve);
        opened.ok().map(File::from)
    }

    /// Opens a directory, which [`Self::existing`] has resolved.
    pub(crate) fn open_dir(&self, place: &Path) -> io::Result<OwnedFd> {
        // The workspace's own handle only resolves paths; reading a directory, or
        // syncing one, takes a handle that is open for it.
        let mut handle = openat(&self.dir, ".", DIRECTORY, Mode::empty())?;
        for name in place.components() {
            handle = openat(&handle, plain(name)?, DIRECTORY, Mode::empty())?;
        }
        Ok(handle)
    }

    /// Opens what is at a resolved place, whatever it is, for reading.
    pub(crate) fn open_at(&self, place: &Path) -> io::Result<File> {
        let Some(name) = place.file_name() else {
            return Ok(File::from(self.open_dir(place)?));
        };
        let parent = self.open_dir(place.parent().unwrap_or(Path::new("")))?;
        Ok(File::from(openat(&parent, name, READ, Mode::empty())?))
    }

    fn canonical(&self, relative: &Path) -> io::Result<PathBuf> {
        if relative.as_os_str().is_empty() {
            return Ok(PathBuf::new());
        }
        let place = self.dir.canonicalize(relative)?;
        Ok(place
            .components()
            .filter(|part| *part != Component::CurDir)
            .collect())
    }
}

/// More than this is copied where it holds nobody up.
const AT_ONCE_BYTES_MAX: usize = 64 * 1024;

/// How a file is opened: a symlink is an error, and no FIFO is waited for.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

/// How a directory on the way is opened: a symlink there is an error.
const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

fn plain(part: Component<'_>) -> io::Result<&std::ffi::OsStr> {
    match part {
        Component::Normal(name) => Ok(name),
        _ => Err(io::Error::from(ErrorKind::InvalidInput)),
    }
}

//! A file's place: the handle of its directory, and its name there.
//!
//! Content arrives by rename. A reader, or a crash, sees the old file or the new
//! one and nothing in between; and a symlink at the name is replaced, not followed.

use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid, fchown, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;

use super::{DIRECTORY, PathError, Workspace, plain};

// Beyond this a file is data and not source; holding it twice, old and new, would
// cost more memory than a tool call is worth.
pub(crate) const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Where a file is, or will be.
pub(crate) struct Place {
    parent: OwnedFd,
    name: OsString,
}

/// New content beside its file, on disk, not yet in its place.
///
/// Dropped without `commit`, it removes itself.
pub(crate) struct Staged<'a> {
    place: &'a Place,
    temporary: Option<String>,
}

impl Place {
    /// The place of a path that [`Workspace::destination`] has resolved. Missing
    /// directories on the way are created.
    pub(crate) fn create(workspace: &Workspace, resolved: &Path) -> io::Result<Self> {
        let name = resolved.file_name().ok_or(io::ErrorKind::IsADirectory)?;
        let mut parent = workspace.open_dir(Path::new(""))?;
        for part in resolved.parent().unwrap_or(Path::new("")).components() {
            let part = plain(part)?;
            match mkdirat(&parent, part, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            parent = openat(&parent, part, DIRECTORY, Mode::empty())?;
        }
        Ok(Self {
            parent,
            name: name.to_owned(),
        })
    }

    /// Puts content beside the file. The mode and the owner of a file that is
    /// replaced are kept; set-user-id bits are not.
    pub(crate) fn stage(&self, content: &[u8]) -> io::Result<Staged<'_>> {
        let old = self.look()?;
        let (file, temporary) = self.temporary(old.is_none())?;
        // From here on an early return removes the temporary file.
        let staged = Staged {
            place: self,
            temporary: Some(temporary),
        };
        (&file).write_all(content)?;
        if let Some(old) = old {
            let new = file.metadata()?;
            if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
                // Only root may give files away; for others the file becomes theirs.
                let owner = (Uid::from_raw(old.uid()), Gid::from_raw(old.gid()));
                let _ = fchown(&file, Some(owner.0), Some(owner.1));
            }
            file.set_permissions(Permissions::from_mode(old.mode() & 0o777))?;
        }
        file.sync_all()?;
        Ok(staged)
    }

    /// Removes the file.
    pub(crate) fn remove(&self) -> io::Result<()> {
        unlinkat(&self.parent, &self.name, AtFlags::empty())?;
        Ok(())
    }

    /// What is at the name now; something other than a file is an error.
    fn look(&self) -> io::Result<Option<std::fs::Metadata>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match openat(&self.parent, &self.name, flags, Mode::empty()) {
            Ok(handle) => {
                let metadata = File::from(handle).metadata()?;
                if metadata.is_file() {
                    return Ok(Some(metadata));
                }
                Err(io::Error::other(format!("it is {}", kind(&metadata).0)))
            }
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn temporary(&self, is_new: bool) -> io::Result<(File, String)> {
        let mut noise = [0_u8; 12];
        getrandom::fill(&mut noise).map_err(|error| io::Error::other(error.to_string()))?;
        let noise: String = noise.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = format!(".selvedge-{noise}.tmp");
        // The name cannot be guessed, and EXCL refuses one that was planted. The
        // content of a private file stays private while it waits; a new file gets
        // the mode that any program would give it.
        let mode = Mode::from_raw_mode(if is_new { 0o666 } else { 0o600 });
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = openat(&self.parent, &name, flags, mode)?;
        Ok((File::from(handle), name))
    }
}

impl Staged<'_> {
    /// Moves the content into its place, durably.
    pub(crate) fn commit(mut self) -> io::Result<()> {
        let place = self.place;
        let temporary = self.temporary.as_ref().expect("taken only below");
        renameat(&place.parent, temporary, &place.parent, &place.name)?;
        self.temporary = None;
        rustix::fs::fsync(&place.parent)?;
        Ok(())
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.temporary {
            let _ = unlinkat(&self.place.parent, name, AtFlags::empty());
        }
    }
}

impl Workspace {
    /// Reads the whole of a file, within [`FILE_BYTES_MAX`].
    pub(crate) fn read_whole(&self, text: &str) -> Result<(Vec<u8>, PathBuf), PathError> {
        let (file, resolved) = self.open_file(text)?;
        let io = |source| PathError::from_io(text, source);
        let bytes = file.metadata().map_err(io)?.len();
        let too_large = |bytes| PathError::TooLarge {
            path: text.into(),
            bytes,
            bytes_max: FILE_BYTES_MAX,
        };
        if bytes > FILE_BYTES_MAX {
            return Err(too_large(bytes));
        }
        let mut content = Vec::with_capacity(bytes as usize);
        // Bounded again: the file may grow while it is read.
        file.take(FILE_BYTES_MAX + 1)
            .read_to_end(&mut content)
            .map_err(io)?;
        if content.len() as u64 > FILE_BYTES_MAX {
            return Err(too_large(content.len() as u64));
        }
        Ok((content, resolved))
    }
}

/// Refuses what is not a regular file.
pub(super) fn regular(text: &str, file: &File) -> Result<(), PathError> {
    let metadata = file
        .metadata()
        .map_err(|source| PathError::from_io(text, source))?;
    if metadata.is_file() {
        return Ok(());
    }
    let (kind, hint) = kind(&metadata);
    Err(PathError::NotAFile {
        path: text.into(),
        kind,
        hint,
    })
}

fn kind(metadata: &std::fs::Metadata) -> (&'static str, &'static str) {
    let kind = metadata.file_type();
    if kind.is_dir() {
        ("a directory", ": use `list_files`")
    } else if kind.is_fifo() {
        ("a named pipe", "")
    } else if kind.is_socket() {
        ("a socket", "")
    } else if kind.is_char_device() || kind.is_block_device() {
        ("a device", "")
    } else {
        ("something else", "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// In memory where possible: these tests sync thousands of files.
    fn scratch() -> tempfile::TempDir {
        tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
    }

    fn write(workspace: &Workspace, path: &str, content: &str) -> Result<(), PathError> {
        let resolved = workspace.destination(path)?;
        Place::create(workspace, &resolved)
            .and_then(|place| place.stage(content.as_bytes())?.commit())
            .map_err(|source| PathError::from_io(path, source))
    }

    #[test]
    fn a_directory_swapped_for_a_symlink_never_leads_a_write_or_a_read_out() {
        let scratch = scratch();
        let (root, outside) = (scratch.path().join("app"), scratch.path().join("outside"));
        for directory in [&root.join("a"), &outside] {
            std::fs::create_dir_all(directory).unwrap();
        }
        std::fs::write(outside.join("secret"), "canary").unwrap();
        symlink(&outside, root.join("link")).unwrap();
        let workspace = Workspace::open(&root).unwrap();
        let stop = AtomicBool::new(false);
        let (mut written, mut refused) = (0, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (a, link) = (root.join("a"), root.join("link"));
                while !stop.load(Ordering::Relaxed) {
                    let _ = rustix::fs::renameat_with(
                        rustix::fs::CWD,
                        &a,
                        rustix::fs::CWD,
                        &link,
                        rustix::fs::RenameFlags::EXCHANGE,
                    );
                }
            });
            for _ in 0..100_000 {
                match write(&workspace, "a/secret", "overwritten") {
                    Ok(()) => written += 1,
                    Err(_) => refused += 1,
                }
                if let Ok((content, _)) = workspace.read_whole("a/secret") {
                    assert_ne!(content, b"canary", "a read got out");
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        let secret = std::fs::read_to_string(outside.join("secret")).unwrap();
        assert_eq!(secret, "canary", "a write got out");
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
        assert!(
            written > 0 && refused > 0,
            "{written} written, {refused} refused"
        );
    }

    #[test]
    fn a_directory_that_became_a_symlink_after_it_was_resolved_is_refused() {
        let scratch = scratch();
        let (root, outside) = (scratch.path().join("app"), scratch.path().join("outside"));
        std::fs::create_dir_all(root.join("a")).unwrap();
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("secret"), "canary").unwrap();
        let workspace = Workspace::open(&root).unwrap();
        let resolved = workspace.destination("a/secret").unwrap();
        std::fs::remove_dir(root.join("a")).unwrap();
        symlink(&outside, root.join("a")).unwrap();
        assert!(Place::create(&workspace, &resolved).is_err());
        assert!(workspace.open_at(&resolved).is_err());
        assert!(workspace.open_dir(Path::new("a")).is_err());
    }

    #[test]
    fn a_symlink_within_the_workspace_is_followed_and_kept() {
        let scratch = scratch();
        let workspace = Workspace::open(scratch.path()).unwrap();
        write(&workspace, "AGENTS.md", "one").unwrap();
        symlink("AGENTS.md", scratch.path().join("CLAUDE.md")).unwrap();
        write(&workspace, "CLAUDE.md", "two").unwrap();
        assert!(scratch.path().join("CLAUDE.md").is_symlink());
        let (content, place) = workspace.read_whole("CLAUDE.md").unwrap();
        assert_eq!(
            (content.as_slice(), place),
            (&b"two"[..], PathBuf::from("AGENTS.md"))
        );
    }

    #[test]
    fn a_replaced_file_keeps_its_mode_and_leaves_nothing_beside_it() {
        let scratch = scratch();
        let workspace = Workspace::open(scratch.path()).unwrap();
        let path = scratch.path().join("run.sh");
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o750)).unwrap();
        write(&workspace, "run.sh", "new").unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o750);
        let place = Place::create(&workspace, Path::new("run.sh")).unwrap();
        drop(place.stage(b"abandoned").unwrap());
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 1);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
    }

    #[test]
    fn git_keeps_its_own_files_even_behind_a_symlink() {
        let scratch = scratch();
        std::fs::create_dir(scratch.path().join(".git")).unwrap();
        symlink(".git", scratch.path().join("harmless")).unwrap();
        let workspace = Workspace::open(scratch.path()).unwrap();
        for path in [
            ".git/config",
            "a/.GIT/config",
            "harmless/hooks/pre-commit",
            ".git",
        ] {
            let refused = write(&workspace, path, "x").unwrap_err();
            assert!(
                matches!(refused, PathError::Protected { .. }),
                "{path}: {refused}"
            );
        }
        write(&workspace, ".gitignore", "target\n").unwrap();
    }

    #[test]
    fn a_planted_symlink_is_neither_written_through_nor_waited_for() {
        let scratch = scratch();
        let (root, outside) = (scratch.path().join("app"), scratch.path().join("outside"));
        std::fs::create_dir(&root).unwrap();
        std::fs::write(&outside, "canary").unwrap();
        symlink(&outside, root.join("out")).unwrap();
        symlink("../new", root.join("dangling-out")).unwrap();
        symlink("nowhere", root.join("dangling")).unwrap();
        let workspace = Workspace::open(&root).unwrap();
        for path in ["out", "dangling-out", "dangling"] {
            write(&workspace, path, "x").unwrap_err();
        }
        // Planted after the path was resolved: the link goes, its target stays.
        let resolved = workspace.destination("late").unwrap();
        let place = Place::create(&workspace, &resolved).unwrap();
        let staged = place.stage(b"mine").unwrap();
        symlink(&outside, root.join("late")).unwrap();
        staged.commit().unwrap();
        assert_eq!(std::fs::read_to_string(root.join("late")).unwrap(), "mine");
        assert_eq!(std::fs::read_to_string(&outside).unwrap(), "canary");
        assert!(!scratch.path().join("new").exists());
    }
}

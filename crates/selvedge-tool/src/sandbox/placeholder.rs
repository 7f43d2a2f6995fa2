//! A protected folder that does not exist cannot be made by a command either.
//!
//! A place that is not there cannot be covered. So an empty folder stands there while
//! commands run, and goes when the last of them has ended: commands of other sessions
//! may have covered it too, and a folder that is removed uncovers it for them.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use std::os::fd::OwnedFd;

use super::surroundings::PROTECTED_FOLDERS;

/// Keeps the protected folders of a workspace in place.
pub(crate) struct Placeholder {
    folders: Vec<(PathBuf, OwnedFd)>,
}

// Somebody else's may go just then, but not always.
const TRIES_MAX: usize = 16;

impl Placeholder {
    /// Makes those folders of `workspace` that are missing.
    pub(crate) fn make(workspace: &Path) -> io::Result<Self> {
        let mut folders = Vec::new();
        for name in PROTECTED_FOLDERS {
            let path = workspace.join(name);
            if let Some(handle) = stand(&path)? {
                folders.push((path, handle));
            }
        }
        Ok(Self { folders })
    }
}

impl Drop for Placeholder {
    fn drop(&mut self) {
        for (path, handle) in &self.folders {
            // Alone with it, and it is empty: then it was a placeholder.
            if flock(handle, FlockOperation::NonBlockingLockExclusive).is_ok() {
                let _ = std::fs::remove_dir(path);
            }
        }
    }
}

/// The handle of an empty folder at `path`, which is in use now; none if there is
/// something that needs no placeholder.
fn stand(path: &Path) -> io::Result<Option<OwnedFd>> {
    for _ in 0..TRIES_MAX {
        match std::fs::create_dir(path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            // Where a folder cannot be made, a command cannot make it either.
            Err(_) => return Ok(None),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = match open(path, flags, Mode::empty()) {
            Ok(handle) => handle,
            Err(rustix::io::Errno::NOENT) => continue,
            // A file or a link: it is there, and protected as it is.
            Err(_) => return Ok(None),
        };
        if std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some()) {
            return Ok(None);
        }
        // Exclusive locks are held for a moment only, by somebody who removes it.
        flock(&handle, FlockOperation::LockShared)?;
        if is_at(&handle, path) {
            return Ok(Some(handle));
        }
    }
    Err(io::Error::other(format!(
        "`{}` comes and goes",
        path.display()
    )))
}

fn is_at(handle: &OwnedFd, path: &Path) -> bool {
    let (Ok(held), Ok(there)) = (rustix::fs::fstat(handle), rustix::fs::lstat(path)) else {
        return false;
    };
    (held.st_dev, held.st_ino) == (there.st_dev, there.st_ino)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_stands_as_long_as_somebody_needs_it() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join(".selvedge");
        let one = Placeholder::make(scratch.path()).unwrap();
        let other = Placeholder::make(scratch.path()).unwrap();
        assert!(folder.is_dir());
        drop(one);
        assert!(folder.is_dir(), "the other one needs it");
        drop(other);
        assert!(!folder.exists());
    }

    #[test]
    fn what_was_there_stays() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join(".selvedge");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("config.toml"), "").unwrap();
        drop(Placeholder::make(scratch.path()).unwrap());
        assert!(folder.join("config.toml").exists());
    }
}

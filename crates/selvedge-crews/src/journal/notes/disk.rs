//! Files: written whole or not at all, by one writer at a time.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// Why notes cannot be read or written. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[error("`{}` cannot be {verb}: {source}", path.display())]
pub struct NotesError {
    verb: &'static str,
    /// Which file.
    pub path: PathBuf,
    source: std::io::Error,
}

impl NotesError {
    pub(super) fn new(verb: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self {
            verb,
            path: path.to_owned(),
            source,
        }
    }
}

/// That no other process writes; given back when it is dropped, or its holder is gone.
pub(super) struct Lock(#[expect(dead_code, reason = "held, not read")] File);

impl Lock {
    /// Waits until nobody else writes below `root`.
    pub(super) fn take(root: &Path) -> Result<Self, NotesError> {
        std::fs::create_dir_all(root).map_err(|e| NotesError::new("written", root, e))?;
        let path = root.join(".lock");
        let locked = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .and_then(|file| {
                while let Err(error) = flock(&file, FlockOperation::LockExclusive) {
                    if error != rustix::io::Errno::INTR {
                        return Err(error.into());
                    }
                }
                Ok(file)
            });
        locked
            .map(Self)
            .map_err(|e| NotesError::new("locked", &path, e))
    }
}

/// The content of a file; none if there is no such file.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, NotesError> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(NotesError::new("read", path, error)),
    }
}

/// Puts new content in the place of a file, on disk before it returns. Whoever holds the
/// lock is alone, so one name for what is not complete yet is enough.
pub(super) fn replace(path: &Path, content: &[u8]) -> Result<(), NotesError> {
    let folder = path.parent().expect("a file is in a folder");
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let draft = folder.join(format!(".{name}.tmp"));
    let replaced = (|| {
        std::fs::create_dir_all(folder)?;
        let mut file = File::create(&draft)?;
        if let Ok(present) = std::fs::metadata(path) {
            file.set_permissions(present.permissions())?;
        }
        file.write_all(content)?;
        file.sync_all()?;
        std::fs::rename(&draft, path)?;
        File::open(folder)?.sync_all()
    })();
    replaced.map_err(|error| {
        // What is not complete is of use to nobody.
        let _ = std::fs::remove_file(&draft);
        NotesError::new("written", path, error)
    })
}

/// The folders whose names are so many digits, with their names.
pub(super) fn folders(folder: &Path, digits: usize) -> Result<Vec<(String, PathBuf)>, NotesError> {
    let is_number = |name: &str| name.len() == digits && name.bytes().all(|b| b.is_ascii_digit());
    let mut found = listed(folder)?;
    found.retain(|(name, _)| is_number(name));
    Ok(found)
}

/// The files with an ending, by name without it.
pub(super) fn files(folder: &Path, ending: &str) -> Result<Vec<(String, PathBuf)>, NotesError> {
    let listed = listed(folder)?.into_iter();
    let stem =
        |(name, path): (String, PathBuf)| Some((name.strip_suffix(ending)?.to_owned(), path));
    Ok(listed.filter_map(stem).collect())
}

fn listed(folder: &Path) -> Result<Vec<(String, PathBuf)>, NotesError> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(NotesError::new("read", folder, error)),
    };
    let named = entries.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        Some((name, entry.path()))
    });
    Ok(named.collect())
}

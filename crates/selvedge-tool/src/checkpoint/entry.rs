//! What was at a path: a file, a link, a folder, or nothing.

use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, readlinkat, statat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::workspace::{FILE_BYTES_MAX, Workspace};

/// A path, and what was there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) path: PathBuf,
    pub(super) was: Was,
}

/// What was at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Was {
    Absent,
    Folder,
    Link {
        target: PathBuf,
    },
    File {
        mode: u32,
        /// Where its content begins in the file of contents; nowhere, if it is not kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<u64>,
        bytes: u64,
        hash: String,
    },
    /// A pipe, a socket: left alone.
    Other,
}

impl Was {
    /// Whether the same is there, wherever its content is kept.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::File { mode, hash, .. },
                Self::File {
                    mode: other_mode,
                    hash: other_hash,
                    ..
                },
            ) => (mode, hash) == (other_mode, other_hash),
            (one, other) => one == other,
        }
    }

    /// Whether its content can be had again once `was` is put in its place.
    pub(super) fn is_kept_beside(&self, was: &Self) -> bool {
        match (self, was) {
            (Self::File { at: Some(_), .. }, _) => true,
            (Self::File { hash, .. }, Self::File { hash: other, .. }) => hash == other,
            (Self::File { .. }, _) => false,
            _ => true,
        }
    }
}

/// What is at a place of the workspace now. A file's content is given to `keep`,
/// which says where it put it, if it did. No symlink is followed.
pub(super) fn look(
    workspace: &Workspace,
    place: &Path,
    keep: impl FnOnce(&[u8]) -> io::Result<Option<u64>>,
) -> io::Result<Was> {
    let Some(name) = place.file_name() else {
        return Ok(Was::Folder);
    };
    let parent = match workspace.open_dir(place.parent().unwrap_or(Path::new(""))) {
        Ok(parent) => parent,
        // There is no folder that it could be in.
        Err(error) if is_no_folder(&error) => return Ok(Was::Absent),
        Err(error) => return Err(error),
    };
    let kind = match statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => FileType::from_raw_mode(stat.st_mode),
        Err(Errno::NOENT) => return Ok(Was::Absent),
        Err(error) => return Err(error.into()),
    };
    match kind {
        FileType::Directory => Ok(Was::Folder),
        FileType::Symlink => {
            let target = readlinkat(&parent, name, Vec::new())?.into_bytes();
            let target = PathBuf::from(std::ffi::OsString::from_vec(target));
            Ok(Was::Link { target })
        }
        FileType::RegularFile => file(workspace, place, keep),
        _ => Ok(Was::Other),
    }
}

fn file(
    workspace: &Workspace,
    place: &Path,
    keep: impl FnOnce(&[u8]) -> io::Result<Option<u64>>,
) -> io::Result<Was> {
    let file = workspace.open_at(place)?;
    let metadata = file.metadata()?;
    let kind = metadata.file_type();
    if kind.is_fifo() || kind.is_socket() {
        return Ok(Was::Other);
    }
    let mut content = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut content)?;
    if content.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::from(io::ErrorKind::FileTooLarge));
    }
    Ok(Was::File {
        mode: metadata.mode() & 0o7777,
        at: keep(&content)?,
        bytes: content.len() as u64,
        hash: blake3::hash(&content).to_hex().to_string(),
    })
}

/// Whether a folder on the way is missing, or is no folder: a link counts as none.
fn is_no_folder(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    let is_link = error.raw_os_error() == Some(Errno::LOOP.raw_os_error());
    is_link || matches!(error.kind(), NotFound | NotADirectory)
}

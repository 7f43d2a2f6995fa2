//! Which folders the user vouches for.
//!
//! What a repository brings along may make a run safer and never less safe, until
//! its user has looked at it and says so. That holds for what was looked at: when
//! one of the files changes, it is asked for again.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use selvedge_ledger::BlobId;

use crate::error::{Error, Result};
use crate::paths::Paths;

/// More than this is no configuration.
const FILES_MAX: usize = 1000;
/// Where a project lists servers of the Model Context Protocol.
pub const SERVERS: &str = ".mcp.json";
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// How a folder stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// The user vouches for it as it is.
    Given,
    /// The user vouched for it, and it has changed since.
    Stale,
    /// Nobody vouches for it.
    None,
}

impl Trust {
    /// How `workspace` stands. What cannot be read is not trusted.
    pub fn of(paths: &Paths, workspace: &Path) -> Self {
        let known = read(&paths.trusted()).unwrap_or_default();
        match known.get(workspace) {
            Some(digest) if Some(digest) == digest_of(workspace).as_ref() => Self::Given,
            Some(_) => Self::Stale,
            None => Self::None,
        }
    }

    /// Whether the user vouches for it.
    pub fn is_given(self) -> bool {
        self == Self::Given
    }
}

/// Vouches for a folder as it is now, or no longer.
pub fn set(paths: &Paths, workspace: &Path, is_trusted: bool) -> Result<()> {
    paths.make_data()?;
    let file = paths.trusted();
    let failed = |error: std::io::Error| {
        Error::failed(format!("`{}` cannot be written", file.display()))
            .cause(error)
            .hint("make the data folder writable")
    };
    let mut known = read(&file).map_err(failed)?;
    if is_trusted {
        let digest = digest_of(workspace).ok_or_else(|| {
            Error::failed(format!(
                "what `{}` brings along cannot be read as a whole",
                workspace.display()
            ))
            .cause("it has links, too many files, or files that are too large")
            .hint("look at `.selvedge`, `.mcp.json`, `.agents/skills` and `.claude/skills` in it")
        })?;
        known.insert(workspace.to_owned(), digest);
    } else {
        known.remove(workspace);
    }
    let text = serde_json::to_vec_pretty(&known).expect("paths that are text serialize");
    let fresh = file.with_extension("new");
    let write = || {
        let _ = std::fs::remove_file(&fresh);
        let mut options = std::fs::OpenOptions::new();
        let mut new = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&fresh)?;
        new.write_all(&text)?;
        new.sync_all()?;
        std::fs::rename(&fresh, &file)
    };
    write().map_err(failed)
}

/// The files of a folder that trust is about, by their path in it.
pub fn files(workspace: &Path) -> Option<Vec<PathBuf>> {
    let mut found = Vec::new();
    let servers = workspace.join(SERVERS);
    match std::fs::symlink_metadata(&servers) {
        Ok(metadata) if metadata.is_file() => found.push(servers),
        Ok(_) => return None,
        Err(_) => {}
    }
    // What comes with a skill may be run once its folder is trusted.
    let folders = [".selvedge", ".agents/skills", ".claude/skills"];
    let roots = folders.map(|folder| workspace.join(folder));
    let mut folders: Vec<PathBuf> = roots.to_vec();
    while let Some(folder) = folders.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(_) => return None,
        };
        for entry in entries {
            let entry = entry.ok()?;
            let kind = entry.file_type().ok()?;
            match () {
                () if entry.file_name() == "worktrees" => {}
                // The same skill under a second name.
                () if kind.is_symlink() && leads_into(&roots, &entry.path()) => {}
                () if kind.is_dir() => folders.push(entry.path()),
                () if kind.is_file() && found.len() < FILES_MAX => found.push(entry.path()),
                () => return None,
            }
        }
    }
    found.sort();
    Some(found)
}

/// Whether a link leads to what is looked at anyway.
fn leads_into(roots: &[PathBuf], link: &Path) -> bool {
    let Ok(place) = link.canonicalize() else {
        return false;
    };
    let mut roots = roots.iter().filter_map(|root| root.canonicalize().ok());
    roots.any(|root| place.starts_with(root))
}

/// What the trusted files say, all of them.
fn digest_of(workspace: &Path) -> Option<String> {
    let mut all = Vec::new();
    for file in files(workspace)? {
        let content = std::fs::read(&file).ok()?;
        if content.len() as u64 > FILE_BYTES_MAX {
            return None;
        }
        let name = file
            .strip_prefix(workspace)
            .ok()?
            .to_string_lossy()
            .into_owned();
        all.push((name, BlobId::of(&content).to_string()));
    }
    let bytes = serde_json::to_vec(&all).expect("strings serialize");
    Some(BlobId::of(&bytes).to_string())
}

fn read(file: &Path) -> std::io::Result<BTreeMap<PathBuf, String>> {
    match std::fs::read(file) {
        Ok(text) => Ok(serde_json::from_slice(&text).unwrap_or_default()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(error) => Err(error),
    }
}

//! What files were before an agent touched them, kept so that they can be put back.
//!
//! A checkpoint is a private folder beside the workspace, not in it: a list of paths
//! with what was there, and the contents in one file after the other. It does without
//! git, which knows nothing of ignored files and would disturb what the user has
//! staged. Everything is on disk before the change is made that it is kept for.
//!
//! Putting back is itself kept first, so that nothing is lost by it.
//!
//! A file that may hold a secret is never copied: its hash tells whether it changed, and
//! whoever puts files back is told that this one stays as it is.

mod back;
mod entry;

pub use back::Restored;

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::fs::FileType;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::secrets::Secrets;
use crate::workspace::{FILE_BYTES_MAX, Walk, Workspace};
use entry::{Entry, Was, look};

/// A workspace with more than this is not kept as a whole: only the files that tools
/// name are.
const FILES_MAX: usize = 5_000;
const BYTES_MAX: u64 = 64 * 1024 * 1024;

const LIST: &str = "list.jsonl";
const CONTENTS: &str = "contents";
const UNDONE: &str = "undone";
const NOT_KEPT: &str =
    "it may hold a secret, so snapshots do not keep its content; it stays as it is now";

/// What files were, in a folder of its own.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    folder: PathBuf,
    secrets: Secrets,
    /// What it holds, once that was read.
    held: Arc<Mutex<Option<Held>>>,
}

/// How much of a workspace was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    /// The files that were named.
    Named,
    /// Every file that git would not ignore.
    Whole,
    /// The workspace is too large to be kept as a whole.
    TooLarge,
}

/// A line of the list.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Entry(Entry),
    Note { coverage: Coverage },
}

/// What a checkpoint holds, by path.
#[derive(Clone, Debug, Default)]
struct Held {
    entries: BTreeMap<PathBuf, Was>,
    coverage: Option<Coverage>,
}

impl Checkpoint {
    /// The checkpoint in `folder`, which need not exist. Nothing is copied into it in
    /// which there is one of `secrets`.
    pub fn at(folder: impl Into<PathBuf>, secrets: Secrets) -> Self {
        Self {
            folder: folder.into(),
            secrets,
            held: Arc::default(),
        }
    }

    /// Keeps what is at `paths` now, as far as it was not kept before. Answers how
    /// many files that were.
    pub fn keep(&self, workspace: &Workspace, paths: &[String]) -> io::Result<usize> {
        let mut wanted = Vec::new();
        for path in paths {
            // A path that leads nowhere, or out, is refused by the tool itself.
            let Ok(place) = workspace.destination(path) else {
                continue;
            };
            let above = place.ancestors().skip(1).filter(|a| *a != Path::new(""));
            wanted.extend(above.map(Path::to_owned));
            wanted.push(place);
        }
        wanted.sort();
        wanted.dedup();
        self.add(workspace, wanted, Coverage::Named)
    }

    /// Keeps every file of the workspace that git would not ignore, once.
    pub fn keep_all(
        &self,
        workspace: &Workspace,
        cancel: &CancellationToken,
    ) -> io::Result<Coverage> {
        let covered = self.held()?.as_ref().and_then(|held| held.coverage);
        if let Some(coverage @ (Coverage::Whole | Coverage::TooLarge)) = covered {
            return Ok(coverage);
        }
        let (places, is_whole) = survey(workspace, cancel)?;
        if !is_whole {
            self.add(workspace, Vec::new(), Coverage::TooLarge)?;
            return Ok(Coverage::TooLarge);
        }
        self.add(workspace, places, Coverage::Whole)?;
        Ok(Coverage::Whole)
    }

    /// Adds what is at `places` now to the list, durably.
    fn add(
        &self,
        workspace: &Workspace,
        places: Vec<PathBuf>,
        coverage: Coverage,
    ) -> io::Result<usize> {
        let mut held = self.held()?;
        let held = held.get_or_insert_default();
        let is_new = |place: &PathBuf| !held.entries.contains_key(place);
        let places: Vec<PathBuf> = places.into_iter().filter(is_new).collect();
        if places.is_empty() && matches!(coverage, Coverage::Named) {
            return Ok(0);
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        self.secrets.know_workspace(workspace);
        let (mut list, mut contents) = (self.append(LIST)?, self.append(CONTENTS)?);
        let mut end = contents.seek(SeekFrom::End(0))?;
        // A line of its own, even after one that a crash cut off.
        let (mut lines, mut entries) = (vec![b'\n'], Vec::new());
        for path in places {
            let was = look(workspace, &path, |content| {
                if self.is_secret(&path, content) {
                    return Ok(None);
                }
                contents.write_all(content)?;
                let at = end;
                end += content.len() as u64;
                Ok(Some(at))
            })?;
            entries.push((path.clone(), was.clone()));
            push(&mut lines, &Line::Entry(Entry { path, was }));
        }
        if coverage != Coverage::Named {
            push(&mut lines, &Line::Note { coverage });
        }
        contents.sync_data()?;
        list.write_all(&lines)?;
        list.sync_data()?;
        let count = entries.len();
        held.entries.extend(entries);
        if coverage != Coverage::Named {
            held.coverage = Some(coverage);
        }
        Ok(count)
    }

    /// What it holds, read if it was not yet.
    fn held(&self) -> io::Result<MutexGuard<'_, Option<Held>>> {
        let mut held = self.held.lock().expect("no panic under this lock");
        if held.is_none() {
            *held = Some(self.read()?);
        }
        Ok(held)
    }

    /// The list. A line that a crash cut off was kept for a change that never began.
    fn read(&self) -> io::Result<Held> {
        let mut held = Held::default();
        let list = match File::open(self.folder.join(LIST)) {
            Ok(list) => list,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(held),
            Err(error) => return Err(error),
        };
        for line in BufReader::new(list).lines() {
            match serde_json::from_str(&line?) {
                // The first is the oldest: what it was before anything happened.
                Ok(Line::Entry(Entry { path, was })) => {
                    held.entries.entry(path).or_insert(was);
                }
                Ok(Line::Note { coverage }) => held.coverage = Some(coverage),
                Err(_) => {}
            }
        }
        Ok(held)
    }

    fn is_secret(&self, path: &Path, content: &[u8]) -> bool {
        self.secrets.is_sensitive(path) || self.secrets.is_in(&String::from_utf8_lossy(content))
    }

    /// The content of a kept file.
    fn content(&self, at: Option<u64>, bytes: u64, hash: &str) -> io::Result<Vec<u8>> {
        let at = at.ok_or_else(|| io::Error::other(NOT_KEPT))?;
        let mut contents = File::open(self.folder.join(CONTENTS))?;
        contents.seek(SeekFrom::Start(at))?;
        let mut content = Vec::new();
        contents.take(bytes).read_to_end(&mut content)?;
        match blake3::hash(&content).to_hex().as_str() == hash {
            true => Ok(content),
            false => Err(io::Error::other("what was kept of it is damaged")),
        }
    }

    fn append(&self, name: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600);
        options.open(self.folder.join(name))
    }
}

fn push(lines: &mut Vec<u8>, line: &Line) {
    serde_json::to_writer(&mut *lines, line).expect("plain data, into memory");
    lines.push(b'\n');
}

/// Everything below the root that git would not ignore, and whether that is within
/// bounds.
fn survey(workspace: &Workspace, cancel: &CancellationToken) -> io::Result<(Vec<PathBuf>, bool)> {
    let (mut places, mut bytes, mut fits) = (Vec::new(), 0, true);
    let seen = Walk::new(workspace, cancel).each(Path::new(""), |found| {
        if found.kind == FileType::RegularFile {
            let size = workspace.dir().symlink_metadata(&found.path);
            let size = size.map_or(0, |metadata| metadata.len());
            bytes += size;
            fits &= size <= FILE_BYTES_MAX;
        }
        fits &= bytes <= BYTES_MAX && places.len() < FILES_MAX;
        places.push(found.path);
        fits
    })?;
    Ok((places, seen && fits))
}

#[cfg(test)]
mod tests;

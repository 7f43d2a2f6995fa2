//! Reads a project into the index, and later only what has changed of it.
//!
//! Files are read, taken apart and embedded on as many threads as there are processors;
//! one thread writes. A file's symbols, words, vectors and its own row are in one
//! transaction, so a kill leaves whole files behind, and the next run goes on with those
//! that are missing.

mod behind;
mod file;
mod jsonl;
mod resolve;
mod walk;
mod watch;

pub use jsonl::{load_jsonl, parse_moment};
pub use watch::{Watching, watch};

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use rusqlite::params;
use serde::Serialize;

use crate::error::{KnowledgeError, Result};
use crate::store::Index;
use file::Prepared;
use walk::Candidate;

/// Nodes of one transaction: large enough to be quick, small enough to let others write.
const NODES_PER_COMMIT: usize = 3_000;
/// Files that were read and wait to be written.
const WAITING_MAX: usize = 64;

/// What must not be in an index.
pub trait Discretion: Send + Sync {
    /// Whether a file is not to be read at all, by its name.
    fn is_sensitive(&self, path: &Path) -> bool;

    /// The text without secrets.
    fn clean<'a>(&self, text: &'a str) -> Cow<'a, str>;
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Files that are done.
    pub done: usize,
    /// Files that have to be.
    pub total: usize,
}

/// What is needed to index a project.
pub struct Project<'a> {
    /// Its folder.
    pub root: PathBuf,
    /// What must not be read.
    pub discretion: &'a dyn Discretion,
    /// Told how far it is.
    pub progress: &'a (dyn Fn(Progress) + Sync),
    /// Set when it must stop; what was written by then stays.
    pub stop: &'a AtomicBool,
}

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Files that the project has.
    pub files: usize,
    /// Files that were new or had changed.
    pub indexed: usize,
    /// Files that are gone.
    pub removed: usize,
    /// Nodes that were written or removed.
    pub nodes: usize,
    /// Lines of the files that were indexed.
    pub lines: usize,
    /// What was left out, and why.
    pub skipped: Vec<Skipped>,
    /// Whether it was told to stop before its end.
    pub stopped: bool,
}

/// Something that was left out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Skipped {
    /// Where.
    pub path: String,
    /// Why.
    pub why: String,
}

/// Brings the index up to date with a project.
pub fn index_project(index: &Index, project: &Project<'_>) -> Result<Report> {
    let _lock = Lock::take(index.path())?;
    let seen = walk::candidates(&project.root, project.discretion)?;
    let known = known_files(index)?;
    let mut report = Report {
        files: seen.files.len(),
        skipped: seen.skipped,
        ..Report::default()
    };
    report.removed = remove_missing(index, &known, &seen.files)?;
    let now = index.now();
    let changed: Vec<&Candidate> = seen
        .files
        .iter()
        .filter(|file| known.get(&file.path).is_none_or(|k| !k.is_current(file)))
        .collect();
    let root = project.root.display().to_string();
    if index.remark("root")?.as_deref() != Some(&root) {
        index.set_remark("root", &root)?;
    }
    read_and_write(index, project, &changed, &known, &mut report)?;
    if !report.stopped {
        resolve::draw_edges(index)?;
        index.tidy_postings()?;
    }
    if report.indexed > 0 || report.removed > 0 {
        index.set_remark("indexed", &now.0.to_string())?;
    }
    report.skipped.sort();
    report.skipped.dedup();
    Ok(report)
}

/// Reads on all processors, writes on this thread.
fn read_and_write(
    index: &Index,
    project: &Project<'_>,
    changed: &[&Candidate],
    known: &HashMap<String, Known>,
    report: &mut Report,
) -> Result<()> {
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let next = AtomicUsize::new(0);
    let halt = AtomicBool::new(false);
    let (send, receive) = mpsc::sync_channel::<Prepared>(WAITING_MAX);
    let embedder = index.embedder().clone();
    std::thread::scope(|scope| {
        for _ in 0..threads.min(changed.len()) {
            let (send, next, halt, embedder) = (send.clone(), &next, &halt, &embedder);
            scope.spawn(move || {
                while !halt.load(Ordering::Relaxed) && !project.stop.load(Ordering::Relaxed) {
                    let Some(candidate) = changed.get(next.fetch_add(1, Ordering::Relaxed)) else {
                        break;
                    };
                    let before = known
                        .get(&candidate.path)
                        .map(|known| known.hash.as_slice());
                    let prepared = file::prepare(
                        &project.root,
                        candidate,
                        before,
                        project.discretion,
                        &**embedder,
                    );
                    if send.send(prepared).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        let written = write(index, project, receive, changed.len(), report);
        halt.store(true, Ordering::Relaxed);
        written
    })?;
    report.stopped = project.stop.load(Ordering::Relaxed);
    Ok(())
}

fn write(
    index: &Index,
    project: &Project<'_>,
    prepared: mpsc::Receiver<Prepared>,
    total: usize,
    report: &mut Report,
) -> Result<()> {
    let mut done = 0;
    let mut prepared = prepared.into_iter().peekable();
    while prepared.peek().is_some() {
        index.transaction(|index| {
            let mut nodes = 0;
            while nodes < NODES_PER_COMMIT
                && let Some(one) = prepared.next()
            {
                done += 1;
                let written = file::write(index, &one, report)?;
                nodes += written;
                report.nodes += written;
                (project.progress)(Progress { done, total });
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// What is known of a file since it was indexed.
struct Known {
    key: i64,
    hash: Vec<u8>,
    size: u64,
    modified: i64,
    indexed: i64,
}

/// A file that was changed less than this before it was indexed is looked into again:
/// its next change may bear the same time.
const DOUBT_MILLIS: i64 = 2_000;

impl Known {
    fn is_current(&self, file: &Candidate) -> bool {
        let modified_millis = self.modified / 1_000_000;
        self.size == file.size
            && self.modified == file.modified
            && self.indexed - modified_millis > DOUBT_MILLIS
    }
}

fn known_files(index: &Index) -> Result<HashMap<String, Known>> {
    let mut find = index
        .connection
        .prepare("SELECT path, key, hash, size, modified, indexed FROM files")?;
    let rows = find.query_map([], |row| {
        let known = Known {
            key: row.get(1)?,
            hash: row.get(2)?,
            size: row.get(3)?,
            modified: row.get(4)?,
            indexed: row.get(5)?,
        };
        Ok((row.get(0)?, known))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Deletes the traces of files that are gone.
fn remove_missing(
    index: &Index,
    known: &HashMap<String, Known>,
    there: &[Candidate],
) -> Result<usize> {
    let there: std::collections::HashSet<&str> = there.iter().map(|f| f.path.as_str()).collect();
    let gone: Vec<&Known> = known
        .iter()
        .filter(|(path, _)| !there.contains(path.as_str()))
        .map(|(_, known)| known)
        .collect();
    if gone.is_empty() {
        return Ok(0);
    }
    index.transaction(|index| {
        for known in &gone {
            index
                .connection
                .prepare_cached("DELETE FROM files WHERE key = ?1")?
                .execute(params![known.key])?;
        }
        Ok(())
    })?;
    Ok(gone.len())
}

/// Keeps two processes from indexing the same at once. Freed when its holder ends,
/// however it ends.
struct Lock(#[allow(dead_code)] File);

impl Lock {
    fn take(index: &Path) -> Result<Self> {
        let path = index.with_extension("lock");
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|error| KnowledgeError::file(&path, error))?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(KnowledgeError::Busy {
                path: index.display().to_string(),
            }),
            Err(TryLockError::Error(error)) => Err(KnowledgeError::file(&path, error)),
        }
    }
}

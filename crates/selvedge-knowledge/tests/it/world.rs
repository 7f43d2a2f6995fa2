//! A project of its own for each test, and an index beside it.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use selvedge_knowledge::{
    Clock, Discretion, Embedder, Hashed, Hit, Index, Progress, Project, Query, Report, Time,
    index_project,
};
use tempfile::TempDir;

pub const DAY: i64 = 24 * 60 * 60 * 1000;
/// Long after every file of a test was written, so that none is in doubt.
pub const NOW: i64 = 4_000_000_000_000;

pub struct World {
    root: PathBuf,
    /// Removed with its owner; a world of somebody else's stays.
    #[expect(dead_code, reason = "it is only ever dropped")]
    owned: Option<TempDir>,
    now: Arc<AtomicI64>,
}

/// Takes files called `.env` and the word `hunter2` for secrets.
pub struct Careful;

impl Discretion for Careful {
    fn is_sensitive(&self, path: &Path) -> bool {
        path.file_name().is_some_and(|name| name == "secrets.txt")
    }

    fn clean<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match text.contains("hunter2") {
            true => Cow::Owned(text.replace("hunter2", "[REDACTED]")),
            false => Cow::Borrowed(text),
        }
    }
}

impl World {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("project")).unwrap();
        let world = Self::at(root.path());
        Self {
            owned: Some(root),
            ..world
        }
    }

    /// The world of another process.
    pub fn at(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            owned: None,
            now: Arc::new(AtomicI64::new(NOW)),
        }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Removes the index with everything that belongs to it.
    pub fn forget_index(&self) {
        for ending in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{ending}", self.file().display()));
        }
    }

    pub fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    pub fn file(&self) -> PathBuf {
        self.root.join("index.db")
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.project().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn remove(&self, path: &str) {
        std::fs::remove_file(self.project().join(path)).unwrap();
    }

    pub fn clock(&self) -> Clock {
        let now = self.now.clone();
        Arc::new(move || Time(now.load(Ordering::Relaxed)))
    }

    /// Lets time pass.
    pub fn pass(&self, millis: i64) {
        self.now.fetch_add(millis, Ordering::Relaxed);
    }

    pub fn open(&self) -> Index {
        self.open_with(Arc::new(Hashed))
    }

    pub fn open_with(&self, embedder: Arc<dyn Embedder>) -> Index {
        Index::open(&self.file(), embedder, self.clock()).unwrap()
    }

    pub fn index(&self) -> (Index, Report) {
        let index = self.open();
        let report = self.refresh(&index);
        (index, report)
    }

    pub fn refresh(&self, index: &Index) -> Report {
        self.refresh_with(index, &|_| {})
    }

    /// The same, with somebody who is told how far it is.
    pub fn refresh_with(&self, index: &Index, progress: &(dyn Fn(Progress) + Sync)) -> Report {
        let project = Project {
            root: self.project(),
            discretion: &Careful,
            progress,
            stop: &AtomicBool::new(false),
        };
        index_project(index, &project).unwrap()
    }
}

/// What is found, as `name path:line`.
pub fn found(index: &Index, text: &str) -> Vec<String> {
    hits(index, text).iter().map(place).collect()
}

pub fn hits(index: &Index, text: &str) -> Vec<Hit> {
    index.search(&Query::new(text)).unwrap().hits
}

fn place(hit: &Hit) -> String {
    let node = &hit.node;
    let path = node.path.as_deref().unwrap_or("-");
    let line = node.lines.map_or(0, |(line, _)| line);
    format!("{} {path}:{line}", node.name)
}

//! Which files a project has, as far as an index is concerned.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ignore::WalkBuilder;

use super::{Discretion, Skipped};
use crate::error::{KnowledgeError, Result};
use crate::lang::Language;

/// Folders that somebody else's code, or a program's output, is in. They are left out
/// even where git knows them, and the report says so.
const FOREIGN: &[&str] = &[
    "node_modules",
    "vendor",
    "third_party",
    "dist",
    "build",
    "target",
    "__pycache__",
    "venv",
    "bower_components",
    "site-packages",
];
/// Files that are larger are data.
const SIZE_MAX: u64 = 2 << 20;
/// A PDF carries its fonts and pictures along.
const PDF_SIZE_MAX: u64 = 32 << 20;

/// A file that belongs into the index.
pub(super) struct Candidate {
    /// From the project's root, with `/` between folders.
    pub path: String,
    pub language: Language,
    pub size: u64,
    /// Nanoseconds since 1970.
    pub modified: i64,
}

pub(super) struct Seen {
    pub files: Vec<Candidate>,
    pub skipped: Vec<Skipped>,
}

/// The files of a project, in order of their paths.
pub(super) fn candidates(root: &Path, discretion: &dyn Discretion) -> Result<Seen> {
    if !root.is_dir() {
        return Err(KnowledgeError::file(root, "it is not a folder"));
    }
    let mut files = Vec::new();
    let mut skipped = Vec::new();
    let foreign: Arc<Mutex<Vec<PathBuf>>> = Arc::default();
    let noted = foreign.clone();
    let walk = WalkBuilder::new(root)
        .require_git(false)
        .parents(true)
        .sort_by_file_path(Path::cmp)
        .filter_entry(move |entry| {
            let is_foreign = entry.depth() > 0
                && entry.file_type().is_some_and(|kind| kind.is_dir())
                && entry
                    .file_name()
                    .to_str()
                    .is_some_and(|n| FOREIGN.contains(&n));
            if is_foreign {
                let mut noted = noted.lock().expect("no panic under this lock");
                noted.push(entry.path().to_owned());
            }
            !is_foreign
        })
        .build();
    for entry in walk {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                skipped.push(Skipped {
                    path: String::new(),
                    why: error.to_string(),
                });
                continue;
            }
        };
        let Ok(relative) = entry.path().strip_prefix(root) else {
            continue;
        };
        let Some(path) = relative.to_str() else {
            continue;
        };
        let path = path.replace('\\', "/");
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        let Some(language) = Language::of(relative) else {
            continue;
        };
        if discretion.is_sensitive(relative) {
            skipped.push(Skipped {
                path,
                why: "it may hold secrets".into(),
            });
            continue;
        }
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        let most = match language {
            Language::Pdf => PDF_SIZE_MAX,
            _ => SIZE_MAX,
        };
        if metadata.len() > most {
            skipped.push(Skipped {
                path,
                why: format!("it is larger than {} MB", most >> 20),
            });
            continue;
        }
        files.push(Candidate {
            path,
            language,
            size: metadata.len(),
            modified: modified(&metadata),
        });
    }
    let foreign = foreign.lock().expect("no panic under this lock");
    skipped.extend(foreign.iter().map(|path| Skipped {
        path: format!("{}/", path.strip_prefix(root).unwrap_or(path).display()),
        why: "generated or somebody else's".into(),
    }));
    Ok(Seen { files, skipped })
}

/// When a file was changed, in nanoseconds since 1970.
pub(super) fn modified(metadata: &std::fs::Metadata) -> i64 {
    let modified = metadata.modified().ok();
    let since = modified.and_then(|m| m.duration_since(std::time::UNIX_EPOCH).ok());
    since.map_or(0, |since| since.as_nanos() as i64)
}

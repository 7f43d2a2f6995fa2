//! Which files a workspace has, so that what has changed since can be told.
//!
//! It is what an agent's claims are held against: commands change files without
//! naming them. What git ignores is not looked at: a build fills it by the thousand.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use rustix::fs::FileType;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::builtin::blocking;
use crate::workspace::{Walk, Workspace};

/// A tree with more files is not surveyed: nothing is known, and nothing claimed.
const FILES_MAX: usize = 50_000;
/// Of a larger file, the beginning, the length and the time of its last change count.
const HASHED_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Longer lists help nobody; that they were cut is told.
const LISTED_MAX: usize = 500;

/// The files of a workspace, and a mark of each one's content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survey {
    files: BTreeMap<String, String>,
    /// Whether there were more files than could be looked at.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_partial: bool,
}

/// What has changed between two surveys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surveyed {
    /// Files that were not there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub created: Vec<String>,
    /// Files with another content.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modified: Vec<String>,
    /// Files that are gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deleted: Vec<String>,
    /// Whether there is more that could not be looked at or listed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_partial: bool,
    /// Of the files that were asked about: those that are not there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<String>,
    /// Of the files that were asked about: those that are as they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unchanged: Vec<String>,
}

impl Survey {
    /// Looks at every file of the workspace that git would not ignore.
    pub async fn take(root: &Path, cancel: &CancellationToken) -> std::io::Result<Self> {
        let (root, cancel) = (root.to_owned(), cancel.clone());
        blocking(move || look(&Workspace::open(&root)?, &cancel)).await
    }

    /// The same, with what became of the files that somebody claims to have changed. One
    /// that git ignores is in no survey, so for those the disk is looked at.
    pub fn compare_claimed(&self, later: &Self, root: &Path, claimed: &[String]) -> Surveyed {
        let mut found = self.compare(later);
        let is_on_disk = |path: &str| {
            let workspace = Workspace::open(root).ok();
            workspace.is_some_and(|workspace| workspace.dir().symlink_metadata(path).is_ok())
        };
        for path in claimed {
            match (self.files.get(path), later.files.get(path)) {
                (_, None) if !is_on_disk(path) => found.absent.push(path.clone()),
                (Some(before), Some(after)) if before == after => {
                    found.unchanged.push(path.clone());
                }
                _ => {}
            }
        }
        found
    }

    /// What has changed from this to `later`.
    pub fn compare(&self, later: &Self) -> Surveyed {
        let mut found = Surveyed {
            is_partial: self.is_partial || later.is_partial,
            ..Surveyed::default()
        };
        for (path, mark) in &later.files {
            match self.files.get(path) {
                None => found.created.push(path.clone()),
                Some(before) if before != mark => found.modified.push(path.clone()),
                Some(_) => {}
            }
        }
        let gone = |path: &&String| !later.files.contains_key(*path);
        found.deleted = self.files.keys().filter(gone).cloned().collect();
        for list in [&mut found.created, &mut found.modified, &mut found.deleted] {
            found.is_partial |= list.len() > LISTED_MAX;
            list.truncate(LISTED_MAX);
        }
        found
    }
}

fn look(workspace: &Workspace, cancel: &CancellationToken) -> std::io::Result<Survey> {
    let mut survey = Survey::default();
    let saw_all = Walk::new(workspace, cancel).each(Path::new(""), |found| {
        if found.kind == FileType::Directory {
            return true;
        }
        let path = found.path.to_string_lossy().into_owned();
        let mark = match found.kind {
            FileType::RegularFile => mark(workspace, &found.path),
            FileType::Symlink => workspace
                .dir()
                .read_link_contents(&found.path)
                .map(|target| format!("-> {}", target.display()))
                .ok(),
            _ => Some("special".into()),
        };
        // It went away meanwhile.
        if let Some(mark) = mark {
            survey.files.insert(path, mark);
        }
        survey.files.len() < FILES_MAX
    })?;
    survey.is_partial = !saw_all;
    Ok(survey)
}

fn mark(workspace: &Workspace, path: &Path) -> Option<String> {
    let file = workspace.open_at(path).ok()?;
    let metadata = file.metadata().ok()?;
    let mut hasher = blake3::Hasher::new();
    let mut content = Vec::new();
    (&file)
        .take(HASHED_BYTES_MAX)
        .read_to_end(&mut content)
        .ok()?;
    hasher.update(&content);
    if metadata.len() > HASHED_BYTES_MAX {
        let time = metadata.modified().ok()?;
        hasher.update(format!("{} {time:?}", metadata.len()).as_bytes());
    }
    Some(hasher.finalize().to_hex()[..16].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_changed_is_told_and_what_is_ignored_is_not() {
        let scratch = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = scratch.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(".gitignore", "target\n");
        write("same", "1");
        write("src/changed", "1");
        write("gone", "1");
        let cancel = CancellationToken::new();
        let before = Survey::take(scratch.path(), &cancel).await.unwrap();
        write("same", "1");
        write("src/changed", "2");
        write("src/new", "1");
        write("target/built", "1");
        std::fs::remove_file(scratch.path().join("gone")).unwrap();
        let after = Survey::take(scratch.path(), &cancel).await.unwrap();
        let expected = Surveyed {
            created: vec!["src/new".into()],
            modified: vec!["src/changed".into()],
            deleted: vec!["gone".into()],
            ..Surveyed::default()
        };
        assert_eq!(before.compare(&after), expected);
        assert_eq!(after.compare(&after), Surveyed::default());
        let claimed = [
            "same",
            "src/new",
            "target/built",
            "target/not",
            "gone",
            "../x",
        ];
        let claimed = claimed.map(str::to_owned);
        let looked = before.compare_claimed(&after, scratch.path(), &claimed);
        assert_eq!(looked.absent, ["target/not", "gone", "../x"]);
        assert_eq!(looked.unchanged, ["same"]);
    }
}

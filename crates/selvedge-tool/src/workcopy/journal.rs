//! Which files a merge is about to write, on disk before the first of them is.
//!
//! Who is killed between two files cannot take back the first. So the plan, with what
//! each file was and will be, is there before anything is written, and whoever comes
//! next puts back what was there. Only a file that somebody has changed since is left as
//! it is: it is remembered by name, for nobody may say that it was not touched.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use super::apply::{put_back, remove_empty};
use super::tree::Change;
use super::{CopyError, STAGING};
use crate::workspace::Workspace;

/// Everything that is to be written, in order.
const PLAN: &str = "applying.json";
/// A line for each file of the plan, before it is written: its place in the plan.
const BEGUN: &str = "applying.log";
/// Files that could not be put back, by name.
const TOUCHED: &str = "touched.json";

/// The journal of a merge that is being written.
pub(super) struct Journal {
    begun: File,
}

impl Journal {
    /// Puts down what will be written. What it was and will be is in the staging folder.
    pub(super) fn open(folder: &Path, changes: &[&Change]) -> io::Result<Self> {
        sync_below(&folder.join(STAGING))?;
        let begun = File::create(folder.join(BEGUN))?;
        begun.sync_all()?;
        let plan = serde_json::to_vec(changes).expect("plain data");
        replace(folder, PLAN, &plan)?;
        Ok(Self { begun })
    }

    /// Puts down that a file of the plan is written next.
    pub(super) fn begin(&mut self, n: usize) -> io::Result<()> {
        writeln!(self.begun, "{n}")?;
        self.begun.sync_data()
    }
}

/// Forgets the plan: all of it was written, or nothing of it is there any more.
pub(super) fn close(folder: &Path) -> io::Result<()> {
    // The plan goes first. Without it, the rest is only rubbish.
    for name in [PLAN, BEGUN] {
        match std::fs::remove_file(folder.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    let _ = std::fs::remove_dir_all(folder.join(STAGING));
    Ok(())
}

/// Puts back what a merge wrote that did not come to its end.
pub(super) fn recover(user: &Workspace, folder: &Path) -> Result<(), CopyError> {
    let Ok(plan) = std::fs::read(folder.join(PLAN)) else {
        return Ok(());
    };
    let unreadable = |error: serde_json::Error| {
        CopyError(format!(
            "a merge was cut short, and `{}`, which says what it wrote, cannot be read: {error}",
            folder.join(PLAN).display()
        ))
    };
    let plan: Vec<Change> = serde_json::from_slice(&plan).map_err(unreadable)?;
    let begun = std::fs::read_to_string(folder.join(BEGUN)).unwrap_or_default();
    let begun: BTreeSet<usize> = begun.lines().filter_map(|n| n.parse().ok()).collect();
    if let Some(last) = begun.last().and_then(|n| plan.get(*n)) {
        sweep(user, last);
    }
    let written: Vec<&Change> = begun.iter().filter_map(|n| plan.get(*n)).collect();
    undo(user, folder, &written)?;
    Ok(close(folder)?)
}

/// Puts back what was there before these changes, the last first, and remembers those
/// that it cannot.
pub(super) fn undo(user: &Workspace, folder: &Path, changes: &[&Change]) -> io::Result<()> {
    let staging = folder.join(STAGING);
    let mut left = Vec::new();
    for change in changes.iter().rev() {
        if !put_back(user, change, &staging).unwrap_or(false) {
            left.push(change.path.display().to_string());
        }
    }
    if left.is_empty() {
        return Ok(());
    }
    let all: BTreeSet<String> = touched(folder).into_iter().chain(left).collect();
    let all = serde_json::to_vec(&all).expect("plain data");
    replace(folder, TOUCHED, &all)
}

/// The files that a merge wrote and nobody could put back.
pub(super) fn touched(folder: &Path) -> Vec<String> {
    let text = std::fs::read(folder.join(TOUCHED)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// Forgets them: the work is merged, or another begins.
pub(super) fn forget(folder: &Path) {
    let _ = std::fs::remove_file(folder.join(TOUCHED));
}

/// Puts a whole file in the place of another, durably.
pub(super) fn replace(folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let path = folder.join(name);
    let unfinished = path.with_extension("tmp");
    std::fs::write(&unfinished, content)?;
    File::open(&unfinished)?.sync_all()?;
    std::fs::rename(&unfinished, &path)?;
    File::open(folder)?.sync_all()
}

/// Removes what stood beside the file that was being written, under a name of ours, and
/// the folders that were made for it.
fn sweep(user: &Workspace, last: &Change) {
    let folder = last.path.parent().unwrap_or(Path::new(""));
    for entry in user.root().join(folder).read_dir().into_iter().flatten() {
        let Ok(entry) = entry else { continue };
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_ours = name.starts_with(".selvedge-")
            && (name.ends_with(".tmp") || name.ends_with(".link"))
            && entry.file_type().is_ok_and(|kind| !kind.is_dir());
        if is_ours {
            let _ = user.dir().remove_file(folder.join(&*name));
        }
    }
    if !last.was_there() {
        remove_empty(user, &last.path);
    }
}

fn sync_below(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()? {
            kind if kind.is_dir() => sync_below(&entry.path())?,
            kind if kind.is_file() => {
                let file = OpenOptions::new().read(true).open(entry.path())?;
                file.sync_all()?;
            }
            _ => {}
        }
    }
    File::open(folder)?.sync_all()
}

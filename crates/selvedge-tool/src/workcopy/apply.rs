//! Writes a merge into the user's directory: every file or none.
//!
//! A file is written only if it still is what was merged. Should the user save it in
//! that very moment, what was written is taken back; should the process be killed, the
//! journal has what the next one needs for that.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::journal::{self, Journal};
use super::tree::Change;
use super::{CopyError, STAGING};
use crate::workspace::{Place, Workspace};

/// Writes the changes; false, and nothing is changed, if a file is another than the one
/// that was merged. The staging folder in `folder` has what each was, below `old`, and
/// will be, below `new`.
pub(super) fn apply(
    user: &Workspace,
    changes: &[Change],
    folder: &Path,
) -> Result<bool, CopyError> {
    let staging = folder.join(STAGING);
    let (old, new) = (staging.join("old"), staging.join("new"));
    // What goes goes first: a file may take the place of a folder.
    let mut changes: Vec<&Change> = changes.iter().collect();
    changes.sort_by_key(|change| change.is_there());
    let goes = changes.iter().filter(|change| !change.is_there());
    let goes: BTreeSet<PathBuf> = goes.map(|c| user.root().join(&c.path)).collect();
    let is_as_merged = |change: &Change| {
        let path = user.root().join(&change.path);
        match change.was_there() {
            true => is_same(&path, Some(&old.join(&change.path))),
            false => is_free(&path, &goes),
        }
    };
    for change in changes.iter().filter(|change| change.was_there()) {
        take_line_ends(&user.root().join(&change.path), &old.join(&change.path))?;
    }
    if !changes.iter().all(|change| is_as_merged(change)) {
        return Ok(false);
    }
    let mut journal = Journal::open(folder, &changes)?;
    for (n, change) in changes.iter().enumerate() {
        if !is_as_merged(change) {
            journal::undo(user, folder, &changes[..n])?;
            return Ok(false);
        }
        let is_executable = change.is_executable();
        let written = journal
            .begin(n)
            .and_then(|()| write(user, change, change.is_there(), &new, is_executable));
        if let Err(error) = written {
            journal::undo(user, folder, &changes[..=n])?;
            return Err(CopyError(format!(
                "`{}` cannot be written ({error})",
                change.path.display()
            )));
        }
    }
    Ok(true)
}

/// Puts back what was there, where it is as it was written; false where it is neither
/// that nor what it was before.
pub(super) fn put_back(user: &Workspace, change: &Change, staging: &Path) -> io::Result<bool> {
    let (old, new) = (staging.join("old"), staging.join("new"));
    let path = user.root().join(&change.path);
    let is = |is_there: bool, folder: &Path| {
        let other = is_there.then(|| folder.join(&change.path));
        is_same(&path, other.as_deref())
    };
    if is(change.was_there(), &old) {
        return Ok(true);
    }
    if !is(change.is_there(), &new) {
        return Ok(false);
    }
    let is_executable = change.was_executable();
    write(user, change, change.was_there(), &old, is_executable)?;
    Ok(true)
}

/// Makes a path what it is in a folder, or removes it.
fn write(
    user: &Workspace,
    change: &Change,
    is_there: bool,
    folder: &Path,
    is_executable: bool,
) -> io::Result<()> {
    let place = Place::create(user, &change.path)?;
    let target = user.root().join(&change.path);
    if !is_there {
        place.remove()?;
        remove_empty(user, &change.path);
        return Ok(());
    }
    remove_hollow(&target)?;
    let source = folder.join(&change.path);
    if let (true, Ok(leads_to)) = (change.is_a_symlink(), source.read_link()) {
        // Under another name first: there is no moment at which nothing is there.
        let fresh = format!(".selvedge-{}.link", std::process::id());
        let fresh = change.path.with_file_name(fresh);
        let _ = user.dir().remove_file(&fresh);
        user.dir().symlink_contents(leads_to, &fresh)?;
        return user.dir().rename(&fresh, user.dir(), &change.path);
    }
    if change.is_a_symlink() && target.symlink_metadata().is_ok() {
        place.remove()?;
    }
    place.stage(&std::fs::read(source)?)?.commit()?;
    let file = user.open_at(&change.path)?;
    let mode = file.metadata()?.permissions().mode() & 0o777;
    // Where git sees no difference, the file keeps what it has: not every file system
    // has such bits, and git is told so.
    let is_as_before = change.was_there() && change.was_executable() == change.is_executable();
    let wanted = match is_executable {
        _ if is_as_before => mode,
        true => mode | ((mode & 0o444) >> 2),
        false => mode & !0o111,
    };
    if wanted != mode {
        file.set_permissions(PermissionsExt::from_mode(wanted))?;
    }
    Ok(())
}

/// Gives what git checked out the user's own line ends, if nothing else differs: git may
/// be told to store others than the file has. What is put back is then what was there.
fn take_line_ends(theirs: &Path, checked_out: &Path) -> io::Result<()> {
    let is_file = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_file());
    if !is_file(theirs) || !is_file(checked_out) {
        return Ok(());
    }
    let (one, two) = (std::fs::read(theirs)?, std::fs::read(checked_out)?);
    let is_alike = || {
        let words = |text: &[u8]| {
            text.iter()
                .copied()
                .filter(|b| *b != b'\r')
                .collect::<Vec<_>>()
        };
        words(&one) == words(&two)
    };
    match one != two && is_alike() {
        true => std::fs::write(checked_out, one),
        false => Ok(()),
    }
}

/// Whether there is nothing, or a folder with nothing in it but what `goes`.
fn is_free(path: &Path, goes: &BTreeSet<PathBuf>) -> bool {
    let Ok(metadata) = path.symlink_metadata() else {
        return true;
    };
    let Ok(entries) = std::fs::read_dir(path).map(|entries| entries.collect::<Vec<_>>()) else {
        return false;
    };
    metadata.is_dir()
        && entries.into_iter().all(|entry| {
            entry.is_ok_and(|entry| goes.contains(&entry.path()) || is_free(&entry.path(), goes))
        })
}

/// Removes a folder in which there are only folders, if there is one.
fn remove_hollow(path: &Path) -> io::Result<()> {
    if !path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        return Ok(());
    }
    for entry in std::fs::read_dir(path)? {
        remove_hollow(&entry?.path())?;
    }
    std::fs::remove_dir(path)
}

/// Git knows no empty directories: those that lost their last file go.
pub(super) fn remove_empty(user: &Workspace, path: &Path) {
    let mut above = path.parent();
    while let Some(folder) = above.filter(|folder| !folder.as_os_str().is_empty()) {
        if user.dir().remove_dir(folder).is_err() {
            return;
        }
        above = folder.parent();
    }
}

/// Whether two paths have the same content; `None` stands for nothing there.
fn is_same(path: &Path, other: Option<&Path>) -> bool {
    let Some(other) = other else {
        return path.symlink_metadata().is_err();
    };
    match (path.read_link(), other.read_link()) {
        (Ok(one), Ok(two)) => one == two,
        (Err(_), Err(_)) => match (std::fs::read(path), std::fs::read(other)) {
            (Ok(one), Ok(two)) => one == two,
            _ => false,
        },
        _ => false,
    }
}

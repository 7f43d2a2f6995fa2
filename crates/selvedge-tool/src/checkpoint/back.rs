//! Puts files back to what they were, and keeps what they had become.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, chmodat, mkdirat, renameat, symlinkat, unlinkat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::entry::{Was, look};
use super::{Checkpoint, Coverage, Held, NOT_KEPT, UNDONE, survey};
use crate::workspace::{Place, Workspace};

/// What came of putting files back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// The files that are again what they were.
    pub restored: Vec<PathBuf>,
    /// Those that are not, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<(PathBuf, String)>,
    /// Whether changes that commands made may remain: the workspace was too large to
    /// be kept as a whole.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_partial: bool,
}

impl Checkpoint {
    /// Puts everything back that is not what it was. Doing it again is harmless.
    pub fn restore(
        &self,
        workspace: &Workspace,
        cancel: &CancellationToken,
    ) -> io::Result<Restored> {
        let held = self.held()?.clone().unwrap_or_default();
        let mut changed = self.changed(workspace, &held)?;
        if held.coverage == Some(Coverage::Whole) {
            let (present, _) = survey(workspace, cancel)?;
            let is_new = |place: &PathBuf| !held.entries.contains_key(place);
            changed.extend(present.into_iter().filter(is_new).map(|p| (p, Was::Absent)));
        }
        let places: Vec<PathBuf> = changed.iter().map(|(place, _)| place.clone()).collect();
        let undone = Self::at(self.folder.join(UNDONE), self.secrets.clone());
        undone.add(workspace, places, Coverage::Named)?;
        let undone = undone.held()?.clone().unwrap_or_default();
        // What is to go goes first and from below, so that a folder in the place of a
        // file is empty by then; what is to come comes from above.
        let (gone, back): (Vec<_>, Vec<_>) = changed
            .into_iter()
            .partition(|(_, was)| *was == Was::Absent);
        let mut restored = Restored {
            is_partial: held.coverage == Some(Coverage::TooLarge),
            ..Restored::default()
        };
        for (place, was) in gone.into_iter().rev().chain(back) {
            // What could not be had again is not taken away.
            let is_kept = undone
                .entries
                .get(&place)
                .is_none_or(|is| is.is_kept_beside(&was));
            let put = match is_kept {
                true => self.put_back(workspace, &place, &was),
                false => Err(io::Error::other(NOT_KEPT)),
            };
            match put {
                Ok(()) => restored.restored.push(place),
                Err(error) => restored.left.push((place, error.to_string())),
            }
        }
        restored.restored.sort();
        Ok(restored)
    }

    /// What is not what it was, by path.
    fn changed(&self, workspace: &Workspace, held: &Held) -> io::Result<Vec<(PathBuf, Was)>> {
        let mut changed = Vec::new();
        for (place, was) in &held.entries {
            let is = look(workspace, place, |_| Ok(None))?;
            if *was != Was::Other && !was.is_same(&is) {
                changed.push((place.clone(), was.clone()));
            }
        }
        Ok(changed)
    }

    fn put_back(&self, workspace: &Workspace, place: &Path, was: &Was) -> io::Result<()> {
        let name = place.file_name().ok_or(io::ErrorKind::IsADirectory)?;
        let is = look(workspace, place, |_| Ok(None))?;
        // Before anything is removed: there may be nothing to put in its place.
        let content = match (was, &is) {
            (Was::File { hash, .. }, Was::File { hash: now, .. }) if hash == now => None,
            (
                Was::File {
                    at, bytes, hash, ..
                },
                _,
            ) => Some(self.content(*at, *bytes, hash)?),
            _ => None,
        };
        let parent = || workspace.open_dir(place.parent().unwrap_or(Path::new("")));
        match is {
            Was::Absent => {}
            // A folder stays where one was; one that is not empty is not ours to remove.
            Was::Folder if *was == Was::Folder => {}
            Was::Folder => unlinkat(parent()?, name, AtFlags::REMOVEDIR)?,
            // Content arrives by rename.
            Was::File { .. } if matches!(was, Was::File { .. }) => {}
            _ => unlinkat(parent()?, name, AtFlags::empty())?,
        }
        match was {
            Was::Absent | Was::Other => Ok(()),
            Was::Folder => match mkdirat(parent()?, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => Ok(()),
                Err(error) => Err(error.into()),
            },
            Was::Link { target } => {
                let parent = parent()?;
                let temporary = ".selvedge-link.tmp";
                let _ = unlinkat(&parent, temporary, AtFlags::empty());
                symlinkat(target, &parent, temporary)?;
                Ok(renameat(&parent, temporary, &parent, name)?)
            }
            Was::File { mode, .. } => {
                if let Some(content) = content {
                    Place::create(workspace, place)?.stage(&content)?.commit()?;
                }
                let mode = Mode::from_raw_mode(*mode);
                Ok(chmodat(parent()?, name, mode, AtFlags::empty())?)
            }
        }
    }
}

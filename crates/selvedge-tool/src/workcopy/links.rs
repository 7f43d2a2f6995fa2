//! Symbolic links in a copy that lead out of it.
//!
//! An agent cannot reach what such a link names, but whoever follows it later in the
//! user's directory can. So they are not merged, and they are named.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::tree::Change;
use crate::workspace::Workspace;

/// As many as a kernel follows.
const HOPS_MAX: u32 = 40;

/// A link that was not merged, because it leads out of the directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrayLink {
    /// The link, from the top of the copy.
    pub path: String,
    /// What it names.
    pub leads_to: String,
}

impl std::fmt::Display for StrayLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} -> {}", self.path, self.leads_to)
    }
}

/// Takes away those changes that would make links out of the user's directory. `new` has
/// the files as they will be.
pub(super) fn take_strays(
    user: &Workspace,
    changes: &mut Vec<Change>,
    new: &Path,
) -> Vec<StrayLink> {
    let becomes: BTreeMap<&Path, Option<PathBuf>> = changes
        .iter()
        .map(|change| {
            let target = new.join(&change.path).read_link().ok();
            (change.path.as_path(), target.filter(|_| change.is_there()))
        })
        .collect();
    let look = |path: &Path| match becomes.get(path) {
        Some(target) => target.clone(),
        None => user.root().join(path).read_link().ok(),
    };
    let strays: Vec<StrayLink> = becomes
        .iter()
        .filter_map(|(path, target)| Some((*path, target.as_ref()?)))
        .filter(|(path, _)| leads_out(user.root(), path, &look))
        .map(|(path, target)| StrayLink {
            path: path.display().to_string(),
            leads_to: target.display().to_string(),
        })
        .collect();
    let is_stray = |change: &Change| {
        let path = change.path.display().to_string();
        strays.iter().any(|stray| stray.path == path)
    };
    changes.retain(|change| !is_stray(change));
    strays
}

/// Whether following a link leaves `root`, as a kernel would follow it: `..` after a link
/// goes up from where that link leads.
fn leads_out(root: &Path, link: &Path, look: &dyn Fn(&Path) -> Option<PathBuf>) -> bool {
    let mut at: Vec<OsString> = Vec::new();
    let mut ahead: VecDeque<PathBuf> = link.iter().map(PathBuf::from).collect();
    let mut hops = 0;
    while let Some(part) = ahead.pop_front() {
        match part.components().next() {
            Some(Component::ParentDir) if at.is_empty() => return true,
            Some(Component::ParentDir) => drop(at.pop()),
            Some(Component::Normal(name)) => at.push(name.to_owned()),
            _ => {}
        }
        let here: PathBuf = at.iter().collect();
        let Some(mut target) = look(&here).filter(|_| !at.is_empty()) else {
            continue;
        };
        hops += 1;
        if hops > HOPS_MAX {
            // A circle leads nowhere.
            return false;
        }
        at.pop();
        if target.is_absolute() {
            match target.strip_prefix(root) {
                Ok(below) => target = below.to_owned(),
                Err(_) => return true,
            }
            at.clear();
        }
        for part in target.iter().rev() {
            ahead.push_front(part.into());
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_out(link: &str) -> bool {
        let links = [
            ("inside", "src/a.txt"),
            ("up", "src/../a.txt"),
            ("src/up", "../a.txt"),
            ("src/out", "../../a.txt"),
            ("etc", "/etc/passwd"),
            ("own", "/home/u/project/a.txt"),
            ("beside", "/home/u/project2/a.txt"),
            ("sneaky", "/home/u/project/../x"),
            ("through", "etc"),
            ("below", "src/out/x"),
            // `deep/top` is the top, so going up from it leaves.
            ("deep/top", ".."),
            ("deep/far", "top/../x"),
            ("circle", "circle"),
            ("nowhere", "not/there"),
        ];
        let look = |path: &Path| {
            let found = links.iter().find(|(name, _)| Path::new(name) == path);
            found.map(|(_, target)| PathBuf::from(target))
        };
        leads_out(Path::new("/home/u/project"), Path::new(link), &look)
    }

    #[test]
    fn a_link_is_followed_as_a_kernel_would() {
        for link in [
            "inside", "up", "src/up", "own", "deep/top", "circle", "nowhere",
        ] {
            assert!(!is_out(link), "{link} stays inside");
        }
        for link in [
            "src/out", "etc", "beside", "sneaky", "through", "below", "deep/far",
        ] {
            assert!(is_out(link), "{link} leads out");
        }
    }
}

//! Finds a program, never one that the workspace brings along.
//!
//! A repository may contain an executable called `git`, and a search path may have
//! an entry such as `.` or `node_modules/.bin` that leads to it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where a program is: the first on the search path that is outside `workspace`.
pub(crate) fn find(name: &str, workspace: &Path) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    find_in(std::env::split_paths(&path), name, workspace)
}

fn find_in(
    directories: impl Iterator<Item = PathBuf>,
    name: &str,
    workspace: &Path,
) -> Option<PathBuf> {
    directories
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .filter(|program| is_executable(program))
        .find(|program| {
            // A link from outside may lead inside, and the other way round.
            let target = program.canonicalize();
            !program.starts_with(workspace)
                && target.is_ok_and(|target| !target.starts_with(workspace))
        })
}

fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, create_dir_all, set_permissions, write};

    #[test]
    fn a_program_of_the_workspace_is_passed_over() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let (inside, outside) = (root.join("app/bin"), root.join("bin"));
        for directory in [&inside, &outside] {
            create_dir_all(directory).unwrap();
            write(directory.join("git"), "").unwrap();
            set_permissions(directory.join("git"), Permissions::from_mode(0o755)).unwrap();
        }
        let path = [inside, PathBuf::from("bin"), outside.clone()];
        let found = find_in(path.into_iter(), "git", &root.join("app"));
        assert_eq!(found, Some(outside.join("git")));
    }
}

//! What a path in a tool call means, before any file is looked at.
//!
//! These checks exist to answer in words that a model can act on. They are not
//! the fence: that is the directory handle, which would refuse the same paths.

use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

/// Why a path cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// It leads out of the workspace: choose another one.
    #[error(
        "`{path}` leads outside of the workspace: use a path relative to the workspace root, \
         with no symlink that points out of it"
    )]
    Outside {
        /// As it was given.
        path: String,
    },
    /// It is not a path that tools accept.
    #[error("`{path}` cannot be used as a path: {reason}")]
    Malformed {
        /// As it was given.
        path: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// It belongs to git itself.
    #[error(
        "`{path}` is inside `.git`, which file tools do not change: use `git_commit` or a git command"
    )]
    Protected {
        /// As it was given.
        path: String,
    },
    /// There is nothing there.
    #[error("`{path}` does not exist: look around with `list_files`")]
    Missing {
        /// As it was given.
        path: String,
    },
    /// There is something else there: a directory, a pipe, a device.
    #[error("`{path}` is {kind}, not a regular file{hint}")]
    NotAFile {
        /// As it was given.
        path: String,
        /// What it is.
        kind: &'static str,
        /// What to do instead.
        hint: &'static str,
    },
    /// It is larger than a tool will hold in memory.
    #[error("`{path}` has {bytes} bytes, more than the {bytes_max} that file tools change")]
    TooLarge {
        /// As it was given.
        path: String,
        /// How large it is.
        bytes: u64,
        /// How large it may be.
        bytes_max: u64,
    },
    /// The system refused.
    #[error("`{path}` cannot be used: {source}")]
    Io {
        /// As it was given.
        path: String,
        /// What it said.
        source: io::Error,
    },
}

impl PathError {
    /// What an error of the system means for this path.
    pub(crate) fn from_io(path: &str, source: io::Error) -> Self {
        let path = path.to_owned();
        // cap-std has no error kind of its own for this.
        let escaped = source.kind() == ErrorKind::PermissionDenied
            && source.raw_os_error().is_none()
            && source.to_string().contains("outside of the filesystem");
        // ELOOP: a directory became a symlink after it was resolved.
        if escaped || source.raw_os_error() == Some(libc::ELOOP) {
            return Self::Outside { path };
        }
        match source.kind() {
            ErrorKind::NotFound => Self::Missing { path },
            _ => Self::Io { path, source },
        }
    }
}

/// The path below `root` that `text` names. Empty for the root itself.
pub(super) fn relative(root: &Path, text: &str) -> Result<PathBuf, PathError> {
    let malformed = |reason| PathError::Malformed {
        path: text.escape_debug().to_string(),
        reason,
    };
    if text.contains('\0') {
        return Err(malformed("it contains a NUL"));
    }
    if text.starts_with('~') {
        return Err(malformed(
            "`~` is not expanded, and home is not in the workspace",
        ));
    }
    let outside = || PathError::Outside { path: text.into() };
    let path = Path::new(text);
    let path = if path.is_absolute() {
        // By components, so that `/srv/app-evil` is not below `/srv/app`.
        path.strip_prefix(root).map_err(|_| outside())?
    } else {
        path
    };

    let mut depth = 0_usize;
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => depth = depth.checked_sub(1).ok_or_else(outside)?,
            Component::Normal(name) => {
                let name = name.as_encoded_bytes();
                if name.ends_with(b" ") || name.ends_with(b".") {
                    return Err(malformed("a name in it ends with a space or a full stop"));
                }
                depth += 1;
            }
            Component::RootDir | Component::Prefix(_) => return Err(outside()),
        }
    }
    Ok(path
        .components()
        .filter(|part| *part != Component::CurDir)
        .collect())
}

/// Refuses a place that git keeps for itself: a hook or a setting written there
/// would run later, as the user, outside of any fence.
pub(crate) fn refuse_git(text: &str, place: &Path) -> Result<(), PathError> {
    // Some file systems ignore case, so `.GIT` is the same directory there.
    let inside = place
        .components()
        .any(|part| part.as_os_str().eq_ignore_ascii_case(".git"));
    if inside {
        return Err(PathError::Protected { path: text.into() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expected: &str) {
        let answer = match relative(Path::new("/srv/app"), text) {
            Ok(path) => path.display().to_string(),
            Err(PathError::Outside { .. }) => "outside".into(),
            Err(error) => error.to_string(),
        };
        assert!(answer.contains(expected), "{text:?}: {answer}");
    }

    #[test]
    fn a_path_is_relative_to_the_root() {
        check("src/lib.rs", "src/lib.rs");
        check("./src/./lib.rs", "src/lib.rs");
        check("/srv/app/src/lib.rs", "src/lib.rs");
        check("", "");
        check(".", "");
        check("a/../b", "a/../b");
        check(".gitignore", ".gitignore");
    }

    #[test]
    fn a_sibling_with_the_same_prefix_is_outside() {
        check("/srv/app-evil/x", "outside");
        check("../app-evil/x", "outside");
    }

    #[test]
    fn a_path_that_climbs_out_is_refused() {
        check("../x", "outside");
        check("a/../../x", "outside");
        check("/etc/passwd", "outside");
        check("/srv/app/../x", "outside");
    }

    #[test]
    fn a_path_with_a_double_meaning_is_refused() {
        check("~/x", "home is not in the workspace");
        check("a\0b", "NUL");
        check("a /b", "ends with a space");
        check("a./b", "full stop");
    }

    proptest! {
        #[test]
        fn no_accepted_path_starts_by_climbing(text in "[a./~ ]{0,12}") {
            if let Ok(path) = relative(Path::new("/srv/app"), &text) {
                prop_assert!(path.is_relative());
                prop_assert!(!path.starts_with(".."));
            }
        }
    }
}

//! What a person has approved of servers: a file for each, where no tool can write.
//!
//! It holds the digest of the entry, and the definitions that were looked at: a run
//! begins with those, and need not wait for a server.

use std::fs::{DirBuilder, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::definition::{Definition, Offer};
use crate::entry::{Listed, Scope, hash};

/// Nobody has read more than this.
const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Where approvals are kept.
#[derive(Clone, Debug)]
pub struct Book {
    folder: PathBuf,
}

/// What was approved of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Approved {
    /// Its name.
    pub server: String,
    /// Whose list it stands in.
    pub scope: Scope,
    /// The digest of the entry.
    pub entry: String,
    /// What was looked at.
    pub definitions: Vec<Definition>,
    /// What it has besides.
    #[serde(default)]
    pub offer: Offer,
}

impl Book {
    /// Keeps them in `folder`, which need not exist.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// What was approved of a server as it is listed now; nothing if its entry is
    /// another since.
    pub fn current(&self, listed: &Listed, workspace: &Path) -> Option<Approved> {
        let approved = self.of(listed)?;
        (approved.entry == listed.entry.digest(workspace)).then_some(approved)
    }

    /// What was approved under this name, whatever the entry says now.
    pub fn of(&self, listed: &Listed) -> Option<Approved> {
        let path = self.file(&listed.name, &listed.scope);
        if std::fs::metadata(&path).ok()?.len() > FILE_BYTES_MAX {
            return None;
        }
        let approved: Approved = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
        let is_it = approved.server == listed.name && approved.scope == listed.scope;
        is_it.then_some(approved)
    }

    /// Remembers an approval in the place of an earlier one.
    pub fn approve(&self, approved: &Approved) -> io::Result<()> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        let bytes = serde_json::to_vec_pretty(approved).expect("an approval is plain data");
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.as_file()
            .set_permissions(Permissions::from_mode(0o600))?;
        file.write_all(&bytes)?;
        file.as_file().sync_all()?;
        file.persist(self.file(&approved.server, &approved.scope))?;
        Ok(())
    }

    /// Forgets what was approved under a name; false if there was nothing.
    pub fn forget(&self, listed: &Listed) -> io::Result<bool> {
        match std::fs::remove_file(self.file(&listed.name, &listed.scope)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn file(&self, server: &str, scope: &Scope) -> PathBuf {
        self.folder
            .join(format!("{}.json", &hash(&(server, scope))[..32]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Entry;

    #[test]
    fn an_entry_that_was_edited_under_the_same_name_is_not_approved() {
        let scratch = tempfile::tempdir().unwrap();
        let book = Book::at(scratch.path().join("mcp"));
        let mut listed = Listed {
            name: "files".into(),
            scope: Scope::Project("/srv/app".into()),
            entry: Entry {
                command: Some("files".into()),
                ..Entry::default()
            },
        };
        let workspace = Path::new("/srv/app");
        assert_eq!(book.current(&listed, workspace), None);
        let approved = Approved {
            server: listed.name.clone(),
            scope: listed.scope.clone(),
            entry: listed.entry.digest(workspace),
            definitions: Vec::new(),
            offer: Offer::default(),
        };
        book.approve(&approved).unwrap();
        assert_eq!(book.current(&listed, workspace), Some(approved));
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&book.file(&listed.name, &listed.scope)), 0o600);
        assert_eq!(mode(&book.folder), 0o700);
        listed.entry.args = vec!["--all".into()];
        assert_eq!(book.current(&listed, workspace), None);
        assert!(
            book.of(&listed).is_some(),
            "it is known that it was another"
        );
        let elsewhere = Listed {
            scope: Scope::User,
            ..listed.clone()
        };
        assert_eq!(book.of(&elsewhere), None);
        std::fs::write(book.file(&listed.name, &listed.scope), "{").unwrap();
        assert_eq!(book.of(&listed), None, "a broken file approves nothing");
        assert!(book.forget(&listed).unwrap() && !book.forget(&listed).unwrap());
    }
}

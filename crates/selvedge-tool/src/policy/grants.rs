//! What a person has approved for a project: a file of the user's, where no tool
//! can write.
//!
//! One line for each approval, appended in one write, so that two sessions do not
//! lose each other's. A line that cannot be read approves nothing.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Nobody answers this often; a larger file is not ours.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Where approvals are kept, a file for each project.
#[derive(Clone, Debug)]
pub struct Grants {
    folder: PathBuf,
}

/// An approval that holds for a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The project.
    pub workspace: PathBuf,
    /// What it is remembered by.
    pub lasting: String,
    /// What was approved, in words.
    pub act: String,
}

impl Grants {
    /// Keeps them in `folder`, which need not exist.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// Everything that was approved for a project.
    pub fn of(&self, workspace: &Path) -> io::Result<Vec<Grant>> {
        let file = match File::open(self.file(workspace)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut text = String::new();
        file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
        let grants = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Grant>(line).ok());
        Ok(grants
            .filter(|grant| grant.workspace == workspace)
            .collect())
    }

    /// Whether exactly this was approved.
    pub fn has(&self, workspace: &Path, lasting: &str) -> bool {
        let grants = self.of(workspace).unwrap_or_default();
        grants.iter().any(|grant| grant.lasting == lasting)
    }

    /// Remembers an approval; the same twice is one.
    pub fn add(&self, grant: &Grant) -> io::Result<()> {
        if self.has(&grant.workspace, &grant.lasting) {
            return Ok(());
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        let mut line = serde_json::to_vec(grant).expect("a grant is plain data");
        line.push(b'\n');
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(self.file(&grant.workspace))?;
        file.write_all(&line)
    }

    /// Forgets everything that was approved for a project; false if there was nothing.
    pub fn forget(&self, workspace: &Path) -> io::Result<bool> {
        match std::fs::remove_file(self.file(workspace)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn file(&self, workspace: &Path) -> PathBuf {
        let hash = blake3::hash(workspace.as_os_str().as_encoded_bytes()).to_hex();
        self.folder.join(format!("{}.jsonl", &hash[..32]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn an_approval_is_remembered_for_its_project_and_read_by_its_owner_only() {
        let scratch = tempfile::tempdir().unwrap();
        let grants = Grants::at(scratch.path().join("approvals"));
        let (here, there) = (Path::new("/srv/app"), Path::new("/srv/app2"));
        let grant = Grant {
            workspace: here.into(),
            lasting: "d1".into(),
            act: "make deploy".into(),
        };
        assert!(!grants.has(here, "d1"));
        grants.add(&grant).unwrap();
        grants.add(&grant).unwrap();
        assert_eq!(grants.of(here).unwrap(), [grant]);
        assert!(grants.has(here, "d1") && !grants.has(here, "d2") && !grants.has(there, "d1"));
        let mode = |path: PathBuf| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(grants.file(here)), 0o600);
        assert_eq!(mode(grants.folder.clone()), 0o700);
        std::fs::write(grants.file(there), "{\"lasting\": \"d1\"\n").unwrap();
        assert!(!grants.has(there, "d1"), "a broken line approves nothing");
        assert!(grants.forget(here).unwrap() && !grants.forget(here).unwrap());
        assert!(!grants.has(here, "d1"));
    }
}

//! The files: the register of stored keys, and the key beside it.
//!
//! Both belong to their owner only, and are replaced whole: a crash leaves the
//! old one or the new one. One writer at a time, so that two logins both stay.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::lock::{Lock, Sealed};
use super::{CredentialError, Profile};

const VERSION: u32 = 1;

/// The folder with the files.
#[derive(Clone, Debug)]
pub(super) struct Register {
    folder: PathBuf,
}

/// What the register holds: the stored shape.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Held {
    version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lock: Option<Lock>,
    pub(super) entries: Vec<Entry>,
}

/// A stored key: here if it is sealed, else in the keychain.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) profile: Profile,
    pub(super) provider: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sealed: Option<Sealed>,
}

impl Entry {
    /// An entry whose key is in the keychain.
    pub(super) fn new(profile: &Profile, provider: &str) -> Self {
        Self {
            profile: profile.clone(),
            provider: provider.to_owned(),
            sealed: None,
        }
    }

    /// The entry with its key in it.
    pub(super) fn with(mut self, sealed: Sealed) -> Self {
        self.sealed = Some(sealed);
        self
    }

    /// What its key is bound to.
    pub(super) fn name(&self) -> String {
        format!("selvedge/{VERSION}/{}/{}", self.profile, self.provider)
    }
}

impl Held {
    /// The entry of a provider.
    pub(super) fn find(&self, profile: &Profile, provider: &str) -> Option<&Entry> {
        let mut entries = self.entries.iter();
        entries.find(|entry| entry.profile == *profile && entry.provider == provider)
    }

    /// Takes the entry of a provider out.
    pub(super) fn take(&mut self, profile: &Profile, provider: &str) -> Option<Entry> {
        let is_it = |entry: &Entry| entry.profile == *profile && entry.provider == provider;
        let at = self.entries.iter().position(is_it)?;
        Some(self.entries.remove(at))
    }
}

impl Register {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Where the register is.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.join("credentials.enc")
    }

    /// Where the key beside it is.
    pub(super) fn key_path(&self) -> PathBuf {
        self.folder.join("credentials.key")
    }

    /// What it holds; nothing, if there is no file.
    pub(super) fn read(&self) -> Result<Held, CredentialError> {
        let path = self.path();
        let Some(text) = read(&path)? else {
            return Ok(Held {
                version: VERSION,
                lock: None,
                entries: Vec::new(),
            });
        };
        let held: Held = serde_json::from_str(&text).map_err(|error| unusable(&path, error))?;
        match held.version {
            VERSION => Ok(held),
            newer => Err(unusable(
                &path,
                format!("its version is {newer}, not {VERSION}"),
            )),
        }
    }

    /// Changes what it holds, or leaves it as it is if `change` fails.
    pub(super) fn change<T>(
        &self,
        change: impl FnOnce(&mut Held, &Self) -> Result<T, CredentialError>,
    ) -> Result<T, CredentialError> {
        self.make_folder()?;
        let guard = self.folder.join("credentials.lock");
        let file = File::options().create(true).append(true).open(&guard);
        let file = file.map_err(|error| unusable(&guard, error))?;
        file.lock().map_err(|error| unusable(&guard, error))?;
        let mut held = self.read()?;
        let result = change(&mut held, self)?;
        let text = serde_json::to_vec_pretty(&held).expect("a register is JSON");
        self.write(&self.path(), &text)?;
        Ok(result)
    }

    /// The key beside the register, if there is one.
    pub(super) fn read_key(&self) -> Result<Option<Zeroizing<String>>, CredentialError> {
        read(&self.key_path())
    }

    /// Puts a key beside the register.
    pub(super) fn write_key(&self, text: &[u8]) -> Result<(), CredentialError> {
        self.write(&self.key_path(), text)
    }

    fn make_folder(&self) -> Result<(), CredentialError> {
        let made = std::fs::create_dir_all(&self.folder);
        made.map_err(|error| unusable(&self.folder, error))
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), CredentialError> {
        let write = || {
            // Made for its owner only.
            let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
            file.write_all(bytes)?;
            file.as_file().sync_all()?;
            file.persist(path)?;
            File::open(&self.folder)?.sync_all()
        };
        write().map_err(|error| unusable(path, error))
    }
}

/// The text of a file that only its owner can read.
fn read(path: &Path) -> Result<Option<Zeroizing<String>>, CredentialError> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => Zeroizing::new(text),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(unusable(path, error)),
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let metadata = std::fs::metadata(path).map_err(|error| unusable(path, error))?;
        if metadata.permissions().mode() & 0o077 != 0 {
            return Err(CredentialError::TooOpen {
                path: path.to_owned(),
            });
        }
    }
    Ok(Some(text))
}

fn unusable(path: &Path, why: impl std::fmt::Display) -> CredentialError {
    CredentialError::File {
        path: path.to_owned(),
        why: why.to_string(),
    }
}

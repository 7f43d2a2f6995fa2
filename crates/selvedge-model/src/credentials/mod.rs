//! Where keys come from, and where they are kept.
//!
//! The environment comes first, because whoever sets a variable means it. Then
//! what was stored: in the operating system's keychain or in an encrypted file.
//! One register in the configuration root, `credentials.enc`, says which keys are
//! stored where, so nothing is unlocked and no keychain is asked for a key that
//! nobody stored.
//!
//! What this protects against. With a passphrase, somebody who has the file does
//! not have the keys. Without one, a random key lies beside the file, readable by
//! its owner only: that keeps keys out of backups of single files, searches and
//! screens, and does not stop a program that runs as the same user. Neither does
//! the kernel's keyring. Names of providers and profiles are not encrypted.

mod keychain;
mod lock;
mod register;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use crate::catalogue::ProviderFacts;
use keychain::Keychain;
use lock::Lock;
use register::{Entry, Held, Register};

/// The keys of one profile, and the way to them.
#[derive(Clone, Debug)]
pub struct Credentials {
    register: Register,
    keychain: Keychain,
    profile: Profile,
    passphrase: Option<SecretString>,
}

/// A set of keys with a name, such as `default` or `work`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Profile(String);

/// Where a key can be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The operating system's keychain; on Linux the kernel's keyring, which
    /// forgets when the machine restarts.
    Keychain,
    /// The encrypted file.
    File,
}

/// Where a key comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// This variable.
    Environment(String),
    /// It was stored here.
    Stored(Place),
}

/// A key that was found.
#[derive(Clone, Debug)]
pub struct FoundKey {
    /// The key.
    pub key: SecretString,
    /// Where it comes from.
    pub source: KeySource,
}

/// A key on the register; reading this opens nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Whose profile.
    pub profile: Profile,
    /// Which provider's key.
    pub provider: String,
    /// Where it is.
    pub place: Place,
    /// How long it is, where that can be told without opening anything.
    pub length: Option<KeyLength>,
}

/// About how long a key is: enough to notice a wrong paste, and no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyLength {
    /// Less than 20 characters: probably not a whole key.
    Short,
    /// 20 to 250 characters.
    Usual,
    /// More: probably not only a key.
    Long,
}

/// Why a key cannot be read or stored.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// A file cannot be read or written.
    #[error("`{}` cannot be used: {why}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A file with secrets can be read by others.
    #[error("`{}` can be read by others", path.display())]
    TooOpen {
        /// Which.
        path: PathBuf,
    },
    /// The stored keys are locked, and there is no passphrase.
    #[error("the stored keys are locked with a passphrase")]
    Locked,
    /// The passphrase, or the key file, does not open the stored keys.
    #[error("the {opener} does not open the stored keys")]
    WrongLock {
        /// What was tried.
        opener: &'static str,
    },
    /// The keychain does not work here.
    #[error("the keychain is not available: {why}")]
    NoKeychain {
        /// Why.
        why: String,
    },
    /// The keychain has forgotten the key.
    #[error("the keychain no longer has the key of `{provider}`")]
    Forgotten {
        /// Whose.
        provider: String,
    },
}

impl CredentialError {
    /// What a person can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::File { path, .. } => format!(
                "look at `{}`, or remove it and log in again",
                path.display()
            ),
            Self::TooOpen { path } => format!("type `chmod 600 {}`", path.display()),
            Self::Locked => "set `SELVEDGE_PASSPHRASE`, or run it at a terminal".to_owned(),
            Self::WrongLock { .. } => {
                "try again; if it is lost, remove `credentials.enc` and log in again".to_owned()
            }
            Self::NoKeychain { .. } => "store it in the file: `--store file`".to_owned(),
            Self::Forgotten { provider } => {
                format!("type `selvedge auth login {provider}`; a restart empties it")
            }
        }
    }
}

impl Credentials {
    /// The credentials kept in `folder`. `scope` keeps the keychain's entries of
    /// one folder apart from another's. Nothing is opened yet.
    pub fn new(folder: PathBuf, scope: &str, profile: Profile) -> Self {
        Self {
            register: Register::new(folder),
            keychain: Keychain::new(scope),
            profile,
            passphrase: None,
        }
    }

    /// With a passphrase to open the file, or to lock it when it is made.
    pub fn with_passphrase(mut self, passphrase: Option<SecretString>) -> Self {
        self.passphrase = passphrase;
        self
    }

    /// The profile whose keys these are.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Where the file is.
    pub fn path(&self) -> PathBuf {
        self.register.path()
    }

    /// Whether the file's keys cannot be read without a passphrase.
    pub fn is_locked(&self) -> Result<bool, CredentialError> {
        let lock = self.register.read()?.lock;
        Ok(lock.is_some_and(|lock| lock.wants_passphrase()))
    }

    /// The key of a provider: the environment's, else the stored one.
    pub fn find(
        &self,
        provider: &str,
        facts: &ProviderFacts,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<FoundKey>, CredentialError> {
        for variable in facts.key_variables() {
            let key = environment(variable).map(SecretString::from);
            if let Some(key) = key.filter(|key| !key.expose_secret().trim().is_empty()) {
                let source = KeySource::Environment(variable.to_owned());
                return Ok(Some(FoundKey { key, source }));
            }
        }
        self.stored_key(provider)
    }

    /// Every stored key, of all profiles. Nothing is unlocked.
    pub fn stored(&self) -> Result<Vec<Stored>, CredentialError> {
        let entries = self.register.read()?.entries;
        Ok(entries.iter().map(|entry| self.describe(entry)).collect())
    }

    /// Stores a key, in the place of an older one.
    pub fn store(
        &self,
        provider: &str,
        key: &SecretString,
        place: Place,
    ) -> Result<(), CredentialError> {
        self.register.change(|held, register| {
            let old = held.take(&self.profile, provider);
            let entry = Entry::new(&self.profile, provider);
            let entry = match place {
                Place::Keychain => {
                    self.keychain.set(&self.profile, provider, key)?;
                    entry
                }
                Place::File => {
                    let lock = self.lock_for_writing(held, register)?;
                    let opener = lock.open(self.passphrase.as_ref(), register)?;
                    let sealed = opener.seal(&entry.name(), key.expose_secret().as_bytes());
                    held.lock = Some(lock);
                    if old.is_some_and(|old| old.sealed.is_none()) {
                        let _ = self.keychain.remove(&self.profile, provider);
                    }
                    entry.with(sealed)
                }
            };
            held.entries.push(entry);
            Ok(())
        })
    }

    /// Forgets a stored key; whether there was one.
    pub fn remove(&self, provider: &str) -> Result<bool, CredentialError> {
        self.register.change(|held, _| {
            let old = held.take(&self.profile, provider);
            if old.as_ref().is_some_and(|old| old.sealed.is_none()) {
                // What the keychain has forgotten already is removed as well.
                match self.keychain.remove(&self.profile, provider) {
                    Ok(()) | Err(CredentialError::NoKeychain { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(old.is_some())
        })
    }

    fn stored_key(&self, provider: &str) -> Result<Option<FoundKey>, CredentialError> {
        let held = self.register.read()?;
        let Some(entry) = held.find(&self.profile, provider) else {
            return Ok(None);
        };
        let (key, place) = match (&entry.sealed, &held.lock) {
            (None, _) => (self.keychain.get(&self.profile, provider)?, Place::Keychain),
            (Some(sealed), Some(lock)) => {
                let opener = lock.open(self.passphrase.as_ref(), &self.register)?;
                (opener.unseal(&entry.name(), sealed)?, Place::File)
            }
            (Some(_), None) => {
                return Err(CredentialError::File {
                    path: self.register.path(),
                    why: "it says nothing of its lock".to_owned(),
                });
            }
        };
        let source = KeySource::Stored(place);
        Ok(Some(FoundKey { key, source }))
    }

    /// The lock for a new key. A passphrase given to a file that has none
    /// locks everything in it anew.
    fn lock_for_writing(
        &self,
        held: &mut Held,
        register: &Register,
    ) -> Result<Lock, CredentialError> {
        let old = match held.lock.take() {
            Some(lock) if lock.wants_passphrase() || self.passphrase.is_none() => return Ok(lock),
            old => old,
        };
        let new = match &self.passphrase {
            Some(passphrase) => Lock::with_passphrase(passphrase)?,
            None => Lock::with_key_file(register)?,
        };
        if let Some(old) = old {
            let (from, to) = (
                old.open(None, register)?,
                new.open(self.passphrase.as_ref(), register)?,
            );
            for entry in &mut held.entries {
                let name = entry.name();
                if let Some(sealed) = &mut entry.sealed {
                    let key = from.unseal(&name, sealed)?;
                    *sealed = to.seal(&name, key.expose_secret().as_bytes());
                }
            }
        }
        Ok(new)
    }

    fn describe(&self, entry: &Entry) -> Stored {
        let (place, length) = match &entry.sealed {
            Some(sealed) => (Place::File, Some(KeyLength::of(sealed.plain_bytes()))),
            None => (Place::Keychain, None),
        };
        Stored {
            profile: entry.profile.clone(),
            provider: entry.provider.clone(),
            place,
            length,
        }
    }
}

impl KeyLength {
    /// The class of a key of so many bytes.
    pub fn of(bytes: usize) -> Self {
        match bytes {
            0..20 => Self::Short,
            20..=250 => Self::Usual,
            _ => Self::Long,
        }
    }
}

impl FoundKey {
    /// About how long it is.
    pub fn length(&self) -> KeyLength {
        KeyLength::of(self.key.expose_secret().trim().len())
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self("default".to_owned())
    }
}

impl Profile {
    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        match !text.is_empty() && text.len() <= 32 && text.chars().all(fits) {
            true => Ok(Self(text.to_owned())),
            false => Err(format!(
                "`{text}` is not a profile: up to 32 letters, digits, `-` and `_`"
            )),
        }
    }
}

impl TryFrom<String> for Profile {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Profile> for String {
    fn from(profile: Profile) -> Self {
        profile.0
    }
}

#[cfg(test)]
mod tests;

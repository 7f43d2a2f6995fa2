//! Keeps what servers have given the user where the keys of providers are kept: sealed,
//! and for their owner only.

use secrecy::{ExposeSecret, SecretString};
use selvedge_mcp::Tokens;
use selvedge_model::{Credentials, Place, Profile, ProviderFacts};

use crate::keys;

/// The room where keys are kept.
pub struct KeyRoom;

impl KeyRoom {
    fn credentials() -> Result<Credentials, String> {
        // One user, whichever provider they pay with.
        let credentials = keys::credentials(Profile::default());
        let credentials = credentials.and_then(keys::unlocked);
        credentials.map_err(|error| error.in_a_line())
    }
}

impl Tokens for KeyRoom {
    fn load(&self, name: &str) -> Result<Option<String>, String> {
        let credentials = keys::credentials(Profile::default()).map_err(|e| e.in_a_line())?;
        let stored = credentials.stored().map_err(|error| error.to_string())?;
        if !stored.iter().any(|stored| stored.provider == name) {
            return Ok(None);
        }
        // A name that no provider has: the environment says nothing of it.
        let nobody = ProviderFacts::default();
        let found = Self::credentials()?.find(name, &nobody, |_| None);
        let found = found.map_err(|error| error.to_string())?;
        Ok(found.map(|found| found.key.expose_secret().to_owned()))
    }

    fn save(&self, name: &str, text: &str) -> Result<(), String> {
        let key = SecretString::from(text.to_owned());
        let stored = Self::credentials()?.store(name, &key, Place::File);
        stored.map_err(|error| error.to_string())
    }

    fn clear(&self, name: &str) -> Result<(), String> {
        let removed = Self::credentials()?.remove(name);
        removed.map(drop).map_err(|error| error.to_string())
    }
}

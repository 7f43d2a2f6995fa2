//! The keys of model providers, as the command line comes by them.

use std::io::Read;

use secrecy::SecretString;
use selvedge_model::{Credentials, KeySource, Place, Profile, ProviderFacts};
use zeroize::Zeroizing;

use crate::config::Config;
use crate::env;
use crate::error::{Error, Result};
use crate::out;
use crate::paths::Paths;
use crate::prompt;

/// Where a person looks after a stored key.
const STATUS: &str = "selvedge auth status";

// More than any key, and little enough for a mistaken file.
const INPUT_BYTES_MAX: u64 = 64 * 1024;

/// What may be opened to find a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// Everything; a person may be asked for the passphrase.
    All,
    /// Nothing is stored, as far as this goes.
    Environment,
    /// Nothing: a stored key counts, and stays where it is.
    Nothing,
}

/// The keys of one profile.
pub struct Keys {
    credentials: Credentials,
    stored: Vec<String>,
    opening: Opening,
}

impl Keys {
    /// The keys of the configured profile. What is stored and cannot be read is
    /// warned of, for a run may do without it.
    pub fn find(config: &Config, opening: Opening) -> Result<Self> {
        let profile = config.settings().profile.unwrap_or_default();
        let mut credentials = credentials(profile)?;
        let stored = match opening {
            Opening::Environment => Vec::new(),
            _ => credentials.stored().unwrap_or_else(|error| {
                out::warn(&format!("no stored key is used: {error}; {}", error.hint()));
                Vec::new()
            }),
        };
        let stored = stored
            .into_iter()
            .filter(|stored| stored.profile == *credentials.profile());
        let stored: Vec<_> = stored.collect();
        if opening == Opening::All && stored.iter().any(|stored| stored.place == Place::File) {
            credentials = unlocked(credentials)?;
        }
        let stored = stored.into_iter().map(|stored| stored.provider).collect();
        Ok(Self {
            credentials,
            stored,
            opening,
        })
    }

    /// The key of a provider, and where a person looks after it.
    pub fn of(&self, provider: &str, facts: &ProviderFacts) -> Option<(SecretString, String)> {
        let mut variables = facts.key_variables();
        let set =
            variables.find_map(|variable| Some((env::word(variable)?.into(), variable.to_owned())));
        if set.is_some() {
            return set;
        }
        if !self.stored.iter().any(|stored| stored == provider) {
            return None;
        }
        if self.opening == Opening::Nothing {
            return Some(("(stored)".into(), STATUS.to_owned()));
        }
        match self.credentials.find(provider, facts, |_| None) {
            Ok(found) => found.map(|found| (found.key, STATUS.to_owned())),
            Err(error) => {
                out::warn(&format!(
                    "the stored key of `{provider}` is not used: {error}; {}",
                    error.hint()
                ));
                None
            }
        }
    }
}

/// The credentials of a profile, with the passphrase of the environment.
pub fn credentials(profile: Profile) -> Result<Credentials> {
    let folder = Paths::find()?.config().to_owned();
    // Roots that were moved share no keychain with those in their usual place.
    let scope = match env::path(env::HOME) {
        Some(home) => format!("selvedge:{}", home.display()),
        None => "selvedge".to_owned(),
    };
    let passphrase = env::word(env::PASSPHRASE).map(SecretString::from);
    Ok(Credentials::new(folder, &scope, profile).with_passphrase(passphrase))
}

/// The same with the passphrase, asked for if it is needed and somebody is there.
pub fn unlocked(credentials: Credentials) -> Result<Credentials> {
    let is_given = env::text(env::PASSPHRASE).is_some();
    if is_given || !out::can_ask() || !credentials.is_locked().unwrap_or(false) {
        return Ok(credentials);
    }
    let passphrase = prompt::unseen("passphrase of the stored keys: ")?;
    Ok(credentials.with_passphrase(Some(passphrase)))
}

/// A key from the terminal, unseen, or from a pipe. Never from an argument: those
/// can be read by everybody on the machine.
pub fn read(provider: &str) -> Result<SecretString> {
    let text = match out::can_ask() {
        true => prompt::unseen(&format!("key of `{provider}`: "))?,
        false => piped()?,
    };
    let key = secrecy::ExposeSecret::expose_secret(&text).trim();
    let is_one_word =
        !key.is_empty() && !key.contains(|c: char| c.is_whitespace() || c.is_control());
    match is_one_word {
        true => Ok(key.into()),
        false if key.is_empty() => Err(Error::usage("there is no key")
            .cause("nothing was typed or piped")
            .hint(format!("pipe it: `selvedge auth login {provider} < FILE`"))),
        false => Err(Error::usage("this is not a key")
            .cause("a key is one word, on one line")
            .hint("pipe the key and nothing else")),
    }
}

/// Where a key comes from, in words.
pub fn source(source: &KeySource) -> String {
    match source {
        KeySource::Environment(variable) => format!("${variable}"),
        KeySource::Stored(place) => place_word(*place).to_owned(),
    }
}

/// A place in a word.
pub fn place_word(place: Place) -> &'static str {
    match place {
        Place::Keychain => "keychain",
        Place::File => "file",
    }
}

fn piped() -> Result<SecretString> {
    let mut text = Zeroizing::new(String::new());
    let read = std::io::stdin()
        .take(INPUT_BYTES_MAX)
        .read_to_string(&mut text);
    read.map_err(|error| {
        Error::usage("the key cannot be read from stdin")
            .cause(error)
            .hint("pipe the key as text")
    })?;
    Ok(text.as_str().into())
}

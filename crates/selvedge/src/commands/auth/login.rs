//! `auth login`: stores a provider's key, once it is seen to work.

use std::time::Duration;

use clap::{Args, ValueEnum};
use secrecy::SecretString;
use selvedge_model::{Catalogue, HttpOptions, ModelError, Place, Profile, Providers, Tier, probe};

use crate::env;
use crate::error::{Error, Exit, Result};
use crate::keys;
use crate::out;
use crate::prompt;
use crate::text::duration;

const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Args)]
pub struct Login {
    /// The provider, such as `anthropic`.
    provider: Option<String>,
    /// The profile to store the key in.
    #[arg(long, value_name = "PROFILE")]
    profile: Option<Profile>,
    /// Where to store it. On Linux the keychain is the kernel's, which forgets
    /// when the machine restarts.
    #[arg(long, value_name = "WHERE", default_value = "file")]
    store: Where,
    /// Ask for a passphrase, and lock the file with it.
    #[arg(long)]
    passphrase: bool,
    /// Store it without asking the provider for a word, which costs next to nothing and
    /// is in no budget.
    #[arg(long)]
    no_verify: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Where {
    /// An encrypted file in the configuration folder.
    File,
    /// The operating system's keychain.
    Keychain,
}

impl Login {
    pub async fn perform(self) -> Result {
        let (profile, catalogue) = super::settled(self.profile)?;
        let names = super::names(&catalogue);
        let Some(provider) = self.provider.as_deref() else {
            return Err(Error::usage("there is no provider to log in to")
                .cause(format!("the providers are: {}", names.join(", ")))
                .hint("name one: `selvedge auth login anthropic`"));
        };
        if !names.contains(&provider) {
            return Err(super::unknown(provider, &names));
        }
        let key = keys::read(provider)?;
        if !self.no_verify {
            verify(&catalogue, provider, &key).await?;
        }
        let place = match self.store {
            Where::File => Place::File,
            Where::Keychain => Place::Keychain,
        };
        let mut credentials = keys::credentials(profile)?;
        if place == Place::File {
            credentials = match self.passphrase && env::text(env::PASSPHRASE).is_none() {
                true => credentials.with_passphrase(Some(passphrase()?)),
                false => keys::unlocked(credentials)?,
            };
        }
        credentials.store(provider, &key, place)?;
        let profile = credentials.profile();
        out::say(&match place {
            Place::Keychain => format!(
                "the key of `{provider}` is in the kernel's keyring until the machine restarts \
                 (profile `{profile}`)"
            ),
            Place::File => format!(
                "the key of `{provider}` is in `{}`, {} (profile `{profile}`)",
                credentials.path().display(),
                match credentials.is_locked()? {
                    true => "locked with the passphrase",
                    false => "encrypted with the key beside it; `--passphrase` locks it better",
                }
            ),
        });
        let facts = catalogue.providers().find(|(name, _)| *name == provider);
        let variable = facts.and_then(|(_, facts)| facts.key_variable.as_deref());
        if let Some(variable) = variable.filter(|variable| env::text(variable).is_some()) {
            out::warn(&format!(
                "`{variable}` is set and comes before the stored key"
            ));
        }
        Ok(Exit::Done)
    }
}

/// Asks the provider for a word.
async fn verify(catalogue: &Catalogue, name: &str, key: &SecretString) -> Result<()> {
    let providers = Providers::with_keys(
        catalogue,
        &HttpOptions::default(),
        env::word,
        |provider, _| (provider == name).then(|| (key.clone(), "the key".to_owned())),
    );
    let facts = catalogue
        .providers()
        .find(|(provider, _)| *provider == name);
    let model = facts.and_then(|(_, facts)| {
        let listed = facts.models.keys().next();
        facts.tiers.get(&Tier::Low).or(listed)
    });
    let Some((model, provider)) = model
        .map(|model| format!("{name}/{model}"))
        .and_then(|model| Some((model.clone(), providers.find(&model)?)))
    else {
        out::warn("the key is not verified: no model of the provider is known");
        return Ok(());
    };
    match probe(&**provider, &model, catalogue.price(&model), PATIENCE).await {
        Ok(probe) => {
            let took = duration(probe.latency.as_millis() as u64);
            let cost = probe.cost.map_or(String::new(), |cost| {
                format!(", for {cost} that no budget counts")
            });
            out::say(&format!("`{model}` answered in {took}{cost}"));
            Ok(())
        }
        Err(error) => {
            let hint = match &error {
                ModelError::UserFixable { hint, .. } => hint.clone(),
                _ => "try again, or store it unseen with `--no-verify`".to_owned(),
            };
            Err(Error::new(
                Exit::NoProvider,
                format!("the key of `{name}` was not stored: it could not be verified"),
            )
            .cause(error)
            .hint(hint))
        }
    }
}

fn passphrase() -> Result<SecretString> {
    use secrecy::ExposeSecret;
    if !out::can_ask() {
        return Err(Error::usage("there is nobody to ask for a passphrase")
            .hint(format!("set `{}`", env::PASSPHRASE)));
    }
    let first = prompt::unseen("passphrase: ")?;
    let again = prompt::unseen("the same again: ")?;
    let is_same = first.expose_secret() == again.expose_secret();
    match is_same && !first.expose_secret().is_empty() {
        true => Ok(first),
        false => Err(Error::usage("the passphrases are empty or differ").hint("try again")),
    }
}

//! `auth`: stores, shows and forgets the keys of model providers.

mod login;
mod logout;
mod status;

use std::sync::Arc;

use clap::Subcommand;
use selvedge_model::{Catalogue, Profile, Protocol};

use super::run;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::out;
use crate::paths::Paths;
use crate::text::did_you_mean;

#[derive(Subcommand)]
pub enum Auth {
    /// Store a provider's key, read from the terminal or from a pipe.
    Login(login::Login),
    /// Show where each provider's key comes from; never the key.
    Status(status::Status),
    /// Forget a stored key.
    Logout(logout::Logout),
}

impl Auth {
    pub async fn perform(self) -> Result {
        match self {
            Self::Login(login) => login.perform().await,
            Self::Status(status) => status.perform(),
            Self::Logout(logout) => logout.perform(),
        }
    }
}

/// The configuration that holds here, and what it knows of providers.
fn settled(profile: Option<Profile>) -> Result<(Profile, Arc<Catalogue>)> {
    let config = Config::load(&Paths::find()?, &run::workspace(None)?)?;
    config.warnings().iter().for_each(|w| out::warn(w));
    let catalogue = Catalogue::with(&config.catalogue())?;
    let profile = profile.or_else(|| config.settings().profile);
    Ok((profile.unwrap_or_default(), catalogue))
}

/// The providers that can have a key.
fn names(catalogue: &Catalogue) -> Vec<&str> {
    let real = catalogue
        .providers()
        .filter(|(_, facts)| facts.protocol != Protocol::Scripted);
    real.map(|(name, _)| name).collect()
}

fn unknown(provider: &str, names: &[&str]) -> Error {
    Error::usage(format!("there is no provider `{provider}`"))
        .cause(format!("the providers are: {}", names.join(", ")))
        .hint(
            did_you_mean(provider, names)
                .unwrap_or_else(|| "add one of your own under `[catalogue.providers]`".into()),
        )
}

//! `auth logout`: forgets a stored key.

use clap::Args;
use selvedge_model::Profile;

use crate::env;
use crate::error::{Error, Exit, Result};
use crate::keys;
use crate::out;

#[derive(Args)]
pub struct Logout {
    /// The provider whose key is to be forgotten.
    provider: String,
    /// The profile to forget it from.
    #[arg(long, value_name = "PROFILE")]
    profile: Option<Profile>,
}

impl Logout {
    pub fn perform(self) -> Result {
        let (profile, catalogue) = super::settled(self.profile)?;
        let provider = &self.provider;
        // A provider that left the catalogue may still have a key.
        if !keys::credentials(profile.clone())?.remove(provider)? {
            let names = super::names(&catalogue);
            if !names.contains(&provider.as_str()) {
                return Err(super::unknown(provider, &names));
            }
            return Err(Error::usage(format!(
                "no key of `{provider}` is stored in profile `{profile}`"
            ))
            .hint("`selvedge auth status` shows where keys come from"));
        }
        out::say(&format!(
            "the key of `{provider}` is forgotten (profile `{profile}`)"
        ));
        let facts = catalogue.providers().find(|(name, _)| name == provider);
        let variable = facts.and_then(|(_, facts)| facts.key_variable.as_deref());
        if let Some(variable) = variable.filter(|variable| env::text(variable).is_some()) {
            out::warn(&format!("`{variable}` is still set, and used"));
        }
        Ok(Exit::Done)
    }
}

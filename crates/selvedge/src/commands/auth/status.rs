//! `auth status`: where each provider's key comes from; never the key.

use clap::Args;
use selvedge_model::{KeyLength, KeySource, Profile};
use serde_json::json;

use crate::env;
use crate::error::{Exit, Result};
use crate::keys;
use crate::out;
use crate::text::table;

#[derive(Args)]
pub struct Status {
    /// The profile whose keys are meant.
    #[arg(long, value_name = "PROFILE")]
    profile: Option<Profile>,
    /// Print one provider per line, as JSON.
    #[arg(long)]
    json: bool,
}

impl Status {
    pub fn perform(self) -> Result {
        let (profile, catalogue) = super::settled(self.profile)?;
        let credentials = keys::credentials(profile.clone())?;
        let stored = credentials.stored()?;
        let mut rows = vec![
            ["PROVIDER", "KEY FROM", "PROFILE", "LENGTH"]
                .map(str::to_owned)
                .to_vec(),
        ];
        for (name, facts) in catalogue.providers() {
            let kept = stored
                .iter()
                .find(|stored| stored.provider == name && stored.profile == profile);
            if !super::names(&catalogue).contains(&name) {
                continue;
            }
            let mut variables = facts.key_variables();
            let set = variables.find_map(|variable| Some((variable, env::word(variable)?)));
            let (source, length) = match (set, kept) {
                (Some((variable, value)), _) => (
                    Some(KeySource::Environment(variable.to_owned())),
                    Some(KeyLength::of(value.trim().len())),
                ),
                (None, Some(kept)) => (Some(KeySource::Stored(kept.place)), kept.length),
                (None, None) => (None, None),
            };
            let is_stored = matches!(source, Some(KeySource::Stored(_)));
            let from = source.as_ref().map(keys::source);
            let length = length.map(length_word);
            if self.json {
                out::json(&json!({
                    "provider": name, "source": from, "length": length,
                    "profile": is_stored.then_some(profile.as_str()),
                    "stored": kept.map(|kept| keys::place_word(kept.place)),
                }));
                continue;
            }
            rows.push(vec![
                name.to_owned(),
                from.unwrap_or_else(|| "none".into()),
                if is_stored {
                    profile.to_string()
                } else {
                    String::new()
                },
                length.unwrap_or_default().to_owned(),
            ]);
        }
        if !self.json {
            out::line(&table(&rows));
            let mut others: Vec<String> = stored
                .iter()
                .filter(|stored| stored.profile != profile)
                .map(|stored| format!("`{}`", stored.profile))
                .collect();
            others.sort();
            others.dedup();
            if !others.is_empty() {
                out::say(&format!("other profiles with keys: {}", others.join(", ")));
            }
        }
        Ok(Exit::Done)
    }
}

fn length_word(length: KeyLength) -> &'static str {
    match length {
        KeyLength::Short => "short",
        KeyLength::Usual => "usual",
        KeyLength::Long => "long",
    }
}

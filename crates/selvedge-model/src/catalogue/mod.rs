//! What is known of providers and models: tiers, aliases, sizes, prices.
//!
//! It is data, dated and embedded, because it changes faster than code. A user
//! lays a table of their own over it, for a new model, a negotiated price or a
//! whole provider. A model that is not listed can still be used; then nothing
//! is known of it, its price least of all.

mod resolve;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

pub use resolve::{ResolveError, ResolvedModel};

use crate::money::Price;

const BUILT_IN: &str = include_str!("catalogue.toml");

/// Providers, their models, and which of them is meant by a tier or an alias.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    dated: String,
    preferred: Vec<String>,
    providers: BTreeMap<String, ProviderFacts>,
}

/// What is known of a provider.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderFacts {
    /// How it is talked to; Chat Completions if not given.
    #[serde(default)]
    pub protocol: Protocol,
    /// How it is talked to when its address is not the catalogue's, if that differs.
    pub protocol_elsewhere: Option<Protocol>,
    /// Whether addresses and keys are written Azure's way.
    #[serde(default)]
    pub azure: bool,
    /// The variable with the dated version of Azure's older door.
    pub api_version_variable: Option<String>,
    /// Where it is.
    pub base_url: Option<String>,
    /// The variable that says it is elsewhere.
    pub base_url_variable: Option<String>,
    /// The variable that names only its host and port, Ollama's way.
    pub host_variable: Option<String>,
    /// The variable with its key.
    pub key_variable: Option<String>,
    /// Another variable that may hold its key.
    pub key_variable_too: Option<String>,
    /// Its model for each tier.
    #[serde(default)]
    pub tiers: BTreeMap<Tier, String>,
    /// The price of its models that have none of their own.
    pub price: Option<Price>,
    /// Its models.
    #[serde(default)]
    pub models: BTreeMap<String, ModelFacts>,
}

/// How a provider is talked to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// Chat Completions, as OpenAI has it and many others after it.
    #[default]
    OpenaiChat,
    /// OpenAI's Responses.
    OpenaiResponses,
    /// Anthropic's Messages.
    Anthropic,
    /// Google's Gemini.
    Gemini,
    /// A file of turns; nothing is talked to.
    Scripted,
}

/// How able and how dear a model is, among those of its provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// For simple work in quantity.
    Low,
    /// For most work.
    Medium,
    /// For the hardest.
    High,
}

impl Tier {
    /// "low", "medium", "high".
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// What is known of a model.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelFacts {
    /// Short names for it.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// How many tokens it can take in and give together.
    pub context_tokens: Option<u64>,
    /// How many tokens it can give.
    pub output_tokens_max: Option<u32>,
    /// Whether it can see images; `None` if that is not known.
    pub images: Option<bool>,
    /// What it costs; `None` if that is not known.
    pub price: Option<Price>,
}

impl ProviderFacts {
    /// The variables that may hold its key, the first of them first.
    pub fn key_variables(&self) -> impl Iterator<Item = &str> {
        let both = [&self.key_variable, &self.key_variable_too];
        both.into_iter().flatten().map(String::as_str)
    }
}

/// A table laid over the catalogue does not fit it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the table of models does not fit: {0}")]
pub struct CatalogueError(String);

impl Catalogue {
    /// The embedded catalogue.
    pub fn built_in() -> Arc<Self> {
        static PARSED: OnceLock<Arc<Catalogue>> = OnceLock::new();
        let parse =
            || Arc::new(toml::from_str(BUILT_IN).expect("the embedded catalogue is well-formed"));
        Arc::clone(PARSED.get_or_init(parse))
    }

    /// The embedded catalogue with `table` laid over it.
    ///
    /// The table decides where keys are sent (`base_url`), so it must come from
    /// a source that the user trusts with them.
    pub fn with(table: &toml::Table) -> Result<Arc<Self>, CatalogueError> {
        if table.is_empty() {
            return Ok(Self::built_in());
        }
        let mut merged: toml::Table =
            toml::from_str(BUILT_IN).expect("the embedded catalogue is well-formed");
        lay_over(&mut merged, table);
        settle_protocols(&mut merged, table);
        merged
            .try_into()
            .map(Arc::new)
            .map_err(|error: toml::de::Error| {
                CatalogueError(error.to_string().trim_end().replace('\n', " "))
            })
    }

    /// The day its prices were looked up, such as `2026-11-18`.
    pub fn dated(&self) -> &str {
        &self.dated
    }

    /// Every provider by name.
    pub fn providers(&self) -> impl Iterator<Item = (&str, &ProviderFacts)> {
        self.providers
            .iter()
            .map(|(name, facts)| (name.as_str(), facts))
    }

    /// What is known of `provider/model`, if it is listed.
    pub fn facts(&self, model: &str) -> Option<&ModelFacts> {
        let (provider, model) = model.split_once('/')?;
        self.providers.get(provider)?.models.get(model)
    }

    /// The tiers that `provider/model` stands for at its provider.
    pub fn tiers_of(&self, model: &str) -> impl Iterator<Item = Tier> {
        let (provider, name) = model.split_once('/').unwrap_or((model, ""));
        let tiers = self.providers.get(provider).map(|facts| &facts.tiers);
        let meant = tiers.into_iter().flatten();
        let meant = meant.filter(move |(_, of)| *of == name);
        meant.map(|(tier, _)| *tier)
    }

    /// The price of `provider/model`, if it is known.
    pub fn price(&self, model: &str) -> Option<Price> {
        let (provider, _) = model.split_once('/')?;
        let own = self.facts(model).and_then(|facts| facts.price);
        own.or_else(|| self.providers.get(provider)?.price)
    }
}

/// Replaces values by those of `over`, going into tables that both have.
fn lay_over(base: &mut toml::Table, over: &toml::Table) {
    for (key, value) in over {
        match (base.get_mut(key), value) {
            // A price is one value: half of an old one under half of a new one is wrong.
            (Some(toml::Value::Table(base)), toml::Value::Table(over)) if key != "price" => {
                lay_over(base, over);
            }
            _ => drop(base.insert(key.clone(), value.clone())),
        }
    }
}

/// Lets a user's word on a provider hold: a protocol they name holds wherever
/// the provider is, and an address they name is elsewhere.
fn settle_protocols(merged: &mut toml::Table, over: &toml::Table) {
    let Some(toml::Value::Table(over)) = over.get("providers") else {
        return;
    };
    for (name, over) in over {
        let facts = merged
            .get_mut("providers")
            .and_then(|all| all.get_mut(name));
        let Some(facts) = facts.and_then(toml::Value::as_table_mut) else {
            continue;
        };
        if over.get("protocol").is_some() && over.get("protocol_elsewhere").is_none() {
            facts.remove("protocol_elsewhere");
        } else if over.get("base_url").is_some()
            && let Some(elsewhere) = facts.get("protocol_elsewhere").cloned()
        {
            facts.insert("protocol".to_owned(), elsewhere);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::money::Usd;

    #[test]
    fn every_tier_of_the_catalogue_names_a_listed_model_or_a_free_provider() {
        let catalogue = Catalogue::built_in();
        for (name, provider) in catalogue.providers() {
            assert_eq!(provider.tiers.len(), 3, "{name}");
            for model in provider.tiers.values() {
                let listed = provider.models.contains_key(model);
                let open = provider.price.is_some() || provider.protocol == Protocol::Scripted;
                assert!(listed || open, "{name}/{model}");
            }
        }
        for name in &catalogue.preferred {
            assert!(catalogue.providers.contains_key(name), "{name}");
        }
    }

    #[test]
    fn an_unknown_price_is_none_and_never_zero() {
        let catalogue = Catalogue::built_in();
        assert_eq!(
            catalogue.price("openrouter/anthropic/claude-opus-5.5"),
            None
        );
        assert_eq!(catalogue.price("anthropic/claude-unheard-of"), None);
        assert_eq!(catalogue.price("nobody/nothing"), None);
        assert_eq!(catalogue.price("ollama/anything").unwrap().input, Usd::ZERO);
        assert_eq!(
            catalogue.price("anthropic/claude-opus-5-5").unwrap().input,
            Usd::from_dollars(4.0).unwrap()
        );
    }

    #[test]
    fn a_users_table_adds_models_and_replaces_whole_prices() {
        let table = toml::toml! {
            [providers.anthropic.models.claude-sonnet-5-5]
            price = { input = 1.5, output = 7.0 }
            [providers.attic]
            base_url = "http://attic.local:8000/v1"
            [providers.attic.models.tiny]
            context_tokens = 32000
        };
        let catalogue = Catalogue::with(&table).unwrap();
        let price = catalogue.price("anthropic/claude-sonnet-5-5").unwrap();
        assert_eq!(
            (price.input, price.cached),
            (Usd::from_dollars(1.5).unwrap(), None)
        );
        assert!(
            catalogue
                .facts("anthropic/claude-sonnet-5-5")
                .unwrap()
                .context_tokens
                .is_some()
        );
        assert_eq!(
            catalogue.facts("attic/tiny").unwrap().context_tokens,
            Some(32000)
        );
    }

    #[test]
    fn the_protocol_follows_the_address_unless_the_user_names_one() {
        let protocols = |table: toml::Table| {
            let catalogue = Catalogue::with(&table).unwrap();
            let facts = &catalogue.providers["openai"];
            (facts.protocol, facts.protocol_elsewhere)
        };
        let (responses, chat) = (Protocol::OpenaiResponses, Protocol::OpenaiChat);
        assert_eq!(protocols(toml::Table::new()), (responses, Some(chat)));
        let moved = toml::toml! { [providers.openai]
        base_url = "http://gpu:8000/v1" };
        assert_eq!(protocols(moved).0, chat);
        let named = toml::toml! { [providers.openai]
        protocol = "openai_responses" };
        assert_eq!(protocols(named), (responses, None));
        let both = toml::toml! { [providers.openai]
        protocol = "openai_responses"
        base_url = "http://gpu:8000/v1" };
        assert_eq!(protocols(both), (responses, None));
    }

    #[test]
    fn a_table_with_an_unknown_key_is_refused_by_name() {
        let table = toml::toml! {
            [providers.anthropic]
            base_ulr = "http://localhost"
        };
        let error = Catalogue::with(&table).unwrap_err().to_string();
        assert!(
            error.contains("base_ulr") && error.contains("base_url"),
            "{error}"
        );
    }
}

//! From what somebody wrote to a model: `provider/model`, a tier or an alias.
//!
//! Only providers that can be reached are considered for tiers and aliases, so
//! the same crew runs on whichever key there is. A full name is taken at its
//! word, even when the catalogue has not heard of the model.

use std::collections::BTreeSet;

use super::{Catalogue, ProviderFacts, Tier};
use crate::money::Price;
use crate::nearest::{did_you_mean, nearest};

/// A model to ask, and what is known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedModel {
    /// Its full name, `provider/model`.
    pub name: String,
    /// How many tokens it can take in and give together, if known.
    pub context_tokens: Option<u64>,
    /// How many tokens it can give, if known.
    pub output_tokens_max: Option<u32>,
    /// What it costs, if known.
    pub price: Option<Price>,
}

/// Why a name does not lead to a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// No provider can be reached.
    #[error("no model provider is available: none of {} is set", ticked(.variables))]
    NoProvider {
        /// The variables that would make one available.
        variables: Vec<String>,
    },
    /// The named provider cannot be reached.
    #[error("`{model}` needs the provider `{provider}`, which is not available")]
    NotAvailable {
        /// What was asked for.
        model: String,
        /// Whose it is.
        provider: String,
        /// The variables that would make it available.
        variables: Vec<String>,
    },
    /// No such provider.
    #[error("there is no provider `{provider}`{}", did_you_mean(.nearest))]
    UnknownProvider {
        /// What was asked for.
        provider: String,
        /// Names like it.
        nearest: Vec<String>,
    },
    /// No such model, tier or alias.
    #[error("there is no model `{name}`{}", did_you_mean(.nearest))]
    UnknownName {
        /// What was asked for.
        name: String,
        /// Names like it.
        nearest: Vec<String>,
    },
}

impl ResolveError {
    /// What a person can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::NoProvider { variables } => {
                format!(
                    "set one of {}, or try `selvedge demo`, which needs no key",
                    ticked(variables)
                )
            }
            Self::NotAvailable { variables, .. } if variables.is_empty() => {
                "name the script to answer from, or another provider".to_owned()
            }
            Self::NotAvailable { variables, .. } => format!("set {}", ticked(variables)),
            Self::UnknownProvider { .. } => {
                "name a model as `provider/model`; `selvedge models` lists them".to_owned()
            }
            Self::UnknownName { .. } => {
                "name a model as `provider/model`, or a tier: `low`, `medium`, `high`".to_owned()
            }
        }
    }
}

impl Catalogue {
    /// The model meant by `name`, or by nothing at all, given the providers
    /// that are available.
    pub fn resolve(
        &self,
        name: Option<&str>,
        available: &BTreeSet<String>,
    ) -> Result<ResolvedModel, ResolveError> {
        let name = name.map_or("medium", str::trim);
        if let Some(tier) = Tier::parse(name) {
            return self.by_tier(tier, available);
        }
        if let Some((provider, _)) = name.split_once('/') {
            return self.by_full_name(name, provider, available);
        }
        self.by_short_name(name, available)
    }

    fn by_tier(
        &self,
        tier: Tier,
        available: &BTreeSet<String>,
    ) -> Result<ResolvedModel, ResolveError> {
        let with_tier = |provider: &&str| {
            available.contains(*provider)
                && self
                    .providers
                    .get(*provider)
                    .is_some_and(|facts| facts.tiers.contains_key(&tier))
        };
        let Some(provider) = self.by_preference().find(with_tier) else {
            return Err(ResolveError::NoProvider {
                variables: self.variables(),
            });
        };
        Ok(self.resolved(provider, &self.providers[provider].tiers[&tier]))
    }

    fn by_full_name(
        &self,
        name: &str,
        provider: &str,
        available: &BTreeSet<String>,
    ) -> Result<ResolvedModel, ResolveError> {
        let model = &name[provider.len() + 1..];
        if available.contains(provider) {
            // `anthropic/high` and `anthropic/sonnet` are understood, too.
            let facts = self.providers.get(provider);
            let known = facts.and_then(|facts| facts.named(model)).unwrap_or(model);
            return Ok(self.resolved(provider, known));
        }
        match self.providers.get(provider) {
            Some(facts) => Err(not_available(name, provider, facts)),
            None => Err(ResolveError::UnknownProvider {
                provider: provider.to_owned(),
                nearest: owned(nearest(provider, self.providers.keys().map(String::as_str))),
            }),
        }
    }

    fn by_short_name(
        &self,
        name: &str,
        available: &BTreeSet<String>,
    ) -> Result<ResolvedModel, ResolveError> {
        let mut missing = None;
        for provider in self.by_preference() {
            let facts = &self.providers[provider];
            match facts.named(name) {
                Some(model) if available.contains(provider) => {
                    return Ok(self.resolved(provider, model));
                }
                Some(_) => missing = missing.or(Some((provider, facts))),
                None => {}
            }
        }
        if let Some((provider, facts)) = missing {
            return Err(not_available(name, provider, facts));
        }
        let nearest = owned(nearest(name, self.every_name()));
        Err(ResolveError::UnknownName {
            name: name.to_owned(),
            nearest,
        })
    }

    fn resolved(&self, provider: &str, model: &str) -> ResolvedModel {
        let name = format!("{provider}/{model}");
        let facts = self.facts(&name);
        ResolvedModel {
            context_tokens: facts.and_then(|facts| facts.context_tokens),
            output_tokens_max: facts.and_then(|facts| facts.output_tokens_max),
            price: self.price(&name),
            name,
        }
    }

    /// Preferred providers first, then those a user has added.
    fn by_preference(&self) -> impl Iterator<Item = &str> {
        let known = |name: &&String| self.providers.contains_key(*name);
        let others = self
            .providers
            .keys()
            .filter(|name| !self.preferred.contains(name));
        self.preferred
            .iter()
            .filter(known)
            .chain(others)
            .map(String::as_str)
    }

    fn every_name(&self) -> impl Iterator<Item = &str> {
        let models = self
            .providers
            .values()
            .flat_map(|provider| &provider.models);
        let names = models.flat_map(|(name, facts)| std::iter::once(name).chain(&facts.aliases));
        names.map(String::as_str).chain(["low", "medium", "high"])
    }

    fn variables(&self) -> Vec<String> {
        self.by_preference()
            .flat_map(|name| self.providers[name].variables())
            .collect()
    }
}

impl ProviderFacts {
    /// The variables of which one makes this provider available.
    fn variables(&self) -> Vec<String> {
        let address = self.base_url_variable.as_ref();
        // Without an address of its own a key alone leads nowhere.
        let first = address.filter(|_| self.base_url.is_none());
        let first = first.or(self.key_variable.as_ref());
        let first = first.or(self.host_variable.as_ref()).or(address);
        first.into_iter().cloned().collect()
    }

    /// The model with this name, alias or tier.
    fn named(&self, name: &str) -> Option<&str> {
        if let Some(model) = Tier::parse(name).and_then(|tier| self.tiers.get(&tier)) {
            return Some(model);
        }
        let matches = |(model, facts): &(&String, &super::ModelFacts)| {
            *model == name || facts.aliases.iter().any(|alias| alias == name)
        };
        self.models
            .iter()
            .find(matches)
            .map(|(model, _)| model.as_str())
    }
}

impl Tier {
    fn parse(name: &str) -> Option<Self> {
        match name {
            "low" => Some(Self::Low),
            "medium" => Some(Self::Medium),
            "high" => Some(Self::High),
            _ => None,
        }
    }
}

fn not_available(model: &str, provider: &str, facts: &ProviderFacts) -> ResolveError {
    let variables = facts.variables();
    ResolveError::NotAvailable {
        model: model.to_owned(),
        provider: provider.to_owned(),
        variables,
    }
}

fn ticked(names: &[String]) -> String {
    let ticked: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    ticked.join(", ")
}

fn owned(names: Vec<&str>) -> Vec<String> {
    names.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(name: Option<&str>, available: &[&str]) -> Result<String, ResolveError> {
        let available = available.iter().map(|name| (*name).to_owned()).collect();
        Catalogue::built_in()
            .resolve(name, &available)
            .map(|model| model.name)
    }

    fn ok(name: &str, available: &[&str]) -> String {
        resolve(Some(name), available).unwrap()
    }

    #[test]
    fn with_one_key_and_nothing_said_that_providers_medium_tier_is_meant() {
        assert_eq!(resolve(None, &["openai"]).unwrap(), "openai/gpt-6.1-sol");
        assert_eq!(resolve(None, &["ollama"]).unwrap(), "ollama/qwen3:8b");
        assert_eq!(
            resolve(None, &["openai", "anthropic"]).unwrap(),
            "anthropic/claude-sonnet-5-5"
        );
    }

    #[test]
    fn tiers_aliases_and_names_lead_to_a_model() {
        assert_eq!(ok("low", &["anthropic"]), "anthropic/claude-haiku-5-5");
        assert_eq!(
            ok("opus", &["anthropic", "openai"]),
            "anthropic/claude-opus-5-5"
        );
        assert_eq!(ok("gpt-5-mini", &["openai"]), "openai/gpt-5-mini");
        assert_eq!(
            ok("anthropic/high", &["anthropic"]),
            "anthropic/claude-opus-5-5"
        );
        assert_eq!(
            ok("openrouter/z-ai/glm-6", &["openrouter"]),
            "openrouter/z-ai/glm-6"
        );
        assert_eq!(ok("openai/gpt-9", &["openai"]), "openai/gpt-9");
        assert_eq!(ok("scripted/fix", &["scripted"]), "scripted/fix");
    }

    #[test]
    fn without_a_key_the_variables_and_the_demo_are_named() {
        let error = resolve(None, &[]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no model provider is available: none of `ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, \
             `GEMINI_API_KEY`, `AZURE_OPENAI_ENDPOINT`, `OPENROUTER_API_KEY`, `OLLAMA_HOST` is set"
        );
        assert!(error.hint().contains("selvedge demo"));
        let error = resolve(Some("sonnet"), &["openai"]).unwrap_err();
        assert_eq!(error.hint(), "set `ANTHROPIC_API_KEY`");
    }

    #[test]
    fn a_typo_is_answered_with_the_nearest_names() {
        let error = resolve(Some("sonet"), &["anthropic"]).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("there is no model `sonet`; did you mean `sonnet`"),
            "{error}"
        );
        let error = resolve(Some("antropic/claude-opus-5-5"), &["anthropic"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no provider `antropic`; did you mean `anthropic`?"
        );
    }
}

//! The providers that can be asked, by name.
//!
//! Which there are follows from the catalogue and from the keys that are set.
//! Making them opens nothing and reads no file: that waits for the first call.

mod answer;
mod anthropic;
mod door;
mod exchange;
mod gemini;
mod http;
mod openai_chat;
mod openai_models;
mod openai_responses;
mod ordered;
mod refusal;
mod schema;
mod seal;
mod sight;
mod sse;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};

pub use anthropic::Anthropic;
pub use door::Door;
pub use gemini::Gemini;
pub use http::{Endpoint, HttpOptions};
pub use openai_chat::OpenAiChat;
pub use openai_responses::OpenAiResponses;

use crate::catalogue::{Catalogue, Protocol, ProviderFacts};
use crate::error::ModelError;
use crate::nearest::{did_you_mean, nearest};
use crate::provider::Provider;
use crate::scripted::ScriptedModel;

/// The providers that can be asked.
#[derive(Clone, Default)]
pub struct Providers {
    by_name: BTreeMap<String, Arc<dyn Provider>>,
}

impl Providers {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Those of the catalogue whose key or address `lookup` has: a variable of
    /// the environment, or a stored secret of the same name.
    pub fn from_env(
        catalogue: &Catalogue,
        options: &HttpOptions,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Self {
        Self::with_keys(catalogue, options, &lookup, |_, facts| {
            let mut variables = facts.key_variables();
            variables.find_map(|variable| Some((lookup(variable)?.into(), variable.to_owned())))
        })
    }

    /// Those of the catalogue for which `keys` has a key, or `lookup` an address.
    ///
    /// `keys` is asked by the provider's name, and says with the key where a
    /// person would look after it.
    pub fn with_keys(
        catalogue: &Catalogue,
        options: &HttpOptions,
        lookup: impl Fn(&str) -> Option<String>,
        keys: impl Fn(&str, &ProviderFacts) -> Option<(SecretString, String)>,
    ) -> Self {
        let mut providers = Self::new();
        for (name, facts) in catalogue.providers() {
            let key = keys(name, facts).and_then(|(key, source)| Some((trimmed(key)?, source)));
            let Some(endpoint) = endpoint(name, facts, options, key, &lookup) else {
                continue;
            };
            let provider: Arc<dyn Provider> = match protocol(facts, &endpoint) {
                Protocol::OpenaiChat => Arc::new(OpenAiChat::new(endpoint)),
                Protocol::OpenaiResponses => Arc::new(OpenAiResponses::new(endpoint)),
                Protocol::Anthropic => Arc::new(Anthropic::new(endpoint)),
                Protocol::Gemini => Arc::new(Gemini::new(endpoint)),
                Protocol::Scripted => continue,
            };
            providers = providers.with(name, sight::heeding(facts, provider));
        }
        providers
    }

    /// With `provider` for every model of `name`, or for one model if `name` is
    /// `provider/model`.
    pub fn with(mut self, name: impl Into<String>, provider: Arc<dyn Provider>) -> Self {
        self.by_name.insert(name.into(), provider);
        self
    }

    /// With a script for every `scripted/…` model.
    pub fn with_script(self, script: ScriptedModel) -> Self {
        self.with("scripted", Arc::new(script))
    }

    /// The names of the providers, for `Catalogue::resolve`.
    pub fn available(&self) -> BTreeSet<String> {
        self.by_name
            .keys()
            .map(|name| provider_of(name).to_owned())
            .collect()
    }

    /// Who answers for `provider/model`.
    pub fn find(&self, model: &str) -> Option<&Arc<dyn Provider>> {
        self.by_name
            .get(model)
            .or_else(|| self.by_name.get(provider_of(model)))
    }

    /// Who answers for `provider/model`, or what to do so that somebody does.
    pub fn get(&self, model: &str) -> Result<&Arc<dyn Provider>, ModelError> {
        self.find(model).ok_or_else(|| {
            let provider = provider_of(model);
            let near = nearest(provider, self.by_name.keys().map(String::as_str));
            ModelError::UserFixable {
                provider: provider.to_owned(),
                what: format!("no provider answers for `{model}`{}", did_you_mean(&near)),
                hint: "set the provider's key, or name another model".to_owned(),
            }
        })
    }
}

/// The provider of `provider/model`.
pub fn provider_of(model: &str) -> &str {
    model
        .split_once('/')
        .map_or(model, |(provider, _)| provider)
}

/// How a provider is talked to at its endpoint.
fn protocol(facts: &ProviderFacts, endpoint: &Endpoint) -> Protocol {
    let usual = facts
        .base_url
        .as_deref()
        .map(|url| url.trim_end_matches('/'));
    let elsewhere = usual != Some(endpoint.base_url.trim_end_matches('/'));
    match &endpoint.door {
        // Every dated version serves Chat Completions, only some anything else.
        Door::Azure {
            api_version: Some(_),
        } => Protocol::OpenaiChat,
        _ if elsewhere => facts.protocol_elsewhere.unwrap_or(facts.protocol),
        _ => facts.protocol,
    }
}

/// Where a provider is and what opens its door, if it has been given either.
fn endpoint(
    name: &str,
    facts: &ProviderFacts,
    options: &HttpOptions,
    key: Option<(SecretString, String)>,
    lookup: &impl Fn(&str) -> Option<String>,
) -> Option<Endpoint> {
    let set = |variable: &Option<String>| {
        let value = lookup(variable.as_ref()?)?;
        Some(value.trim().to_owned()).filter(|value| !value.is_empty())
    };
    let elsewhere = set(&facts.base_url_variable);
    let host = set(&facts.host_variable);
    // A provider without any variable was added by the user and needs none.
    let added = facts.key_variable.is_none()
        && facts.base_url_variable.is_none()
        && facts.host_variable.is_none();
    if key.is_none() && elsewhere.is_none() && host.is_none() && !added {
        return None;
    }
    let usual = facts.base_url.clone();
    let at_host = host.and_then(|host| on_host(usual.as_deref()?, &host));
    let (key, source) = key.unzip();
    Some(Endpoint {
        provider: name.to_owned(),
        base_url: elsewhere.or(at_host).or(usual)?,
        door: match facts.azure {
            true => Door::Azure {
                api_version: set(&facts.api_version_variable),
            },
            false => Door::Plain,
        },
        key,
        key_variable: source.or_else(|| facts.key_variable.clone()),
        options: options.clone(),
    })
}

/// The key without the space around it, unless nothing is left.
fn trimmed(key: SecretString) -> Option<SecretString> {
    let text = key.expose_secret();
    match text.trim() {
        "" => None,
        inner if inner.len() == text.len() => Some(key),
        inner => Some(inner.into()),
    }
}

/// The usual base URL with another host: `box`, `box:8080` or `http://box:8080`.
fn on_host(usual: &str, host: &str) -> Option<String> {
    let usual = reqwest::Url::parse(usual).ok()?;
    let full = if host.contains("://") {
        host.to_owned()
    } else {
        format!("{}://{host}", usual.scheme())
    };
    let mut url = reqwest::Url::parse(&full).ok()?;
    if url.port().is_none() && !host.contains("://") {
        url.set_port(usual.port()).ok()?;
    }
    if url.host_str() == Some("0.0.0.0") {
        // A server's way to say "every address"; a client needs one.
        url.set_host(Some("127.0.0.1")).ok()?;
    }
    if url.path() == "/" {
        url.set_path(usual.path());
    }
    Some(url.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint_of(name: &str, variables: &[(&str, &str)]) -> Option<Endpoint> {
        let catalogue = Catalogue::built_in();
        let (_, facts) = catalogue
            .providers()
            .find(|(provider, _)| *provider == name)?;
        let lookup = |wanted: &str| {
            variables
                .iter()
                .find(|(name, _)| *name == wanted)
                .map(|(_, value)| (*value).to_owned())
        };
        let key = facts.key_variable.as_deref().and_then(lookup);
        let key = key.and_then(|key| trimmed(key.into()));
        let key = key.map(|key| (key, "KEY".to_owned()));
        endpoint(name, facts, &HttpOptions::default(), key, &lookup)
    }

    #[test]
    fn a_provider_is_available_when_its_key_or_its_address_is_set() {
        let lookup = |name: &str| match name {
            "OPENAI_API_KEY" => Some("sk-1".to_owned()),
            "OLLAMA_HOST" => Some("box".to_owned()),
            "ANTHROPIC_API_KEY" => Some("  ".to_owned()),
            _ => None,
        };
        let providers =
            Providers::from_env(&Catalogue::built_in(), &HttpOptions::default(), lookup);
        assert_eq!(
            providers.available().into_iter().collect::<Vec<_>>(),
            ["ollama", "openai"]
        );
    }

    #[test]
    fn a_base_url_of_ones_own_replaces_the_usual_one() {
        let openai = endpoint_of("openai", &[("OPENAI_BASE_URL", "http://gpu:8000/v1")]).unwrap();
        assert_eq!(openai.base_url, "http://gpu:8000/v1");
        assert!(openai.key.is_none());
        let openai = endpoint_of("openai", &[("OPENAI_API_KEY", " sk-1\n")]).unwrap();
        assert_eq!(openai.base_url, "https://api.openai.com/v1");
        assert_eq!(openai.key.unwrap().expose_secret(), "sk-1");
    }

    #[test]
    fn ollamas_host_is_understood_in_all_its_spellings() {
        let url = |host| {
            endpoint_of("ollama", &[("OLLAMA_HOST", host)])
                .unwrap()
                .base_url
        };
        assert_eq!(url("box"), "http://box:11434/v1");
        assert_eq!(url("box:8080"), "http://box:8080/v1");
        assert_eq!(url("0.0.0.0"), "http://127.0.0.1:11434/v1");
        assert_eq!(url("https://ollama.example"), "https://ollama.example/v1");
    }
}

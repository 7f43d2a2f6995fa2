//! The providers that can be asked, by name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

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

fn provider_of(model: &str) -> &str {
    model
        .split_once('/')
        .map_or(model, |(provider, _)| provider)
}

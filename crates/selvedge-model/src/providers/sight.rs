//! Keeps images from models that cannot see.
//!
//! Some providers leave an image out without a word, and the model answers
//! about a picture it never saw. What the catalogue knows is said before the
//! call; of a model it does not know, the provider has the word.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::catalogue::ProviderFacts;
use crate::error::ModelError;
use crate::money::Price;
use crate::provider::{DeltaSink, Provider};
use crate::types::{Request, Response};

/// A provider some of whose models cannot see.
struct Sight {
    provider: Arc<dyn Provider>,
    blind: BTreeSet<String>,
}

/// `provider`, refusing images for the models that cannot see them.
pub(super) fn heeding(facts: &ProviderFacts, provider: Arc<dyn Provider>) -> Arc<dyn Provider> {
    let blind = facts.models.iter();
    let blind = blind.filter(|(_, facts)| facts.images == Some(false));
    let blind: BTreeSet<String> = blind.map(|(name, _)| name.clone()).collect();
    match blind.is_empty() {
        true => provider,
        false => Arc::new(Sight { provider, blind }),
    }
}

#[async_trait]
impl Provider for Sight {
    async fn ask(
        &self,
        request: &Request,
        deltas: &mut dyn DeltaSink,
        cancel: &CancellationToken,
    ) -> Result<Response, ModelError> {
        if self.blind.contains(request.model_name()) && request.has_images() {
            return Err(ModelError::UserFixable {
                provider: crate::providers::provider_of(&request.model).to_owned(),
                what: format!("`{}` cannot see images", request.model),
                hint: "name a model that can, or leave the image out".to_owned(),
            });
        }
        self.provider.ask(request, deltas, cancel).await
    }

    fn place(&self) -> Option<&str> {
        self.provider.place()
    }

    fn takes_effort(&self, model: &str) -> bool {
        self.provider.takes_effort(model)
    }

    fn price(&self, model: &str) -> Option<Price> {
        self.provider.price(model)
    }
}

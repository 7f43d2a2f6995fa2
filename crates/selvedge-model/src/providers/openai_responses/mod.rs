//! OpenAI's Responses: its own protocol for models that reason.
//!
//! Nothing is left with the provider (`store` is off), so a session depends on
//! its ledger alone. Reasoning comes sealed and goes back with the conversation,
//! which is what lets a model reason and call tools in turns.

mod request;
mod stream;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::exchange::{Post, exchange};
use super::http::{Endpoint, Line};
use super::openai_models::never_reasons;
use crate::error::ModelError;
use crate::provider::{DeltaSink, Provider};
use crate::types::{Request, Response};

/// A server that speaks Responses.
pub struct OpenAiResponses {
    line: Line,
}

impl OpenAiResponses {
    /// A server whose base URL ends where `/responses` begins.
    pub fn new(endpoint: Endpoint) -> Self {
        let line = Line::new(endpoint);
        Self { line }
    }
}

#[async_trait]
impl Provider for OpenAiResponses {
    async fn ask(
        &self,
        request: &Request,
        deltas: &mut dyn DeltaSink,
        cancel: &CancellationToken,
    ) -> Result<Response, ModelError> {
        let (line, door) = (&self.line, self.line.door());
        let post = Post {
            url: door.url(line.base(), "/responses", request.model_name()),
            headers: door.headers(line)?,
            body: request::body(request),
        };
        exchange::<stream::Stream>(line, post, request, deltas, cancel).await
    }

    fn place(&self) -> Option<&str> {
        Some(self.line.place())
    }

    fn takes_effort(&self, model: &str) -> bool {
        !never_reasons(model)
    }
}

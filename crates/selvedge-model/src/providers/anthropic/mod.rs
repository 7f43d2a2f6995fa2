//! Anthropic's Messages.
//!
//! Written directly over HTTP, for the reasons given at Chat Completions, and
//! for one more: reasoning has to be sent back exactly as it came, with its
//! seal, or the provider refuses the conversation.

mod request;
mod stream;

use async_trait::async_trait;
use reqwest::header::{HeaderName, HeaderValue};
use tokio_util::sync::CancellationToken;

use super::exchange::{Post, exchange};
use super::http::{Endpoint, Line};
use crate::error::ModelError;
use crate::provider::{DeltaSink, Provider};
use crate::types::{Request, Response};

/// The version of the protocol that this file speaks.
const VERSION: &str = "2023-06-01";

/// A server that speaks Anthropic's Messages.
pub struct Anthropic {
    line: Line,
}

impl Anthropic {
    /// A server whose base URL ends where `/v1/messages` begins.
    pub fn new(endpoint: Endpoint) -> Self {
        let line = Line::new(endpoint);
        Self { line }
    }

    fn url(&self) -> String {
        // Both spellings of the base URL are about.
        let base = self.line.base();
        format!("{}/v1/messages", base.strip_suffix("/v1").unwrap_or(base))
    }
}

#[async_trait]
impl Provider for Anthropic {
    async fn ask(
        &self,
        request: &Request,
        deltas: &mut dyn DeltaSink,
        cancel: &CancellationToken,
    ) -> Result<Response, ModelError> {
        let mut headers = vec![(
            HeaderName::from_static("anthropic-version"),
            HeaderValue::from_static(VERSION),
        )];
        if let Some(key) = self.line.key_header("")? {
            headers.push((HeaderName::from_static("x-api-key"), key));
        }
        let post = Post {
            url: self.url(),
            headers,
            body: request::body(request),
        };
        exchange::<stream::Stream>(&self.line, post, request, deltas, cancel).await
    }

    fn place(&self) -> Option<&str> {
        Some(self.line.place())
    }

    fn takes_effort(&self, model: &str) -> bool {
        request::takes_effort(model)
    }
}

//! Google's Gemini.
//!
//! The key travels in a header, never in the address, where logs would keep it.
//! Thoughts come signed, and so do words and calls; each signature goes back on
//! the part it came with, or newer models refuse the conversation.

mod request;
mod stream;

use async_trait::async_trait;
use reqwest::header::HeaderName;
use tokio_util::sync::CancellationToken;

use super::exchange::{Post, exchange};
use super::http::{Endpoint, Line};
use crate::error::ModelError;
use crate::provider::{DeltaSink, Provider};
use crate::types::{Request, Response};

/// A server that speaks Gemini's protocol.
pub struct Gemini {
    line: Line,
}

impl Gemini {
    /// A server whose base URL ends where `/v1beta` begins.
    pub fn new(endpoint: Endpoint) -> Self {
        let line = Line::new(endpoint);
        Self { line }
    }

    fn url(&self, model: &str) -> String {
        let base = self.line.base();
        let base = base.strip_suffix("/v1beta").unwrap_or(base);
        format!("{base}/v1beta/models/{model}:streamGenerateContent?alt=sse")
    }
}

#[async_trait]
impl Provider for Gemini {
    async fn ask(
        &self,
        request: &Request,
        deltas: &mut dyn DeltaSink,
        cancel: &CancellationToken,
    ) -> Result<Response, ModelError> {
        let key = self.line.key_header("")?;
        let headers = key.map(|key| (HeaderName::from_static("x-goog-api-key"), key));
        let post = Post {
            url: self.url(request.model_name()),
            headers: headers.into_iter().collect(),
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

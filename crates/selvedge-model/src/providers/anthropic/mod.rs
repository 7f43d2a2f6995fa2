//! Anthropic's Messages.
//!
//! Written directly over HTTP, for the reasons given at Chat Completions, and
//! for one more: reasoning has to be sent back exactly as it came, with its
//! seal, or the provider refuses the conversation.

mod request;
mod seal;
mod stream;

use async_trait::async_trait;
use reqwest::header::{HeaderName, HeaderValue};
use tokio_util::sync::CancellationToken;

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
    pub fn new(mut endpoint: Endpoint) -> Self {
        // Both spellings of the base URL are about.
        let base = endpoint.base_url.trim_end_matches('/');
        endpoint.base_url = base.strip_suffix("/v1").unwrap_or(base).to_owned();
        Self {
            line: Line::new(endpoint, "/v1/messages"),
        }
    }

    async fn converse(
        &self,
        request: &Request,
        deltas: &mut dyn DeltaSink,
    ) -> Result<Response, ModelError> {
        let mut headers = vec![(
            HeaderName::from_static("anthropic-version"),
            HeaderValue::from_static(VERSION),
        )];
        if let Some(key) = self.line.key_header("")? {
            headers.push((HeaderName::from_static("x-api-key"), key));
        }
        let body = request::body(request);
        let mut events = self
            .line
            .post(request.model_name(), &headers, &body)
            .await?;
        let mut stream = stream::Stream::default();
        while !stream.is_over() {
            let event = events.next().await?;
            let event = event.ok_or_else(|| {
                self.line
                    .transient("the stream ended before the message did")
            })?;
            stream
                .take(&event, deltas)
                .map_err(|what| self.line.transient(&what))?;
        }
        events.drain().await;
        let answer = stream
            .into_answer(request)
            .and_then(|answer| answer.complete(self.line.provider(), request));
        answer.map_err(|what| self.line.transient(&what))
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
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ModelError::Cancelled),
            answer = self.converse(request, deltas) => answer,
        }
    }
}

//! OpenAI's Chat Completions, and everything that speaks like it: OpenRouter,
//! Ollama, vLLM, llama.cpp, Azure.
//!
//! Written directly over HTTP. The libraries at hand parse the arguments of a
//! call and lose what the model wrote, and cannot tell a stream that was cut
//! from one that was finished; both are exactly what an agent depends on.

mod request;
mod stream;

use async_trait::async_trait;
use reqwest::header::AUTHORIZATION;
use tokio_util::sync::CancellationToken;

use super::http::{Endpoint, Line};
use crate::error::ModelError;
use crate::provider::{DeltaSink, Provider};
use crate::types::{Request, Response};

/// A server that speaks Chat Completions.
pub struct OpenAiChat {
    line: Line,
    dialect: Dialect,
}

/// Where servers differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    /// OpenAI's own, which has renamed `max_tokens` and made reasoning and
    /// tools exclude each other for its newer models.
    Official,
    /// Anybody else's.
    Compatible,
}

impl OpenAiChat {
    /// A server whose base URL ends where `/chat/completions` begins.
    pub fn new(endpoint: Endpoint) -> Self {
        let line = Line::new(endpoint, "/chat/completions");
        let official = ["://api.openai.com", ".openai.azure.com"]
            .iter()
            .any(|host| line.url().contains(host));
        let dialect = if official {
            Dialect::Official
        } else {
            Dialect::Compatible
        };
        Self { line, dialect }
    }

    async fn converse(
        &self,
        request: &Request,
        deltas: &mut dyn DeltaSink,
    ) -> Result<Response, ModelError> {
        let authorization = self
            .line
            .key_header("Bearer ")?
            .map(|value| (AUTHORIZATION, value));
        let headers: Vec<_> = authorization.into_iter().collect();
        let body = request::body(request, self.dialect);
        let mut events = self
            .line
            .post(request.model_name(), &headers, &body)
            .await?;
        let mut stream = stream::Stream::default();
        while let Some(event) = events.next().await? {
            if event == "[DONE]" {
                events.drain().await;
                break;
            }
            stream
                .take(&event, deltas)
                .map_err(|what| self.line.transient(&what))?;
        }
        let answer = stream
            .into_answer(request)
            .and_then(|answer| answer.complete(self.line.provider(), request));
        answer.map_err(|what| self.line.transient(&what))
    }
}

#[async_trait]
impl Provider for OpenAiChat {
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

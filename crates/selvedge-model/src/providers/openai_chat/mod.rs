//! OpenAI's Chat Completions, and everything that speaks like it: OpenRouter,
//! Ollama, vLLM, llama.cpp, Azure's older door.
//!
//! Written directly over HTTP. The libraries at hand parse the arguments of a
//! call and lose what the model wrote, and cannot tell a stream that was cut
//! from one that was finished; both are exactly what an agent depends on.

mod reasoning;
mod request;
mod stream;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::door::Door;
use super::exchange::{Post, exchange};
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
        let line = Line::new(endpoint);
        let official = *line.door() != Door::Plain || line.base().contains("://api.openai.com");
        let dialect = if official {
            Dialect::Official
        } else {
            Dialect::Compatible
        };
        Self { line, dialect }
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
        let (line, door) = (&self.line, self.line.door());
        let post = Post {
            url: door.url(line.base(), "/chat/completions", request.model_name()),
            headers: door.headers(line)?,
            body: request::body(request, self.dialect),
        };
        exchange::<stream::Stream>(line, post, request, deltas, cancel).await
    }

    fn place(&self) -> Option<&str> {
        Some(self.line.place())
    }

    fn takes_effort(&self, model: &str) -> bool {
        request::takes_effort(model, self.dialect)
    }
}

//! A server, a provider that talks to it, and words to ask with.

use std::sync::Arc;
use std::time::Duration;

use selvedge_model::{
    Delta, Door, Endpoint, HttpOptions, Message, ModelError, Provider, Request, Response,
};
use selvedge_testkit::{ModelServer, Reply, Wire};
use tokio_util::sync::CancellationToken;

pub(crate) const WIRES: [Wire; 4] = Wire::ALL;
pub(crate) const KEY: &str = "sk-very-secret-0123456789";

pub(crate) struct World {
    pub(crate) server: ModelServer,
    pub(crate) provider: Box<dyn Provider>,
}

impl World {
    pub(crate) async fn new(wire: Wire) -> Self {
        Self::with_silence(wire, Duration::from_secs(60)).await
    }

    pub(crate) async fn with_silence(wire: Wire, silence_max: Duration) -> Self {
        let server = ModelServer::start().await;
        let provider = provider(wire, server.base_url(wire), silence_max);
        Self { server, provider }
    }

    /// Asks once; the reply is put into the queue before.
    pub(crate) async fn ask(&self, reply: Reply) -> Result<Response, ModelError> {
        self.ask_with(reply, &request()).await
    }

    pub(crate) async fn ask_with(
        &self,
        reply: Reply,
        request: &Request,
    ) -> Result<Response, ModelError> {
        self.server.push(reply);
        self.provider
            .ask(request, &mut |_| {}, &CancellationToken::new())
            .await
    }

    /// Asks once; returns the text that was streamed, too.
    pub(crate) async fn listen(&self, reply: Reply) -> (Result<Response, ModelError>, String) {
        self.server.push(reply);
        let mut heard = String::new();
        let mut sink = |delta| {
            if let Delta::Text(text) = delta {
                heard.push_str(&text);
            }
        };
        let result = self
            .provider
            .ask(&request(), &mut sink, &CancellationToken::new())
            .await;
        (result, heard)
    }
}

pub(crate) fn provider(wire: Wire, base_url: String, silence_max: Duration) -> Box<dyn Provider> {
    let options = HttpOptions {
        silence_max,
        ..HttpOptions::default()
    };
    let endpoint = Endpoint {
        provider: "test".into(),
        base_url,
        door: Door::Plain,
        key: Some(KEY.into()),
        key_variable: Some("TEST_API_KEY".into()),
        options,
    };
    wire.provider(endpoint)
}

pub(crate) fn request() -> Request {
    Request {
        model: "test/model-1".into(),
        agent: "engineer".into(),
        turn: 3,
        system: Arc::from("be brief"),
        messages: vec![Arc::new(Message::user("hello"))].into(),
        tools: Arc::from([]),
        output_schema: None,
        output_tokens_max: 256,
        temperature: None,
        effort: None,
    }
}

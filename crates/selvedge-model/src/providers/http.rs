//! The way to a provider and back: one request, a stream of events.
//!
//! The client is made at the first call, because reading the machine's
//! certificates takes longer than everything else before the first request. A
//! plain `http` address never needs them, so it never pays for them. Dropping
//! the stream closes the connection: that is all that cancelling takes.

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Response, redirect};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde_json::Value;

use super::door::Door;
use super::exchange::Post;
use super::refusal::{Refusal, retry_after, retry_after_within, status_within};
use super::sse::Decoder;
use crate::error::ModelError;
use crate::provider::DeltaSink;
use crate::types::{Delta, Stage};

/// So much of an error body is read.
const ERROR_BYTES_MAX: usize = 64 * 1024;

/// A stream that has said its last word ends within this time, or is dropped.
const DRAIN_MAX: Duration = Duration::from_millis(50);

/// How a provider is reached.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// How long a provider may say nothing, before and within an answer.
    ///
    /// Any byte counts as something. Default: 60 s.
    pub silence_max: Duration,
    /// How long connecting may take.
    ///
    /// Default: 10 s.
    pub connect_max: Duration,
    /// How long one answer may take from the request to its last word.
    ///
    /// A stream that drips is never silent and never done. Default: 1 h, which
    /// the longest reasoning stays below.
    pub answer_max: Duration,
    /// How long one answer may be, in bytes of its stream.
    ///
    /// Default: 128 MB, a kilobyte for each of 128,000 tokens.
    pub answer_bytes_max: usize,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            silence_max: Duration::from_secs(60),
            connect_max: Duration::from_secs(10),
            answer_max: Duration::from_secs(3600),
            answer_bytes_max: 128 * 1024 * 1024,
        }
    }
}

/// Where a provider is and what opens its door.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The provider's name: the prefix of its models.
    pub provider: String,
    /// Its base URL, as its protocol has it.
    pub base_url: String,
    /// How addresses are made from it.
    pub door: Door,
    /// Its key; a server of one's own may need none.
    pub key: Option<SecretString>,
    /// Where a person looks after the key: the variable it came from, or the
    /// command that shows it.
    pub key_variable: Option<String>,
    /// How it is reached.
    pub options: HttpOptions,
}

/// A line to one provider.
pub(super) struct Line {
    endpoint: Endpoint,
    place: String,
    client: OnceLock<Result<Client, String>>,
}

impl Line {
    /// A line to the endpoint. Nothing is opened yet.
    pub(super) fn new(mut endpoint: Endpoint) -> Self {
        let base = endpoint.base_url.trim_end_matches('/').len();
        endpoint.base_url.truncate(base);
        Self {
            place: place(&endpoint),
            endpoint,
            client: OnceLock::new(),
        }
    }

    /// The provider's name.
    pub(super) fn provider(&self) -> &str {
        &self.endpoint.provider
    }

    /// Which place and key, in a word.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Where the line leads, without a slash at its end.
    pub(super) fn base(&self) -> &str {
        &self.endpoint.base_url
    }

    /// How addresses are made.
    pub(super) fn door(&self) -> &Door {
        &self.endpoint.door
    }

    /// How it is reached.
    pub(super) fn options(&self) -> &HttpOptions {
        &self.endpoint.options
    }

    /// Sends a request; returns the events of the answer once it has begun.
    pub(super) async fn post(
        &self,
        model: &str,
        post: Post<impl Serialize>,
        deltas: &mut dyn DeltaSink,
    ) -> Result<Events<'_>, ModelError> {
        let client = self
            .client
            .get_or_init(|| self.open())
            .as_ref()
            .map_err(|what| self.transient(what))?;
        let body =
            serde_json::to_vec(&post.body).map_err(|error| self.permanent(&error.to_string()))?;
        // The conversation is in the bytes now.
        let Post { url, headers, .. } = post;
        let mut request = client
            .post(&url)
            .header(CONTENT_TYPE, "application/json")
            .body(body);
        for (name, value) in &headers {
            request = request.header(name, value);
        }
        deltas.take(Delta::Request(Stage::Sent));
        let response = self.within_silence(request.send()).await?;
        let response = response.map_err(|error| {
            if error.is_connect() {
                deltas.take(Delta::Request(Stage::Refused));
            }
            self.broken(&error)
        })?;
        // An error, and a redirection that nobody follows, say that it was not read.
        deltas.take(Delta::Request(match response.status().is_success() {
            true => Stage::Accepted,
            false => Stage::Refused,
        }));
        self.accept(model, response, deltas).await
    }

    /// The header that carries the key, marked as secret.
    pub(super) fn key_header(&self, prefix: &str) -> Result<Option<HeaderValue>, ModelError> {
        let Some(key) = &self.endpoint.key else {
            return Ok(None);
        };
        let text = format!("{prefix}{}", key.expose_secret().trim());
        let mut value = HeaderValue::from_str(&text).map_err(|_| ModelError::UserFixable {
            provider: self.provider().to_owned(),
            what: "the key holds characters that no key has".to_owned(),
            hint: format!(
                "check `{}`",
                self.endpoint.key_variable.as_deref().unwrap_or("the key")
            ),
        })?;
        value.set_sensitive(true);
        Ok(Some(value))
    }

    /// It may work in a moment.
    pub(super) fn transient(&self, what: &str) -> ModelError {
        ModelError::Transient {
            provider: self.provider().to_owned(),
            what: self.redact(what),
        }
    }

    /// An error that came as an event; `body` is as an error body would be.
    pub(super) fn refused(&self, model: &str, body: &str) -> ModelError {
        let body = self.redact(body);
        let parsed = serde_json::from_str::<Value>(&body).ok();
        let status = parsed.as_ref().and_then(status_within).unwrap_or(500);
        let retry_after = parsed.as_ref().and_then(retry_after_within);
        self.refusal(model, status, retry_after, &body)
    }

    fn refusal(
        &self,
        model: &str,
        status: u16,
        retry_after: Option<Duration>,
        body: &str,
    ) -> ModelError {
        Refusal {
            provider: self.provider(),
            model,
            key_variable: self.endpoint.key_variable.as_deref(),
            status,
            retry_after,
            body,
        }
        .into_error()
    }

    fn permanent(&self, what: &str) -> ModelError {
        ModelError::Permanent {
            provider: self.provider().to_owned(),
            what: self.redact(what),
        }
    }

    fn open(&self) -> Result<Client, String> {
        let mut builder = Client::builder()
            .connect_timeout(self.endpoint.options.connect_max)
            // A redirected request would carry the key to a place nobody chose.
            .redirect(redirect::Policy::none())
            .tcp_nodelay(true);
        if self.base().starts_with("http://") {
            // No certificates at all: loading the machine's took 3 to 50 ms, and
            // everything else here takes a tenth of one.
            builder = builder.tls_certs_only([]);
        }
        if self.is_local() {
            // A proxy for the world outside cannot reach this machine's own servers.
            builder = builder.no_proxy();
        }
        builder
            .build()
            .map_err(|error| format!("the HTTP client cannot be made: {error}"))
    }

    fn is_local(&self) -> bool {
        let host = self.host();
        host == "localhost" || host == "[::1]" || host.starts_with("127.")
    }

    fn host(&self) -> String {
        let url = reqwest::Url::parse(self.base()).ok();
        url.and_then(|url| url.host_str().map(str::to_owned))
            .unwrap_or_default()
    }

    async fn accept(
        &self,
        model: &str,
        response: Response,
        deltas: &mut dyn DeltaSink,
    ) -> Result<Events<'_>, ModelError> {
        let status = response.status().as_u16();
        let retry_after = retry_after(response.headers());
        let content_type = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default().to_owned();
        // None was asked for, and a small one can hold a very large answer.
        let encoding = response.headers().get(CONTENT_ENCODING);
        let compressed = encoding.is_some_and(|encoding| encoding != "identity");
        if compressed && status < 300 {
            return Err(self.transient("answered compressed, which was not asked for"));
        }
        if status == 200 && content_type.starts_with("text/event-stream") {
            return Ok(Events {
                line: self,
                response,
                decoder: Decoder::default(),
                received: 0,
                ready: Vec::new().into_iter(),
            });
        }
        let body = match compressed {
            true => String::new(),
            false => self.redact(&self.short_body(response).await?),
        };
        let parsed = serde_json::from_str::<Value>(&body).ok();
        let retry_after = retry_after.or_else(|| retry_after_within(parsed.as_ref()?));
        let status = match status {
            200..300 => parsed.as_ref().and_then(status_within).ok_or_else(|| {
                self.transient(&format!(
                    "answered with `{content_type}` instead of a stream of events"
                ))
            })?,
            refused => refused,
        };
        deltas.take(Delta::Request(Stage::Refused));
        Err(self.refusal(model, status, retry_after, &body))
    }

    async fn short_body(&self, mut response: Response) -> Result<String, ModelError> {
        let mut body = Vec::new();
        // A body that breaks off explains what it can.
        while let Ok(Some(bytes)) = self.within_silence(response.chunk()).await? {
            body.extend_from_slice(&bytes);
            if body.len() > ERROR_BYTES_MAX {
                break;
            }
        }
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    async fn within_silence<T>(&self, wait: impl Future<Output = T>) -> Result<T, ModelError> {
        let silence_max = self.endpoint.options.silence_max;
        tokio::time::timeout(silence_max, wait).await.map_err(|_| {
            self.transient(&format!("nothing came for {} s", silence_max.as_secs_f64()))
        })
    }

    fn broken(&self, error: &reqwest::Error) -> ModelError {
        // The innermost cause is the one that says something.
        let mut cause: &dyn std::error::Error = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        let host = self.host();
        if error.is_connect() {
            return ModelError::Degraded {
                provider: self.provider().to_owned(),
                what: self.redact(&format!("`{host}` cannot be reached: {cause}")),
            };
        }
        self.transient(&format!("the connection to `{host}` broke: {cause}"))
    }

    /// The text without the key, should a provider repeat it.
    fn redact(&self, text: &str) -> String {
        match self
            .endpoint
            .key
            .as_ref()
            .map(|key| key.expose_secret().trim())
        {
            Some(key) if !key.is_empty() => text.replace(key, "[key]"),
            _ => text.to_owned(),
        }
    }
}

/// Four bytes of a hash: enough to tell the few keys of a person apart, and far too
/// few to try keys against.
fn place(endpoint: &Endpoint) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(endpoint.base_url.as_bytes()).update(b"\n");
    let key = endpoint.key.as_ref();
    hasher.update(key.map_or("", |key| key.expose_secret().trim()).as_bytes());
    hasher.finalize().to_hex()[..8].to_owned()
}

/// The events of an answer on its way.
pub(super) struct Events<'a> {
    line: &'a Line,
    response: Response,
    decoder: Decoder,
    received: usize,
    ready: std::vec::IntoIter<String>,
}

impl Events<'_> {
    /// The data of the next event; `None` when the stream ended in order.
    pub(super) async fn next(&mut self) -> Result<Option<String>, ModelError> {
        loop {
            if let Some(event) = self.ready.next() {
                return Ok(Some(event));
            }
            let chunk = self.line.within_silence(self.response.chunk()).await?;
            match chunk.map_err(|error| self.line.broken(&error))? {
                Some(bytes) => {
                    self.received += bytes.len();
                    if self.received > self.line.options().answer_bytes_max {
                        return Err(self.line.transient("the answer does not end"));
                    }
                    let events = self
                        .decoder
                        .take(&bytes)
                        .map_err(|what| self.line.transient(&what))?;
                    self.ready = events.into_iter();
                }
                None if self.decoder.is_between_events() => return Ok(None),
                None => return Err(self.line.transient("the stream ended within an event")),
            }
        }
    }

    /// Lets a finished stream run out, so that the connection can serve the next
    /// call. What still comes, or goes wrong, no longer matters.
    pub(super) async fn drain(mut self) {
        let rest = async { while let Ok(Some(_)) = self.response.chunk().await {} };
        let _ = tokio::time::timeout(DRAIN_MAX, rest).await;
    }
}

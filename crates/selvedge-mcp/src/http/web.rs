//! Requests and answers over HTTP, within bounds.
//!
//! The library's own client reads an answer to its end, however long that is. This one
//! does not.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Client, Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::auth::WWWAuthenticateParams;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, StreamableHttpClient,
    StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Error as SseError, Sse, SseStream};

use super::address;
use crate::wire::MESSAGE_BYTES_MAX;

const CONNECT: Duration = Duration::from_secs(15);
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const SESSION: &str = "mcp-session-id";
type Failure = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// Speaks HTTP with one server.
#[derive(Clone)]
pub(crate) struct Web {
    client: Client,
}

impl Web {
    pub(super) fn new(url: &str) -> Result<Self, String> {
        address::check_url(url)?;
        let client = Client::builder()
            .connect_timeout(CONNECT)
            .redirect(address::redirects())
            .dns_resolver(address::resolver())
            .user_agent(concat!("selvedge/", env!("CARGO_PKG_VERSION")))
            .build();
        let client = client.map_err(|error| error.to_string())?;
        Ok(Self { client })
    }

    async fn answer(
        message: &ClientJsonRpcMessage,
        had_session: bool,
        response: Response,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        challenged(&response)?;
        let status = response.status();
        let is_request = matches!(message, ClientJsonRpcMessage::Request(_));
        match status {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => {
                return Ok(StreamableHttpPostResponse::Accepted);
            }
            StatusCode::NOT_FOUND if had_session => return Err(Failure::SessionExpired),
            _ => {}
        }
        let header = |name: &str| {
            let value = response.headers().get(name)?.to_str().ok()?;
            Some(value.to_owned())
        };
        let session = header(SESSION);
        let kind = header(CONTENT_TYPE.as_str()).unwrap_or_default();
        let retry_after = header("retry-after");
        if status.is_success() && kind.starts_with(EVENTS) {
            let events = events(response, MESSAGE_BYTES_MAX);
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        let body = whole(response).await?;
        let parsed = serde_json::from_slice::<ServerJsonRpcMessage>(&body);
        match parsed {
            Ok(message @ ServerJsonRpcMessage::Error(_)) => {
                Ok(StreamableHttpPostResponse::Json(message, session))
            }
            Ok(message) if status.is_success() => {
                Ok(StreamableHttpPostResponse::Json(message, session))
            }
            // Nobody waits for an answer to these.
            _ if status.is_success() && !is_request => Ok(StreamableHttpPostResponse::Accepted),
            _ if !status.is_success() => {
                Err(HttpStatusError::new(status.as_u16(), retry_after).into())
            }
            _ if !kind.starts_with(JSON) => Err(Failure::UnexpectedContentType(Some(kind))),
            _ => Err(unexpected("its answer is no message")),
        }
    }
}

impl StreamableHttpClient for Web {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let mut request = self.client.post(&*uri);
        request = request.header(ACCEPT, format!("{EVENTS}, {JSON}"));
        for (name, value) in custom_headers {
            request = request.header(name, value);
        }
        if let Some(token) = auth_header {
            request = request.bearer_auth(token);
        }
        let had_session = session_id.is_some();
        if let Some(session) = session_id {
            request = request.header(SESSION, &*session);
        }
        let response = request.json(&message).send().await?;
        Self::answer(&message, had_session, response).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<(), Failure> {
        let client = &self.client;
        client
            .delete_session(uri, session_id, auth_header, custom_headers)
            .await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        // Within the library's own bound, which is the same.
        let client = &self.client;
        client
            .get_stream(uri, session_id, last_event_id, auth_header, custom_headers)
            .await
    }
}

/// What the server wants to know first, if it does.
fn challenged(response: &Response) -> Result<(), Failure> {
    let header = response.headers().get(WWW_AUTHENTICATE);
    let header = header.and_then(|header| header.to_str().ok());
    match (response.status(), header) {
        (StatusCode::UNAUTHORIZED, header) => {
            let header = header.unwrap_or("Bearer").to_owned();
            Err(Failure::AuthRequired(AuthRequiredError::new(header)))
        }
        (StatusCode::FORBIDDEN, Some(header)) => {
            let scope = WWWAuthenticateParams::parse(header, response.url()).scope;
            let error = InsufficientScopeError::new(header.to_owned(), scope);
            Err(Failure::InsufficientScope(error))
        }
        _ => Ok(()),
    }
}

/// A whole answer, if it is not too long.
async fn whole(response: Response) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    let mut pieces = response.bytes_stream();
    while let Some(piece) = pieces.next().await {
        body.extend_from_slice(&piece?);
        if body.len() > MESSAGE_BYTES_MAX {
            return Err(too_long());
        }
    }
    Ok(body)
}

/// The events of an answer, none of which is too long.
fn events(response: Response, bytes_max: usize) -> BoxStream<'static, Result<Sse, SseError>> {
    let bounded = bounded(response.bytes_stream(), bytes_max);
    SseStream::from_bytes_stream(bounded).boxed()
}

/// Pieces that fail once an event, which ends with an empty line, is too long.
fn bounded<B: AsRef<[u8]>, E: std::error::Error + Send + Sync + 'static>(
    pieces: impl Stream<Item = Result<B, E>>,
    bytes_max: usize,
) -> impl Stream<Item = Result<B, std::io::Error>> {
    let (mut length, mut last) = (0, b' ');
    pieces.map(move |piece| {
        let piece = piece.map_err(std::io::Error::other)?;
        for byte in piece.as_ref().iter().filter(|byte| **byte != b'\r') {
            length = match (last, byte) {
                (b'\n', b'\n') => 0,
                _ => length + 1,
            };
            last = *byte;
        }
        match length > bytes_max {
            true => Err(std::io::Error::other("an event is too long")),
            false => Ok(piece),
        }
    })
}

fn too_long() -> Failure {
    let megabytes = MESSAGE_BYTES_MAX >> 20;
    unexpected(&format!("it said more than {megabytes} MB at once"))
}

fn unexpected(what: &str) -> Failure {
    Failure::UnexpectedServerResponse(what.to_owned().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_event_that_is_too_long_is_not_read_to_its_end() {
        let fine = ["data: one\n", "\n", "data: two\r\n\r\n", "data: three"];
        let pieces = |texts: &[&'static str]| {
            let pieces: Vec<Result<&str, std::io::Error>> = texts.iter().map(|t| Ok(*t)).collect();
            futures::stream::iter(pieces)
        };
        let heard: Vec<_> = bounded(pieces(&fine), 12).collect().await;
        assert!(heard.iter().all(Result::is_ok));
        let long = ["data: one\n\n", "data: a", "data: b"];
        let heard: Vec<_> = bounded(pieces(&long), 12).collect().await;
        assert!(heard[1].is_ok() && heard[2].is_err());
    }
}

//! A model server on the local machine, honest or faulty as told.
//!
//! It speaks the protocols of the providers, over real sockets, so that a client meets what it will meet outside: split events, resets, stalls,
//! half-written calls. Every request is kept for the test to look at.

mod anthropic;
mod body;
mod fault;
mod frames;
mod gemini;
mod openai;
mod reply;
mod responses;
mod storm;
mod wire;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, Response, StatusCode, Uri};
use axum::serve::ListenerExt;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

pub use fault::ReplyFault;
pub use reply::Reply;
pub use storm::{Case, STORM_KEY, Storm};
pub use wire::Wire;

/// A server that answers from a queue of replies or by a function.
///
/// It stops when dropped.
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: CancellationToken,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The protocol it speaks.
    pub wire: Wire,
    /// Its path.
    pub path: String,
    /// What stands after the path's question mark.
    pub query: String,
    /// Its headers, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Its body.
    pub body: Value,
    /// Its body, byte for byte.
    pub text: String,
    /// The other end of the connection it came on.
    pub peer: SocketAddr,
}

type Answer = Box<dyn Fn(&Recorded) -> Reply + Send + Sync>;

struct Shared {
    queue: Mutex<VecDeque<Reply>>,
    // Answers when the queue is empty.
    answer: Option<Answer>,
    requests: Mutex<Vec<Recorded>>,
    abandoned: Abandoned,
}

/// Counts the answers that a client hung up on.
#[derive(Clone, Default)]
struct Abandoned {
    count: Arc<AtomicU64>,
    changed: Arc<Notify>,
}

impl ModelServer {
    /// A server with an empty queue; a request beyond the queue gets a 500.
    pub async fn start() -> Self {
        Self::serve(None).await
    }

    /// A server that answers each request beyond the queue by `answer`.
    pub async fn start_with(answer: impl Fn(&Recorded) -> Reply + Send + Sync + 'static) -> Self {
        Self::serve(Some(Box::new(answer))).await
    }

    async fn serve(answer: Option<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("the local machine has a free port");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        // Small events must not wait for acknowledgements: on a kept connection
        // that is 40 ms a reply, and no real provider does it.
        let listener = listener.tap_io(|socket| drop(socket.set_nodelay(true)));
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            answer,
            requests: Mutex::default(),
            abandoned: Abandoned::default(),
        });
        let router = Router::new()
            .fallback(answer_request)
            .with_state(Arc::clone(&shared));
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = stopped.cancelled() => {}
                served = axum::serve(listener, service) => served.expect("serving does not end"),
            }
        });
        Self {
            address,
            shared,
            stop,
        }
    }

    /// Where it is: `http://127.0.0.1:PORT`, the base URL for Anthropic's protocol.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The base URL for OpenAI's protocols.
    pub fn openai_url(&self) -> String {
        format!("{}/v1", self.url())
    }

    /// The base URL for a protocol.
    pub fn base_url(&self, wire: Wire) -> String {
        match wire {
            Wire::OpenAi | Wire::Responses => self.openai_url(),
            Wire::Anthropic | Wire::Gemini => self.url(),
        }
    }

    /// Adds a reply to the queue.
    pub fn push(&self, reply: Reply) {
        lock(&self.shared.queue).push_back(reply);
    }

    /// Every request so far, in the order of arrival.
    pub fn requests(&self) -> Vec<Recorded> {
        lock(&self.shared.requests).clone()
    }

    /// The last request; panics if there was none.
    pub fn last_request(&self) -> Recorded {
        lock(&self.shared.requests)
            .last()
            .expect("there was a request")
            .clone()
    }

    /// How many answers a client hung up on before their end.
    pub fn abandoned(&self) -> u64 {
        self.shared.abandoned.count.load(Ordering::SeqCst)
    }

    /// Waits until a client has hung up on `count` answers.
    pub async fn until_abandoned(&self, count: u64) {
        loop {
            let changed = self.shared.abandoned.changed.notified();
            if self.abandoned() >= count {
                return;
            }
            changed.await;
        }
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn answer_request(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let path = uri.path();
    let Some(wire) = Wire::of_path(path) else {
        return body::plain(StatusCode::NOT_FOUND, format!("nothing is at `{path}`"));
    };
    let text = |(name, value): (_, &axum::http::HeaderValue)| {
        let name: &axum::http::HeaderName = name;
        (
            name.to_string(),
            String::from_utf8_lossy(value.as_bytes()).into_owned(),
        )
    };
    let recorded = Recorded {
        wire,
        path: path.to_owned(),
        query: uri.query().unwrap_or_default().to_owned(),
        headers: headers.iter().map(text).collect(),
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
        text: String::from_utf8_lossy(&body).into_owned(),
        peer,
    };
    let queued = lock(&shared.queue).pop_front();
    let reply = queued.or_else(|| shared.answer.as_ref().map(|answer| answer(&recorded)));
    lock(&shared.requests).push(recorded.clone());
    let Some(reply) = reply else {
        return body::plain(
            StatusCode::INTERNAL_SERVER_ERROR,
            "no reply is left in the queue".into(),
        );
    };
    // Even a wait for no time lasts until the timer's next millisecond.
    if !reply.latency.is_zero() {
        tokio::time::sleep(reply.latency).await;
    }
    body::respond(&recorded, &reply, shared.abandoned.clone())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    /// Sends `body` to `path`; returns everything that comes back.
    async fn post(server: &ModelServer, path: &str, body: &str) -> String {
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
        );
        socket
            .write_all(format!("{head}{body}").as_bytes())
            .await
            .unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn a_client_that_does_not_stream_gets_the_reply_whole() {
        let server =
            ModelServer::start_with(|_| Reply::text("hi").call("add", r#"{"a": 1}"#)).await;
        let openai = post(&server, "/v1/chat/completions", r#"{"model":"m"}"#).await;
        assert!(
            openai.contains(r#""finish_reason":"tool_calls""#)
                && openai.contains(r#""content":"hi""#)
        );
        let anthropic = post(&server, "/v1/messages", r#"{"model":"m"}"#).await;
        assert!(
            anthropic.contains(r#""stop_reason":"tool_use""#)
                && anthropic.contains(r#""input":{"a":1}"#)
        );
        let responses = post(&server, "/v1/responses", r#"{"model":"m"}"#).await;
        assert!(
            responses.contains(r#""status":"completed""#)
                && responses.contains(r#""arguments":"{\"a\": 1}""#)
        );
        let gemini = post(&server, "/v1beta/models/m:generateContent", "{}").await;
        assert!(
            gemini.contains(r#""finishReason":"STOP""#) && gemini.contains(r#""args":{"a":1}"#)
        );
        assert_eq!(server.requests()[1].body["model"], "m");
    }

    #[tokio::test]
    async fn replies_come_in_the_order_of_the_queue_and_then_run_out() {
        let server = ModelServer::start().await;
        server.push(Reply::text("first"));
        server.push(Reply::fault(ReplyFault::too_many(Some("3"))));
        assert!(post(&server, "/v1/messages", "{}").await.contains("first"));
        assert!(
            post(&server, "/v1/messages", "{}")
                .await
                .contains("retry-after: 3")
        );
        assert!(
            post(&server, "/v1/messages", "{}")
                .await
                .contains("no reply is left")
        );
        assert!(
            post(&server, "/elsewhere", "{}")
                .await
                .starts_with("HTTP/1.1 404")
        );
    }
}

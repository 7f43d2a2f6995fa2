//! One question and its answer, whatever the protocol.
//!
//! A protocol brings the request and a listener that puts the answer together.
//! What all of them share is here: cancelling, the limit on the whole answer,
//! and what an end that came too early means.

use reqwest::header::{HeaderName, HeaderValue};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::answer::Answer;
use super::http::Line;
use crate::error::ModelError;
use crate::provider::DeltaSink;
use crate::types::{Delta, Request, Response, Stage};

/// What is sent.
pub(super) struct Post<B> {
    /// Where to.
    pub(super) url: String,
    /// With what headers, the key's among them.
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    /// What it says.
    pub(super) body: B,
}

/// Puts an answer together from the events of one protocol.
pub(super) trait Listener: Default + Send {
    /// Takes the data of one event.
    fn take(&mut self, event: &str, deltas: &mut dyn DeltaSink) -> Result<(), Fault>;

    /// Whether the protocol has said its last word. One without a last word is
    /// over when its stream ends.
    fn is_over(&self) -> bool;

    /// What was said, once the stream is over, or what is missing.
    fn into_answer(self, request: &Request) -> Result<Answer, String>;
}

/// What can be wrong with an event.
#[derive(Debug)]
pub(super) enum Fault {
    /// It is not what the protocol allows.
    Broken(String),
    /// It is an error of the provider's: its JSON, as an error body would have it.
    Refused(String),
}

impl From<String> for Fault {
    fn from(what: String) -> Self {
        Self::Broken(what)
    }
}

impl From<&str> for Fault {
    fn from(what: &str) -> Self {
        Self::Broken(what.to_owned())
    }
}

/// An event's JSON.
pub(super) fn parse<'a, T: serde::Deserialize<'a>>(event: &'a str) -> Result<T, Fault> {
    serde_json::from_str(event)
        .map_err(|error| Fault::Broken(format!("an event cannot be read: {error}")))
}

/// Asks once over `line`.
pub(super) async fn exchange<L: Listener>(
    line: &Line,
    post: Post<impl Serialize>,
    request: &Request,
    deltas: &mut dyn DeltaSink,
    cancel: &CancellationToken,
) -> Result<Response, ModelError> {
    let answer_max = line.options().answer_max;
    let answer = tokio::time::timeout(answer_max, converse::<L>(line, post, request, deltas));
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(ModelError::Cancelled),
        answer = answer => answer.unwrap_or_else(|_| {
            let seconds = answer_max.as_secs_f64();
            Err(line.transient(&format!("the answer was not finished after {seconds} s")))
        }),
    }
}

async fn converse<L: Listener>(
    line: &Line,
    post: Post<impl Serialize>,
    request: &Request,
    deltas: &mut dyn DeltaSink,
) -> Result<Response, ModelError> {
    let mut events = line.post(request.model_name(), post, deltas).await?;
    let mut listener = L::default();
    while !listener.is_over() {
        let Some(event) = events.next().await? else {
            break;
        };
        listener.take(&event, deltas).map_err(|fault| match fault {
            Fault::Broken(what) => line.transient(&what),
            Fault::Refused(body) => {
                deltas.take(Delta::Request(Stage::Refused));
                line.refused(request.model_name(), &body)
            }
        })?;
    }
    if listener.is_over() {
        events.drain().await;
    }
    listener
        .into_answer(request)
        .and_then(|answer| answer.complete(line.provider(), request))
        .map_err(|what| line.transient(&what))
}

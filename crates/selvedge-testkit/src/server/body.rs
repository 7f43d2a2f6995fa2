//! How a reply leaves: at once, byte by byte, slowly, or not to its end.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{Response, StatusCode};
use futures::stream;

use super::fault::ReplyFault;
use super::reply::Reply;
use super::wire::Asked;
use super::{Abandoned, Recorded};

/// The response to a request.
pub(super) fn respond(request: &Recorded, reply: &Reply, abandoned: Abandoned) -> Response<Body> {
    match &reply.fault {
        Some(ReplyFault::Status {
            code,
            retry_after,
            body,
        }) => {
            let mut response = Response::builder()
                .status(*code)
                .header("content-type", "application/json");
            if let Some(retry_after) = retry_after {
                response = response.header("retry-after", retry_after);
            }
            response
                .body(Body::from(body.clone()))
                .expect("a fault's headers are valid")
        }
        Some(ReplyFault::ErrorBody(body)) => json(body.clone()),
        fault => spoken(request, reply, fault.as_ref(), abandoned),
    }
}

/// A response of plain text.
pub(super) fn plain(status: StatusCode, text: String) -> Response<Body> {
    Response::builder()
        .status(status)
        .body(Body::from(text))
        .expect("a plain response is valid")
}

fn json(body: String) -> Response<Body> {
    let response = Response::builder().header("content-type", "application/json");
    response
        .body(Body::from(body))
        .expect("a JSON response is valid")
}

fn spoken(
    request: &Recorded,
    reply: &Reply,
    fault: Option<&ReplyFault>,
    abandoned: Abandoned,
) -> Response<Body> {
    let written = fault.map_or_else(|| reply.clone(), |fault| fault.rewrite(reply));
    let asked = Asked::from(request);
    if !asked.streams {
        return json(request.wire.whole(&asked, &written).to_string());
    }
    let mut frames = request.wire.frames(&asked, &written);
    if let Some(fault) = fault {
        fault.disturb(&mut frames);
    }
    let sending = Sending::new(frames.into_events(), fault, abandoned);
    let body = Body::from_stream(stream::unfold(sending, Sending::next));
    let response = Response::builder().header("content-type", "text/event-stream");
    response.body(body).expect("a stream's headers are valid")
}

/// What is still to be sent, and how it ends.
struct Sending {
    chunks: VecDeque<Bytes>,
    pause: Duration,
    end: End,
    over: bool,
    abandoned: Abandoned,
}

enum End {
    Clean,
    Reset,
    Stall,
}

impl Sending {
    fn new(events: Vec<Vec<u8>>, fault: Option<&ReplyFault>, abandoned: Abandoned) -> Self {
        let (chunks, end): (Vec<Bytes>, End) = match fault {
            Some(ReplyFault::ResetAt(at)) => (vec![head(&events, *at)], End::Reset),
            Some(ReplyFault::StallAt(at)) => (vec![head(&events, *at)], End::Stall),
            Some(ReplyFault::EveryByte) => (
                events
                    .concat()
                    .into_iter()
                    .map(|byte| Bytes::from(vec![byte]))
                    .collect(),
                End::Clean,
            ),
            _ => (events.into_iter().map(Bytes::from).collect(), End::Clean),
        };
        let pause = if let Some(ReplyFault::Drip(pause)) = fault {
            *pause
        } else {
            Duration::ZERO
        };
        Self {
            chunks: chunks.into(),
            pause,
            end,
            over: false,
            abandoned,
        }
    }

    async fn next(mut self) -> Option<(io::Result<Bytes>, Self)> {
        if !self.pause.is_zero() {
            tokio::time::sleep(self.pause).await;
        }
        match self.chunks.pop_front() {
            // Lets the bytes out before the next chunk joins them.
            Some(chunk) => {
                tokio::task::yield_now().await;
                Some((Ok(chunk), self))
            }
            None => match self.end {
                End::Clean => {
                    self.over = true;
                    None
                }
                End::Reset if self.over => None,
                End::Reset => {
                    // Without a moment's rest the bytes before would be lost, too.
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    self.over = true;
                    Some((Err(io::ErrorKind::ConnectionReset.into()), self))
                }
                End::Stall => std::future::pending().await,
            },
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if !self.over {
            self.abandoned.count.fetch_add(1, Ordering::SeqCst);
            self.abandoned.changed.notify_waiters();
        }
    }
}

fn head(events: &[Vec<u8>], bytes: usize) -> Bytes {
    let mut all = events.concat();
    all.truncate(bytes);
    Bytes::from(all)
}

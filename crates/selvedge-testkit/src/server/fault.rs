//! What can go wrong with a reply.

use std::time::Duration;

use super::frames::Frames;
use super::reply::Reply;

/// What goes wrong with a reply.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplyFault {
    /// Another status than 200.
    Status {
        /// The status.
        code: u16,
        /// The `Retry-After` header.
        retry_after: Option<String>,
        /// The body.
        body: String,
    },
    /// Status 200, and an error for a body.
    ErrorBody(String),
    /// The connection breaks after so many bytes of the stream.
    ResetAt(usize),
    /// Nothing more comes after so many bytes of the stream.
    StallAt(usize),
    /// The stream ends in order, in the middle of a call.
    TruncatedCall,
    /// The arguments of every call are not JSON.
    MalformedCall,
    /// A byte within the words belongs to no text.
    BadUtf8,
    /// Nothing is said, and that in order.
    Empty,
    /// The stream ends in order, without saying why.
    NoStop,
    /// The stream turns into an error halfway.
    ErrorEvent(String),
    /// Every byte comes on its own.
    EveryByte,
    /// Every event comes this long after the one before.
    Drip(Duration),
}

impl ReplyFault {
    /// A status with a body as a provider would write it.
    pub fn status(code: u16) -> Self {
        let body = format!(
            r#"{{"type":"error","error":{{"type":"some_error","message":"status {code}"}}}}"#
        );
        Self::Status {
            code,
            retry_after: None,
            body,
        }
    }

    /// A 429 that asks for patience: a number of seconds or an HTTP date.
    pub fn too_many(retry_after: Option<&str>) -> Self {
        let body =
            r#"{"error":{"type":"rate_limit_error","message":"too many requests"}}"#.to_owned();
        Self::Status {
            code: 429,
            retry_after: retry_after.map(str::to_owned),
            body,
        }
    }

    /// The reply as this fault has it written.
    pub(super) fn rewrite(&self, reply: &Reply) -> Reply {
        let mut reply = reply.clone();
        match self {
            Self::MalformedCall => {
                for (_, arguments) in &mut reply.calls {
                    *arguments = r#"{"name": "selv"#.to_owned();
                }
            }
            Self::Empty => {
                reply.stop = Some(selvedge_model::Stop::End);
                reply.text.clear();
                reply.calls.clear();
                reply.reasoning = None;
            }
            _ => {}
        }
        reply
    }

    /// The events as this fault has them sent.
    pub(super) fn disturb(&self, frames: &mut Frames) {
        match self {
            Self::TruncatedCall => {
                // The last piece of the arguments and whatever closes the call.
                frames
                    .content
                    .truncate(frames.content.len().saturating_sub(2));
                frames.stop.clear();
                frames.done.clear();
            }
            Self::NoStop => frames.stop.clear(),
            Self::ErrorEvent(event) => {
                frames.content.truncate(frames.content.len() / 2);
                frames.stop = vec![event.clone().into_bytes()];
                frames.done.clear();
            }
            Self::BadUtf8 => {
                let words = frames
                    .content
                    .iter_mut()
                    .find(|frame| contains(frame, b"two"));
                if let Some(frame) = words {
                    let at = frame
                        .windows(3)
                        .position(|window| window == b"two")
                        .unwrap_or(0);
                    frame[at] = 0xff;
                }
            }
            _ => {}
        }
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

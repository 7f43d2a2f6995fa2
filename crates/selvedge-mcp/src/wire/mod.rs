//! Messages between Selvedge and a server, and what is not tolerated in them.
//!
//! A message that is too long, that is no message, or that answers a question nobody
//! asked is a fault. A server is not spoken to any more after one: what else it says
//! could not be told from a mistake either.

mod fault;
mod log;
mod pipe;
mod watched;

pub(crate) use fault::Fault;
pub(crate) use log::Log;
pub(crate) use pipe::Pipe;
pub(crate) use watched::Watched;

/// A message longer than this is not read to its end.
pub(crate) const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// What a server may say, in bytes and in messages, without answering anything.
pub(crate) const UNANSWERED_BYTES_MAX: usize = 64 * 1024 * 1024;
pub(crate) const UNANSWERED_MESSAGES_MAX: u32 = 20_000;

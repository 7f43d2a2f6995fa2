//! A simulated world for tests.
//!
//! # Map
//!
//! - `server`: a model server over real sockets, honest or faulty as told

mod server;

pub use server::{ModelServer, Recorded, Reply, ReplyFault, Wire};

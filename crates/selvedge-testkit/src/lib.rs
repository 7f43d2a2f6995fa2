//! A simulated world for tests.

mod server;

pub use server::{Fault, ModelServer, Recorded, Reply, Wire};

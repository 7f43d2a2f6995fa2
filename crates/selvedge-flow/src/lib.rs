//! Machines that run machines.
//!
//! # Map
//!
//! - `graph`: named states and guarded transitions with loop limits, declared in one table
//!
//! # Invariants
//!
//! - A flow is a pure fold: no I/O, no clock, no randomness.
//! - What may happen next stands in a table that the machine, the drawing and the tests
//!   share.
//! - This crate knows nothing of any one crew's ways, nor of terminals.

mod graph;

pub use graph::{Came, Flow, Graph, Row, State, Step, Table, Transition, Visit, Walked};

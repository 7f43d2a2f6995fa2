//! Jobs on a real ledger with real tools, and models of the tests' own.

#[path = "../swarm/rig.rs"]
mod rig;

mod chance;

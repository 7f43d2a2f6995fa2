//! Jobs on a real ledger with real tools, and models of the tests' own.

// It can do more than jobs need.
#[allow(dead_code)]
#[path = "../swarm/rig.rs"]
mod rig;

mod chance;

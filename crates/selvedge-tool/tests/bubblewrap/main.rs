//! The same adversary, against the same fence, put up by bubblewrap.
//!
//! It needs the program; where it is missing the tests fail and say so, unless
//! `SELVEDGE_BWRAP=skip` says that they are not wanted.

// A stand-in answers through its output.
#![allow(clippy::print_stdout)]

use selvedge_tool::Fence;

const FENCE: Fence = Fence::Bubblewrap;

#[path = "../sandbox/everyday.rs"]
mod everyday;
#[path = "../sandbox/files.rs"]
mod files;
#[path = "../sandbox/ground.rs"]
mod ground;
#[path = "../sandbox/limits.rs"]
mod limits;
#[path = "../sandbox/network.rs"]
mod network;
#[path = "../sandbox/processes.rs"]
mod processes;

mod borrowed;

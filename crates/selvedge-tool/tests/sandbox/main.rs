//! A scripted adversary against the real kernel, as an ordinary user.
//!
//! Each case lays out what must not be reached, lets a command try, and looks at what
//! is left; beside it stands something harmless of the same kind that must work, so
//! that a fence that denies everything fails too.

// A stand-in answers through its output.
#![allow(clippy::print_stdout)]

use selvedge_tool::Fence;

/// Who puts the fence up here. The same cases, with bubblewrap: `../bubblewrap/main.rs`.
const FENCE: Fence = Fence::Own;

mod everyday;
mod files;
mod ground;
mod limits;
mod network;
mod processes;

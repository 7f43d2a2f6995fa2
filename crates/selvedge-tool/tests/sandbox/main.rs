//! A scripted adversary against the real kernel, as an ordinary user.
//!
//! Each case lays out what must not be reached, lets a command try, and looks at what
//! is left; beside it stands something harmless of the same kind that must work, so
//! that a fence that denies everything fails too.

// A stand-in answers through its output.
#![allow(clippy::print_stdout)]

mod everyday;
mod files;
mod ground;
mod limits;
mod network;
mod processes;

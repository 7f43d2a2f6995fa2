//! The fence around commands: what they can reach of this machine.
//!
//! A command lives in namespaces of its own. It sees the system read-only, its
//! workspace and a private temporary folder writable, a home folder with tools and
//! without secrets, no process but its own, and no network unless one was opened.
//! Landlock says the same a second time, and a filter of system calls takes away what
//! no build needs. What the kernel does not grant is not left out: the command is
//! refused, with the reason.
//!
//! # Map
//!
//! - `spec`: what a command may reach, as data that is recorded with a run
//! - `hosts`: names of hosts, and which of them a list means
//! - `surroundings`: what of this machine a command must see, and what it must not
//! - `plan`: from both to the steps that build its view of the file system
//! - `placeholder`: a protected folder that does not exist cannot be made either
//! - `filter`: the system calls that are taken away
//! - `landlock`: what may be written, said a second time
//! - `namespaces`, `mounts`, `confine`: carries it out, between fork and exec
//! - `prepared`: all of that, ready to be carried out; and why it was not
//! - `bubblewrap`: the same plan, carried out by another program
//! - `maker`: which of the two puts the fence up
//! - `proxy`: the only way to the hosts that were allowed
//! - `refusal`: tells from what a command printed that the fence held
//! - `trial`: tries to break out

mod bubblewrap;
mod confine;
mod filter;
mod hosts;
mod landlock;
mod maker;
mod mounts;
mod namespaces;
mod placeholder;
mod plan;
mod prepared;
mod proxy;
mod refusal;
mod spec;
mod surroundings;
mod trial;

pub(crate) use bubblewrap::Bubblewrap;
pub(crate) use confine::Confines;
pub use hosts::HostRule;
pub use maker::Maker;
pub(crate) use mounts::IN_MEMORY_FILES_MAX;
pub(crate) use namespaces::{first_to_go, keep_to_itself, listen_for};
pub(crate) use placeholder::Placeholder;
pub(crate) use plan::TEMPORARY;
pub(crate) use prepared::{Prepared, Refused, Stage};
pub(crate) use proxy::{Proxy, Visit};
pub(crate) use refusal::refusals;
pub use spec::{Fence, Mode, Network, Resources, Sandbox};
pub use trial::{Attempt, Helper, attempt_to_break_out, break_out, try_sandbox};

//! A model that attacks, through the real binary, as an ordinary user.
//!
//! The script says the attack as tool calls; the policy, the tools and the kernel are the
//! real ones. Every family of the threat model is one table: a case is its number, the
//! calls, how each of them must fail, and harmless twins that must work.
//!
//! - `list`: every command that the policy's own list knows
//! - `ground`: what is laid out around the workspace, and what must not have changed
//! - `trial`: runs a table twice, with a user who allows nothing and one who allows all
//! - `shell`, `files`, `git`: the tables
//! - `limits`: what a hog leaves of the runtime, and how soon what is stopped is gone

mod files;
mod git;
mod ground;
mod limits;
mod list;
mod shell;
mod trial;

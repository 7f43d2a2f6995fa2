//! Servers of the Model Context Protocol, and their tools as tools of Selvedge.
//!
//! A server is somebody else's program. Nothing of it runs before a person has approved
//! how it is started; no tool of it is offered that a person has not seen; and whatever
//! it answers is bounded, checked and cleaned like the answer of any other tool, because
//! it takes the same path.
//!
//! # Map
//!
//! - `entry`: how a server is reached, as it is written down
//! - `expand`: `${NAME}` in an entry
//! - `definition`: what a server says of a tool
//! - `names`: what its tools are called here
//! - `book`: what a person has approved
//! - `wire`: messages over pipes, and what is not tolerated in them
//! - `http`: messages over HTTP, which addresses are reached, and signing in
//! - `form`, `handler`: what a server asks of us
//! - `connection`: a server that is spoken to
//! - `server`: started when it is needed, again when it fails, and not for ever
//! - `answer`: what a server answers, as a tool's answer
//! - `tool`: its tools, resources and prompts as tools
//! - `fleet`: all servers of a run
//!
//! # Invariants
//!
//! - A server whose entry is not approved is not started.
//! - A tool whose definition is not the approved one is not called.
//! - Whatever a server does harms its own calls only: the session lives.
//! - This crate knows nothing of models or agents.

mod answer;
mod book;
mod connection;
mod definition;
mod entry;
mod expand;
mod fleet;
mod form;
mod handler;
mod http;
mod names;
mod server;
mod tool;
mod wire;

pub use book::{Approved, Book};
pub use connection::{ConnectError, Surroundings};
pub use definition::{Changes, Definition, Offer};
pub use entry::{Entry, EntryError, Listed, NetworkWish, Scope, SignIn, Way};
pub use fleet::Fleet;
pub use form::{Clerk, Field, Filled, Form};
pub use http::{Browser, SignInError, Tokens, sign_in, sign_out};
pub use names::{BUNDLED, names};
pub use server::{Look, Options, Server, Variable, version};

//! Hooks: what is done before and after every call of a model or a tool.
//!
//! A hook is a piece of code or a command of the user's. It can change a call, warn,
//! answer instead, or stop it. What it did is on record with the call, so that a run
//! is folded from its events alone; what it changed is judged again by the policy.
//!
//! In reading order: `reaction` (what a hook can do), `chain` (hooks in their order),
//! `hooked` (what they did to a call), `command` (hooks from the configuration),
//! `performing` (hooks around the calls of an agent), `strikes` (the count of failures in a row), `keeping` (what files were before).

mod chain;
mod command;
mod hooked;
mod keeping;
mod performing;
mod reaction;
mod strikes;

use async_trait::async_trait;
use selvedge_tool::Workspace;
use tokio_util::sync::CancellationToken;

pub use chain::Hooks;
pub use command::CommandHook;
pub use hooked::{Did, Done, Hooked, Instead};
pub(crate) use keeping::{Keeper, Readied};
pub(crate) use performing::{answered, failure, withheld};
pub use reaction::{Moment, Occasion, Reaction, Seen};
pub(crate) use strikes::Strikes;
pub use strikes::{Failure, Restore, RestoreOutcome};

/// Comes before all others.
pub const FIRST: u8 = 0;
/// Comes where it was added.
pub const NORMAL: u8 = 50;
/// Comes after all others.
pub const LAST: u8 = 100;

/// Something that is done at a moment of every call.
#[async_trait]
pub trait Hook: Send + Sync {
    /// Its name, for the record.
    fn name(&self) -> &str;

    /// When it is called.
    fn moment(&self) -> Moment;

    /// The tools it is called for; empty for all of them.
    fn tools(&self) -> &[String] {
        &[]
    }

    /// Which comes first: from 0 to 100, the smaller earlier. Equals keep the order
    /// in which they were added.
    fn priority(&self) -> u8 {
        NORMAL
    }

    /// Whether a call must not go on without it: its failure stops the call.
    fn is_required(&self) -> bool {
        false
    }

    /// What it does. An error says why it could not do it.
    async fn react(&self, setting: Setting<'_>, occasion: &Occasion) -> Result<Reaction, String>;
}

/// Where a hook works.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    /// The workspace of the run.
    pub workspace: &'a Workspace,
    /// Set when it must stop.
    pub cancel: &'a CancellationToken,
}

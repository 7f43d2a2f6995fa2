//! `sessions`: looks into sessions, speaks to them, copies them.

mod backup;
pub mod cancel;
pub mod clean;
mod events;
mod export;
pub mod fork;
pub mod list;
pub mod show;
mod steer;
mod suspend;
pub mod verify;

use clap::Subcommand;

use crate::error::Result;

#[derive(Subcommand)]
pub enum Sessions {
    /// List sessions, the newest first.
    List(list::List),
    /// Show what happened in a session, readably.
    Show(show::Show),
    /// Print a session's events.
    Events(events::Events),
    /// Say something to a session's agent.
    Steer(steer::Steer),
    /// Let a session that is being driven come to rest.
    Suspend(suspend::Suspend),
    /// End a session.
    Cancel(cancel::Cancel),
    /// Copy a session up to an event, to go on from there.
    Fork(fork::Fork),
    /// Write a session's events to a file, one per line, as JSON; and the folder of what
    /// its agents said anew, if it has one.
    Export(export::Export),
    /// Write a copy of the whole ledger to a file, while it is in use.
    Backup(backup::Backup),
    /// Remove copies of directories that missions left behind; without a session, list
    /// them.
    Clean(clean::Clean),
    /// Find changed, removed and reordered events, and damaged files.
    Verify(verify::Verify),
}

impl Sessions {
    pub async fn perform(self) -> Result {
        match self {
            Self::List(command) => command.perform().await,
            Self::Show(command) => command.perform().await,
            Self::Events(command) => command.perform().await,
            Self::Steer(command) => command.perform().await,
            Self::Suspend(command) => command.perform().await,
            Self::Cancel(command) => command.perform().await,
            Self::Fork(command) => command.perform().await,
            Self::Export(command) => command.perform().await,
            Self::Backup(command) => command.perform().await,
            Self::Clean(command) => command.perform().await,
            Self::Verify(command) => command.perform().await,
        }
    }
}

//! `job`: hours of document work, in the foreground or by workers.

mod again;
mod demo;
mod logs;
mod look;
mod start;

use clap::Subcommand;

use crate::commands::sessions::cancel::Cancel;
use crate::error::Result;

pub use demo::demo;
pub use start::config_error;

#[derive(Subcommand)]
pub enum Job {
    /// Do a job here and now; with `--resume`, go on with one.
    Run(start::RunJob),
    /// Leave a job to the workers.
    Submit(start::Submit),
    /// List jobs.
    List(look::List),
    /// Show how far a job is.
    Status(look::Status),
    /// End a job.
    Cancel(Cancel),
    /// Show what happened in a job; with `-f`, as it happens.
    Logs(logs::Logs),
}

impl Job {
    pub async fn perform(self) -> Result {
        match self {
            Self::Run(command) => command.perform().await,
            Self::Submit(command) => command.perform().await,
            Self::List(command) => command.perform().await,
            Self::Status(command) => command.perform().await,
            Self::Cancel(command) => command.perform().await,
            Self::Logs(command) => command.perform().await,
        }
    }
}

//! The command line: a thin face over the rooms below.
//!
//! # Map
//!
//! - `commands`: one file per command, with its arguments and what it does
//! - `wiring`: puts ledger, models, tools and driver together
//! - `drive`: drives a session in front of a person
//! - `story`, `progress`: a session as a person follows it
//! - `ask`, `interrupt`: questions at the terminal, and being told to stop
//! - `sessions`: finding sessions, and what can be said of them
//! - `config`: what is set, and by whom
//! - `audit`, `heads`: every act in the order of its time, and signed witnesses of it
//! - `trust`: which folders the user vouches for
//! - `keys`, `prompt`: the keys of providers, and asking for one unseen
//! - `paths`, `env`: where things are kept, and the variables that say so
//! - `error`: what happened, why, what to do next; and the exit codes
//! - `lines`, `out`, `text`, `when`: data for programs and words for people
//!
//! # Invariants
//!
//! - Data goes to stdout, everything else to stderr.
//! - What is shown from a model or a tool cannot steer the terminal.
//! - Nothing heavy happens before the arguments are parsed.

mod ask;
mod audit;
mod commands;
mod config;
mod countdown;
mod drive;
mod env;
mod error;
mod heads;
mod interrupt;
mod keys;
mod lines;
mod out;
mod paths;
mod progress;
mod prompt;
mod script;
mod sessions;
mod story;
mod text;
mod trust;
mod when;
mod wiring;

use std::process::ExitCode;

use crate::error::{Error, Exit};

fn main() -> ExitCode {
    hide();
    let arguments = commands::Arguments::from_command_line();
    log();
    let mut exit = arguments.perform().unwrap_or_else(|error| {
        out::say(&error.to_string());
        error.exit
    });
    if let Some(why) = out::lost() {
        let error = Error::failed("not everything could be written to stdout")
            .cause(why)
            .hint("send it elsewhere; what was done is on record: `selvedge sessions list`");
        out::say(&error.to_string());
        if exit == Exit::Done {
            exit = error.exit;
        }
    }
    ExitCode::from(exit as u8)
}

/// Keeps the process's memory and environment, and so its keys, from other
/// processes of the same user, above all from the commands that agents run.
fn hide() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    // Where the kernel refuses, there is nothing better to be done.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Logs to stderr, if somebody asked for it.
fn log() {
    if let Some(filter) = env::text(env::LOG) {
        tracing_subscriber::fmt()
            .with_env_filter(filter.to_string_lossy().into_owned())
            .with_writer(std::io::stderr)
            .init();
    }
}

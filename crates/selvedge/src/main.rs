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
//! - `secrets`: what this process keeps to itself
//! - `paths`, `env`: where things are kept, and the variables that say so
//! - `error`: what happened, why, what to do next; and the exit codes
//! - `lines`, `out`, `text`, `when`: data for programs and words for people
//!
//! # Invariants
//!
//! - Data goes to stdout, everything else to stderr.
//! - What is shown from a model or a tool cannot steer the terminal.
//! - No secret that the process knows is printed or logged.
//! - Nothing heavy happens before the arguments are parsed.

mod ask;
mod audit;
mod commands;
mod config;
mod countdown;
mod drive;
mod embedder;
mod env;
mod error;
mod heads;
mod interrupt;
mod jobs;
mod keys;
mod knowledge;
mod lines;
mod markdown;
mod mcp;
mod out;
mod path;
mod paths;
mod progress;
mod prompt;
mod script;
mod secrets;
mod sessions;
mod story;
mod text;
mod tree;
mod trust;
mod when;
mod wiring;

use std::process::ExitCode;

use crate::error::{Error, Exit};

// A thousand sessions on a few threads free what others allocated: the system's own
// allocator spends a third of their time waiting for its locks.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Before anything else: it may be there to watch over a command, and nothing more.
    selvedge_tool::stand_inside();
    hide();
    std::panic::set_hook(Box::new(panicked));
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

/// Says that something went wrong that never should, without saying a secret.
fn panicked(panic: &std::panic::PanicHookInfo<'_>) {
    let trace = std::backtrace::Backtrace::capture();
    let mut text = format!("error: a fault in Selvedge: {panic}");
    if trace.status() == std::backtrace::BacktraceStatus::Captured {
        text.push_str(&format!("\n{trace}"));
    }
    out::say(&secrets::of_this_process().redact(&text));
    out::say("  hint: what was recorded is safe; `selvedge resume` goes on");
}

/// Logs to stderr, if somebody asked for it.
fn log() {
    if let Some(filter) = env::text(env::LOG) {
        tracing_subscriber::fmt()
            .with_env_filter(filter.to_string_lossy().into_owned())
            .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
            .with_writer(|| secrets::Log)
            .init();
    }
}

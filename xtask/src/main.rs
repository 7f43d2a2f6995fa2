//! Checks and generators: the workshop's own tools.
//!
//! # Map
//!
//! - `check`: everything that must hold before a change is done; CI runs the same
//! - `provisions`: brings what tests need from outside
//! - `tidy`: what the compiler does not see: arrows, the map, leftovers
//! - `soak`: the simulation, for longer
//! - `changelog`: gathers the notes in `changes/`
//! - `tree`: the repository's files and crates
//! - `command`: running programs

mod changelog;
mod check;
mod command;
mod provisions;
mod soak;
mod tidy;
mod tree;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  check          formatting, lints, tests and tidy: the same as CI
  provisions     install what tests need from outside, as root on a Debian
  tidy           the crates' arrows, the paths in ARCHITECTURE.md, leftovers
  soak [SEEDS]   the simulation with more seeds (default: 100000)
  changelog      move the notes in changes/ into CHANGELOG.md";

/// The commands there are.
pub const COMMANDS: [&str; 5] = ["check", "provisions", "tidy", "soak", "changelog"];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["check"] => check::check(),
        ["provisions"] => provisions::provisions(),
        ["tidy"] => tidy::tidy(),
        ["soak"] => soak::soak(None),
        ["soak", seeds] => soak::soak(Some(seeds)),
        ["changelog"] => changelog::assemble(),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

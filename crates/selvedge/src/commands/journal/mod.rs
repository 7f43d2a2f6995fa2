//! `log`, `ask`, `journal`: notes in plain Markdown, and what they tell.

mod chart;
mod context;
mod demo;
mod domain;
mod enter;
mod import;
mod notes;
mod reparse;
mod repl;
mod room;
mod stats;

pub use demo::demo;

use clap::{Args, Command, Subcommand};
use selvedge_crews::journal::Intent;

use crate::error::{Error, Result};
use crate::text::{did_you_mean, escape};
use enter::{Input, Manner};
use room::Room;

/// `log`.
#[derive(Args)]
pub struct Log {
    /// What is to be noted; `-`, or nothing with a pipe, reads it from stdin.
    #[arg(value_name = "NOTE", num_args = 0..)]
    words: Vec<String>,
    #[command(flatten)]
    manner: Manner,
}

/// `ask`.
#[derive(Args)]
pub struct Ask {
    /// What your notes are asked.
    #[arg(value_name = "QUESTION", num_args = 0..)]
    words: Vec<String>,
    #[command(flatten)]
    manner: Manner,
}

/// `journal`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Journal {
    #[command(subcommand)]
    command: Option<Commands>,
    /// A note or a question. Without one, a box that takes one after another.
    #[arg(value_name = "TEXT", num_args = 0..)]
    words: Vec<String>,
    #[command(flatten)]
    manner: Manner,
}

#[derive(Subcommand)]
enum Commands {
    /// Take the Markdown files of a folder in, each once.
    Import(import::Import),
    /// Show what is known of you.
    Context(context::Context),
    /// Read structured data out of notes that have none yet, or were edited.
    Reparse(reparse::Reparse),
    /// Show how much was noted, when and about what.
    Stats(stats::Stats),
    /// Show what was noted on this day in earlier years.
    OnThisDay(notes::OnThisDay),
    /// List notes, by days, tags, domain and words.
    Notes(notes::List),
    /// Make a domain of your own.
    #[command(subcommand)]
    Domain(domain::Domain),
}

impl Log {
    pub async fn perform(self) -> Result {
        one(
            self.words,
            self.manner,
            Intent::Log,
            "selvedge log \"slept 6 hours\"",
        )
        .await
    }
}

impl Ask {
    pub async fn perform(self) -> Result {
        one(
            self.words,
            self.manner,
            Intent::Ask,
            "selvedge ask \"how did I sleep last week?\"",
        )
        .await
    }
}

impl Journal {
    pub async fn perform(self) -> Result {
        match self.command {
            Some(Commands::Import(command)) => command.perform(),
            Some(Commands::Context(command)) => command.perform(),
            Some(Commands::Reparse(command)) => command.perform().await,
            Some(Commands::Stats(command)) => command.perform(),
            Some(Commands::OnThisDay(command)) => command.perform(),
            Some(Commands::Notes(command)) => command.perform(),
            Some(Commands::Domain(command)) => command.perform(),
            None if self.words.is_empty() => repl::run(self.manner).await,
            None => {
                no_slip(&self.words)?;
                one(self.words, self.manner, Intent::Any, "selvedge journal").await
            }
        }
    }
}

/// Refuses what looks like a command with a slip in it: `journal stast` is no note.
fn no_slip(words: &[String]) -> Result<()> {
    const WORDS_MAX: usize = 2;
    let command = Journal::augment_args(Command::new("journal"));
    let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    let meant = words
        .first()
        .filter(|first| words.len() <= WORDS_MAX && !first.contains(char::is_whitespace))
        .and_then(|first| did_you_mean(first, &names));
    match meant {
        None => Ok(()),
        Some(meant) => {
            let text = words.join(" ");
            Err(
                Error::usage(format!("`{}` is no command", escape(&words[0])))
                    .cause("so short a note may be a slip, and nothing was noted")
                    .hint(format!(
                        "{meant} to note it: `selvedge log \"{}\"`",
                        escape(&text)
                    )),
            )
        }
    }
}

/// One input, to its end.
async fn one(words: Vec<String>, manner: Manner, intent: Intent, example: &str) -> Result {
    let text = match words.as_slice() {
        [] => enter::read_stdin()?,
        [one] if one == "-" => enter::read_stdin()?,
        // A note is typed without quotes more often than not.
        words => words.join(" "),
    };
    if text.trim().is_empty() {
        return Err(Error::usage("there is nothing to note or to answer")
            .cause("neither an argument nor a pipe said anything")
            .hint(format!("say something: `{example}`")));
    }
    let room = Room::open(&manner)?;
    let input = Input::new(text.trim_end_matches('\n').to_owned(), intent);
    let (_, exit) = enter::enter(&room, input, &manner).await?;
    Ok(exit)
}

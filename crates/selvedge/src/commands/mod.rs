//! The commands, a file each. A new one is a new file and two lines here.

mod answer;
mod audit;
mod auth;
mod break_out;
mod completions;
mod config;
mod demo;
mod doctor;
mod index;
mod job;
mod journal;
mod knowledge;
mod mcp;
mod models;
mod policy;
mod ps;
mod resume;
mod run;
mod search;
mod secrets;
mod sessions;
mod skills;
mod trust;
mod usage;
mod worker;

pub use resume::find_script;

use std::future::Future;

use clap::error::{ContextKind, ContextValue};
use clap::{Parser, Subcommand};

use crate::error::{Error, Exit, Result};
use crate::out;
use crate::text::one_line;

/// A durable runtime for AI agents: work that does not unravel.
///
/// Every step is on disk before the next one begins. Kill it at any moment and
/// `selvedge resume` goes on.
#[derive(Parser)]
#[command(name = "selvedge", version)]
#[command(after_help = "\
To see it work, without a key or a network:
  selvedge demo

Variables:
  SELVEDGE_HOME     where data and configuration are kept, instead of the XDG folders
  SELVEDGE_SCRIPT   a script to answer from, as `--script`
  SELVEDGE_LOG      what to log to stderr, such as `info`
  SELVEDGE_CREW and so on set a configuration key; `selvedge config show` lists them

Exit codes:
  0 done   1 failed   2 wrong usage or configuration   3 waiting for a human
  4 budget exhausted   5 denied by policy   6 no provider available
  7 verification failed   124 deadline   130 interrupted")]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

/// What is said to somebody who says nothing.
const WELCOME: &str = "\
Selvedge runs AI agents whose work does not unravel: kill it at any moment, and it goes on.

  selvedge demo                 watch an agent fix a bug; needs no key and no network
  selvedge run \"REQUEST\"        do a piece of work in this directory
  selvedge swarm \"MISSION\"      have it planned, designed, built and reviewed, unasked
  selvedge job run --config creator --document FILE   work for hours, on disk
  selvedge log \"NOTE\"           note something down, in plain Markdown files
  selvedge ask \"QUESTION\"       ask your notes
  selvedge resume               go on with what was interrupted
  selvedge ps                   what is unfinished
  selvedge sessions show ID     what happened
  selvedge search \"QUESTION\"    find code by what it means, after `selvedge index`
  selvedge doctor               is everything there?
  selvedge help                 everything else";

#[derive(Subcommand)]
enum Command {
    /// Do a piece of work.
    #[command(visible_alias = "exec")]
    Run(run::Run),
    /// Carry out a mission with a swarm: no questions asked, in a copy, merged in the end.
    Swarm(run::Run),
    /// Do long document work in phases, by a config; list and look at such jobs.
    #[command(subcommand)]
    Job(job::Job),
    /// Take submitted jobs and do them.
    Worker(worker::Worker),
    /// Note something down: half a sentence will do.
    Log(journal::Log),
    /// Ask your notes something.
    Ask(journal::Ask),
    /// Notes and questions in one box; and what else there is to do with notes.
    Journal(journal::Journal),
    /// Go on with a session that rests or was killed.
    Resume(resume::Resume),
    /// Answer a question that a session asks.
    Answer(answer::Answer),
    /// List the sessions that have not ended.
    Ps(ps::Ps),
    /// Look into sessions, speak to them, copy them.
    #[command(subcommand)]
    Sessions(sessions::Sessions),
    /// Show what was done and allowed, and check what is stored.
    #[command(subcommand)]
    Audit(audit::Audit),
    /// Explain what agents may do, and show what was approved.
    #[command(subcommand)]
    Policy(policy::Policy),
    /// Vouch for what a folder brings along: what it allows holds only then.
    Trust(trust::TrustFolder),
    /// Watch an agent fix a bug: the model is recorded, everything else is real.
    Demo(demo::Demo),
    /// Read a project, so that it can be searched by meaning.
    Index(index::IndexProject),
    /// Find code, history and documents by what they mean.
    Search(search::Search),
    /// Show what an index holds, and settle or forget what is wrong in it.
    #[command(subcommand)]
    Knowledge(knowledge::Knowledge),
    /// Show and check the skills that agents can use here.
    #[command(subcommand)]
    Skills(skills::Skills),
    /// Show what was spent.
    Usage(usage::Usage),
    /// List models, prices, and which providers are available.
    Models(models::Models),
    /// Store, show or forget the keys of model providers.
    #[command(subcommand)]
    Auth(auth::Auth),
    /// Look for secrets in a text, and say who may use which.
    #[command(subcommand)]
    Secrets(secrets::SecretsCommand),
    /// List, add, approve and try servers of the Model Context Protocol.
    #[command(subcommand)]
    Mcp(mcp::Mcp),
    /// Show, check or describe the configuration.
    #[command(subcommand)]
    Config(config::Configure),
    /// Check that everything Selvedge needs is there.
    Doctor(doctor::Doctor),
    /// Print completions for a shell.
    Completions(completions::Completions),
    #[command(name = break_out::BREAK_OUT, hide = true)]
    BreakOut(break_out::BreakOut),
}

impl Arguments {
    /// What was typed. Wrong usage ends the process, and so does `--help`.
    pub fn from_command_line() -> Self {
        Self::try_parse().unwrap_or_else(|error| {
            // Several words in the place of a command are a request.
            let command = error.get(ContextKind::InvalidSubcommand);
            if let Some(ContextValue::String(words)) = command
                && words.contains(char::is_whitespace)
            {
                let words = one_line(words, 60);
                let error = Error::usage(format!("there is no command `{words}`"))
                    .hint(format!("a request is run: `selvedge run \"{words}\"`"));
                out::say(&error.to_string());
                std::process::exit(error.exit as i32);
            }
            error.exit()
        })
    }

    /// Does what was asked for.
    pub fn perform(self) -> Result {
        let Some(command) = self.command else {
            out::line(WELCOME);
            return Ok(Exit::Done);
        };
        match command {
            Command::Run(command) => working(command.perform()),
            Command::Swarm(command) => working(command.by("swarm").perform()),
            Command::Job(command) => working(command.perform()),
            Command::Worker(command) => working(command.perform()),
            Command::Log(command) => working(command.perform()),
            Command::Ask(command) => working(command.perform()),
            Command::Journal(command) => working(command.perform()),
            Command::Resume(command) => working(command.perform()),
            Command::Answer(command) => working(command.perform()),
            Command::Ps(command) => looking(command.perform()),
            Command::Sessions(command) => working(command.perform()),
            Command::Audit(command) => looking(command.perform()),
            Command::Policy(command) => looking(command.perform()),
            Command::Trust(command) => command.perform(),
            Command::Demo(command) => working(command.perform()),
            Command::Index(command) => working(command.perform()),
            Command::Search(command) => command.perform(),
            Command::Knowledge(command) => command.perform(),
            Command::Skills(command) => command.perform(),
            Command::Usage(command) => looking(command.perform()),
            Command::Models(command) => looking(command.perform()),
            Command::Auth(command) => looking(command.perform()),
            Command::Secrets(command) => command.perform(),
            Command::Mcp(command) => looking(command.perform()),
            Command::Config(command) => command.perform(),
            Command::Doctor(command) => looking(command.perform()),
            Command::Completions(command) => command.perform(),
            Command::BreakOut(command) => command.perform(),
        }
    }
}

/// On as many threads as there are processors.
fn working(command: impl Future<Output = Result>) -> Result {
    on(selvedge_runtime::executor(), command)
}

/// On this thread alone: for commands that only read the ledger.
fn looking(command: impl Future<Output = Result>) -> Result {
    on(tokio::runtime::Builder::new_current_thread(), command)
}

fn on(mut builder: tokio::runtime::Builder, command: impl Future<Output = Result>) -> Result {
    let runtime = builder.enable_all().build().map_err(|error| {
        Error::failed("the operating system grants no threads")
            .cause(error)
            .hint("look at the limits of this user: `ulimit -u`")
    })?;
    let result = runtime.block_on(command);
    // A read from the terminal may still be waiting for a line.
    runtime.shutdown_background();
    result
}

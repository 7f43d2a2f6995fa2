//! `resume`: goes on with a session that rests or was killed.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use selvedge_crews::journal::JOURNAL;
use selvedge_ledger::{Payload, StreamId};
use selvedge_runtime::{Book, Ending, SessionState, Signal, Status, SteerMode};

use crate::commands::run;
use crate::commands::sessions::fork;
use crate::config::{Config, Dollars};
use crate::drive::{self, Options, Start};
use crate::env;
use crate::error::{Error, Exit, Result};
use crate::interrupt::parse_duration;
use crate::mcp;
use crate::out;
use crate::script::Script;
use crate::secrets;
use crate::sessions::{self, Listed};
use crate::text::escape;
use crate::wiring::{Models, Store};

#[derive(Args)]
pub struct Resume {
    /// The session; the beginning of its id is enough. Without one, the only
    /// session that can be resumed.
    #[arg(value_name = "ID")]
    session: Option<String>,
    /// Something to say to its agent. One that has ended goes on as a new session, with
    /// everything that was said before.
    #[arg(value_name = "MESSAGE")]
    message: Option<String>,
    /// The newest session that can be resumed.
    #[arg(long, conflicts_with = "session")]
    last: bool,
    /// Print new events to stdout, one per line, as JSON, and nothing else.
    #[arg(long)]
    json: bool,
    /// Raise the session's budget to this many US dollars.
    #[arg(long, value_name = "USD", allow_negative_numbers = true)]
    budget: Option<Dollars>,
    /// Raise the session's budget to this many tokens.
    #[arg(long, value_name = "TOKENS")]
    budget_tokens: Option<u32>,
    /// Stop after this long, such as `90s` or `5m`.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    timeout: Option<Duration>,
    /// Answer from this script or cassette, instead of the one the session began
    /// with.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
}

impl Resume {
    pub async fn perform(self) -> Result {
        let store = Store::open()?;
        let session = self.session(&store).await?;
        let options = Options {
            json: self.json,
            timeout: self.timeout,
            can_ask: out::can_ask(),
            ..Options::default()
        };
        let raise = Signal::RaiseBudget {
            usd: self.budget.map(|budget| budget.0),
            tokens: self.budget_tokens.map(u64::from),
            model_calls: None,
        };
        let raised = self.budget.is_some() || self.budget_tokens.is_some();
        let mut said: Vec<Signal> = raised.then_some(raise).into_iter().collect();
        let session = match self.message {
            None => session,
            Some(message) => {
                secrets::guard("message", &message, false)?;
                said.push(Signal::Steer {
                    mode: SteerMode::Steer,
                    text: Payload::new(message),
                });
                reopened(&store, session).await?
            }
        };
        resume(&store, &session, said, self.script, options).await
    }

    async fn session(&self, store: &Store) -> Result<StreamId> {
        if let Some(text) = &self.session {
            return sessions::find(store, text).await;
        }
        let unfinished = sessions::unfinished(store).await?;
        let (mut candidates, others): (Vec<_>, Vec<_>) =
            unfinished.into_iter().partition(can_be_resumed);
        let active = others.iter().find_map(|listed| match listed.state {
            SessionState::Active { pid } => Some((&listed.info.id, pid)),
            _ => None,
        });
        if let (true, Some((id, pid))) = (candidates.is_empty(), active) {
            return Err(Error::usage("there is no session to be resumed")
                .cause(format!("`{id}` is being driven already, by process {pid}"))
                .hint(format!(
                    "speak to it with `selvedge sessions steer {id} \"…\"`"
                )));
        }
        if self.last {
            candidates.truncate(1);
        }
        sessions::only(candidates, "to be resumed", "resume")
    }
}

fn can_be_resumed(listed: &Listed) -> bool {
    matches!(
        listed.state,
        SessionState::Waiting { .. } | SessionState::Suspended { .. }
    )
}

/// The session that takes a message: itself, or what goes on in its place.
async fn reopened(store: &Store, session: StreamId) -> Result<StreamId> {
    let books = sessions::books(&*store.ledger, &session).await?;
    if books.first().is_none_or(|(_, book)| book.ended.is_none()) {
        return Ok(session);
    }
    let next = fork::reopened(store, &session).await?;
    out::say(&format!(
        "session {session} has ended, and goes on as {next}"
    ));
    Ok(next)
}

/// Goes on with a session: says what is to be said to it, lifts its pauses, drives it.
pub async fn resume(
    store: &Store,
    session: &StreamId,
    said: Vec<Signal>,
    script: Option<PathBuf>,
    options: Options,
) -> Result {
    let spec = drive::spec_of(store, session).await?;
    let books = sessions::books(&*store.ledger, session).await?;
    if let Some(ending) = books.first().and_then(|(_, book)| book.ended.clone()) {
        return ended(store, session, &ending, options).await;
    }
    // A copy comes and goes; what it is a copy of must be there.
    let workspace = spec.directory();
    if !workspace.is_dir() {
        return Err(Error::failed(format!(
            "session `{session}` cannot go on: its workspace is gone"
        ))
        .cause(format!("`{}` is not a directory", workspace.display()))
        .hint("put the directory back, then resume"));
    }
    let base = selvedge_crews::job_base(workspace);
    let config = Config::load(&store.paths, base)?;
    for skill in spec.skills(&*store.ledger).await {
        if skill.has_changed(workspace) {
            let name = escape(&skill.name);
            out::warn(&format!(
                "the skill `{name}` has changed since the run began"
            ));
        }
    }
    let script = find_script(store, session, &spec.model, script)?;
    let models = Models::find_at(&config, script, spec.terms.address.as_ref())?;
    if !spec.model.is_empty() {
        models.resolve(&spec.model)?;
    }
    let to = env::path(env::RECORD);
    let (models, recorder) = run::record(models, to.as_deref())?;

    let said = said.into_iter().map(|said| (session.clone(), said));
    let mut letters: Vec<(StreamId, Signal)> = said.collect();
    // What is said to a run is passed on to its children; the first of the list
    // is the session's own stream.
    let is_paused = |(_, book): &&(StreamId, Book)| book.ended.is_none() && !book.pauses.is_empty();
    let whole = books.first().filter(is_paused).is_some();
    let paused = books
        .iter()
        .filter(is_paused)
        .take(if whole { 1 } else { books.len() });
    letters.extend(paused.map(|(stream, _)| (stream.clone(), Signal::Resume { reason: None })));
    // What the journal says is Markdown, whichever command it is heard through.
    let info = store.ledger.stream(session).await?;
    let markdown = options.markdown || info.is_some_and(|info| info.kind == JOURNAL);
    let options = Options {
        markdown,
        ..options
    };
    let start = Start::Resume(letters);
    let servers = mcp::fleet(&store.paths, &config, base);
    let exit = drive::session(store, models, &servers, session, start, options).await?;
    run::tell_lost(recorder);
    Ok(exit)
}

/// Says again how a session ended. The exit code does, too: a script that goes
/// on after `resume` must not take an old failure for a success.
async fn ended(store: &Store, session: &StreamId, ending: &Ending, options: Options) -> Result {
    // Its process may have ended before the last of it was written there.
    if let Err(error) = drive::record_anew(store, session).await {
        out::warn(&error.in_a_line());
    }
    let text = store.ledger.text(&ending.result).await?;
    let word = sessions::status_word(ending.status);
    if ending.status == Status::Done {
        out::say(&format!("session {session} has ended: {word}"));
        if !options.json {
            out::line(&escape(text.trim_end()));
        }
        return Ok(Exit::Done);
    }
    out::say(&format!(
        "session {session} has ended: {word}: {}\n  \
         go on from an earlier point: selvedge sessions fork {session}",
        escape(text.trim_end())
    ));
    Ok(Exit::Failed)
}

/// The script of a session whose model is scripted: the one that is named, else
/// the one it began with.
pub fn find_script(
    store: &Store,
    session: &StreamId,
    model: &str,
    named: Option<PathBuf>,
) -> Result<Option<Script>> {
    let is_replayed = model.starts_with("replay/");
    if !is_replayed && !model.starts_with("scripted/") {
        return Ok(None);
    }
    match named {
        Some(path) if is_replayed => return Script::replay(&path).map(Some),
        Some(path) => return Script::load(&path).map(Some),
        None => {}
    }
    if let Some(kept) = store.kept_script(session, model)? {
        return Ok(Some(kept));
    }
    env::path(env::SCRIPT)
        .map(|path| Script::load(&path))
        .transpose()
}

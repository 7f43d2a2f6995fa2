//! `resume`: goes on with a session that rests or was killed.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use selvedge_ledger::StreamId;
use selvedge_runtime::{Book, Ending, SessionState, Signal, Status};

use crate::commands::run;
use crate::config::{Config, Dollars};
use crate::drive::{self, Options, Start};
use crate::env;
use crate::error::{Error, Exit, Result};
use crate::interrupt::parse_duration;
use crate::out;
use crate::script::Script;
use crate::sessions::{self, Listed};
use crate::text::escape;
use crate::wiring::{Models, Store};

#[derive(Args)]
pub struct Resume {
    /// The session; the beginning of its id is enough. Without one, the only
    /// session that can be resumed.
    #[arg(value_name = "ID")]
    session: Option<String>,
    /// The newest session that can be resumed.
    #[arg(long, conflicts_with = "session")]
    last: bool,
    /// Print new events to stdout, one per line, as JSON, and nothing else.
    #[arg(long)]
    json: bool,
    /// Raise the session's budget to this many US dollars.
    #[arg(long, value_name = "USD", allow_negative_numbers = true)]
    budget: Option<Dollars>,
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
        };
        let budget = self.budget.map(|budget| budget.0);
        resume(&store, &session, budget, self.script, options).await
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

/// Goes on with a session: lifts its pauses, raises its budget, drives it.
pub async fn resume(
    store: &Store,
    session: &StreamId,
    budget: Option<f64>,
    script: Option<PathBuf>,
    options: Options,
) -> Result {
    let spec = drive::spec_of(store, session).await?;
    let books = sessions::books(&*store.ledger, session).await?;
    if let Some(ending) = books.first().and_then(|(_, book)| book.ended.clone()) {
        return ended(store, session, &ending, options).await;
    }
    if !spec.workspace.is_dir() {
        return Err(Error::failed(format!(
            "session `{session}` cannot go on: its workspace is gone"
        ))
        .cause(format!("`{}` is not a directory", spec.workspace.display()))
        .hint("put the directory back, then resume"));
    }
    let config = Config::load(&store.paths, &spec.workspace)?;
    let script = find_script(store, session, &spec.model, script)?;
    let models = Models::find(&config, script)?;
    models.resolve(&spec.model)?;
    let to = env::path(env::RECORD);
    let (models, recorder) = run::record(models, to.as_deref())?;

    let mut letters = Vec::new();
    if let Some(usd) = budget {
        letters.push((session.clone(), Signal::RaiseBudget { usd }));
    }
    // What is said to a run is passed on to its children; the first of the list
    // is the session's own stream.
    let is_paused = |(_, book): &&(StreamId, Book)| book.ended.is_none() && !book.pauses.is_empty();
    let whole = books.first().filter(is_paused).is_some();
    let paused = books
        .iter()
        .filter(is_paused)
        .take(if whole { 1 } else { books.len() });
    letters.extend(paused.map(|(stream, _)| (stream.clone(), Signal::Resume { reason: None })));
    let start = Start::Resume(letters);
    let exit = drive::session(store, models, session, start, options).await?;
    run::tell_lost(recorder);
    Ok(exit)
}

/// Says again how a session ended. The exit code does, too: a script that goes
/// on after `resume` must not take an old failure for a success.
async fn ended(store: &Store, session: &StreamId, ending: &Ending, options: Options) -> Result {
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
fn find_script(
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

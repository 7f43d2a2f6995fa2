//! Jobs as sessions: finding them, taking them, doing them without anybody watching.

use std::fmt;
use std::net::ToSocketAddrs;
use std::sync::Arc;
use std::time::Duration;

use selvedge_agent::TOOL_PAUSE;
use selvedge_crews::{
    Connections, JOB, JobSpec, JobTerms, JobView, LoadedConfig, Stand, error_report, job_base,
    write_error,
};
use selvedge_ledger::{Lease, Position, StreamId, StreamInfo};
use selvedge_mcp::Fleet;
use selvedge_runtime::{NoWatcher, Rest, Signal, Status};
use tokio_util::sync::CancellationToken;

use crate::commands::find_script;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::wiring::{self, Models, Store};
use crate::{drive, heads, mcp, out, sessions};

/// A server that does not answer by then counts as unreachable.
const CONNECT_WAIT: Duration = Duration::from_secs(3);

/// Every job, newest first.
pub async fn all(store: &Store) -> Result<Vec<StreamInfo>> {
    let mut all = sessions::all(store).await?;
    all.retain(|info| info.kind == JOB);
    Ok(all)
}

/// How far a job is.
pub async fn view(store: &Store, session: &StreamId) -> Result<JobView> {
    let mut view = JobView::default();
    let events = store.ledger.session_after(session, Position::default());
    let mut events = events.await?.0;
    // In a fork, children were written first.
    events.sort_by_key(|event| event.stream != *session);
    for event in events {
        view.apply(&event)?;
    }
    Ok(view)
}

/// Whether a live process drives it.
pub async fn is_driven(store: &Store, session: &StreamId) -> Result<bool> {
    let holder = store.ledger.holder(session, store.clock.now()).await?;
    Ok(holder.is_some())
}

/// Whether a worker for jobs of these configs, or of all if there are none, can bring a job
/// forward: it was submitted, nobody drives it, and it does not wait for a person.
pub async fn is_to_be_taken(store: &Store, info: &StreamInfo, configs: &[String]) -> Result<bool> {
    let last = store
        .ledger
        .read(&info.id, info.head.saturating_sub(1))
        .await?;
    if last
        .last()
        .is_some_and(|event| &*event.kind == "RunFinished")
    {
        return Ok(false);
    }
    let view = view(store, &info.id).await?;
    let is_meant =
        |terms: &JobTerms| terms.queued && (configs.is_empty() || configs.contains(&terms.config));
    if !view.terms.as_ref().is_some_and(is_meant) {
        return Ok(false);
    }
    Ok(match view.stand() {
        Stand::Queued | Stand::Open => true,
        // A worker that was told to stop leaves its jobs to others.
        Stand::Stopped => view.pauses.keys().all(|(_, reason)| reason == INTERRUPTED),
        Stand::Done | Stand::Failed | Stand::Cancelled => false,
    })
}

/// The pause of a job whose driver was told to stop.
const INTERRUPTED: &str = "interrupted";

/// Who hears what is said to a session: of a job, the phase that is under way.
pub async fn ear(store: &Store, session: &StreamId) -> Result<StreamId> {
    let info = store.ledger.stream(session).await?;
    if info.is_none_or(|info| info.kind != JOB) {
        return Ok(session.clone());
    }
    let books = sessions::books(&*store.ledger, session).await?;
    let open = books
        .into_iter()
        .rev()
        .find(|(_, book)| book.ended.is_none());
    Ok(open.map_or_else(|| session.clone(), |(stream, _)| stream))
}

/// Opens a job that waits for a worker.
pub async fn open(
    store: &Store,
    models: Models,
    servers: &Fleet,
    session: &StreamId,
    spec: JobSpec,
) -> Result<()> {
    let toolbox = Arc::new(wiring::toolbox(store, servers));
    let driver = wiring::driver(store, models, toolbox, Arc::new(NoWatcher));
    Ok(driver.start(session, None, JOB, spec, None).await?)
}

/// What came of a job, as far as this worker could bring it.
pub enum Outcome {
    /// It ended.
    Ended(Status),
    /// It rests, and why.
    Rests(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(status) => f.write_str(sessions::status_word(*status)),
            Self::Rests(why) => write!(f, "stopped: {why}"),
        }
    }
}

/// Does a job, or goes on with it, under a lease.
pub async fn do_job(
    store: &Store,
    session: &StreamId,
    lease: &Lease,
    cancel: CancellationToken,
) -> Result<Outcome> {
    let spec = drive::spec_of(store, session).await?;
    if !spec.workspace.is_dir() {
        return Err(
            Error::failed(format!("the folder of job `{session}` is gone"))
                .cause(format!("`{}` is not a directory", spec.workspace.display()))
                .hint("put it back, or cancel the job"),
        );
    }
    let base = job_base(&spec.workspace);
    let config = Config::load(&store.paths, base)?;
    let script = find_script(store, session, &spec.model, None)?;
    let models = Models::find_at(&config, script, spec.terms.address.as_ref())?;
    models.resolve(&spec.model)?;
    let servers = mcp::fleet(&store.paths, &config, base);
    let toolbox = Arc::new(wiring::toolbox(store, &servers));
    let driver = wiring::driver(store, models, toolbox, Arc::new(NoWatcher));
    let before = view(store, session).await?;
    for (stream, reason) in before
        .pauses
        .keys()
        .filter(|(_, reason)| reason == INTERRUPTED)
    {
        let reason = Some(reason.clone());
        sessions::send(store, stream, &Signal::Resume { reason }).await?;
    }
    let rest = driver.drive(session, Some(lease.fence()), cancel).await?;
    settle(store, session).await?;
    Ok(match rest {
        Rest::Ended(ending) => {
            if let Err(error) = heads::sign(store, session).await {
                out::warn(&error.in_a_line());
            }
            Outcome::Ended(ending.status)
        }
        Rest::Paused(reasons) => {
            let reasons: Vec<&str> = reasons.keys().map(String::as_str).collect();
            Outcome::Rests(reasons.join(", "))
        }
        Rest::Waiting => Outcome::Rests("a question is open".into()),
        Rest::Idle => Outcome::Rests("it waits for a message".into()),
        Rest::Interrupted => Outcome::Rests("the worker was told to stop".into()),
    })
}

/// Brings `output/error.json` up to date, and says where it is.
pub async fn settle(store: &Store, session: &StreamId) -> Result<()> {
    let view = view(store, session).await?;
    if let Err(error) = write_error(&view) {
        // A view that cannot be written harms no work.
        out::warn(&format!("`output/error.json` is not up to date: {error}"));
    } else if let Some(report) = error_report(&view) {
        let place = view.folder.join("output/error.json");
        out::say(&format!("  what stopped it: {}", place.display()));
        if let (Stand::Failed, Some(resume)) = (view.stand(), report["resume"].as_str()) {
            out::say(&format!("  go on: {resume}"));
        }
    }
    Ok(())
}

/// Whether a job stands still because a tool failed too often.
pub fn is_out_of_tries<'a>(mut reasons: impl Iterator<Item = &'a String>) -> bool {
    reasons.any(|reason| reason == TOOL_PAUSE)
}

/// Workers take jobs of a config only if it says so.
pub fn check_polling(loaded: &LoadedConfig) -> Result<()> {
    let name = &loaded.name;
    match loaded.config.polling.enabled {
        true => Ok(()),
        false => Err(Error::usage(format!("config `{name}` is not for workers"))
            .cause("`polling.enabled` is false")
            .hint(format!("do it here: `selvedge job run --config {name}`"))),
    }
}

/// A connection that is configured must be there. Those of the embedded store need none.
pub fn check_connections(connections: &Connections) -> Result<()> {
    let named = [
        ("postgres", &connections.postgres, 5432, "PostgreSQL"),
        ("neo4j", &connections.neo4j, 7687, "Neo4j"),
    ];
    for (key, address, port, name) in named {
        let Some(address) = address else {
            continue;
        };
        let (_, rest) = address.split_once("://").unwrap_or(("", address));
        let host = rest.split(['/', '?']).next().unwrap_or_default();
        let host = host.rsplit('@').next().unwrap_or_default();
        let place = match host.contains(':') {
            true => host.to_owned(),
            false => format!("{host}:{port}"),
        };
        let unreachable = |why: String| {
            Error::failed(format!("{name} at `{place}` does not answer"))
                .cause(format!("`connections.{key}`: {why}"))
                .hint(format!(
                    "start it, or leave `connections.{key}` out: the embedded store serves"
                ))
        };
        let found = place
            .to_socket_addrs()
            .map_err(|error| unreachable(error.to_string()))?;
        let mut last = "it has no address".to_owned();
        let is_there = found.into_iter().any(|address| {
            let tried = std::net::TcpStream::connect_timeout(&address, CONNECT_WAIT);
            tried.map_err(|error| last = error.to_string()).is_ok()
        });
        if !is_there {
            return Err(unreachable(last));
        }
        return Err(Error::usage(format!(
            "{name} at `{place}` answers, and cannot be used: this build serves jobs from its \
             embedded store only"
        ))
        .cause(format!("`connections.{key}` names it"))
        .hint(format!(
            "leave `connections.{key}` out, and the embedded store serves"
        )));
    }
    Ok(())
}

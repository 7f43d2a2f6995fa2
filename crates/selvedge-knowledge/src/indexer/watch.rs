//! Keeps an index current while somebody works.
//!
//! What the system reports is only taken as a sign that something happened. What is true
//! is read from the disk once it is quiet, so a write followed by a rename or a change of
//! permissions is what it came to be, and nothing reported out of order can be believed.

use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use notify::{Event, EventKind, RecursiveMode, Watcher};

use super::{Project, Report, index_project};
use crate::error::{KnowledgeError, Result};
use crate::store::Index;

/// How long it must be quiet before the disk is looked at.
const QUIET: Duration = Duration::from_millis(100);
/// How long an endless stream of changes may put that off.
const PATIENCE_ROUNDS: usize = 20;
/// How often `stop` is looked at.
const TICK: Duration = Duration::from_millis(200);

/// What a watch tells.
pub enum Watching<'a> {
    /// The folder is being watched from here on.
    Ready,
    /// The index was brought up to date.
    Updated(&'a Report),
    /// It could not be, this time.
    Failed(&'a KnowledgeError),
}

/// Brings the index up to date, and again after every change, until told to stop.
pub fn watch(
    index: &Index,
    project: &Project<'_>,
    mut tell: impl FnMut(Watching<'_>),
) -> Result<()> {
    let (send, signs) = mpsc::channel();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        // An error of the system's may mean that signs were lost: look.
        let is_sign = event.map_or(true, |event| !matches!(event.kind, EventKind::Access(_)));
        if is_sign {
            let _ = send.send(());
        }
    })
    .map_err(|error| unwatchable(&project.root, error))?;
    watcher
        .watch(&project.root, RecursiveMode::Recursive)
        .map_err(|error| unwatchable(&project.root, error))?;
    tell(Watching::Ready);
    let stopped = || project.stop.load(std::sync::atomic::Ordering::Relaxed);
    let mut is_due = true;
    while !stopped() {
        if is_due {
            match index_project(index, project) {
                Ok(report) => tell(Watching::Updated(&report)),
                Err(error) => tell(Watching::Failed(&error)),
            }
        }
        is_due = match signs.recv_timeout(TICK) {
            Ok(()) => {
                for _ in 0..PATIENCE_ROUNDS {
                    match signs.recv_timeout(QUIET) {
                        Ok(()) => while signs.try_recv().is_ok() {},
                        Err(_) => break,
                    }
                }
                true
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
    }
    Ok(())
}

fn unwatchable(root: &Path, error: notify::Error) -> KnowledgeError {
    KnowledgeError::file(root, format!("it cannot be watched: {error}"))
}

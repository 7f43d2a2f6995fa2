//! `sessions clean`: removes copies of directories that missions left behind.
//!
//! A mission that failed or was cancelled keeps the copy it worked on, because its work is
//! in there and nowhere else. Whoever has no use for it removes it here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;
use selvedge_ledger::StreamId;
use selvedge_runtime::SessionState;
use selvedge_tool::WorkCopy;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::error::{Error, Exit, Result};
use crate::out;
use crate::sessions::{self, Listed};
use crate::text::{count, escape, table};
use crate::wiring::Store;

#[derive(Args)]
pub struct Clean {
    /// The sessions whose copies go. Without any, copies are listed and nothing goes.
    #[arg(value_name = "ID")]
    sessions: Vec<String>,
    /// The copies of all sessions that have ended.
    #[arg(long, conflicts_with = "sessions")]
    all: bool,
    /// Print one copy per line, as JSON.
    #[arg(long)]
    json: bool,
}

/// A copy that was left behind.
pub struct Left {
    /// Whose it is.
    pub session: StreamId,
    /// How that session ended; none if there is no such session any more.
    status: Option<&'static str>,
    copy: WorkCopy,
}

impl Clean {
    pub async fn perform(self) -> Result {
        let store = Store::open()?;
        let mut left = left_behind(&store).await?;
        if self.sessions.is_empty() && !self.all {
            self.list(&left);
            return Ok(Exit::Done);
        }
        if !self.all {
            let mut wanted = BTreeSet::new();
            for text in &self.sessions {
                wanted.insert(self.wanted(&store, text, &left).await?);
            }
            left.retain(|left| wanted.contains(&left.session));
        }
        let cancel = CancellationToken::new();
        for left in &left {
            let work = left.copy.work();
            left.copy.remove(&cancel).await.map_err(|error| {
                Error::failed(format!("`{}` cannot be removed", work.display())).cause(error)
            })?;
            match self.json {
                true => left.print(),
                false => out::say(&format!(
                    "removed the copy of {}: {}",
                    left.session,
                    escape(&work.display().to_string())
                )),
            }
        }
        if left.is_empty() && !self.json {
            out::say("there is nothing to remove");
        }
        Ok(Exit::Done)
    }

    /// The session that `text` names, unless its copy is in use.
    async fn wanted(&self, store: &Store, text: &str, left: &[Left]) -> Result<StreamId> {
        let is_named = |left: &&Left| left.session.as_str() == text;
        if let Some(known) = left.iter().find(is_named) {
            return Ok(known.session.clone());
        }
        let session = sessions::find(store, text).await?;
        if left.iter().any(|left| left.session == session) {
            return Ok(session);
        }
        let unfinished = sessions::unfinished(store).await?;
        if unfinished.iter().any(|listed| listed.info.id == session) {
            return Err(Error::usage(format!(
                "the copy of `{session}` cannot be removed: the session has not ended"
            ))
            .hint(format!(
                "go on with `selvedge resume {session}`, or end it with `selvedge sessions cancel \
                 {session}`"
            )));
        }
        Ok(session)
    }

    fn list(&self, left: &[Left]) {
        if self.json {
            left.iter().for_each(Left::print);
            return;
        }
        if left.is_empty() {
            out::say("no copies were left behind");
            return;
        }
        let mut rows = vec![
            ["SESSION", "STATE", "BYTES", "COPY"]
                .map(str::to_owned)
                .to_vec(),
        ];
        for left in left {
            rows.push(vec![
                left.session.to_string(),
                left.status.unwrap_or("gone").to_owned(),
                count(size(&left.copy.folder)),
                escape(&left.copy.work().display().to_string()),
            ]);
        }
        out::line(&table(&rows));
        out::say(
            "their work was not merged; remove one with `selvedge sessions clean ID`, or all of \
             them with `--all`",
        );
    }
}

impl Left {
    fn print(&self) {
        out::json(&json!({
            "session": self.session, "state": self.status, "bytes": size(&self.copy.folder),
            "copy": self.copy.work(), "directory": self.copy.origin,
        }));
    }
}

/// The copies of sessions that have ended, or that are not there any more.
pub async fn left_behind(store: &Store) -> Result<Vec<Left>> {
    let mut left = Vec::new();
    let mut in_use: Option<BTreeSet<PathBuf>> = None;
    for folder in folders(&store.paths.sessions()) {
        let Some(name) = folder.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        let session = StreamId::new(name);
        let mut copy = WorkCopy {
            origin: folder.clone(),
            folder,
            repository: None,
        };
        if !copy.is_there() {
            continue;
        }
        let mut status = None;
        if let Some(info) = store.ledger.stream(&session).await? {
            let listed = Listed::look(store, info).await?;
            let SessionState::Ended { status: how } = listed.state else {
                continue;
            };
            status = Some(sessions::status_word(how));
            let own = listed.spec.and_then(|spec| spec.terms.copy);
            copy = own.filter(|own| own.folder == copy.folder).unwrap_or(copy);
        }
        if in_use.is_none() {
            in_use = Some(folders_in_use(store).await?);
        }
        if in_use
            .as_ref()
            .is_some_and(|used| used.contains(&copy.folder))
        {
            continue;
        }
        left.push(Left {
            session,
            status,
            copy,
        });
    }
    Ok(left)
}

/// The folders of copies that somebody may go on with.
async fn folders_in_use(store: &Store) -> Result<BTreeSet<PathBuf>> {
    let unfinished = sessions::unfinished(store).await?;
    let specs = unfinished.into_iter().filter_map(|listed| listed.spec);
    Ok(specs
        .filter_map(|spec| Some(spec.terms.copy?.folder))
        .collect())
}

/// The folders in a folder, by name.
fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    folders.retain(|path| path.is_dir());
    folders.sort();
    folders
}

/// The bytes of the files in a folder, as far as they can be read.
fn size(path: &Path) -> u64 {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => size(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

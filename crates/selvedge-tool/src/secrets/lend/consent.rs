//! What the user allows: once, for a session, or always.
//!
//! What is allowed always is kept in the data root, where no tool can write, readable
//! by its owner only. It names agents and providers and no value.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::Wanted;

/// What the user said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granted {
    /// Yes, this once.
    Once,
    /// Yes, for this session.
    Session,
    /// Yes, from now on.
    Always,
    /// No.
    No,
    /// Nobody could be asked.
    NobodyToAsk,
}

/// Asks the user.
#[async_trait]
pub trait Consent: Send + Sync {
    /// Whether the user agrees.
    async fn ask(&self, wanted: &Wanted) -> Granted;

    /// Whether they have agreed already, so that nobody has to be asked.
    fn has(&self, _: &Wanted) -> bool {
        false
    }

    /// Takes down what they said when they were asked elsewhere.
    fn take_down(&self, _: &Wanted, _: Granted) {}
}

/// Nobody is there.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoConsent;

#[async_trait]
impl Consent for NoConsent {
    async fn ask(&self, _: &Wanted) -> Granted {
        Granted::NobodyToAsk
    }
}

/// Remembers what was allowed, and asks about the rest.
pub struct ConsentBook {
    file: PathBuf,
    asker: Arc<dyn Consent>,
    session: Mutex<BTreeSet<(String, Key)>>,
    /// What was agreed to for one call that has not begun.
    once: Mutex<Vec<Wanted>>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Key {
    agent: String,
    provider: String,
}

impl Key {
    fn of(wanted: &Wanted) -> Self {
        Self {
            agent: wanted.agent.clone(),
            provider: wanted.provider.clone(),
        }
    }
}

impl ConsentBook {
    /// A book kept at `file`; `asker` is asked about what is not in it.
    pub fn new(file: PathBuf, asker: Arc<dyn Consent>) -> Self {
        Self {
            file,
            asker,
            session: Mutex::default(),
            once: Mutex::default(),
        }
    }

    /// Allows something always.
    pub fn allow(&self, agent: &str, provider: &str) -> std::io::Result<()> {
        let mut kept = self.kept()?;
        kept.insert(Key {
            agent: agent.to_owned(),
            provider: provider.to_owned(),
        });
        self.keep(&kept)
    }

    /// Takes back what was allowed always.
    pub fn forget(&self, agent: &str, provider: &str) -> std::io::Result<()> {
        let mut kept = self.kept()?;
        kept.retain(|key| key.agent != agent || key.provider != provider);
        self.keep(&kept)
    }

    /// What holds for longer than once.
    fn given(&self, wanted: &Wanted) -> Option<Granted> {
        let key = Key::of(wanted);
        let session = self.session.lock().expect("no panic under this lock");
        if session.contains(&(wanted.session.clone(), key.clone())) {
            return Some(Granted::Session);
        }
        // What cannot be read allows nothing.
        let kept = self.kept().unwrap_or_default();
        kept.contains(&key).then_some(Granted::Always)
    }

    /// Whether there is a yes to one call, which is used up by that.
    fn was_given_once(&self, wanted: &Wanted) -> bool {
        let mut once = self.once.lock().expect("no panic under this lock");
        let at = once.iter().position(|given| given == wanted);
        at.map(|at| once.swap_remove(at)).is_some()
    }

    fn kept(&self) -> std::io::Result<BTreeSet<Key>> {
        match fs::read_to_string(&self.file) {
            Ok(text) => Ok(serde_json::from_str(&text)?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeSet::new()),
            Err(error) => Err(error),
        }
    }

    /// Whole or not at all: a torn file would allow nothing.
    fn keep(&self, keys: &BTreeSet<Key>) -> std::io::Result<()> {
        let text = serde_json::to_string_pretty(keys)?;
        let new = self.file.with_extension("new");
        let mut options = fs::OpenOptions::new();
        let mut file = options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &self.file)
    }
}

#[async_trait]
impl Consent for ConsentBook {
    async fn ask(&self, wanted: &Wanted) -> Granted {
        if let Some(granted) = self.given(wanted) {
            return granted;
        }
        if self.was_given_once(wanted) {
            return Granted::Once;
        }
        let granted = self.asker.ask(wanted).await;
        if granted != Granted::Once {
            self.take_down(wanted, granted);
        }
        granted
    }

    fn has(&self, wanted: &Wanted) -> bool {
        self.given(wanted).is_some()
    }

    fn take_down(&self, wanted: &Wanted, granted: Granted) {
        let key = Key::of(wanted);
        match granted {
            Granted::Once => {
                let mut once = self.once.lock().expect("no panic under this lock");
                once.push(wanted.clone());
            }
            Granted::Session => {
                let mut session = self.session.lock().expect("no panic under this lock");
                session.insert((wanted.session.clone(), key));
            }
            Granted::Always => {
                if let Err(error) = self.allow(&key.agent, &key.provider) {
                    tracing::warn!(%error, "a consent could not be kept");
                }
            }
            Granted::No | Granted::NobodyToAsk => {}
        }
    }
}

//! A server: started when it is needed, again when it fails, and not for ever.
//!
//! One that ended is started again, after a while. One that failed several times in a
//! row, or did what is not tolerated, is in quarantine until Selvedge is started anew:
//! a session that waits for a broken server is broken itself.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::ProtocolVersion;
use selvedge_tool::{Sandbox, Secrets};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::book::Approved;
use crate::connection::{ConnectError, Connection, Surroundings, learn};
use crate::definition::{Definition, Offer};
use crate::entry::{Listed, Way, hash};
use crate::form::Clerk;
use crate::http::{Browser, Tokens, sign_in};

/// Failures in a row after which a server is left alone.
const FAILURES_MAX: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// How often a user signs in to one server before that is given up.
const SIGN_INS_MAX: u32 = 2;
/// Calls in a row without an answer after which it is started anew.
const SILENCES_MAX: u32 = 2;

/// Finds a variable of the user's.
pub type Variable = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What servers have in common.
#[derive(Clone)]
pub struct Options {
    /// What must not be shown.
    pub secrets: Secrets,
    /// Who puts forms before the user, if anybody can.
    pub clerk: Option<Arc<dyn Clerk>>,
    /// The user's variables.
    pub variable: Variable,
    /// Where is kept what servers have given the user who signed in.
    pub tokens: Option<Arc<dyn Tokens>>,
    /// The user's browser, where somebody is there to sign in at once.
    pub browser: Option<Arc<dyn Browser>>,
    /// The version of the protocol that is proposed. Default: the newest.
    pub version: Option<ProtocolVersion>,
}

/// A server, spoken to or not.
pub struct Server {
    listed: Listed,
    approved: Approved,
    options: Arc<Options>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By what they work on and may reach.
    connections: HashMap<String, Arc<Connection>>,
    failures: u32,
    silences: u32,
    sign_ins: u32,
    not_before: Option<Instant>,
    quarantine: Option<String>,
}

/// The version of the protocol that a text names; one with a handshake, as servers of
/// today have it.
pub fn version(text: &str) -> Result<ProtocolVersion, String> {
    let known = ProtocolVersion::KNOWN_VERSIONS.iter();
    let mut known = known.filter(|version| version.has_initialize());
    let found = known.find(|version| version.as_str() == text).cloned();
    found.ok_or_else(|| format!("`{text}` is no version of the protocol that is spoken here"))
}

/// What a look at a server has found.
pub struct Look {
    /// What it calls itself.
    pub own_name: String,
    /// The version of the protocol that is spoken.
    pub version: String,
    /// Its tools.
    pub definitions: Vec<Definition>,
    /// What it has besides.
    pub offer: Offer,
    /// What it complained of.
    pub log: String,
}

/// Why a server cannot be used.
#[derive(Debug)]
pub(crate) enum Unavailable {
    /// For good, and why.
    Quarantined(String),
    /// This time.
    Failed(ConnectError),
}

impl Server {
    /// A server with what was approved of it. Nothing is started.
    pub fn new(listed: Listed, approved: Approved, options: Arc<Options>) -> Self {
        learn(&listed, &options);
        Self {
            listed,
            approved,
            options,
            state: Mutex::default(),
        }
    }

    /// The same server, not started, with somebody to put forms before the user.
    pub(crate) fn with_clerk(&self, clerk: Arc<dyn Clerk>) -> Self {
        let options = Options {
            clerk: Some(clerk),
            ..Options::clone(&self.options)
        };
        let (listed, approved) = (self.listed.clone(), self.approved.clone());
        Self::new(listed, approved, Arc::new(options))
    }

    /// Looks at a server that need not be approved: whoever calls this has asked the
    /// user. It is ended afterwards.
    pub async fn look(
        listed: &Listed,
        options: &Options,
        around: &Surroundings,
    ) -> Result<Look, ConnectError> {
        let cancel = CancellationToken::new();
        let connection = open(listed, options, around, &cancel).await?;
        let (own_name, version) = connection.introduction();
        let look = Look {
            own_name,
            version,
            definitions: connection.definitions(),
            offer: connection.offer(),
            log: options.secrets.redact(&connection.log()).into_owned(),
        };
        connection.close().await;
        Ok(look)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.listed.name
    }

    /// How it is reached.
    pub(crate) fn listed(&self) -> &Listed {
        &self.listed
    }

    /// What was approved of it.
    pub fn approved(&self) -> &Approved {
        &self.approved
    }

    pub(crate) fn secrets(&self) -> &Secrets {
        &self.options.secrets
    }

    /// The server, ready to be asked.
    pub(crate) async fn connect(
        &self,
        around: &Surroundings,
        cancel: &CancellationToken,
    ) -> Result<Arc<Connection>, Unavailable> {
        let key = key(around);
        let mut state = self.state.lock().await;
        if let Some(why) = &state.quarantine {
            return Err(Unavailable::Quarantined(why.clone()));
        }
        if let Some(connection) = state.connections.get(&key).cloned() {
            if !connection.is_gone() {
                return Ok(connection);
            }
            state.connections.remove(&key);
            state.note_end(&connection);
            if let Some(why) = &state.quarantine {
                return Err(Unavailable::Quarantined(why.clone()));
            }
        }
        // A script may have been written to since it was looked at.
        let is_program = matches!(self.listed.entry.way(), Ok(Way::Program(_)));
        if is_program && self.listed.entry.digest(around.workspace.root()) != self.approved.entry {
            let why = "what it runs has changed since it was approved; the user must look at it \
                       again (`selvedge mcp approve`)";
            return Err(Unavailable::Quarantined(why.into()));
        }
        if let Some(until) = state.not_before {
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(Unavailable::Failed(ConnectError::Cancelled)),
                () = tokio::time::sleep_until(until) => {}
            }
        }
        match open(&self.listed, &self.options, around, cancel).await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                state.connections.insert(key, connection.clone());
                Ok(connection)
            }
            Err(ConnectError::Fault(what)) => {
                state.quarantine = Some(what.clone());
                Err(Unavailable::Quarantined(what))
            }
            Err(error @ (ConnectError::Cancelled | ConnectError::SignIn(_))) => {
                Err(Unavailable::Failed(error))
            }
            Err(error) => {
                state.note_failure(&format!("it failed to start: {error}"));
                Err(Unavailable::Failed(error))
            }
        }
    }

    /// The user signs in, again or for more, if there is a browser to do it with. False
    /// if there is none, or it was done too often: who wants to know for ever is not told.
    pub(crate) async fn sign_in(&self, connection: &Arc<Connection>, challenge: &str) -> bool {
        let Some(browser) = &self.options.browser else {
            return false;
        };
        let mut state = self.state.lock().await;
        if state.sign_ins >= SIGN_INS_MAX {
            return false;
        }
        state.sign_ins += 1;
        let (listed, options) = (&self.listed, &*self.options);
        let signed = sign_in(listed, options, &**browser, Some(challenge), &[]).await;
        if let Err(error) = &signed {
            tracing::warn!(%error, server = self.name(), "signing in failed");
        }
        // What was said in the old name is not said in the new one.
        state
            .connections
            .retain(|_, known| !Arc::ptr_eq(known, connection));
        signed.is_ok()
    }

    /// A call was answered: whatever failed before is forgotten.
    pub(crate) async fn answered(&self) {
        let mut state = self.state.lock().await;
        (state.failures, state.silences, state.not_before) = (0, 0, None);
    }

    /// The server ended in a call. Why it is left alone from now on, if it is.
    pub(crate) async fn ended(&self, connection: &Arc<Connection>) -> Option<String> {
        let mut state = self.state.lock().await;
        let is_other = |_: &String, known: &mut Arc<Connection>| !Arc::ptr_eq(known, connection);
        let count = state.connections.len();
        state.connections.retain(is_other);
        // Of several calls that it ended in, the first one counts.
        if state.connections.len() < count {
            state.note_end(connection);
        }
        state.quarantine.clone()
    }

    /// A call was not answered in its time.
    pub(crate) async fn silent(&self, connection: &Arc<Connection>) {
        let mut state = self.state.lock().await;
        state.silences += 1;
        if state.silences >= SILENCES_MAX {
            state.silences = 0;
            state
                .connections
                .retain(|_, known| !Arc::ptr_eq(known, connection));
        }
    }
}

impl State {
    fn note_end(&mut self, connection: &Connection) {
        match connection.fault() {
            Some(what) => self.quarantine = Some(what.to_owned()),
            None => self.note_failure("it ended again and again"),
        }
    }

    fn note_failure(&mut self, what: &str) {
        self.failures += 1;
        self.not_before = Some(Instant::now() + FIRST_PAUSE * 2_u32.pow(self.failures));
        if self.failures >= FAILURES_MAX {
            self.quarantine = Some(what.to_owned());
        }
    }
}

/// Opens a connection; the user signs in where that is wanted and can be done.
async fn open(
    listed: &Listed,
    options: &Options,
    around: &Surroundings,
    cancel: &CancellationToken,
) -> Result<Connection, ConnectError> {
    let opened = Connection::open(listed, options, around, cancel).await;
    let (Err(ConnectError::SignIn(challenge)), Some(browser)) = (&opened, &options.browser) else {
        return opened;
    };
    let signed = sign_in(listed, options, &**browser, Some(challenge), &[]).await;
    signed.map_err(|error| ConnectError::Refused {
        why: format!("signing in failed: {error}"),
        said: String::new(),
    })?;
    Connection::open(listed, options, around, cancel).await
}

/// What stands for the surroundings: another agent may have less.
fn key(around: &Surroundings) -> String {
    let sandbox = Sandbox {
        temp: None,
        ..Sandbox::clone(&around.sandbox)
    };
    hash(&(around.workspace.root(), sandbox))
}

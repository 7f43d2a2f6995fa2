//! A server that is spoken to.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use rmcp::model::{
    ClientRequest, PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, PeerRequestOptions, RunningService, ServiceError, serve_client,
};
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_client::{AuthRequiredError, InsufficientScopeError};
use rmcp::{ErrorData, RoleClient};
use selvedge_tool::{Companion, CompanionError, Network, Sandbox, Workspace};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::definition::{Definition, Offer};
use crate::entry::{EntryError, Listed, NetworkWish, Switch, Way};
use crate::expand::expand;
use crate::handler::{Handler, Sink};
use crate::http::{self, HttpTransport};
use crate::server::Options;
use crate::wire::{Fault, Log, Pipe, Watched};

/// A list that is longer than this is not read to its end.
const PAGES_MAX: usize = 64;
const TOOLS_MAX: usize = 512;
const STARTUP: Duration = Duration::from_secs(30);

/// Where a server of this machine works.
#[derive(Clone)]
pub struct Surroundings {
    /// The files that it works on.
    pub workspace: Arc<Workspace>,
    /// What commands may reach there; a server reaches what its entry says of it.
    pub sandbox: Arc<Sandbox>,
}

/// Why a server cannot be spoken to.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Its entry is wrong: correct it.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// A variable that its entry names is not set: set it.
    #[error("the variable `{0}`, which its entry names, is not set")]
    Variable(String),
    /// Its program is not there: install it, or correct the command.
    #[error(transparent)]
    Program(#[from] CompanionError),
    /// It did not get ready in time: give it more, or look at what it waits for.
    #[error("it was not ready within {} s{}", .after.as_secs(), saying(.said))]
    TimedOut {
        /// After how long.
        after: Duration,
        /// What it complained of.
        said: String,
    },
    /// It ended, or refused to speak.
    #[error("{why}{}", saying(.said))]
    Refused {
        /// Why.
        why: String,
        /// What it complained of.
        said: String,
    },
    /// It did what is not tolerated: it is not spoken to again.
    #[error("{0}")]
    Fault(String),
    /// The user has to sign in; what the server said to that.
    #[error("it wants to know who you are")]
    SignIn(String),
    /// Somebody stopped it.
    #[error("it was cancelled")]
    Cancelled,
}

/// Why a question has no answer.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The server refused it.
    Refused(ErrorData),
    /// The server is gone.
    Gone,
    /// Its answer is not one to this question.
    Strange,
    /// Somebody stopped it.
    Cancelled,
    /// The user has to sign in, again or with more rights; what the server said.
    SignIn(String),
}

/// A server that is spoken to. Dropped, it is ended.
pub(crate) struct Connection {
    service: RunningService<RoleClient, Arc<Handler>>,
    handler: Arc<Handler>,
    fault: Fault,
    log: Log,
    definitions: RwLock<Vec<Definition>>,
}

impl Connection {
    /// Starts a server, or reaches it, and learns what tools it has.
    pub(crate) async fn open(
        listed: &Listed,
        options: &Options,
        around: &Surroundings,
        cancel: &CancellationToken,
    ) -> Result<Self, ConnectError> {
        let after = listed
            .entry
            .startup_seconds
            .map_or(STARTUP, Duration::from_secs);
        let log = Log::default();
        let opened = Self::reach(listed, options, around, &log);
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ConnectError::Cancelled),
            opened = tokio::time::timeout(after, opened) => match opened {
                Ok(opened) => opened,
                Err(_) => Err(ConnectError::TimedOut { after, said: clean(options, &log) }),
            },
        }
    }

    async fn reach(
        listed: &Listed,
        options: &Options,
        around: &Surroundings,
        log: &Log,
    ) -> Result<Self, ConnectError> {
        let fault = Fault::default();
        match listed.entry.way()? {
            Way::Program(_) => {
                let companion = companion(listed, options, around)?;
                let started = companion.start(&around.workspace)?;
                let pipe = Pipe::new(started, log, fault.clone());
                let root = file_uri(around.workspace.root());
                Self::greet(pipe, listed, options, Some(root), log, fault).await
            }
            Way::Web(url) => match http::transport(listed, options, url).await? {
                HttpTransport::Plain(transport) => {
                    Self::greet(transport, listed, options, None, log, fault).await
                }
                HttpTransport::SignedIn(transport) => {
                    Self::greet(transport, listed, options, None, log, fault).await
                }
            },
        }
    }

    async fn greet<T>(
        transport: T,
        listed: &Listed,
        options: &Options,
        root: Option<String>,
        log: &Log,
        fault: Fault,
    ) -> Result<Self, ConnectError>
    where
        T: Transport<RoleClient> + 'static,
    {
        let version = options
            .version
            .clone()
            .unwrap_or(ProtocolVersion::V_2025_11_25);
        let clerk = options.clerk.clone();
        let handler = Handler::new(&listed.name, clerk, root, version, log.clone());
        let handler = Arc::new(handler);
        let watched = Watched::new(transport, fault.clone());
        let greeted = serve_client(handler.clone(), watched).await;
        let service = match greeted {
            Ok(service) => service,
            Err(error) => return Err(refusal(error, &fault, options, log)),
        };
        let connection = Self {
            service,
            handler,
            fault,
            log: log.clone(),
            definitions: RwLock::default(),
        };
        match connection.list().await {
            Ok(()) => Ok(connection),
            Err(CallError::SignIn(challenge)) => Err(ConnectError::SignIn(challenge)),
            Err(error) => Err(match connection.fault() {
                Some(fault) => ConnectError::Fault(fault.to_owned()),
                None => ConnectError::Refused {
                    why: format!("it does not say what tools it has: {}", error.words()),
                    said: clean(options, log),
                },
            }),
        }
    }

    /// Learns what tools the server has now.
    pub(crate) async fn list(&self) -> Result<(), CallError> {
        let mut definitions: Vec<Definition> = Vec::new();
        let mut cursor = None;
        let has_tools = self.capabilities().is_some_and(|c| c.tools.is_some());
        for _ in 0..PAGES_MAX {
            if !has_tools {
                break;
            }
            let page = PaginatedRequestParams::default().with_cursor(cursor.take());
            let page = self.service.peer().list_tools(Some(page)).await?;
            for tool in &page.tools {
                match Definition::of(tool) {
                    Ok(definition) if definitions.iter().all(|d| d.name != definition.name) => {
                        definitions.push(definition);
                    }
                    Ok(_) => {}
                    Err(why) => self.log.push(format!("left out: {why}\n").as_bytes()),
                }
            }
            cursor = page.next_cursor;
            if cursor.is_none() || definitions.len() >= TOOLS_MAX {
                break;
            }
        }
        definitions.truncate(TOOLS_MAX);
        *self.definitions.write().expect("no panic under this lock") = definitions;
        Ok(())
    }

    /// Learns it again if the server has said that it changed.
    pub(crate) async fn refresh(&self) -> Result<(), CallError> {
        match self.handler.take_list_changed() {
            true => self.list().await,
            false => Ok(()),
        }
    }

    /// Asks the server something and waits for the answer, which may take long.
    pub(crate) async fn ask(
        &self,
        request: ClientRequest,
        cancel: &CancellationToken,
        sink: Sink,
    ) -> Result<ServerResult, CallError> {
        let options = PeerRequestOptions::no_options();
        let peer = self.service.peer();
        let mut handle = peer.send_cancellable_request(request, options).await?;
        let token = handle.progress_token.clone();
        self.handler.watch(&token, sink);
        let answer = tokio::select! {
            biased;
            answer = &mut handle.rx => Some(answer),
            () = cancel.cancelled() => None,
        };
        self.handler.unwatch(&token);
        match answer {
            Some(Ok(answer)) => Ok(answer?),
            Some(Err(_)) => Err(CallError::Gone),
            None => {
                let told = handle.cancel(Some("it was stopped".into()));
                let _ = tokio::time::timeout(Duration::from_secs(1), told).await;
                Err(CallError::Cancelled)
            }
        }
    }

    /// What it says of its tools.
    pub(crate) fn definitions(&self) -> Vec<Definition> {
        let definitions = self.definitions.read().expect("no panic under this lock");
        definitions.clone()
    }

    /// What it has besides.
    pub(crate) fn offer(&self) -> Offer {
        let capabilities = self.capabilities();
        Offer {
            resources: capabilities.as_ref().is_some_and(|c| c.resources.is_some()),
            prompts: capabilities.as_ref().is_some_and(|c| c.prompts.is_some()),
        }
    }

    /// What it calls itself, and the version of the protocol that is spoken.
    pub(crate) fn introduction(&self) -> (String, String) {
        let Some(info) = self.service.peer().peer_info() else {
            return Default::default();
        };
        let own = info.server_info.as_ref();
        let own = own.map(|own| format!("{} {}", own.name, own.version));
        (own.unwrap_or_default(), info.protocol_version.to_string())
    }

    pub(crate) fn fault(&self) -> Option<&str> {
        self.fault.get()
    }

    pub(crate) fn log(&self) -> String {
        self.log.end()
    }

    /// What the user was asked since.
    pub(crate) fn take_forms(&self) -> Vec<Value> {
        self.handler.take_forms()
    }

    pub(crate) fn is_gone(&self) -> bool {
        let peer = self.service.peer();
        self.fault().is_some() || self.service.is_closed() || peer.is_transport_closed()
    }

    /// Says goodbye.
    pub(crate) async fn close(mut self) {
        let _ = self
            .service
            .close_with_timeout(Duration::from_secs(5))
            .await;
    }

    fn capabilities(&self) -> Option<ServerCapabilities> {
        Some(self.service.peer().peer_info()?.capabilities.clone())
    }
}

impl CallError {
    /// In words that follow a colon.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Refused(error) => {
                let message: String = error.message.chars().take(2_000).collect();
                format!("{message} ({})", error.code.0)
            }
            Self::Gone => "it ended".into(),
            Self::Strange => "its answer is not one to this question".into(),
            Self::Cancelled => "it was stopped".into(),
            Self::SignIn(_) => "it wants to know who you are".into(),
        }
    }
}

impl From<ServiceError> for CallError {
    fn from(error: ServiceError) -> Self {
        if let ServiceError::TransportSend(error) = &error
            && let Some(challenge) = challenge(&*error.error)
        {
            return Self::SignIn(challenge);
        }
        match error {
            ServiceError::McpError(error) => Self::Refused(error),
            ServiceError::Cancelled { .. } => Self::Cancelled,
            ServiceError::UnexpectedResponse => Self::Strange,
            _ => Self::Gone,
        }
    }
}

/// Learns which secrets a server is handed, before any other is started: they are for this
/// one alone.
pub(crate) fn learn(listed: &Listed, options: &Options) {
    for (name, text) in &listed.entry.env {
        if let Ok(expanded) = expand(text, |name| (options.variable)(name)) {
            let is_secret = selvedge_tool::names_a_secret(name);
            let own = Some(&expanded.text).filter(|_| is_secret);
            let all = expanded.secrets.iter().chain(own);
            all.for_each(|secret| options.secrets.know(secret));
        }
    }
}

/// The program that is the server, with everything it is handed.
fn companion(
    listed: &Listed,
    options: &Options,
    around: &Surroundings,
) -> Result<Companion, ConnectError> {
    let entry = &listed.entry;
    let fill = |text: &str| -> Result<String, ConnectError> {
        let expanded =
            expand(text, |name| (options.variable)(name)).map_err(ConnectError::Variable)?;
        for secret in &expanded.secrets {
            options.secrets.know(secret);
        }
        Ok(expanded.text)
    };
    let words = entry.command.iter().chain(&entry.args);
    let command = words.map(|word| fill(word)).collect::<Result<_, _>>()?;
    let mut environment = Vec::new();
    for (name, text) in &entry.env {
        let value = fill(text)?;
        if selvedge_tool::names_a_secret(name) {
            options.secrets.know(&value);
        }
        environment.push((name.clone(), value));
    }
    // What is somebody else's secret is not this server's to read, whatever it is called.
    let given: BTreeSet<&str> = entry.env.keys().map(String::as_str).collect();
    for (name, value) in std::env::vars_os() {
        let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else {
            continue;
        };
        if !given.contains(name) && options.secrets.redact_known(value) != value {
            environment.push((name.to_owned(), String::new()));
        }
    }
    let base = &around.sandbox;
    let root = around.workspace.root();
    let sandbox = Sandbox {
        network: match &entry.network {
            None | Some(NetworkWish::Whole(Switch::Off)) => Network::Off,
            Some(NetworkWish::Whole(Switch::On)) => Network::On,
            Some(NetworkWish::Hosts(hosts)) => Network::Allow(hosts.clone()),
        },
        writable: entry
            .writable
            .iter()
            .map(|path| place(path, root))
            .collect(),
        readable: entry
            .readable
            .iter()
            .map(|path| place(path, root))
            .collect(),
        // In memory, and its own: servers do not see each other's files.
        temp: None,
        ..Sandbox::clone(base)
    };
    Ok(Companion {
        command,
        environment,
        sandbox: Arc::new(sandbox),
    })
}

/// A folder of an entry, complete.
fn place(path: &Path, root: &Path) -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => root.join(path),
    }
}

fn file_uri(path: &Path) -> String {
    let uri = reqwest::Url::from_directory_path(path);
    let uri = uri.map(|uri| uri.to_string().trim_end_matches('/').to_owned());
    uri.unwrap_or_else(|()| format!("file://{}", path.display()))
}

fn refusal(
    error: ClientInitializeError,
    fault: &Fault,
    options: &Options,
    log: &Log,
) -> ConnectError {
    if let Some(fault) = fault.get() {
        return ConnectError::Fault(fault.to_owned());
    }
    if let Some(challenge) = error.auth_challenge() {
        return ConnectError::SignIn(challenge.to_owned());
    }
    if error.is_authorization_required() {
        return ConnectError::SignIn("Bearer".into());
    }
    let why = match error {
        ClientInitializeError::ConnectionClosed(_) => "it ended before it was ready".to_owned(),
        ClientInitializeError::JsonRpcError(error) => format!("it refused: {}", error.message),
        ClientInitializeError::TransportError { error, .. } => {
            let io = error.error.downcast_ref::<io::Error>();
            match io.map(io::Error::kind) {
                Some(io::ErrorKind::BrokenPipe | io::ErrorKind::NotConnected) => {
                    "it ended before it was ready".to_owned()
                }
                _ => format!("it cannot be reached: {}", chain(&*error.error)),
            }
        }
        other => other.to_string(),
    };
    ConnectError::Refused {
        why: options.secrets.redact(&why).chars().take(1_000).collect(),
        said: clean(options, log),
    }
}

/// What the server said when it wanted to know who the user is, if an error is that.
fn challenge(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let mut source = Some(error);
    while let Some(cause) = source {
        let required = cause.downcast_ref::<AuthRequiredError>();
        let insufficient = cause.downcast_ref::<InsufficientScopeError>();
        let challenge = required.map(|error| &error.www_authenticate_header);
        let challenge =
            challenge.or_else(|| insufficient.map(|error| &error.www_authenticate_header));
        if let Some(challenge) = challenge {
            return Some(challenge.clone());
        }
        source = cause.source();
    }
    None
}

/// An error with its causes.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(&format!(": {cause_text}"));
        }
        source = cause.source();
    }
    text
}

/// What a server complained of, without secrets.
fn clean(options: &Options, log: &Log) -> String {
    options.secrets.redact(&log.end()).into_owned()
}

fn saying(said: &str) -> String {
    match said.is_empty() {
        true => String::new(),
        false => format!("; it said:\n{said}"),
    }
}

//! Tries to break out of the fence, on this machine, with this kernel.
//!
//! What a machine promises and what it does are found out by trying. A helper, which
//! is the program itself, is run inside of the fence and tries everything it knows;
//! out here, files and sockets are laid out for it, and looked at afterwards: what it
//! says of itself is not believed alone.

mod inside;

use std::ffi::OsString;
use std::io;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::spec::Sandbox;
use crate::process::{self, Enclosure, Finished, Limits, Patience, Process};
use crate::workspace::Workspace;

pub use inside::break_out;

/// What came of one attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// What was tried.
    pub name: String,
    /// Whether it went as it should: what is forbidden failed, what is allowed worked.
    pub is_as_it_should: bool,
    /// What happened.
    pub detail: String,
}

/// A program that calls [`break_out`] and prints each attempt as a line of JSON.
#[derive(Clone, Debug)]
pub struct Helper {
    /// Where it is.
    pub program: PathBuf,
    /// How it is told to.
    pub arguments: Vec<String>,
}

/// The variable that tells the helper what is laid out for it.
const LAID_OUT: &str = "BREAK_OUT";

/// What is laid out to be found.
#[derive(Debug, Serialize, Deserialize)]
struct Bait {
    secret: PathBuf,
    socket: PathBuf,
    abstract_name: String,
    port: u16,
    pid: u32,
}

const SECRET: &str = "a canary that nobody may read or change";
const TIME: Duration = Duration::from_secs(30);

/// Whether a sandbox can be put up on this machine; if not, why and what to do.
pub async fn try_sandbox(sandbox: &Sandbox) -> Result<(), String> {
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let nothing = Process {
        program: "/bin/true".into(),
        ..process(sandbox, scratch.path()).map_err(|error| error.to_string())?
    };
    let finished = run(nothing).await.map_err(|error| error.to_string())?;
    match finished.status.is_some_and(|status| status.success()) {
        true => Ok(()),
        false => Err(format!(
            "nothing can be run in it: {}",
            finished.text.trim()
        )),
    }
}

/// Runs `helper` in `sandbox` and returns what it could and could not do.
pub async fn attempt_to_break_out(
    sandbox: &Sandbox,
    helper: &Helper,
) -> Result<Vec<Attempt>, String> {
    let stage = Stage::set().map_err(|error| error.to_string())?;
    let mut sandbox = sandbox.clone();
    sandbox.readable.push(helper.program.clone());
    let workspace = stage.workspace();
    let mut process = process(&sandbox, &workspace).map_err(|error| error.to_string())?;
    process.program = helper.program.clone();
    process.arguments = helper.arguments.iter().map(OsString::from).collect();
    let bait = serde_json::to_string(&stage.bait()).expect("plain data");
    process.environment.push((LAID_OUT.into(), bait.into()));
    let finished = run(process).await.map_err(|error| error.to_string())?;
    let lines = finished.text.lines();
    let mut attempts: Vec<Attempt> = lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    if attempts.is_empty() {
        return Err(format!(
            "the helper did not speak: {}",
            finished.text.trim()
        ));
    }
    attempts.extend(stage.traces());
    Ok(attempts)
}

fn process(sandbox: &Sandbox, workspace: &Path) -> io::Result<Process> {
    let workspace = Workspace::open(workspace)?;
    Ok(Process {
        program: PathBuf::new(),
        arguments: Vec::new(),
        directory: workspace.open_dir(Path::new(""))?,
        directory_path: workspace.root().to_owned(),
        environment: process::environment(),
        limits: Limits::new(Patience::exactly(TIME)),
        enclosure: sandbox.is_on().then(|| Enclosure {
            sandbox: Arc::new(sandbox.clone()),
            workspace: workspace.root().to_owned(),
        }),
    })
}

async fn run(process: Process) -> io::Result<Finished> {
    let silent: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(|_| {});
    process.run(&CancellationToken::new(), &silent).await
}

/// What is laid out.
struct Stage {
    scratch: tempfile::TempDir,
    socket: UnixListener,
    abstract_socket: UnixListener,
    abstract_name: String,
    network: TcpListener,
}

impl Stage {
    fn set() -> io::Result<Self> {
        let scratch = tempfile::tempdir()?;
        let at = |name: &str| scratch.path().join(name);
        std::fs::create_dir_all(at("app/.git/hooks"))?;
        std::fs::write(at("secret"), SECRET)?;
        let abstract_name = format!("selvedge-canary-{}", at("").display());
        let stage = Self {
            socket: UnixListener::bind(at("socket"))?,
            abstract_socket: UnixListener::bind_addr(&SocketAddr::from_abstract_name(
                &abstract_name,
            )?)?,
            abstract_name,
            network: TcpListener::bind(("127.0.0.1", 0))?,
            scratch,
        };
        stage.socket.set_nonblocking(true)?;
        stage.abstract_socket.set_nonblocking(true)?;
        stage.network.set_nonblocking(true)?;
        Ok(stage)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn workspace(&self) -> PathBuf {
        self.at("app")
    }

    fn bait(&self) -> Bait {
        Bait {
            secret: self.at("secret"),
            socket: self.at("socket"),
            abstract_name: self.abstract_name.clone(),
            port: self
                .network
                .local_addr()
                .map_or(0, |address| address.port()),
            pid: std::process::id(),
        }
    }

    /// What is seen out here of what happened in there.
    fn traces(&self) -> Vec<Attempt> {
        let is_whole = std::fs::read_to_string(self.at("secret")).is_ok_and(|text| text == SECRET);
        let hooks = std::fs::read_dir(self.at("app/.git/hooks"));
        let is_clean = hooks.is_ok_and(|mut hooks| hooks.next().is_none());
        let trace = |name: &str, is_as_it_should: bool| Attempt {
            name: name.into(),
            is_as_it_should,
            detail: match is_as_it_should {
                true => "nothing is seen of it outside".into(),
                false => "it left a trace outside".into(),
            },
        };
        vec![
            trace("change what was laid out", is_whole),
            trace("leave a hook behind", is_clean),
            trace(
                "leave a folder for settings",
                !self.at("app/.selvedge").exists(),
            ),
            trace("connect to a socket", self.socket.accept().is_err()),
            trace(
                "connect to an abstract socket",
                self.abstract_socket.accept().is_err(),
            ),
            trace("connect to a port", self.network.accept().is_err()),
        ]
    }
}

//! A workspace with things around it that must not be reached, and somebody who runs
//! commands in it.
//!
//! Half of the errors of a sandbox are invisible to root, and tests may run as root. So
//! commands are run by a stand-in: this very program, started again as an ordinary
//! user.

#![allow(unsafe_code)]

use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use selvedge_tool::{
    Caller, Fence, Lent, ResultStore, Sandbox, Secrets, ToolContext, Toolbox, Workspace,
    set_stand_in,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// What is laid out: a workspace `app`, a `home`, and a folder `outside`.
pub struct Ground {
    scratch: tempfile::TempDir,
    pub sandbox: Sandbox,
    /// Whether commands are run by whoever runs the tests, with all their tools.
    is_mine: bool,
    /// Whom the machine lets make namespaces.
    bars: Bars,
}

/// Whom a machine lets make namespaces.
#[derive(Clone, Copy, PartialEq)]
enum Bars {
    Nobody,
    Everybody,
    #[allow(
        dead_code,
        reason = "only one of the two suites lays out such a machine"
    )]
    AllButBubblewrap,
}

/// What came of a call.
#[derive(Debug, Deserialize, Serialize)]
pub struct Answer {
    pub text: String,
    pub is_error: bool,
    pub facts: Value,
    /// How late a task that wakes a hundred times a second was meanwhile, in
    /// milliseconds: 99 times of 100 it was no later.
    pub late_ms: u64,
}

#[derive(Deserialize, Serialize)]
struct Task {
    workspace: PathBuf,
    sandbox: Sandbox,
    tool: String,
    input: Value,
}

const STAND_IN: &str = "STAND_IN";
const MARK: &str = "ANSWER ";
pub const SECRET: &str = "the canary sings";
// The user that owns nothing.
const NOBODY: u32 = 65_534;

impl Ground {
    pub fn new() -> Self {
        let ground = Self {
            scratch: tempfile::tempdir().unwrap(),
            sandbox: fenced(),
            is_mine: false,
            bars: Bars::Nobody,
        };
        for (path, text) in [
            ("app/main.rs", "fn main() {}\n"),
            ("home/.bashrc", SECRET),
            ("home/.ssh/id", SECRET),
            ("home/.cargo/config.toml", "# a tool\n"),
            ("home/.cargo/credentials.toml", SECRET),
            ("outside/secret", SECRET),
            ("app-evil/secret", SECRET),
        ] {
            ground.write(path, text);
        }
        std::fs::create_dir(ground.at("temp")).unwrap();
        ground.give_away();
        ground
    }

    /// Where something is.
    pub fn at(&self, path: &str) -> PathBuf {
        self.scratch.path().canonicalize().unwrap().join(path)
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.at(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.at(path)).unwrap()
    }

    /// Keeps temporary files and the home on disk, as a session does.
    pub fn with_temp(mut self) -> Self {
        self.sandbox.temp = Some(self.at("temp"));
        self
    }

    /// Lets whoever runs the tests run the commands: the tools are theirs.
    pub fn with_my_tools(mut self) -> Self {
        self.is_mine = true;
        self
    }

    /// A machine on which nobody may make namespaces.
    pub fn without_namespaces(mut self) -> Self {
        self.bars = Bars::Everybody;
        self
    }

    /// A machine on which only bubblewrap may make namespaces: it has root's rights. To be
    /// laid out by root.
    #[allow(
        dead_code,
        reason = "only one of the two suites lays out such a machine"
    )]
    pub fn with_namespaces_for_bubblewrap_alone(mut self) -> Self {
        self.bars = Bars::AllButBubblewrap;
        self
    }

    /// Runs a command in the sandbox.
    pub fn run(&self, command: &str) -> Answer {
        self.call("run_command", json!({ "command": command }))
    }

    /// The same without a sandbox: what could have happened.
    pub fn run_bare(&self, command: &str) -> Answer {
        let input = json!({ "command": command });
        self.start("run_command", input, Sandbox::off()).end()
    }

    /// Calls any tool.
    pub fn call(&self, tool: &str, input: Value) -> Answer {
        self.begin(tool, input).end()
    }

    /// Begins a call, to be looked at while it runs.
    pub fn begin(&self, tool: &str, input: Value) -> StandIn {
        self.start(tool, input, self.sandbox.clone())
    }

    fn start(&self, tool: &str, input: Value, sandbox: Sandbox) -> StandIn {
        self.give_away();
        let task = Task {
            workspace: self.at("app"),
            sandbox,
            tool: tool.into(),
            input,
        };
        let mut child = self
            .somebody()
            .args(["--exact", "ground::stand_in", "--nocapture"])
            .env(STAND_IN, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let task = serde_json::to_string(&task).unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(task.as_bytes()).unwrap();
        drop(input);
        StandIn { child: Some(child) }
    }

    /// This program, as an ordinary user whose home is laid out here.
    pub fn somebody(&self) -> Command {
        match self.bars {
            Bars::Nobody => self.as_somebody(Command::new(self.program())),
            Bars::Everybody => {
                // A last namespace, whose owner may say that it was the last.
                let bar = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\" \"$@\"";
                let mut command = self.as_somebody(Command::new("unshare"));
                command.args(["--user", "--map-root-user", "sh", "-c", bar]);
                command.arg(self.program());
                command
            }
            Bars::AllButBubblewrap => self.beside_bubblewrap(),
        }
    }

    /// This program, as an ordinary user, where a bubblewrap with root's rights stands in
    /// the place of the machine's own, and users may make no namespaces.
    fn beside_bubblewrap(&self) -> Command {
        let copy = self.at("bwrap");
        std::fs::copy(BWRAP, &copy).unwrap();
        let script = "chmod 4755 \"$0\" && mount --bind \"$0\" /usr/bin/bwrap && \
                      exec setpriv --reuid 65534 --regid 65534 --clear-groups \"$@\"";
        let mut command = self.as_somebody(Command::new("unshare"));
        command.uid(0).gid(0);
        command.args(["--mount", "--propagation", "private", "sh", "-c", script]);
        command.arg(copy).arg(self.program());
        let filter = no_users_namespaces();
        // SAFETY: one system call, with a program in memory that outlives it. Root needs no
        // promise to gain no rights, which would take bubblewrap's from it.
        unsafe {
            command.pre_exec(move || {
                let program = libc::sock_fprog {
                    len: u16::try_from(filter.len()).expect("a short program"),
                    filter: filter.as_ptr().cast_mut().cast(),
                };
                let mode = libc::SECCOMP_SET_MODE_FILTER;
                match libc::syscall(libc::SYS_seccomp, mode, 0, &raw const program) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
        command
    }

    fn as_somebody(&self, mut command: Command) -> Command {
        command.current_dir(self.at("app"));
        if self.is_mine {
            // Where these tests are built is nothing that commands may write.
            command.env_remove("CARGO_TARGET_DIR");
            return command;
        }
        command
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", self.at("home"))
            .env("LANG", "C.UTF-8");
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// Runs a program unfenced, as the same user: to lay something out.
    pub fn prepare(&self, program: &str, arguments: &[&str]) {
        self.give_away();
        let mut command = self.as_somebody(Command::new(program));
        command.args(arguments);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{program}: {output:?}");
    }

    /// Makes the workspace a repository, with everything in it committed.
    pub fn commit(&self) {
        self.prepare("git", &["init", "-q"]);
        self.prepare("git", &["add", "."]);
        let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
        self.prepare("git", &[&who[..], &["commit", "-qm", "first"]].concat());
    }

    /// A copy of this program where that user can reach it, and of the one that stands
    /// inside.
    pub fn program(&self) -> PathBuf {
        self.copied(Path::new(env!("CARGO_BIN_EXE_stand-inside")), INSIDE);
        self.copied(&std::env::current_exe().unwrap(), "program")
    }

    fn copied(&self, own: &Path, name: &str) -> PathBuf {
        let copy = self.at(name);
        if !copy.exists() && std::fs::hard_link(own, &copy).is_err() {
            std::fs::copy(own, &copy).unwrap();
        }
        copy
    }

    /// Lets everything that is laid out belong to the user that runs commands.
    fn give_away(&self) {
        let root = self.scratch.path();
        std::fs::set_permissions(root, std::fs::Permissions::from_mode(0o755)).unwrap();
        if is_root() {
            let owner = if self.is_mine { 0 } else { NOBODY };
            for name in ["app", "home", "outside", "app-evil", "temp"] {
                give(&self.at(name), owner);
            }
        }
    }
}

/// A call under way.
pub struct StandIn {
    child: Option<Child>,
}

impl StandIn {
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    /// Waits for its answer.
    pub fn end(mut self) -> Answer {
        let child = self.child.take().expect("it runs");
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let answer = text
            .lines()
            .find_map(|line| line.split_once(MARK).map(|(_, answer)| answer));
        let Some(answer) = answer else {
            let errors = String::from_utf8_lossy(&output.stderr);
            panic!("the stand-in did not answer: {text}\n{errors}");
        };
        serde_json::from_str(answer).unwrap()
    }

    pub fn kill(mut self) {
        let mut child = self.child.take().expect("it runs");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A filter that keeps users from making namespaces of their own.
fn no_users_namespaces() -> seccompiler::BpfProgram {
    use seccompiler::{
        SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    };
    let bit = u64::try_from(libc::CLONE_NEWUSER).unwrap();
    let is_new = SeccompCmpOp::MaskedEq(bit);
    let condition = SeccompCondition::new(0, SeccompCmpArgLen::Dword, is_new, bit).unwrap();
    let rule = SeccompRule::new(vec![condition]).unwrap();
    let calls = [libc::SYS_clone, libc::SYS_unshare];
    let rules = calls.map(|call| (call, vec![rule.clone()])).into();
    let denied = SeccompAction::Errno(u32::try_from(libc::EPERM).unwrap());
    let architecture = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, architecture);
    filter.unwrap().try_into().unwrap()
}

/// The fence that this suite is about.
pub fn fenced() -> Sandbox {
    let mut fence = crate::FENCE;
    if fence == Fence::Bubblewrap && std::env::var("SELVEDGE_BWRAP").is_ok_and(|w| w == "skip") {
        eprintln!("skipped: SELVEDGE_BWRAP=skip; the fence is Selvedge's own");
        fence = Fence::Own;
    }
    assert!(
        fence != Fence::Bubblewrap || Path::new(BWRAP).exists(),
        "there is no `{BWRAP}`\nhint: install bubblewrap, as `cargo xtask provisions` does for \
         root; `SELVEDGE_BWRAP=skip` leaves it out"
    );
    Sandbox {
        fence,
        ..Sandbox::default()
    }
}

const BWRAP: &str = "/usr/bin/bwrap";
const INSIDE: &str = "stand-inside";

/// Lets the program beside this one stand inside, where another one makes the fence: what
/// runs tests has a `main` of its own.
pub fn let_another_stand_inside() {
    let own = std::env::current_exe().unwrap();
    set_stand_in(&own.with_file_name(INSIDE));
}

/// Not a test: the stand-in. It does nothing unless told what.
#[tokio::test]
async fn stand_in() {
    if std::env::var_os(STAND_IN).is_none() {
        return;
    }
    let_another_stand_inside();
    let task: Task = serde_json::from_reader(std::io::stdin()).unwrap();
    let context = ToolContext {
        workspace: Arc::new(Workspace::open(&task.workspace).unwrap()),
        cancel: CancellationToken::new(),
        output: Arc::new(|_| {}),
        timeout: Duration::from_secs(120),
        awaited: true,
        policy: Arc::default(),
        sandbox: Arc::new(task.sandbox),
        results: Arc::new(NoResults),
        caller: Caller::default(),
        desk: Default::default(),
        secrets: Secrets::new(),
        credentials: Lent::default(),
    };
    let heart = tokio::spawn(beat(context.cancel.clone()));
    let toolbox = Toolbox::core();
    let call = toolbox.check(&task.tool, &task.input.to_string());
    let output = match call {
        Err(output) => output,
        Ok(call) => match toolbox.prepare(&context, &call).await {
            Err(output) => output,
            Ok(evidence) => toolbox.run(&context, &call, &evidence).await,
        },
    };
    context.cancel.cancel();
    let answer = Answer {
        text: output.text,
        is_error: output.is_error,
        facts: output.facts,
        late_ms: heart.await.unwrap(),
    };
    println!("\n{MARK}{}", serde_json::to_string(&answer).unwrap());
}

/// Wakes a hundred times a second, and says how late that was.
async fn beat(cancel: CancellationToken) -> u64 {
    const PAUSE: Duration = Duration::from_millis(10);
    let mut late = Vec::new();
    while !cancel.is_cancelled() {
        let began = Instant::now();
        tokio::time::sleep(PAUSE).await;
        late.push(began.elapsed().saturating_sub(PAUSE));
    }
    late.sort();
    let most = late.get(late.len() * 99 / 100).copied().unwrap_or_default();
    u64::try_from(most.as_millis()).unwrap()
}

struct NoResults;

#[async_trait]
impl ResultStore for NoResults {
    async fn result(&self, _: &str) -> Option<Arc<str>> {
        None
    }
}

/// Waits for something to become true, and says what if it does not.
pub fn eventually(what: &str, mut is_true: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(30);
    while !is_true() {
        assert!(Instant::now() < until, "it did not come true: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Where the programs of everybody are.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

fn give(path: &Path, owner: u32) {
    chown(path, Some(owner), Some(owner)).unwrap();
    let is_folder = path
        .symlink_metadata()
        .is_ok_and(|metadata| metadata.is_dir());
    if is_folder {
        for entry in std::fs::read_dir(path).unwrap() {
            let entry = entry.unwrap().path();
            if !entry.is_symlink() {
                give(&entry, owner);
            }
        }
    }
}

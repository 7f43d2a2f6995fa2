//! A home and a workspace of its own for each test, and the real binary in them.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use expect_test::Expect;
use regex::Regex;
use selvedge_testkit::CANARY;
use tempfile::TempDir;

use crate::stranger::Stranger;

/// How long anything may take before a test gives up on it.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub struct World {
    root: TempDir,
    /// Keys that commands were given: none of them may be left anywhere.
    keys: RefCell<BTreeSet<String>>,
    /// Whose it is, if not whoever's these tests are.
    stranger: Option<Stranger>,
}

/// How a command ended, and what it printed.
pub struct Output {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    root: PathBuf,
}

impl World {
    pub fn new() -> Self {
        Self::in_folder(tempfile::tempdir().unwrap())
    }

    /// Not in `/tmp`, of which a command has its own: what is beside the workspace is not
    /// the command's there.
    pub fn elsewhere() -> Self {
        Self::in_folder(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap())
    }

    fn in_folder(root: TempDir) -> Self {
        std::fs::create_dir(root.path().join("work")).unwrap();
        Self {
            root,
            keys: RefCell::default(),
            stranger: None,
        }
    }

    /// A world that belongs to somebody else.
    pub fn belonging_to(root: TempDir, stranger: Stranger) -> Self {
        let mut world = Self::in_folder(root);
        world.stranger = Some(stranger);
        world
    }

    pub fn stranger(&self) -> Option<&Stranger> {
        self.stranger.as_ref()
    }

    pub fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    pub fn root(&self) -> PathBuf {
        self.root.path().to_owned()
    }

    pub fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    /// Puts a file into the world, relative to its root.
    pub fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let own = Path::new(env!("CARGO_BIN_EXE_selvedge"));
        let program = self.stranger.as_ref().map_or(own, Stranger::program);
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.work())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("TMPDIR", self.root.path())
            .env("SELVEDGE_HOME", self.home())
            .env(CANARY.0, CANARY.1)
            .stdin(Stdio::null());
        self.hand_over(&mut command);
        command
    }

    pub fn selvedge(&self, arguments: &[&str]) -> Output {
        self.output(&mut self.command(arguments))
    }

    pub fn output(&self, command: &mut Command) -> Output {
        let given = command.get_envs().filter_map(|(name, value)| {
            let is_key = name.to_str()?.ends_with("_API_KEY");
            Some(value?.to_str()?.to_owned()).filter(|value| is_key && value.len() >= 8)
        });
        self.keys.borrow_mut().extend(given);
        let output = command.output().unwrap();
        let root = std::fs::canonicalize(self.root.path()).unwrap();
        Output {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            root,
        }
    }

    /// Runs a request with a script of the solo engineer's turns.
    pub fn run(&self, turns: &str, arguments: &[&str]) -> Output {
        self.output(&mut self.run_command(turns, arguments))
    }

    pub fn run_command(&self, turns: &str, arguments: &[&str]) -> Command {
        let script = self.script(turns);
        let mut command = self.command(&["run", "--script"]);
        command.arg(script).args(arguments);
        command
    }

    pub fn script(&self, turns: &str) -> PathBuf {
        let price = "price: {input: 2.0, output: 10.0}\nagents:\n  engineer:\n";
        let turns: Vec<String> = turns.lines().map(|line| format!("    {line}")).collect();
        self.write("script.yaml", &format!("{price}{}\n", turns.join("\n")))
    }

    /// The only session there is.
    pub fn session(&self) -> String {
        let list = self.selvedge(&["sessions", "list", "--json"]);
        let line = list.stdout.lines().next().expect("there is a session");
        let session: serde_json::Value = serde_json::from_str(line).unwrap();
        session["id"].as_str().unwrap().to_owned()
    }

    /// The kinds of the events of the only session.
    pub fn kinds(&self) -> Vec<String> {
        let session = self.session();
        let events = self.selvedge(&["sessions", "events", &session, "--json"]);
        let kind = |line: &str| {
            let event: serde_json::Value = serde_json::from_str(line).unwrap();
            event["kind"].as_str().unwrap().to_owned()
        };
        events.stdout.lines().map(kind).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let keys = self.keys.borrow();
        let mut keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        keys.push(CANARY.1);
        if !std::thread::panicking() {
            let mut found = selvedge_testkit::leaks(&self.home(), &keys);
            // Keys may have been laid out in the workspace; the canary is there for nobody.
            found.extend(selvedge_testkit::leaks(&self.work(), &[CANARY.1]));
            assert!(found.is_empty(), "a secret was left behind: {found:?}");
        }
    }
}

impl Output {
    /// Compares everything, with what differs from run to run taken out.
    pub fn check(&self, expected: Expect) {
        let mut text = format!("exit {}\n", self.code);
        for (name, channel) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !channel.is_empty() {
                text.push_str(&format!("-- {name} --\n{}\n", channel.trim_end()));
            }
        }
        expected.assert_eq(&self.normalised(&text));
    }

    fn normalised(&self, text: &str) -> String {
        let mut text = text.replace(self.root.to_str().unwrap(), "ROOT");
        for (pattern, name) in [
            (r"\bs_[0-9a-hjkmnp-tv-z]{10}\b", "s_ID"),
            (r"\b[0-9.]+ s\b", "N s"),
            // Where a script does not say what was used, the length of the prompt does.
            (
                r"\b[0-9.]+k tokens · (about )?\$[0-9.]+",
                "Nk tokens · $1$$N",
            ),
            // It follows from the words of every tool.
            (r"tool schemas: .*", "tool schemas: …"),
            (r"(/usr)?/bin/bash\b", "bash"),
            (r"\bprocess [0-9]+\b", "process PID"),
            (r"\bpid [0-9]+\b", "pid PID"),
            (r"\b(just now|N s ago)\b", "AGO"),
            (r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}", "TIME"),
            // Columns are as wide as what was taken out.
            (r"(?m)(\S) {2,}", "$1  "),
        ] {
            let pattern = Regex::new(pattern).unwrap();
            text = pattern.replace_all(&text, name).into_owned();
        }
        text
    }
}

/// A command that is at work while the test looks at it.
pub struct Background {
    child: Child,
    stderr: PathBuf,
}

impl Background {
    pub fn start(world: &World, mut command: Command) -> Self {
        let stderr = world.root.path().join("background.stderr");
        let file = std::fs::File::create(&stderr).unwrap();
        let child = command.stderr(file).stdout(Stdio::null()).spawn().unwrap();
        Self { child, stderr }
    }

    pub fn stderr(&self) -> String {
        std::fs::read_to_string(&self.stderr).unwrap()
    }

    /// Waits until it has said `words`.
    pub fn wait_for(&self, words: &str) {
        until(&format!("`{words}` is said"), || {
            self.stderr().contains(words)
        });
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits for its end.
    pub fn end(mut self) -> i32 {
        let mut code = None;
        until("it ends", || {
            code = self.child.try_wait().unwrap();
            code.is_some()
        });
        code.unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // A test that failed must not leave it behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Looks again and again until `done`, as long as patience lasts.
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a process whose command line contains `words` is alive.
pub fn is_running(words: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| std::fs::read(process.path().join("cmdline")).ok())
        .any(|line| String::from_utf8_lossy(&line).contains(words))
}

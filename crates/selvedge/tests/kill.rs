//! Real `kill -9` of the real binary, at every event of a run.
//!
//! Every command of the script appends its name to a file outside: the ledger
//! of effects that the runtime cannot touch. Whatever is killed, the run must
//! come to its end, no name may stand there twice, and a name that is missing
//! must be one whose call the history reports as in doubt.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use selvedge_testkit::Watch;
use serde_json::Value;

/// Turns of the script. Each has a command, and every other one a file change.
const TURNS: usize = 16;

#[test]
fn a_killed_run_goes_on_and_repeats_nothing_even() {
    sweep(0);
}

#[test]
fn a_killed_run_goes_on_and_repeats_nothing_odd() {
    sweep(1);
}

/// Kills after the n-th event for every n of one parity.
fn sweep(parity: usize) {
    let whole = Place::new();
    let events = whole.run(None);
    assert_eq!(
        whole.finished(),
        TURNS,
        "the run without a kill has every effect"
    );
    let (mut kills, mut doubts) = (0, 0);
    for n in (1..events.len()).filter(|n| n % 2 == parity) {
        let place = Place::new();
        let mut seen = place.run(Some(n));
        kills += 1;
        let id = seen[0]["stream"].as_str().unwrap().to_owned();
        // Every third run is killed a second time, on its way back.
        if n % 3 == 0 {
            seen.extend(place.resume(&id, Some(1 + n % 7)));
            kills += 1;
        }
        seen.extend(place.resume(&id, None));
        doubts += place.check(&seen, n);
    }
    eprintln!("{kills} kills, {doubts} calls in doubt");
    assert!(kills >= 50, "only {kills} kills");
    assert!(doubts > 0, "no kill hit a command under way");
}

/// A home, a workspace and the file of effects.
struct Place {
    /// Before the folder: it is looked through before it goes.
    _watch: Watch,
    folder: tempfile::TempDir,
    /// Not beside the workspace: what lies there is nobody's to write.
    outside: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        for name in ["home", "work"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        std::fs::write(folder.path().join("work/counter.txt"), "zero\n").unwrap();
        std::fs::write(
            folder.path().join("script.yaml"),
            script(&outside.path().join("effects")),
        )
        .unwrap();
        Self {
            _watch: Watch::over(folder.path()),
            folder,
            outside,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts the run, and kills it after so many events.
    fn run(&self, kill_after: Option<usize>) -> Vec<Value> {
        let work = self.path("work");
        let work = work.to_str().unwrap();
        self.watch(
            &["run", "--json", "--approve", "auto", "-C", work, "go on"],
            kill_after,
        )
    }

    fn resume(&self, id: &str, kill_after: Option<usize>) -> Vec<Value> {
        self.watch(&["resume", id, "--json"], kill_after)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
        command
            .args(arguments)
            .env("SELVEDGE_HOME", self.path("home"))
            .env("SELVEDGE_SCRIPT", self.path("script.yaml"))
            .env("SELVEDGE_SANDBOX_WRITABLE", self.outside.path())
            .stdin(Stdio::null());
        command
    }

    /// Reads events as they come; what was printed is what was acknowledged.
    fn watch(&self, arguments: &[&str], kill_after: Option<usize>) -> Vec<Value> {
        let mut child: Child = self
            .command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut events = Vec::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let Ok(line) = line else { break };
            let Ok(event) = serde_json::from_str(&line) else {
                break;
            };
            events.push(event);
            if kill_after == Some(events.len()) {
                child.kill().unwrap();
                break;
            }
        }
        let output = child.wait_with_output().unwrap();
        if kill_after.is_none() {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success(),
                "{arguments:?}: {:?}\n{said}",
                output.status
            );
        }
        events
    }

    fn effects(&self) -> BTreeMap<String, usize> {
        let text = std::fs::read_to_string(self.outside.path().join("effects")).unwrap_or_default();
        let mut counts = BTreeMap::new();
        for name in text.lines() {
            *counts.entry(name.to_owned()).or_default() += 1;
        }
        counts
    }

    fn finished(&self) -> usize {
        self.effects().len()
    }

    fn history(&self) -> Vec<Value> {
        let list = self
            .command(&["sessions", "list", "--json"])
            .output()
            .unwrap();
        let first = String::from_utf8(list.stdout).unwrap();
        let first: Value = serde_json::from_str(first.lines().next().unwrap()).unwrap();
        let id = first["id"].as_str().unwrap().to_owned();
        let output = self
            .command(&["sessions", "events", &id, "--json"])
            .output()
            .unwrap();
        let lines = String::from_utf8(output.stdout).unwrap();
        lines
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect()
    }

    /// Checks what must hold; returns how many calls are in doubt.
    fn check(&self, seen: &[Value], n: usize) -> usize {
        let history = self.history();
        // Nothing that was acknowledged is lost.
        let stored: BTreeSet<&str> = history.iter().filter_map(|e| e["hash"].as_str()).collect();
        for event in seen {
            let hash = event["hash"].as_str().unwrap();
            assert!(stored.contains(hash), "kill after {n}: lost {event}");
        }
        // Nothing happened twice, and nothing is missing that is not in doubt.
        let of_kind = |kind: &str| {
            let kind = kind.to_owned();
            history.iter().filter(move |e| e["kind"] == kind.as_str())
        };
        let effect = |e: &Value| e["data"]["effect"].as_str().unwrap_or_default().to_owned();
        let doubtful: BTreeSet<String> = of_kind("ToolCallInDoubt").map(effect).collect();
        let effects = self.effects();
        for turn in 0..TURNS {
            let times = effects.get(&format!("turn-{turn}")).copied().unwrap_or(0);
            assert!(times <= 1, "kill after {n}: turn {turn} ran {times} times");
            let call = format!("t{turn}.0");
            assert!(
                times == 1 || doubtful.contains(&call),
                "kill after {n}: turn {turn} did not run, and is not in doubt"
            );
        }
        // Files that have a probe are as they should be, whenever it was killed.
        for turn in (1..TURNS).step_by(2) {
            let text =
                std::fs::read_to_string(self.path(&format!("work/file-{turn}.txt"))).unwrap();
            assert_eq!(text, format!("written in turn {turn}\n"), "kill after {n}");
        }
        let last = history.last().unwrap();
        assert_eq!(last["kind"], "RunFinished", "kill after {n}");
        assert_eq!(last["data"]["ending"]["status"], "done", "kill after {n}");
        let verify = self.command(&["audit", "verify"]).output().unwrap();
        assert!(
            verify.status.success(),
            "kill after {n}: {}",
            String::from_utf8_lossy(&verify.stderr)
        );
        // Nothing is left running.
        let left = processes_in(&self.path("work"));
        assert!(left.is_empty(), "kill after {n}: still running: {left:?}");
        doubtful.len()
    }
}

/// Processes whose working directory is inside `folder`.
fn processes_in(folder: &Path) -> Vec<String> {
    let folder = folder.canonicalize().unwrap();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter(|e| {
            e.file_name()
                .to_string_lossy()
                .bytes()
                .all(|b| b.is_ascii_digit())
        })
        .filter(|e| {
            std::fs::read_link(e.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&folder))
        })
        .map(|e| std::fs::read_to_string(e.path().join("cmdline")).unwrap_or_default())
        .collect()
}

/// The engineer's answers: in each turn a command that leaves its name outside,
/// in every other one a file as well.
fn script(effects: &Path) -> String {
    let mut yaml = String::from("agents:\n  engineer:\n");
    for turn in 0..TURNS {
        let effects = effects.display();
        yaml.push_str(&format!("    - text: turn {turn}\n      calls:\n"));
        yaml.push_str(&format!(
            "        - run_command: {{command: \"echo turn-{turn} >> {effects}; sleep 0.01\"}}\n"
        ));
        if turn % 2 == 1 {
            yaml.push_str(&format!(
                "        - write_file: {{path: file-{turn}.txt, content: \"written in turn {turn}\\n\"}}\n"
            ));
        }
        yaml.push_str("        - read_file: {path: counter.txt}\n");
    }
    yaml.push_str("    - calls:\n        - finish: {summary: went on}\n");
    yaml
}

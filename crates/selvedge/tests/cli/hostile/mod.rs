//! Attacks from end to end: a model that says them, the real binary, an ordinary user.
//!
//! In each story something is laid out that must stay as it is (a canary, a treasure, a
//! listener that nobody may visit), and something harmless that must work in the same
//! run, so that forbidding everything fails too. What is forbidden must be on record with
//! the rule that forbids it. Which story stands for which case of the threat model is said
//! in `selvedge-tool/tests/cases.md`.

mod addresses;
mod approvals;
mod egress;
mod project;
mod servers;

use std::io::ErrorKind;
use std::net::{TcpListener, UdpSocket};

use serde_json::{Value, json};

use crate::world::World;

/// A listener that nobody may visit, over TCP or UDP.
struct Sink {
    tcp: TcpListener,
    udp: UdpSocket,
}

impl Sink {
    fn new() -> Self {
        let tcp = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        tcp.set_nonblocking(true).unwrap();
        let udp = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        udp.set_nonblocking(true).unwrap();
        Self { tcp, udp }
    }

    fn port(&self) -> u16 {
        self.tcp.local_addr().unwrap().port()
    }

    fn datagram_port(&self) -> u16 {
        self.udp.local_addr().unwrap().port()
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port())
    }

    /// Whether somebody has come since this was asked last.
    fn was_visited(&self) -> bool {
        let is_empty = |error: std::io::Error| error.kind() == ErrorKind::WouldBlock;
        let tcp = self.tcp.accept().map(drop);
        let udp = self.udp.recv(&mut [0; 2048]).map(drop);
        !tcp.is_err_and(is_empty) || !udp.is_err_and(is_empty)
    }
}

/// A turn that makes these calls.
fn turn(calls: &[Value]) -> String {
    format!("- calls: {}", Value::from(calls))
}

/// A call that runs a command.
fn run(command: &str) -> Value {
    json!({"run_command": {"command": command}})
}

/// One turn of these calls, and the end.
fn turns(calls: &[Value]) -> String {
    format!("{}\n- text: done", turn(calls))
}

/// What the newest session has on record.
struct Record(Vec<Value>);

impl Record {
    fn of(world: &World) -> Self {
        let session = world.session();
        let output = world.selvedge(&["sessions", "events", &session, "--json"]);
        assert_eq!(output.code, 0, "{}", output.stderr);
        let lines = output.stdout.lines();
        Self(lines.map(|l| serde_json::from_str(l).unwrap()).collect())
    }

    fn kind(&self, kind: &str) -> Vec<&Value> {
        let events = self.0.iter().filter(|event| event["kind"] == kind);
        events.map(|event| &event["data"]).collect()
    }

    fn find(&self, kind: &str, effect: &str) -> Option<&Value> {
        let mut found = self.kind(kind).into_iter().rev();
        found.find(|data| data["effect"] == effect)
    }

    /// What a call came to.
    fn outcome(&self, call: &str) -> &Value {
        let found = self.find("ToolCallFinished", call);
        &found.unwrap_or_else(|| panic!("{call} has not finished: {:#?}", self.0))["outcome"]
    }

    fn text(&self, call: &str) -> &str {
        let text = &self.outcome(call)["text"];
        text.as_str()
            .unwrap_or_else(|| panic!("{call}: a long text: {text}"))
    }

    fn was_begun(&self, call: &str) -> bool {
        self.find("ToolCallStarted", call).is_some()
    }

    /// How a call was judged: the decision, and the rule in words.
    fn verdict(&self, call: &str) -> (String, String) {
        let judged = self.find("JudgementFinished", &format!("{call}!"));
        let judged = judged.unwrap_or_else(|| panic!("{call} was not judged: {:#?}", self.0));
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let rule = &judged["outcome"]["rule"];
        let rule = format!("{}: {}", word(&rule["source"]), word(&rule["says"]));
        (word(&judged["outcome"]["decision"]), rule)
    }

    /// It was neither allowed nor begun, and the rule that says so is on record.
    fn check_refused(&self, call: &str, decision: &str, rule: &str) {
        let (decided, by) = self.verdict(call);
        assert_eq!(decided, decision, "{call}: {by}");
        assert!(by.contains(rule), "{call}: {by}");
        assert!(!self.was_begun(call), "{call} was begun");
    }

    fn check_worked(&self, call: &str) {
        let outcome = self.outcome(call);
        assert_ne!(outcome["is_error"], true, "{call}: {outcome}");
    }
}

/// The acts that the audit lists with this outcome.
fn audited(world: &World, outcome: &str) -> Vec<Value> {
    let output = world.selvedge(&["audit", "query", "--json", "--outcome", outcome]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let lines = output.stdout.lines();
    lines.map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn says(said: &str, words: &str) {
    assert!(said.contains(words), "`{words}` is not in: {said}");
}

//! What a command's end is told as: to a model in words, to programs in facts.

use std::os::unix::process::ExitStatusExt;

use serde_json::{Value, json};

use super::digest::Digest;
use crate::process::{Excess, Finished, Patience, Stopped};
use crate::report;
use crate::sandbox::refusals;
use crate::tool::ToolOutput;

/// The answer of a command that has ended.
pub(super) fn answer(
    finished: Finished,
    command: &str,
    patience: Patience,
    is_fenced: bool,
) -> ToolOutput {
    let code = finished.status.and_then(|status| status.code());
    let signal = finished.status.and_then(|status| status.signal());
    let digest = Digest::new(&finished.text);
    let refused = match is_fenced {
        true => refusals(&finished.text),
        false => Vec::new(),
    };
    let mut facts = json!({
        "exit_code": code,
        "signal": signal,
        "duration_ms": u64::try_from(finished.duration.as_millis()).unwrap_or(u64::MAX),
        "timed_out": finished.stopped == Some(Stopped::TimedOut),
        "bytes": finished.bytes,
        "lines": digest.lines,
        "errors": digest.errors,
        "warnings": digest.warnings,
        "sandboxed": is_fenced,
    });
    let mut add = |name: &str, value: Value| facts[name] = value;
    if let Some(stopped) = finished.stopped {
        add("partial", json!(true));
        add("stopped", json!(reason(stopped)));
    }
    if let Some(signal) = finished.kill_signal {
        add("kill_signal", json!(signal));
    }
    if !refused.is_empty() {
        add("sandbox_denied", json!(true));
    }
    if !finished.network.is_empty() {
        add("network", json!(finished.network));
    }
    if let Some(report) = report::read(command, &finished.text) {
        add("report", json!(report));
    }

    let note = match (finished.stopped, code, signal) {
        (Some(stopped), _, _) => Some(format!("[{}]", words(stopped, patience, &finished))),
        (None, Some(0), _) => None,
        (None, Some(code), _) => Some(format!("[exit code {code}]")),
        (None, None, Some(signal)) => Some(format!("[killed by signal {signal}]")),
        (None, None, None) => Some("[ended in a way that could not be observed]".into()),
    };
    let is_error = note.is_some();
    let hints = refused.iter().map(|words| format!("[sandbox: {words}]"));
    let notes: Vec<String> = hints.chain(note).collect();
    let whole = digest
        .shown
        .is_some()
        .then(|| with_notes(finished.text.clone(), &notes));
    ToolOutput {
        whole,
        is_error,
        interrupted: finished.stopped == Some(Stopped::Cancelled),
        ..ToolOutput::ok(with_notes(digest.shown.unwrap_or(finished.text), &notes))
    }
    .with_facts(facts)
}

fn with_notes(mut text: String, notes: &[String]) -> String {
    if text.trim().is_empty() {
        text = "[no output]\n".into();
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    for note in notes {
        text.push_str(note);
        text.push('\n');
    }
    text
}

fn reason(stopped: Stopped) -> &'static str {
    match stopped {
        Stopped::TimedOut => "timed_out",
        Stopped::Cancelled => "cancelled",
        Stopped::Flooded => "output",
        Stopped::Exceeded(Excess::Memory) => "memory",
        Stopped::Exceeded(Excess::Processes) => "processes",
        Stopped::Exceeded(Excess::Files) => "files",
        Stopped::Exceeded(Excess::Disk) => "disk",
    }
}

fn words(stopped: Stopped, patience: Patience, finished: &Finished) -> String {
    match stopped {
        Stopped::TimedOut => {
            let limit = patience.most.min(finished.duration).max(patience.base);
            format!(
                "timed out after {} s and was stopped; give more `timeout_seconds`, or do less at once",
                limit.as_secs()
            )
        }
        Stopped::Cancelled => "cancelled; this is what there was".into(),
        Stopped::Flooded => format!(
            "stopped: it had printed {} MB; send its output to a file",
            finished.bytes >> 20
        ),
        Stopped::Exceeded(Excess::Memory) => {
            "stopped: it used more memory than a command may; do less at once".into()
        }
        Stopped::Exceeded(Excess::Processes) => {
            "stopped: it started more processes than a command may; do less at once".into()
        }
        Stopped::Exceeded(Excess::Files) => {
            "stopped: it made more files than a command may; do less at once, and remove what \
             is not needed"
                .into()
        }
        Stopped::Exceeded(Excess::Disk) => {
            "stopped: the disk is nearly full; remove what is not needed".into()
        }
    }
}

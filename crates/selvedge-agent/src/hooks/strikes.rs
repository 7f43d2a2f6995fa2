//! Three strikes: what an agent does after failing again and again.
//!
//! The count is folded from what calls came to, so it is the same after a restart.
//! Only calls that change something count: a look between two failures is neither
//! one nor the other. Before the last strike the model is warned; at it the files go
//! back to what they were, and nothing is changed any more until a person speaks.

use std::path::PathBuf;
use std::sync::Arc;

use selvedge_tool::Restored;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call::ToolOutcome;
use crate::spec::RunSpec;

/// The tool whose success ends a stretch of work: what is committed is not taken back.
const COMMIT: &str = "git_commit";
const APPROACH_CHARS_MAX: usize = 160;
const ERROR_CHARS_MAX: usize = 240;
/// A model does not read more names than this.
const FILES_SHOWN_MAX: usize = 40;

/// The count, and what it has led to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Strikes {
    /// Which stretch of work this is; each has a checkpoint of its own.
    task: u32,
    failures: Vec<Failure>,
    #[serde(default)]
    is_restored: bool,
}

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Which tool.
    pub tool: String,
    /// What was tried, without what differs from time to time.
    pub approach: String,
    /// What went wrong, in the same way.
    pub error: String,
}

/// Files to put back, because work on them failed too often.
#[derive(Clone, Debug)]
pub struct Restore {
    /// What the run started with.
    pub spec: Arc<RunSpec>,
    /// Which stretch of work.
    pub task: u32,
    /// What was tried.
    pub failures: Vec<Failure>,
}

/// What came of putting files back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreOutcome {
    /// What was put back and what was not.
    #[serde(flatten)]
    pub files: Restored,
    /// Why nothing could be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What was tried before.
    pub failures: Vec<Failure>,
}

impl Strikes {
    /// Which stretch of work this is.
    pub(crate) fn task(&self) -> u32 {
        self.task
    }

    /// Counts what a call that may change something came to.
    pub(crate) fn heed(&mut self, outcome: &ToolOutcome) {
        if outcome.looks || outcome.asks.is_some() || outcome.interrupted {
            return;
        }
        match &outcome.failure {
            Some(failure) => self.failures.push(failure.clone()),
            None if outcome.is_error => {}
            None => {
                self.failures.clear();
                self.task += u32::from(outcome.tool == COMMIT);
            }
        }
    }

    /// A person spoke: whatever was before, this is new.
    pub(crate) fn begin_anew(&mut self) {
        *self = Self {
            task: self.task + 1,
            ..Self::default()
        };
    }

    /// Files are what they were.
    pub(crate) fn restored(&mut self) {
        self.is_restored = true;
    }

    /// Whether nothing may be changed any more.
    pub(crate) fn is_out(&self, strikes_max: u32) -> bool {
        strikes_max > 0 && self.count() >= strikes_max
    }

    /// What is to be put back, if it is time.
    pub(crate) fn due(&self, spec: &Arc<RunSpec>) -> Option<Restore> {
        let is_due = self.is_out(spec.limits.strikes_max) && !self.is_restored;
        is_due.then(|| Restore {
            spec: spec.clone(),
            task: self.task,
            failures: self.failures.clone(),
        })
    }

    /// What the model is told before the last strike.
    pub(crate) fn warning(&self, strikes_max: u32) -> Option<String> {
        let count = self.count();
        let is_next = count > 0 && count + 1 == strikes_max;
        is_next.then(|| {
            format!(
                "FAILURE_WARNING: {count} attempts in a row have failed:\n{}\n\
                 Stop and think before the next one. Read what the errors say, look for the \
                 cause, and take another approach. Do not try the same with small changes, do \
                 not silence errors or checks, do not skip tests. If the next attempt fails, \
                 the files are put back to what they were and the task is over.",
                list(&self.failures)
            )
        })
    }

    /// What a call is answered that comes too late.
    pub(crate) fn refusal(&self) -> String {
        format!(
            "{} attempts in a row have failed, and nothing is changed any more in this task; \
             say what you tried and what you need, and finish with the outcome `failed`",
            self.count()
        )
    }

    /// What is said to whoever handed the task out.
    pub(crate) fn help(&self, words: &str) -> String {
        format!(
            "TASK_HELP: {} attempts in a row failed, and the work was given up.\n{}\n{words}",
            self.count(),
            list(&self.failures)
        )
    }

    fn count(&self) -> u32 {
        u32::try_from(self.failures.len()).unwrap_or(u32::MAX)
    }
}

impl Failure {
    /// The failure of a call, by its arguments and what it answered.
    pub(crate) fn of(tool: &str, arguments: &Value, text: &str) -> Self {
        let tried = ["command", "path"].map(|name| arguments[name].as_str());
        let tried = tried.into_iter().flatten().next().unwrap_or_default();
        Self {
            tool: tool.to_owned(),
            approach: pattern(tried, APPROACH_CHARS_MAX),
            error: pattern(telling_line(text), ERROR_CHARS_MAX),
        }
    }
}

impl RestoreOutcome {
    /// What the model is told.
    pub(crate) fn tell(&self) -> String {
        let mut text = format!(
            "FAILURE_PROTOCOL_ACTIVE: {} attempts in a row have failed, and this task is over.\n{}\n",
            self.failures.len(),
            list(&self.failures)
        );
        match (&self.error, self.files.restored.as_slice()) {
            (Some(error), _) => {
                text.push_str(&format!("The files could not be put back: {error}.\n"))
            }
            (None, []) => text.push_str("No file had to be put back.\n"),
            (None, files) => text.push_str(&format!(
                "Put back to what they were before the task: {}.\n",
                names(files)
            )),
        }
        for (file, why) in self.files.left.iter().take(FILES_SHOWN_MAX) {
            text.push_str(&format!("Not put back: `{}` ({why}).\n", file.display()));
        }
        if self.files.is_partial {
            text.push_str("What commands changed may remain: there are too many files to keep.\n");
        }
        text.push_str(
            "You cannot change files or run commands any more. Say what you tried, what you \
             learned from it and what help you need, then finish with the outcome `failed`.",
        );
        text
    }
}

fn names(files: &[PathBuf]) -> String {
    let shown: Vec<String> = files
        .iter()
        .take(FILES_SHOWN_MAX)
        .map(|file| format!("`{}`", file.display()))
        .collect();
    match files.len().saturating_sub(FILES_SHOWN_MAX) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn list(failures: &[Failure]) -> String {
    let line = |(n, failure): (usize, &Failure)| {
        let Failure {
            tool,
            approach,
            error,
        } = failure;
        format!("{}. {tool} `{approach}`: {error}", n + 1)
    };
    let lines: Vec<String> = failures.iter().enumerate().map(line).collect();
    lines.join("\n")
}

/// The line of an answer that says what went wrong: the first that speaks of an
/// error, else the last that a tool did not add by itself.
fn telling_line(text: &str) -> &str {
    let is_telling = |line: &&str| {
        let line = line.to_ascii_lowercase();
        ["error", "failed", "panicked"]
            .iter()
            .any(|word| line.contains(word))
    };
    let is_own = |line: &&str| !line.trim().is_empty() && !line.starts_with('[');
    let mut lines = text.lines();
    let telling = lines.clone().find(is_telling);
    telling
        .or_else(|| lines.clone().rfind(is_own))
        .or_else(|| lines.next())
        .unwrap_or_default()
}

/// Text without what differs from time to time: numbers and spaces.
fn pattern(text: &str, chars_max: usize) -> String {
    let mut pattern = String::new();
    for word in text.split_whitespace() {
        if !pattern.is_empty() {
            pattern.push(' ');
        }
        let mut after_digit = false;
        for c in word.chars() {
            let is_digit = c.is_ascii_digit();
            match (is_digit, after_digit) {
                (true, false) => pattern.push('N'),
                (true, true) => {}
                (false, _) => pattern.push(c),
            }
            after_digit = is_digit;
        }
    }
    pattern.chars().take(chars_max).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_ledger::Payload;
    use serde_json::json;

    fn outcome(tool: &str, failure: Option<&str>) -> ToolOutcome {
        ToolOutcome {
            tool: tool.into(),
            text: Payload::new(""),
            whole: None,
            facts: Value::Null,
            is_error: failure.is_some(),
            interrupted: false,
            denied: None,
            asks: None,
            hooked: None,
            looks: false,
            failure: failure.map(|text| Failure::of(tool, &json!({"command": "make"}), text)),
        }
    }

    fn looking(is_error: bool) -> ToolOutcome {
        ToolOutcome {
            looks: true,
            is_error,
            ..outcome("run_command", None)
        }
    }

    fn after(outcomes: &[ToolOutcome]) -> Strikes {
        let mut strikes = Strikes::default();
        outcomes.iter().for_each(|outcome| strikes.heed(outcome));
        strikes
    }

    #[test]
    fn only_a_success_that_changes_something_ends_a_row_of_failures() {
        let failed = || outcome("run_command", Some("error: 1"));
        let strikes = after(&[failed(), looking(false), looking(true), failed()]);
        assert_eq!(strikes.count(), 2);
        assert!(strikes.warning(3).unwrap().contains("FAILURE_WARNING: 2"));
        assert!(!strikes.is_out(3));
        let strikes = after(&[failed(), failed(), outcome("write_file", None)]);
        assert_eq!(strikes.count(), 0);
        assert_eq!(strikes.warning(3), None);
    }

    #[test]
    fn what_a_person_or_a_policy_refused_is_nobodys_failure() {
        let refused = ToolOutcome {
            is_error: true,
            ..outcome("run_command", None)
        };
        let strikes = after(&[outcome("run_command", Some("x")), refused]);
        assert_eq!(strikes.count(), 1);
    }

    #[test]
    fn a_new_task_and_a_commit_have_a_checkpoint_of_their_own() {
        let mut strikes = after(&[outcome("write_file", None)]);
        assert_eq!(strikes.task(), 0);
        strikes.heed(&outcome("git_commit", None));
        assert_eq!(strikes.task(), 1);
        for _ in 0..3 {
            strikes.heed(&outcome("run_command", Some("x")));
        }
        assert!(strikes.is_out(3));
        assert!(!strikes.is_out(0), "none at all is no limit");
        strikes.begin_anew();
        assert_eq!((strikes.task(), strikes.count()), (2, 0));
    }

    #[test]
    fn attempts_that_differ_in_numbers_alone_are_the_same() {
        let failure = |command: &str, text: &str| {
            Failure::of("run_command", &json!({ "command": command }), text)
        };
        let one = failure("make  -j4", "line 12: error: x\n[exit code 2]");
        assert_eq!(one, failure("make -j16", "line 9: error: x\n[exit code 1]"));
        assert_eq!(one.approach, "make -jN");
        assert_eq!(one.error, "line N: error: x");
        assert_eq!(failure("x", "odd\n[exit code 1]\n").error, "odd");
        assert_eq!(failure("x", "[no output]\n").error, "[no output]");
    }
}

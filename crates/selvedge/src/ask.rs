//! Asks a person at the terminal, showing exactly what an answer would allow.

use std::sync::Arc;

use selvedge_ledger::{Ledger, LedgerError};
use selvedge_runtime::Question;
use selvedge_tool::compact;
use serde_json::Value;
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

use crate::out;
use crate::progress::Progress;
use crate::text::{escape, indented};

/// Where questions are asked and answers typed.
pub struct Desk {
    progress: Arc<Progress>,
    cancel: CancellationToken,
    lines: Arc<Lines>,
}

/// What is typed, line by line. One reader for all questions: a line that was being
/// typed when a question went away belongs to the next one.
#[derive(Default)]
pub struct Lines {
    typed: Mutex<Option<mpsc::Receiver<String>>>,
}

impl Lines {
    /// The next line; `None` if there will be none.
    pub async fn next(&self) -> Option<String> {
        let mut typed = self.typed.lock().await;
        typed.get_or_insert_with(read_lines).recv().await
    }
}

impl Desk {
    /// A desk that clears `progress` to ask, and leaves when `cancel` is set.
    pub fn new(progress: Arc<Progress>, cancel: CancellationToken, lines: Arc<Lines>) -> Self {
        Self {
            progress,
            cancel,
            lines,
        }
    }

    /// The answer; `None` if there will be none.
    pub async fn ask(
        &mut self,
        ledger: &dyn Ledger,
        question: &Question,
    ) -> Result<Option<String>, LedgerError> {
        self.progress.pause();
        out::say(&show(ledger, question).await?);
        loop {
            self.progress.prompt();
            let line = tokio::select! {
                biased;
                () = self.cancel.cancelled() => None,
                line = self.lines.next() => line,
            };
            self.progress.end_prompt(line.is_some());
            let Some(line) = line else { return Ok(None) };
            let answer = chosen(question, line.trim());
            if !answer.is_empty() {
                return Ok(Some(answer));
            }
            out::say("please type an answer, or press Ctrl-C to answer later");
        }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.progress.end_prompt(false);
    }
}

/// The question, with everything that an approval allows.
async fn show(ledger: &dyn Ledger, question: &Question) -> Result<String, LedgerError> {
    let Some(approval) = &question.approval else {
        let mut text = format!("\n{}", escape(&question.text));
        for (n, option) in question.options.iter().enumerate() {
            text.push_str(&format!("\n  {}. {}", n + 1, escape(option)));
        }
        return Ok(text);
    };
    let act = ledger.text(&approval.act).await?;
    // The words before the act, which is shown in full below.
    let who = question.text.split(": ").next().unwrap_or("an agent acts");
    Ok(format!(
        "\n{}:\n{}\n  because: {}\nallow it? yes (this once), session or project (exactly this, \
         from now on), no, or why not",
        escape(who),
        indented(&compact(&describe_act(&act)), "  "),
        escape(&approval.because)
    ))
}

/// The arguments of a command, complete: the command itself first.
fn describe_act(arguments: &str) -> String {
    let Ok(Value::Object(mut arguments)) = serde_json::from_str(arguments) else {
        return arguments.to_owned();
    };
    let mut lines = Vec::new();
    if let Some(Value::String(command)) = arguments.remove("command") {
        lines.push(command);
    }
    let rest = arguments
        .iter()
        .map(|(name, value)| format!("({name}: {value})"));
    lines.extend(rest);
    lines.join("\n")
}

/// A number stands for the option it names.
fn chosen(question: &Question, line: &str) -> String {
    let is_choice = question.approval.is_none();
    let number: Option<usize> = line.parse().ok().filter(|_| is_choice);
    let option = number.and_then(|n| question.options.get(n.checked_sub(1)?));
    option.cloned().unwrap_or_else(|| line.to_owned())
}

fn read_lines() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(1);
    // A plain thread: a read from a terminal cannot be interrupted, and must
    // not keep the process from ending.
    std::thread::spawn(move || {
        for line in std::io::stdin().lines() {
            let Ok(line) = line else { return };
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_shows_the_whole_act() {
        let act = r#"{"command": "rm -r build\necho done", "cwd": "src", "timeout_seconds": 5}"#;
        assert_eq!(
            describe_act(act),
            "rm -r build\necho done\n(cwd: \"src\")\n(timeout_seconds: 5)"
        );
        assert_eq!(describe_act("not json"), "not json");
    }

    #[test]
    fn a_number_chooses_an_option_but_never_an_approval() {
        let mut question = Question {
            text: "which?".into(),
            options: vec!["red".into(), "blue".into()],
            approval: None,
        };
        assert_eq!(chosen(&question, "2"), "blue");
        assert_eq!(chosen(&question, "3"), "3");
        assert_eq!(chosen(&question, "green"), "green");
        question.approval = Some(selvedge_runtime::Approval {
            act: "{}".into(),
            digest: String::new(),
            lasting: String::new(),
            because: String::new(),
        });
        assert_eq!(chosen(&question, "1"), "1");
    }
}

//! Where a server's form is filled in: at the terminal, with the server's name on it.

use std::sync::Arc;

use async_trait::async_trait;
use selvedge_mcp::{Clerk, Field, Filled, Form};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::ask::Lines;
use crate::out;
use crate::progress::Progress;
use crate::secrets;
use crate::text::escape;

/// How often a field is asked for that takes something else.
const ATTEMPTS_MAX: u32 = 3;

/// Puts forms before a person at the terminal.
pub struct Counter {
    progress: Arc<Progress>,
    cancel: CancellationToken,
    lines: Arc<Lines>,
    // One form at a time, whoever asks.
    turn: tokio::sync::Mutex<()>,
}

impl Counter {
    /// Clears `progress` to ask, reads from `lines`, and leaves when `cancel` is set.
    pub fn new(progress: Arc<Progress>, cancel: CancellationToken, lines: Arc<Lines>) -> Self {
        Self {
            progress,
            cancel,
            lines,
            turn: tokio::sync::Mutex::default(),
        }
    }

    async fn line(&self) -> Option<String> {
        self.progress.prompt();
        let line = tokio::select! {
            biased;
            () = self.cancel.cancelled() => None,
            line = self.lines.next() => line,
        };
        self.progress.end_prompt(line.is_some());
        line
    }

    /// What a field is filled with; nothing if it is left empty.
    async fn field(&self, field: &Field) -> Result<Option<Value>, Filled> {
        for _ in 0..ATTEMPTS_MAX {
            out::say(&label(field));
            let line = self.line().await.ok_or(Filled::Cancel)?;
            if line.trim().is_empty() {
                match (&field.default, field.is_required) {
                    (Some(default), _) => return Ok(Some(default.clone())),
                    (None, false) => return Ok(None),
                    (None, true) => out::say("it is needed; Ctrl-C leaves the form"),
                }
                continue;
            }
            if let Err(refused) = secrets::check("answer", &line, false) {
                out::say(&refused.to_string());
                return Err(Filled::Decline);
            }
            match field.parse(&line) {
                Ok(value) => return Ok(Some(value)),
                Err(why) => out::say(&escape(&why)),
            }
        }
        Err(Filled::Cancel)
    }
}

#[async_trait]
impl Clerk for Counter {
    async fn fill(&self, form: &Form) -> Filled {
        let _turn = self.turn.lock().await;
        self.progress.pause();
        out::say(&format!(
            "\nthe MCP server `{}` asks you: {}\nanswer it? yes or no",
            escape(&form.server),
            escape(&form.message)
        ));
        match self.line().await.map(|line| line.trim().to_lowercase()) {
            None => return Filled::Cancel,
            Some(word) if word == "y" || word == "yes" => {}
            Some(_) => return Filled::Decline,
        }
        let mut content = Map::new();
        for field in &form.fields {
            match self.field(field).await {
                Ok(Some(value)) => drop(content.insert(field.name.clone(), value)),
                Ok(None) => {}
                Err(filled) => return filled,
            }
        }
        Filled::Accept(content)
    }
}

fn label(field: &Field) -> String {
    let mut text = field.label.clone();
    if !field.options.is_empty() {
        text.push_str(&format!(", one of: {}", field.options.join(", ")));
    }
    match &field.default {
        Some(Value::String(default)) => text.push_str(&format!(" ({default} if you say nothing)")),
        Some(default) => text.push_str(&format!(" ({default} if you say nothing)")),
        None => {}
    }
    escape(&text)
}

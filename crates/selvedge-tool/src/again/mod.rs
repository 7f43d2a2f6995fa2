//! Does not run a command again while nothing has changed that it reads.
//!
//! An agent lints after every edit, and again because it is not sure. The answer of a
//! linter follows from the files, so it is given again as long as they are the same,
//! byte for byte. What cannot be shown to be the same is run: a command that is not in
//! the table, that needs a shell to be understood, or that reads too much to look at.
//!
//! Kept in memory and with the process: nobody else can put an answer there.

mod inputs;
mod shelf;
mod table;

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::builtin::blocking;
use crate::policy::Deed;
use crate::tool::{ToolContext, ToolOutput};
use shelf::Shelf;
use table::{Known, TABLE};

/// Answers that can be given again.
#[derive(Clone, Default)]
pub(crate) struct Again {
    shelf: Arc<Mutex<Shelf>>,
}

impl Again {
    /// Lets a call run, or gives its earlier answer: then `run` is not even begun.
    pub(crate) async fn run(
        &self,
        context: &ToolContext,
        deed: Deed,
        input: &Value,
        run: impl Future<Output = ToolOutput>,
    ) -> ToolOutput {
        let Deed::Command { command, cwd } = deed else {
            return run.await;
        };
        let Some(known) = TABLE.find(&command) else {
            return run.await;
        };
        let Some(key) = key(context, input, &known, &cwd).await else {
            return run.await;
        };
        if let Some(output) = self.given(&key) {
            (context.output)(&output.text);
            return output;
        }
        let output = run.await;
        // What has changed meanwhile, by itself or by somebody, is not what it says.
        if is_complete(&output, &known)
            && self::key(context, input, &known, &cwd).await.as_ref() == Some(&key)
        {
            self.locked().put(key, output.clone(), Instant::now());
        }
        output
    }

    /// The earlier answer, marked as one.
    fn given(&self, key: &str) -> Option<ToolOutput> {
        let (mut output, age) = self.locked().get(key, Instant::now())?;
        let seconds = age.as_secs();
        output.text.push_str(&format!(
            "[not run again: nothing it reads has changed since this answer, {seconds} s ago]\n"
        ));
        if let Value::Object(facts) = &mut output.facts {
            facts.insert("cached".into(), json!(true));
            facts.insert("cached_seconds_ago".into(), json!(seconds));
        }
        Some(output)
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Shelf> {
        self.shelf.lock().expect("no panic under this lock")
    }
}

/// What an answer follows from; `None` if that cannot be said.
async fn key(context: &ToolContext, input: &Value, known: &Known, cwd: &str) -> Option<String> {
    let (workspace, cancel) = (Arc::clone(&context.workspace), context.cancel.clone());
    let (known, cwd) = (known.clone(), cwd.to_owned());
    // The environment is that of this process, and so is the shelf.
    let call = json!([input, context.policy.fence]).to_string();
    blocking(move || inputs::digest(&workspace, &cancel, &known, &cwd, &call)).await
}

/// Whether a command came to its own end.
fn is_complete(output: &ToolOutput, known: &Known) -> bool {
    let code = output.facts["exit_code"].as_i64();
    !output.interrupted
        && output.facts["timed_out"] != json!(true)
        && output.facts["partial"] != json!(true)
        && code.is_some_and(|code| known.command.codes.contains(&code))
}

#[cfg(test)]
mod tests;

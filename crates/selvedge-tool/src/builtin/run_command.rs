//! Runs a shell command, in the workspace, to its end.
//!
//! Whatever a command starts in the background ends with it: a tool call is an act
//! with a result, and a process that nobody waits for has neither.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::policy::Deed;
use crate::process::{self, Finished, Limits, Process, Stopped};
use crate::schema;
use crate::tool::{Tool, ToolContext, ToolOutput, ToolSpec, World};
use crate::workspace::PathError;

// Above the sum of the stages of a kill, after which a result exists in any case.
const KILL_WAIT: Duration = Duration::from_secs(15);

/// The tool. `grace` is the time between the stages of a kill.
pub(super) struct RunCommand {
    pub(super) grace: Duration,
}

impl Default for RunCommand {
    fn default() -> Self {
        Self {
            grace: Duration::from_secs(2),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The command, for a shell. It gets no input, and what it leaves running is
    /// killed when it ends.
    #[schemars(length(min = 1))]
    command: String,
    /// The directory to run it in, relative to the workspace root. Default: the root.
    cwd: Option<String>,
    /// How long it may run. Default: 120.
    #[schemars(range(min = 1, max = 3600))]
    timeout_seconds: Option<u64>,
}

#[async_trait]
impl Tool for RunCommand {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "run_command".into(),
            description: "Run a shell command in the workspace and wait for it to end. Answers \
                          with what it printed, and its exit code if that is not 0."
                .into(),
            schema: schema::of::<Arguments>(),
            world: World::Runs,
        }
    }

    fn deed(&self, input: &Value) -> Deed {
        let text = |name: &str| input[name].as_str().unwrap_or_default().to_owned();
        Deed::Command {
            command: text("command"),
            cwd: text("cwd"),
        }
    }

    async fn run(&self, context: &ToolContext, input: &Value, _: &Value) -> ToolOutput {
        let process =
            schema::arguments(input).and_then(|arguments| prepare(context, &arguments, self.grace));
        let process = match process {
            Ok(process) => process,
            Err(output) => return output,
        };
        let timeout = process.limits.timeout;
        match process.run(&context.cancel, &context.output).await {
            Ok(finished) => answer(finished, timeout),
            Err(error) => ToolOutput::error(format!("the command could not be started: {error}")),
        }
    }

    /// The command's own timeout comes first: it ends with what was printed.
    fn deadline(&self, context: &ToolContext, input: &Value) -> Duration {
        let timeout = schema::arguments::<Arguments>(input)
            .map_or(context.timeout, |arguments| timeout(context, &arguments));
        timeout + KILL_WAIT
    }
}

fn timeout(context: &ToolContext, arguments: &Arguments) -> Duration {
    arguments
        .timeout_seconds
        .map_or(context.timeout, Duration::from_secs)
}

fn prepare(
    context: &ToolContext,
    arguments: &Arguments,
    grace: Duration,
) -> Result<Process, ToolOutput> {
    let workspace = Arc::clone(&context.workspace);
    let cwd = arguments.cwd.as_deref().unwrap_or(".");
    let resolved = workspace.existing(cwd)?;
    let directory = workspace
        .open_dir(&resolved)
        .map_err(|error| PathError::from_io(cwd, error))?;
    let program = ["bash", "sh"]
        .iter()
        .find_map(|name| process::find(name, workspace.root()))
        .ok_or_else(|| ToolOutput::error("there is no shell on this machine's search path"))?;
    Ok(Process {
        program,
        // `--`, lest a command that begins with a hyphen be an option.
        arguments: ["-c", "--", &arguments.command].map(Into::into).into(),
        directory,
        directory_path: workspace.root().join(resolved),
        environment: process::environment(),
        limits: Limits {
            grace,
            ..Limits::new(timeout(context, arguments))
        },
    })
}

fn answer(finished: Finished, timeout: Duration) -> ToolOutput {
    use std::os::unix::process::ExitStatusExt;
    let code = finished.status.and_then(|status| status.code());
    let signal = finished.status.and_then(|status| status.signal());
    let mut text = finished.text;
    if text.trim().is_empty() {
        text = "[no output]\n".into();
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let note = match (finished.stopped, code, signal) {
        (Some(Stopped::TimedOut), _, _) => Some(format!(
            "[timed out after {} s and was stopped; give more `timeout_seconds`, or do less at once]",
            timeout.as_secs_f64()
        )),
        (Some(Stopped::Cancelled), _, _) => Some("[cancelled; this is what there was]".into()),
        (None, Some(0), _) => None,
        (None, Some(code), _) => Some(format!("[exit code {code}]")),
        (None, None, Some(signal)) => Some(format!("[killed by signal {signal}]")),
        (None, None, None) => Some("[ended in a way that could not be observed]".into()),
    };
    let is_error = note.is_some();
    if let Some(note) = note {
        text.push_str(&note);
        text.push('\n');
    }
    ToolOutput {
        is_error,
        interrupted: finished.stopped == Some(Stopped::Cancelled),
        ..ToolOutput::ok(text)
    }
    .with_facts(json!({
        "exit_code": code,
        "signal": signal,
        "duration_ms": u64::try_from(finished.duration.as_millis()).unwrap_or(u64::MAX),
        "timed_out": finished.stopped == Some(Stopped::TimedOut),
        "bytes": finished.bytes,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;

    #[tokio::test]
    async fn a_success_is_answered_with_its_output_alone() {
        let world = World::new(&[("dir/a", "")]);
        let input = json!({"command": "pwd; ls", "cwd": "dir"});
        let output = world.call("run_command", input).await;
        let expected = format!("{}/dir\na\n", world.root().display());
        assert_eq!((output.text, output.is_error), (expected, false));
        assert_eq!(output.facts["exit_code"], 0);
        assert_eq!(output.facts["timed_out"], false);
    }

    #[tokio::test]
    async fn a_failure_says_its_exit_code_or_its_signal() {
        let world = World::new(&[]);
        for (command, text) in [
            ("echo no; exit 3", "no\n[exit code 3]\n"),
            ("kill -9 $$", "[no output]\n[killed by signal 9]\n"),
            (
                "--version",
                "--version: command not found\n[exit code 127]\n",
            ),
        ] {
            let output = world
                .call("run_command", json!({ "command": command }))
                .await;
            assert!(
                output.is_error && output.text.ends_with(text),
                "{}",
                output.text
            );
        }
    }

    #[tokio::test]
    async fn a_directory_outside_of_the_workspace_is_refused() {
        let world = World::new(&[("a", "")]);
        std::os::unix::fs::symlink("/", world.root().join("out")).unwrap();
        for cwd in ["/", "..", "out", "~", "a"] {
            let input = json!({"command": "echo canary", "cwd": cwd});
            let output = world.call("run_command", input).await;
            assert!(
                output.is_error && !output.text.contains("canary"),
                "{cwd}: {}",
                output.text
            );
        }
    }

    #[tokio::test]
    async fn a_command_out_of_time_says_so_and_keeps_its_output() {
        let world = World::new(&[]);
        let input = json!({"command": "echo begun; sleep 1000", "timeout_seconds": 1});
        let output = world.call("run_command", input).await;
        assert!(
            output.text.starts_with("begun\n[timed out after 1 s"),
            "{}",
            output.text
        );
        assert!(output.is_error && !output.interrupted);
        assert_eq!(output.facts["timed_out"], true);
    }

    #[tokio::test]
    async fn a_cancelled_command_is_an_interrupted_answer() {
        let mut world = World::new(&[]);
        let cancel = world.context.cancel.clone();
        world.context.output = Arc::new(move |_| cancel.cancel());
        let output = world
            .call("run_command", json!({"command": "echo begun; sleep 1000"}))
            .await;
        assert!(output.interrupted, "{output:?}");
        assert!(
            output.text.starts_with("begun\n[cancelled"),
            "{}",
            output.text
        );
    }

    #[tokio::test]
    async fn long_output_is_cut_and_kept_whole() {
        let world = World::new(&[]);
        let input = json!({"command": "seq 100000; echo 'error: lost' >&2; seq 100000"});
        let output = world.call("run_command", input).await;
        assert!(output.text.chars().count() < 31_000);
        assert!(
            output.text.contains("line 100001: error: lost\n"),
            "{}",
            output.text
        );
        assert_eq!(
            output.whole.unwrap().len() as u64,
            output.facts["bytes"].as_u64().unwrap()
        );
    }
}

//! Runs a command, in the workspace, to its end.
//!
//! Whatever a command starts in the background ends with it: a tool call is an act
//! with a result, and a process that nobody waits for has neither.

mod answer;
mod digest;
mod invocation;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::policy::Deed;
use crate::process::{self, Enclosure, Limits, Patience, Process, Slots};
use crate::schema;
use crate::tool::{Tool, ToolContext, ToolOutput, ToolSpec, World};
use crate::workspace::PathError;

// Above the sum of the stages of a kill, after which a result exists in any case.
const KILL_WAIT: Duration = Duration::from_secs(15);
// How long a command waits for a place.
const PLACE_WAIT: Duration = Duration::from_secs(300);

/// The tool.
pub(super) struct RunCommand {
    slots: Arc<Slots>,
}

impl Default for RunCommand {
    fn default() -> Self {
        Self {
            slots: Slots::for_this_machine(),
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
    /// How long it may run. Default: 120, longer for builds and tests, and longer while
    /// it prints.
    #[schemars(range(min = 1, max = 3600))]
    timeout_seconds: Option<u64>,
    /// Variables to set for it, such as `RUST_LOG`.
    env: Option<BTreeMap<String, String>>,
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
        let text = |name: &str| input[name].as_str().unwrap_or_default();
        let variables = input["env"].as_object().into_iter().flatten();
        // A variable that is set beside the command is set before it.
        let exports = variables.map(|(name, value)| {
            let value = value.as_str().unwrap_or_default().replace('\'', r"'\''");
            format!("export {name}='{value}'\n")
        });
        Deed::Command {
            command: exports.collect::<String>() + text("command"),
            cwd: text("cwd").to_owned(),
        }
    }

    async fn run(&self, context: &ToolContext, input: &Value, _: &Value) -> ToolOutput {
        let prepared = schema::arguments(input).and_then(|arguments: Arguments| {
            let process = prepare(context, &arguments)?;
            Ok((process, arguments))
        });
        let (process, arguments) = match prepared {
            Ok(prepared) => prepared,
            Err(output) => return output,
        };
        let _slot = tokio::select! {
            biased;
            slot = self.slots.take(context.awaited) => slot,
            () = context.cancel.cancelled() => return ToolOutput {
                interrupted: true,
                ..ToolOutput::error("the command was cancelled before it began; nothing was done")
            },
            () = tokio::time::sleep(PLACE_WAIT) => return ToolOutput::error(
                "the command was not begun: other commands take all places; try again later",
            ),
        };
        let is_fenced = process.enclosure.is_some();
        let patience = process.limits.patience;
        match process.run(&context.cancel, &context.output).await {
            Ok(finished) => answer::answer(finished, &arguments.command, patience, is_fenced),
            Err(error) => ToolOutput::error(format!("the command could not be started: {error}")),
        }
    }

    /// The command's own time comes first: it ends with what was printed.
    fn deadline(&self, context: &ToolContext, input: &Value) -> Duration {
        let most = schema::arguments::<Arguments>(input).map_or(context.timeout, |arguments| {
            patience(context, &arguments).most
        });
        PLACE_WAIT + most + KILL_WAIT
    }
}

fn patience(context: &ToolContext, arguments: &Arguments) -> Patience {
    match arguments.timeout_seconds {
        Some(seconds) => Patience::exactly(Duration::from_secs(seconds)),
        None => invocation::patience(&arguments.command, context.timeout),
    }
}

fn prepare(context: &ToolContext, arguments: &Arguments) -> Result<Process, ToolOutput> {
    let workspace = &context.workspace;
    let cwd = arguments.cwd.as_deref().unwrap_or(".");
    let resolved = workspace.existing(cwd)?;
    let directory = workspace
        .open_dir(&resolved)
        .map_err(|error| PathError::from_io(cwd, error))?;
    let (program, words) = program(context, &arguments.command)?;
    Ok(Process {
        program,
        arguments: words,
        directory,
        directory_path: workspace.root().join(resolved),
        environment: environment(context, arguments)?,
        limits: Limits::new(patience(context, arguments)),
        enclosure: context.sandbox.is_on().then(|| Enclosure {
            sandbox: Arc::clone(&context.sandbox),
            workspace: workspace.root().to_owned(),
        }),
    })
}

/// The program to start, and its arguments: the command's own where it needs no shell.
fn program(context: &ToolContext, command: &str) -> Result<(PathBuf, Vec<OsString>), ToolOutput> {
    let root = context.workspace.root();
    if let Some(words) = invocation::plain_words(command)
        && let Some(program) = process::find(words[0], root)
    {
        return Ok((program, words[1..].iter().map(OsString::from).collect()));
    }
    let shell = ["bash", "sh"]
        .iter()
        .find_map(|name| process::find(name, root));
    let shell = shell
        .ok_or_else(|| ToolOutput::error("there is no shell on this machine's search path"))?;
    // `--`, lest a command that begins with a hyphen be an option.
    Ok((shell, ["-c", "--", command].map(Into::into).into()))
}

fn environment(
    context: &ToolContext,
    arguments: &Arguments,
) -> Result<Vec<(OsString, OsString)>, ToolOutput> {
    let mut variables = process::environment();
    if context.sandbox.is_on() {
        variables.retain(|(name, _)| name != "TMPDIR" && name != "TEMP" && name != "TMP");
        variables.push(("TMPDIR".into(), "/tmp".into()));
    }
    for (name, value) in arguments.env.iter().flatten() {
        if !process::is_fit_for_commands(name) || value.contains('\0') {
            return Err(ToolOutput::error(format!(
                "the variable `{}` cannot be set for a command: it holds a secret, or decides \
                 what a program runs; leave it out",
                name.escape_debug()
            )));
        }
        variables.push((name.into(), value.into()));
    }
    Ok(variables)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;
    use serde_json::json;

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

    #[test]
    fn plain_words_are_started_without_a_shell() {
        let world = World::new(&[("tool", "")]);
        let started = |command| {
            let (program, words) = program(&world.context, command).unwrap();
            (program.file_name().unwrap().to_owned(), words)
        };
        let (name, words) = started("ls -l  dir");
        assert_eq!(
            (name.to_str(), words),
            (Some("ls"), vec!["-l".into(), "dir".into()])
        );
        for command in ["ls | wc", "ls *", "echo $HOME", "cd dir", "nosuchprogram x"] {
            let (_, words) = started(command);
            assert_eq!(words, ["-c", "--", command], "{command}");
        }
    }

    #[tokio::test]
    async fn a_variable_can_be_set_unless_it_holds_a_secret_or_steers() {
        let world = World::new(&[]);
        let run = |name: &str| json!({"command": "echo $RUST_LOG", "env": {name: "debug"}});
        let output = world.call("run_command", run("RUST_LOG")).await;
        assert_eq!((output.text.as_str(), output.is_error), ("debug\n", false));
        for name in [
            "ANTHROPIC_API_KEY",
            "AWS_REGION",
            "PATH",
            "LD_PRELOAD",
            "BASH_ENV",
        ] {
            let output = world.call("run_command", run(name)).await;
            assert!(
                output.is_error && output.text.contains(name),
                "{}",
                output.text
            );
        }
    }

    #[tokio::test]
    async fn a_report_is_read_and_the_whole_is_kept() {
        let world = World::new(&[(
            "test.sh",
            "seq 900; echo '=== 2 passed, 1 failed in 0.1s ==='",
        )]);
        let input = json!({"command": "sh test.sh # pytest"});
        let output = world.call("run_command", input).await;
        let tests = &output.facts["report"]["tests"];
        assert_eq!((&tests["passed"], &tests["failed"]), (&json!(2), &json!(1)));
        assert_eq!(output.facts["lines"], 901);
        assert!(
            output.text.contains("[751 lines left out of 901"),
            "{}",
            output.text
        );
        assert_eq!(output.whole.unwrap().lines().count(), 901);
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

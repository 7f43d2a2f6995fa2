//! A hook from the configuration: a command with JSON on stdin and JSON on stdout.
//!
//! Exit code 0 with nothing printed lets the call go on; with a JSON object printed,
//! that is the reaction. Exit code 2 stops the call, and what was printed to stderr
//! says why. Anything else is a failure of the hook.

use std::time::Duration;

use async_trait::async_trait;
use selvedge_tool::{Errand, Returned};

use super::reaction::{Moment, Occasion, Reaction};
use super::{Hook, NORMAL, Setting};

/// The exit code by which a command stops a call.
const STOP: i32 = 2;
/// How long a command may take, if nothing else is said.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A command that is called at a moment of every call.
#[derive(Clone, Debug)]
pub struct CommandHook {
    /// Its name, for the record.
    pub name: String,
    /// When it is called.
    pub moment: Moment,
    /// The tools it is called for; empty for all.
    pub tools: Vec<String>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Which comes first; see [`Hook::priority`].
    pub priority: u8,
    /// How long it may take.
    pub timeout: Duration,
    /// Whether its failure stops the call.
    pub is_required: bool,
}

impl CommandHook {
    /// One that is called for every tool, of normal priority, and not required.
    pub fn new(moment: Moment, command: Vec<String>) -> Self {
        Self {
            name: command.join(" "),
            moment,
            tools: Vec::new(),
            command,
            priority: NORMAL,
            timeout: TIMEOUT,
            is_required: false,
        }
    }
}

#[async_trait]
impl Hook for CommandHook {
    fn name(&self) -> &str {
        &self.name
    }

    fn moment(&self) -> Moment {
        self.moment
    }

    fn tools(&self) -> &[String] {
        &self.tools
    }

    fn priority(&self) -> u8 {
        self.priority
    }

    fn is_required(&self) -> bool {
        self.is_required
    }

    async fn react(&self, setting: Setting<'_>, occasion: &Occasion) -> Result<Reaction, String> {
        let errand = Errand {
            command: self.command.clone(),
            input: serde_json::to_string(occasion).expect("plain data"),
            timeout: self.timeout,
        };
        let returned = errand.run(setting.workspace, setting.cancel).await;
        read(&returned.map_err(|error| error.to_string())?)
    }
}

/// What a command meant.
fn read(returned: &Returned) -> Result<Reaction, String> {
    let Returned {
        answer,
        complaint,
        code,
    } = returned;
    let complaint = match complaint.is_empty() {
        true => "it did not say why",
        false => complaint,
    };
    match code {
        Some(0) if answer.trim().is_empty() => Ok(Reaction::default()),
        Some(0) => serde_json::from_str(answer)
            .map_err(|error| format!("what it printed is no reaction: {error}")),
        Some(code) if *code == STOP => Ok(Reaction::stop(complaint)),
        Some(code) => Err(format!("it ended with exit code {code}: {complaint}")),
        None => Err("it was killed by a signal".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_tool::Workspace;
    use serde_json::json;
    use tokio_util::sync::CancellationToken;

    async fn react(script: &str) -> Result<Reaction, String> {
        let scratch = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(scratch.path()).unwrap();
        let command = ["sh", "-c", script].map(str::to_owned).into();
        let hook = CommandHook::new(Moment::PreTool, command);
        let occasion = Occasion {
            event: Moment::PreTool,
            session: "s".into(),
            call: "t0.0".into(),
            agent: "engineer".into(),
            workspace: "/work".into(),
            tool: Some("run_command".into()),
            arguments: Some(json!({"command": "ls"})),
            model: None,
            result: None,
        };
        let cancel = CancellationToken::new();
        let setting = Setting {
            workspace: &workspace,
            cancel: &cancel,
        };
        hook.react(setting, &occasion).await
    }

    #[tokio::test]
    async fn a_command_sees_the_occasion_and_prints_its_reaction() {
        let echo = r#"grep -q '"event":"pre_tool".*"arguments":{"command":"ls"}' &&
            echo '{"arguments": {"command": "ls -l"}, "warn": "longer"}'"#;
        let reaction = react(echo).await.unwrap();
        assert_eq!(reaction.arguments, Some(json!({"command": "ls -l"})));
        assert_eq!(reaction.warn.as_deref(), Some("longer"));
        assert_eq!(react("cat >/dev/null").await, Ok(Reaction::default()));
    }

    #[tokio::test]
    async fn exit_code_two_stops_and_others_are_failures() {
        let stopped = react("echo 'not today' >&2; exit 2").await.unwrap();
        assert_eq!(stopped, Reaction::stop("not today"));
        for (script, words) in [
            ("echo broken >&2; exit 1", "exit code 1: broken"),
            ("echo hello", "no reaction"),
            (r#"echo '{"aswer": "x"}'"#, "unknown field `aswer`"),
            ("kill -9 $$", "signal"),
        ] {
            let why = react(script).await.unwrap_err();
            assert!(why.contains(words), "{script}: {why}");
        }
    }
}

//! Hooks, as they are configured.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use selvedge_agent::{CommandHook, Hooks, Moment};
use serde::{Deserialize, Deserializer, Serialize};

/// A command that is called before or after every call of a model or a tool.
///
/// It gets the call as JSON on stdin and may print a JSON object: `arguments` in
/// place of the tool's, `text` in place of a result, `warn` for the model, `answer`
/// instead of the call, `stop` with a reason. Exit code 2 stops the call, too, with
/// what was printed to stderr as the reason.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hook {
    /// When it is called.
    pub event: Event,
    /// The program and its arguments. A path begins at the workspace; a name is
    /// looked for on the search path.
    #[serde(deserialize_with = "at_least_a_program")]
    #[schemars(length(min = 1))]
    pub command: Vec<String>,
    /// The tools it is called for, such as `run_command, write_file`. Default: all.
    #[serde(default)]
    pub tool: String,
    /// Its name in what is recorded. Default: the command.
    pub name: Option<String>,
    /// Which comes first, from 0 to 100: the smaller is called earlier. Default: 50.
    #[schemars(range(max = 100))]
    pub priority: Option<u8>,
    /// How long it may take. Default: 10.
    #[schemars(range(min = 1, max = 600))]
    pub timeout_seconds: Option<u64>,
    /// Whether a call is stopped when the hook fails. Default: no, it goes on.
    #[serde(default)]
    pub required: bool,
}

/// When a hook is called.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// Before a model is asked.
    PreModel,
    /// After it answered.
    PostModel,
    /// Before a tool is used, and before the policy judges that.
    PreTool,
    /// After it answered.
    PostTool,
}

/// The hooks, ready to be called.
pub fn chain(hooks: &[Hook]) -> Hooks {
    let hooks = hooks.iter().cloned().map(CommandHook::from);
    hooks.fold(Hooks::new(), |chain, hook| chain.with(Arc::new(hook)))
}

impl From<Hook> for CommandHook {
    fn from(hook: Hook) -> Self {
        let moment = match hook.event {
            Event::PreModel => Moment::PreModel,
            Event::PostModel => Moment::PostModel,
            Event::PreTool => Moment::PreTool,
            Event::PostTool => Moment::PostTool,
        };
        let usual = Self::new(moment, hook.command);
        let tools = hook.tool.split(',').map(str::trim);
        Self {
            name: hook.name.unwrap_or(usual.name),
            tools: tools.filter(|t| !t.is_empty()).map(Into::into).collect(),
            priority: hook.priority.unwrap_or(usual.priority),
            timeout: hook
                .timeout_seconds
                .map_or(usual.timeout, Duration::from_secs),
            is_required: hook.required,
            ..Self::new(moment, usual.command)
        }
    }
}

fn at_least_a_program<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let command = Vec::<String>::deserialize(from)?;
    match command.first() {
        Some(program) if !program.is_empty() => Ok(command),
        _ => Err(serde::de::Error::custom(
            "a hook's `command` needs a program: `command = [\"check.sh\"]`",
        )),
    }
}

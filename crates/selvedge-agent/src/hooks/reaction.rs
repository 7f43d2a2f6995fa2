//! What a hook sees and what it can do: the same words in code and in JSON.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// When a hook is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// Before a model is asked.
    PreModel,
    /// After it answered.
    PostModel,
    /// Before a tool is used, and before the policy judges that.
    PreTool,
    /// After it answered.
    PostTool,
}

/// What a hook sees. A command gets it as JSON on stdin.
#[derive(Clone, Debug, Serialize)]
pub struct Occasion {
    /// When.
    pub event: Moment,
    /// The session.
    pub session: String,
    /// The call's name in its stream, such as `t3.0`.
    pub call: String,
    /// The agent.
    pub agent: String,
    /// The workspace.
    pub workspace: String,
    /// The tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Its arguments, as they are by now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Before a model call what was said last; after a call what came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Seen>,
}

/// What came of a call, as far as a hook sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Seen {
    /// The text, as it is by now.
    pub text: String,
    /// Whether it failed.
    pub is_error: bool,
    /// What a program can rely on.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub facts: Value,
}

/// What a hook does. Nothing at all lets the call go on as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reaction {
    /// Before a tool: arguments in place of the model's. They are checked and judged
    /// as if the model had written them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// After a call: text in place of what came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Text for the model, beside everything else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warn: Option<String>,
    /// Before a call: the answer. The call is not made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Why the call must not be made, or its result not be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
}

impl Reaction {
    /// Lets it go on, with a word to the model.
    pub fn warn(text: impl Into<String>) -> Self {
        Self {
            warn: Some(text.into()),
            ..Self::default()
        }
    }

    /// Stops it.
    pub fn stop(why: impl Into<String>) -> Self {
        Self {
            stop: Some(why.into()),
            ..Self::default()
        }
    }
}

impl Moment {
    /// Whether a call has not been made yet.
    pub fn is_before(self) -> bool {
        matches!(self, Self::PreModel | Self::PreTool)
    }

    /// What of a reaction means nothing at this moment.
    pub fn misplaced(self, reaction: &Reaction) -> Option<&'static str> {
        match () {
            () if reaction.arguments.is_some() && self != Self::PreTool => Some("arguments"),
            () if reaction.text.is_some() && self.is_before() => Some("text"),
            () if reaction.answer.is_some() && !self.is_before() => Some("answer"),
            () => None,
        }
    }
}

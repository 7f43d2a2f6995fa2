//! What the server says, in no protocol.

use std::time::Duration;

use selvedge_model::{Stop, Usage};

use super::fault::ReplyFault;

/// A reply, and what goes wrong with it.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// Words.
    pub text: String,
    /// Reasoning before them, and its signature.
    pub reasoning: Option<(String, String)>,
    /// Calls: the tool's name, and its arguments as JSON text.
    pub calls: Vec<(String, String)>,
    /// Tokens.
    pub usage: Usage,
    /// Why it stops; by default as its calls say.
    pub stop: Option<Stop>,
    /// How long until it begins.
    pub latency: Duration,
    /// What goes wrong.
    pub fault: Option<ReplyFault>,
}

impl Reply {
    /// Words.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// Something that goes wrong before anything is said.
    pub fn fault(fault: ReplyFault) -> Self {
        Self::text("one two three four five")
            .call("lookup", r#"{"name": "selvedge"}"#)
            .with_fault(fault)
    }

    /// With one more call.
    pub fn call(mut self, tool: impl Into<String>, arguments: impl Into<String>) -> Self {
        self.calls.push((tool.into(), arguments.into()));
        self
    }

    /// With reasoning and its signature.
    pub fn reasoning(self, text: impl Into<String>, signature: impl Into<String>) -> Self {
        Self {
            reasoning: Some((text.into(), signature.into())),
            ..self
        }
    }

    /// The same from a server that does not count, as some that speak Chat Completions
    /// do not.
    pub fn uncounted(mut self) -> Self {
        self.usage.is_estimated = true;
        self
    }

    /// With this usage.
    pub fn usage(self, usage: Usage) -> Self {
        Self { usage, ..self }
    }

    /// Stopping for this reason.
    pub fn stop(self, stop: Stop) -> Self {
        Self {
            stop: Some(stop),
            ..self
        }
    }

    /// Beginning after this long.
    pub fn latency(self, latency: Duration) -> Self {
        Self { latency, ..self }
    }

    /// Going wrong like this.
    pub fn with_fault(self, fault: ReplyFault) -> Self {
        Self {
            fault: Some(fault),
            ..self
        }
    }

    /// The id of its nth call, as all but Anthropic have it.
    pub(super) fn call_id(nth: usize) -> String {
        format!("call_{nth}")
    }

    pub(super) fn stop_reason(&self) -> Stop {
        self.stop.unwrap_or(if self.calls.is_empty() {
            Stop::End
        } else {
            Stop::Tools
        })
    }
}

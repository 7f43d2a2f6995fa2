//! Keeps secrets from models, and out of what is stored of their answers.
//!
//! What a model is sent was judged when it was recorded; here only values are taken
//! out that this process knows, for it may have learned them since. What a model says
//! is judged by shape too, before it is stored, shown or acted upon.

use std::borrow::Cow;
use std::sync::Arc;

use selvedge_ledger::Payload;
use selvedge_model::{Broken, Message, Part, Response};
use selvedge_tool::{KnownValues, Secrets, Toolbox};

/// Takes known values out of what a model is sent.
pub struct Discretion(KnownValues);

impl Discretion {
    /// By what is known now.
    pub fn now(secrets: &Secrets) -> Self {
        Self(secrets.known())
    }

    /// Whether the other one would do the same.
    pub fn is_same(&self, other: &Self) -> bool {
        self.0.is_same(&other.0)
    }

    /// A text without them.
    pub fn text(&self, text: Arc<str>) -> Arc<str> {
        self.known(&text).map_or(text, Arc::from)
    }

    /// A message without them; nearly always the message itself.
    pub fn message(&self, mut message: Arc<Message>) -> Arc<Message> {
        let is_touched = |part: &Part| text_of(part).is_some_and(|text| self.known(text).is_some());
        if message.parts.iter().any(is_touched) {
            let parts = &mut Arc::make_mut(&mut message).parts;
            let known = |text: &str| self.known(text);
            parts.iter_mut().for_each(|part| replace(part, &known));
        }
        message
    }

    fn known(&self, text: &str) -> Option<String> {
        changed(self.0.redact(text))
    }
}

/// Takes secrets out of an answer. Arguments that are the text of files keep what
/// only looks like one: what is written must be what the model meant.
pub fn response(toolbox: &Toolbox, response: &mut Response) {
    let secrets = toolbox.secrets();
    for part in &mut response.message.parts {
        match part {
            Part::ToolCall(call) => {
                let tool = call.name.clone();
                replace(part, &|text| toolbox.scrub(&tool, text));
            }
            _ => replace(part, &|text| changed(secrets.redact(text))),
        }
    }
}

/// Takes secrets out of an answer that broke off.
pub fn broken(secrets: &Secrets, broken: Option<&mut Broken>) {
    let Some(broken) = broken else { return };
    if let Some(clean) = broken
        .text
        .text()
        .and_then(|text| changed(secrets.redact(text)))
    {
        broken.text = Payload::new(clean);
    }
    broken.why = secrets.redact(&broken.why).into_owned();
}

/// Replaces the text of a part by what `clean` makes of it, if anything.
fn replace(part: &mut Part, clean: &dyn Fn(&str) -> Option<String>) {
    let Some(clean) = text_of(part).and_then(|text| clean(text)) else {
        return;
    };
    let clean = Payload::new(clean);
    match part {
        Part::Text { text } => *text = clean,
        Part::Reasoning { text, signature } => {
            *text = clean;
            // A seal on other words would be refused, and the run with it.
            *signature = None;
        }
        Part::ToolCall(call) => call.arguments = clean,
        Part::ToolResult(result) => result.content = clean,
        Part::Image(_) => {}
    }
}

fn text_of(part: &Part) -> Option<&Arc<str>> {
    match part {
        Part::Text { text } | Part::Reasoning { text, .. } => text.text(),
        Part::ToolCall(call) => call.arguments.text(),
        Part::ToolResult(result) => result.content.text(),
        Part::Image(_) => None,
    }
}

fn changed(text: Cow<'_, str>) -> Option<String> {
    match text {
        Cow::Owned(clean) => Some(clean),
        Cow::Borrowed(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_model::{Role, Stop, ToolCall, Usage};

    fn toolbox() -> Toolbox {
        let secrets = Secrets::new();
        secrets.know("known-value-1");
        Toolbox::core().with_secrets(secrets)
    }

    fn said(parts: Vec<Part>) -> Vec<Part> {
        let mut answer = Response {
            message: Message {
                role: Role::Assistant,
                parts,
            },
            stop: Stop::Tools,
            usage: Usage::default(),
            model: "a/b".into(),
        };
        response(&toolbox(), &mut answer);
        answer.message.parts
    }

    fn call(name: &str, arguments: &str) -> Part {
        Part::ToolCall(ToolCall {
            id: "1".into(),
            name: name.into(),
            arguments: arguments.into(),
        })
    }

    #[test]
    fn words_and_reasoning_lose_secrets_and_a_seal_goes_with_its_words() {
        let text = |text: &str| Part::Text { text: text.into() };
        let reasoning = |text: &str, seal: Option<&str>| Part::Reasoning {
            text: text.into(),
            signature: seal.map(Into::into),
        };
        let parts = said(vec![
            text("it is known-value-1, password: hunter22!"),
            reasoning("known-value-1!", Some("seal")),
            reasoning("nothing", Some("seal")),
        ]);
        assert_eq!(
            parts,
            [
                text("it is [REDACTED], password: [REDACTED]"),
                reasoning("[REDACTED]!", None),
                reasoning("nothing", Some("seal")),
            ]
        );
    }

    #[test]
    fn what_is_to_be_written_is_kept_and_known_values_never_are() {
        let token = format!("{}{}", "ghp_", "q8Zt1VbX0pLr7KdM2nWc".repeat(2));
        let content = |text: &str| format!(r#"{{"content":"{text}","path":"a"}}"#);
        for (name, arguments, expected) in [
            ("write_file", content(&token), content(&token)),
            (
                "write_file",
                content("known-value-1"),
                content("[REDACTED]"),
            ),
            (
                "run_command",
                format!(r#"{{"command":"echo {token}"}}"#),
                r#"{"command":"echo [REDACTED]"}"#.into(),
            ),
            (
                "finish",
                format!(r#"{{"summary":"used {token}"}}"#),
                r#"{"summary":"used [REDACTED]"}"#.into(),
            ),
            (
                "finish",
                r#"{"summary":"cut known-value-1"#.into(),
                r#"{"summary":"cut [REDACTED]"#.into(),
            ),
        ] {
            assert_eq!(said(vec![call(name, &arguments)]), [call(name, &expected)]);
        }
    }
}

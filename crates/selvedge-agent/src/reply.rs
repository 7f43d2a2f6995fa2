//! What a model's answer means: tools to run, an end, or a reminder.

use selvedge_ledger::Payload;
use selvedge_model::{Message, Part, Response, Role, Stop, ToolCall, ToolResult};
use selvedge_runtime::{Ending, Status};
use serde_json::Value;

use crate::spec::RunSpec;

/// What a model is asked when older conversation must be summarised.
pub const SUMMARY_REQUEST: &str = "The conversation is about to exceed its limit. Write a summary \
that will take the place of everything but the request and the last few turns. Keep: decisions and \
their reasons, what was done and verified (files, commands, results), what was tried and failed, \
and what remains to be done. Do not call tools. Answer with the summary only.";

// A model that misses the mark three times in a row will not hit it.
const REMINDERS_MAX: u32 = 2;

/// What follows from an answer.
pub enum Verdict {
    /// These calls must be carried out.
    Act(Vec<ToolCall>),
    /// The model must be told what was wrong, and asked again.
    Remind(Vec<Message>),
    /// The run is over.
    End(Ending),
}

/// Judges an answer, after `reminders` answers in a row that did not fit.
pub fn judge(spec: &RunSpec, response: &Response, reminders: u32) -> Verdict {
    let calls: Vec<ToolCall> = response
        .message
        .parts
        .iter()
        .filter_map(|p| match p {
            Part::ToolCall(call) => Some(call.clone()),
            _ => None,
        })
        .collect();
    let wrong = match response.stop {
        Stop::Length => Wrong::Cut,
        Stop::Filtered => Wrong::Filtered,
        Stop::End | Stop::Tools if !calls.is_empty() => return Verdict::Act(calls),
        Stop::End | Stop::Tools => match result(spec, &response.message) {
            Ok(ending) => return Verdict::End(ending),
            Err(why) => Wrong::Schema(why),
        },
    };
    if reminders >= REMINDERS_MAX {
        let result = Payload::new(wrong.failure());
        return Verdict::End(Ending {
            status: Status::Failed,
            result,
            data: None,
        });
    }
    Verdict::Remind(wrong.reminder(&calls))
}

/// The text of a message.
pub fn text_of(message: &Message) -> String {
    let texts = message.parts.iter().filter_map(|p| match p {
        Part::Text { text } => text.text().map(|t| &**t),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The answer as a result: any text, or data that fits the schema.
fn result(spec: &RunSpec, message: &Message) -> Result<Ending, String> {
    let Some(schema) = &spec.output_schema else {
        let text = message.parts.iter().find_map(|p| match p {
            Part::Text { text } => Some(text.clone()),
            _ => None,
        });
        let result = text.unwrap_or_else(|| Payload::new(""));
        return Ok(Ending {
            status: Status::Done,
            result,
            data: None,
        });
    };
    let text = text_of(message);
    let data = parse(&text)?;
    fits(schema, &data)?;
    Ok(Ending {
        status: Status::Done,
        result: Payload::new(text),
        data: Some(data),
    })
}

/// JSON, possibly inside a Markdown fence.
fn parse(text: &str) -> Result<Value, String> {
    let text = text.trim();
    let inner = text
        .strip_prefix("```json")
        .or_else(|| text.strip_prefix("```"))
        .and_then(|t| t.strip_suffix("```"))
        .unwrap_or(text);
    serde_json::from_str(inner.trim()).map_err(|e| format!("it is not JSON: {e}"))
}

/// Whether `data` fits `schema`; if not, the first three reasons.
pub fn fits(schema: &Value, data: &Value) -> Result<(), String> {
    let validator =
        jsonschema::validator_for(schema).map_err(|e| format!("the schema is not valid: {e}"))?;
    let reasons: Vec<String> = validator
        .iter_errors(data)
        .take(3)
        .map(|e| format!("at `{}`: {e}", e.instance_path()))
        .collect();
    if reasons.is_empty() {
        Ok(())
    } else {
        Err(reasons.join("; "))
    }
}

/// What is wrong with an answer.
enum Wrong {
    Cut,
    Filtered,
    Schema(String),
}

impl Wrong {
    /// What the model is told. Calls in the answer get their results too: a call
    /// without one would make the conversation invalid.
    fn reminder(&self, calls: &[ToolCall]) -> Vec<Message> {
        let why = match self {
            Self::Cut => "Your answer was cut off at the output limit; nothing in it was carried \
                          out. Answer in smaller steps."
                .to_owned(),
            Self::Filtered => "Your answer was withheld by the provider; nothing in it was \
                               carried out. Answer differently."
                .to_owned(),
            Self::Schema(why) => format!(
                "Your answer does not fit the required JSON Schema: {why}. Answer with the JSON \
                 value only."
            ),
        };
        if calls.is_empty() {
            return vec![Message::user(why)];
        }
        let results = calls.iter().map(|call| {
            Part::ToolResult(ToolResult {
                id: call.id.clone(),
                content: Payload::new(why.as_str()),
                is_error: true,
            })
        });
        vec![Message {
            role: Role::Tool,
            parts: results.collect(),
        }]
    }

    /// Why the run failed when reminding did not help.
    fn failure(&self) -> String {
        match self {
            Self::Cut => "three answers in a row were cut off at the output limit".into(),
            Self::Filtered => "the provider withheld three answers in a row".into(),
            Self::Schema(why) => {
                format!("three answers in a row did not fit the schema; the last: {why}")
            }
        }
    }
}

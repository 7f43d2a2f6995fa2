//! What a model's answer means: tools to run, an end, or a reminder.

use selvedge_ledger::Payload;
use selvedge_model::{Message, Part, Response, Role, Stop, ToolCall, ToolResult};
use selvedge_runtime::{Ending, Status};
use serde_json::Value;

use crate::salvage;
use crate::spec::RunSpec;

/// What a model is asked when older conversation must be summarised.
pub const SUMMARY_REQUEST: &str = "The conversation is about to exceed its limit. Write a summary \
that will take the place of everything but the request and the last few turns. Keep: decisions and \
their reasons, what was done and verified (files, commands, results), what was tried and failed, \
and what remains to be done. Do not call tools. Answer with the summary only.";

// A model that misses the mark three times in a row will not hit it.
pub const REMINDERS_MAX: u32 = 2;

/// What follows from an answer.
pub enum Meaning {
    /// These calls must be carried out.
    Act(Vec<ToolCall>),
    /// The model must be told what was wrong, and asked again.
    Remind(Vec<Message>),
    /// The run is over; these messages complete the conversation, should somebody
    /// go on with it.
    End(Ending, Vec<Message>),
}

/// Judges an answer, after `reminders` answers in a row that did not fit.
pub fn judge(spec: &RunSpec, response: &Response, reminders: u32) -> Meaning {
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
        Stop::End | Stop::Tools if !calls.is_empty() => return Meaning::Act(calls),
        Stop::End | Stop::Tools if spec.terms.ends_by.is_some() => {
            Wrong::Unended(spec.terms.ends_by.clone().unwrap_or_default())
        }
        Stop::End | Stop::Tools => match result(spec, &response.message) {
            Ok(ending) => return Meaning::End(ending, Vec::new()),
            Err(wrong) => wrong,
        },
    };
    if reminders >= REMINDERS_MAX {
        if let Some(ending) = salvaged(spec, &response.message, &wrong) {
            return Meaning::End(ending, Vec::new());
        }
        let ending = Ending {
            status: Status::Failed,
            result: Payload::inline(wrong.failure()),
            data: None,
        };
        let results = wrong.results(&calls);
        return Meaning::End(ending, results.into_iter().collect());
    }
    Meaning::Remind(wrong.reminder(&calls))
}

/// The text of a message.
pub fn text_of(message: &Message) -> String {
    let texts = message.parts.iter().filter_map(|p| match p {
        Part::Text { text } => text.text().map(|t| &**t),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The summary that an answer is, unless it is none.
pub fn summary(response: &Response) -> Option<String> {
    let mut text = text_of(&response.message);
    if text.trim().is_empty() || response.stop == Stop::Filtered {
        return None;
    }
    if response.stop == Stop::Length {
        text.push_str("\n[the summary was cut off here]");
    }
    Some(text)
}

/// The answer as a result: any text, or data that fits the schema.
fn result(spec: &RunSpec, message: &Message) -> Result<Ending, Wrong> {
    let Some(schema) = &spec.output_schema else {
        let texts = message.parts.iter().filter_map(|p| match p {
            Part::Text { text } => Some(text),
            _ => None,
        });
        let is_blank =
            |text: &Payload| text.text().map_or(text.is_empty(), |t| t.trim().is_empty());
        let texts: Vec<&Payload> = texts.filter(|text| !is_blank(text)).collect();
        let result = match texts[..] {
            [] => return Err(Wrong::Empty),
            [text] => text.clone(),
            _ => Payload::inline(text_of(message)),
        };
        return Ok(Ending {
            status: Status::Done,
            result,
            data: None,
        });
    };
    let text = text_of(message);
    let data = parse(&text).map_err(Wrong::Schema)?;
    fits(schema, &data).map_err(Wrong::Schema)?;
    Ok(Ending {
        status: Status::Done,
        result: Payload::inline(text),
        data: Some(data),
    })
}

/// What is left of an answer that does not fit the schema, where the schema can do
/// without the rest. The result says that it was salvaged.
fn salvaged(spec: &RunSpec, message: &Message, wrong: &Wrong) -> Option<Ending> {
    let (Some(schema), Wrong::Schema(_)) = (&spec.output_schema, wrong) else {
        return None;
    };
    let data = parse(&text_of(message)).ok()?;
    salvaged_from(spec, schema, data)
}

fn salvaged_from(spec: &RunSpec, schema: &Value, data: Value) -> Option<Ending> {
    // Between agents a part of an answer would pass for the whole.
    if spec.terms.input_schema.is_some() {
        return None;
    }
    let (data, left_out) = salvage::salvage(schema, data)?;
    let note = salvage::note(&left_out);
    Some(Ending {
        status: Status::Done,
        result: Payload::inline(format!("{note}\n{data}")),
        data: Some(data),
    })
}

/// How a run ends whose result does not fit after all reminders: with what is left of
/// it, or as a failure.
pub fn last_resort(spec: &RunSpec, schema: &Value, data: Value, why: &str) -> Ending {
    salvaged_from(spec, schema, data).unwrap_or_else(|| unfit(why))
}

/// How a run ends that never said what it came to in a way that fits.
pub fn unfit(why: &str) -> Ending {
    Ending {
        status: Status::Failed,
        result: Payload::inline(Wrong::Schema(why.to_owned()).failure()),
        data: None,
    }
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
    Empty,
    Schema(String),
    /// Only this tool ends the work.
    Unended(String),
}

impl Wrong {
    /// What the model is told.
    fn reminder(&self, calls: &[ToolCall]) -> Vec<Message> {
        let said = || Message::user(Payload::inline(self.correction()));
        vec![self.results(calls).unwrap_or_else(said)]
    }

    /// The results of calls that were not carried out: a call without one would
    /// make the conversation invalid.
    fn results(&self, calls: &[ToolCall]) -> Option<Message> {
        let why: Payload = Payload::inline(self.correction());
        let results = calls.iter().map(|call| {
            Part::ToolResult(ToolResult {
                id: call.id.clone(),
                content: why.clone(),
                is_error: true,
                images: Vec::new(),
            })
        });
        (!calls.is_empty()).then(|| Message {
            role: Role::Tool,
            parts: results.collect(),
        })
    }

    fn correction(&self) -> String {
        match self {
            Self::Cut => "Your answer was cut off at the output limit; nothing in it was carried \
                          out. Answer in smaller steps."
                .to_owned(),
            Self::Filtered => "Your answer was withheld by the provider; nothing in it was \
                               carried out. Answer differently."
                .to_owned(),
            Self::Empty => {
                "Your answer was empty. Go on with the work, or say what came of it.".to_owned()
            }
            Self::Schema(why) => format!(
                "Your answer does not fit the required JSON Schema: {why}. Answer with the JSON \
                 value only."
            ),
            Self::Unended(tool) => format!(
                "Your answer has no call, and words alone do not end the work. Go on, or end it \
                 with `{tool}`."
            ),
        }
    }

    /// Why the run failed when reminding did not help.
    fn failure(&self) -> String {
        match self {
            Self::Cut => "three answers in a row were cut off at the output limit".into(),
            Self::Filtered => "the provider withheld three answers in a row".into(),
            Self::Empty => "three answers in a row were empty".into(),
            Self::Schema(why) => {
                format!("three answers in a row did not fit the schema; the last: {why}")
            }
            Self::Unended(tool) => {
                format!("three answers in a row had no call; only `{tool}` ends the work")
            }
        }
    }
}

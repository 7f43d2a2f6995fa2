//! What a model is sent: the conversation, kept small without losing anything.
//!
//! Cheapest first. Old tool results, and old long arguments, become pointers to
//! where the content still is. When that does not suffice, older turns are
//! replaced by a summary. Both happen in rare, large steps, so that providers
//! can cache the prefix. The ledger keeps every byte.

use std::sync::Arc;

use selvedge_ledger::Payload;
use selvedge_model::{Message, Part, Role, ToolResult};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::definition::Limits;

/// Arguments longer than this become pointers together with their results.
const ARGUMENT_BYTES_KEPT: u64 = 1024;
/// Pointers are made when at least this many tokens are gained: fewer would
/// spoil the provider's cache for nothing.
const CLEAR_TOKENS_MIN: u64 = 8_000;
/// Turns that a summary leaves word for word.
const TURNS_KEPT: usize = 4;

/// The conversation as the model sees it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Context {
    messages: Vec<Arc<Message>>,
    /// Tokens of each message, estimated.
    tokens: Vec<u64>,
    /// Tokens that pointers in its place would save.
    savings: Vec<u64>,
    total: u64,
    /// Messages before this one have no long results any more.
    cleared: usize,
    /// How the results in each tool message can be read again.
    names: Vec<Vec<String>>,
    /// Where the last summary is.
    summary_at: Option<usize>,
    /// How often older turns were summarised.
    pub summaries: u32,
}

/// Whether a conversation can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It can.
    Fits,
    /// Older turns must be summarised first.
    NeedsSummary,
    /// Not even a summary would help.
    TooLarge {
        /// Its size in tokens, estimated.
        tokens: u64,
    },
}

impl Context {
    /// The conversation, in order.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// Its size in tokens, estimated.
    pub fn tokens(&self) -> u64 {
        self.total
    }

    /// Adds a message.
    pub fn push(&mut self, message: Message) {
        self.push_named(message, Vec::new());
    }

    /// Adds results; `names` says how each can be read again.
    pub fn push_results(&mut self, results: Vec<ToolResult>, names: Vec<String>) {
        let parts = results.into_iter().map(Part::ToolResult).collect();
        self.push_named(
            Message {
                role: Role::Tool,
                parts,
            },
            names,
        );
    }

    fn push_named(&mut self, message: Message, names: Vec<String>) {
        let tokens = message_tokens(&message);
        let pointed = pointers(&message, &names).map_or(tokens, |m| message_tokens(&m));
        self.total += tokens;
        self.tokens.push(tokens);
        self.savings.push(tokens.saturating_sub(pointed));
        self.messages.push(Arc::new(message));
        self.names.push(names);
    }

    /// Makes pointers of old results if that gains enough, then says whether the
    /// conversation can be sent.
    pub fn fit(&mut self, limits: &Limits) -> Fit {
        self.clear(limits.results_kept);
        if self.total <= limits.context_tokens_max {
            return Fit::Fits;
        }
        match self.summary_range() {
            Some(_) => Fit::NeedsSummary,
            None => Fit::TooLarge { tokens: self.total },
        }
    }

    fn clear(&mut self, results_kept: usize) {
        let tools = |m: &Message| m.role == Role::Tool;
        let mut kept = 0;
        let end = self.messages.iter().rposition(|m| {
            kept += if tools(m) { m.parts.len() } else { 0 };
            kept > results_kept
        });
        let Some(end) = end.map(|e| e + 1).filter(|e| *e > self.cleared) else {
            return;
        };
        if self.savings[self.cleared..end].iter().sum::<u64>() < CLEAR_TOKENS_MIN {
            return;
        }
        for i in self.cleared..end {
            if let Some(message) = pointers(&self.messages[i], &self.names[i]) {
                self.tokens[i] = message_tokens(&message);
                self.messages[i] = Arc::new(message);
                self.savings[i] = 0;
            }
        }
        self.cleared = end;
        self.forget_reasoning();
        self.total = self.tokens.iter().sum();
    }

    /// A provider's seal on reasoning holds for the conversation it was made in;
    /// after a change to what came before, the reasoning cannot be sent back.
    fn forget_reasoning(&mut self) {
        let is_reasoning = |p: &Part| matches!(p, Part::Reasoning { .. });
        for (message, tokens) in self.messages.iter_mut().zip(&mut self.tokens) {
            if message.parts.iter().any(is_reasoning) {
                let message = Arc::make_mut(message);
                message.parts.retain(|p| !is_reasoning(p));
                *tokens = message_tokens(message);
            }
        }
    }

    /// The turns that a summary would replace: all but the first message, which
    /// is the request, and the last turns. A turn begins with an assistant
    /// message, so that a call is never separated from its result.
    fn summary_range(&self) -> Option<std::ops::Range<usize>> {
        let turns: Vec<usize> = (0..self.messages.len())
            .filter(|i| self.messages[*i].role == Role::Assistant)
            .collect();
        // With few turns left, at least the last one is kept.
        let keep = TURNS_KEPT.min(turns.len().checked_sub(1)?);
        let end = turns[turns.len() - keep.max(1)];
        (end > 2).then_some(1..end)
    }

    /// Puts `summary` in the place of older turns. What people said stays.
    pub fn summarise(&mut self, summary: &str) {
        let Some(range) = self.summary_range() else {
            return;
        };
        let said: Vec<Arc<Message>> = self.messages[range.clone()]
            .iter()
            .zip(range.clone())
            .filter(|(m, i)| m.role == Role::User && Some(*i) != self.summary_at)
            .map(|(m, _)| m.clone())
            .collect();
        let text = format!("{SUMMARY_HEAD}\n\n{summary}");
        let kept = std::mem::take(self);
        self.summaries = kept.summaries + 1;
        let (old, names) = (kept.messages, kept.names);
        for message in [old[0].clone()].into_iter().chain(said) {
            self.push((*message).clone());
        }
        self.summary_at = Some(self.messages.len());
        self.push(Message::user(text));
        for (message, names) in old.into_iter().zip(names).skip(range.end) {
            self.push_named((*message).clone(), names);
        }
        self.forget_reasoning();
        self.total = self.tokens.iter().sum();
    }
}

const SUMMARY_HEAD: &str =
    "[The conversation before this point was summarised to save space. The summary:]";

/// The message with pointers in place of long content; `None` if it has none.
fn pointers(message: &Message, names: &[String]) -> Option<Message> {
    let mut changed = false;
    let mut nth_result = 0;
    let parts = message
        .parts
        .iter()
        .map(|part| match part {
            Part::ToolResult(result) => {
                let name = names.get(nth_result).map_or("", String::as_str);
                nth_result += 1;
                let pointer = format!(
                    "[cleared to save space: {} bytes; read them with read_file path=@result/{name}]",
                    result.content.len()
                );
                if result.content.len() <= pointer.len() as u64 {
                    return part.clone();
                }
                changed = true;
                Part::ToolResult(ToolResult { content: pointer.into(), ..result.clone() })
            }
            Part::ToolCall(call) if call.arguments.len() > ARGUMENT_BYTES_KEPT => {
                changed = true;
                let mut call = call.clone();
                let note = format!("{} bytes of arguments, cleared to save space", call.arguments.len());
                call.arguments = Payload::new(json!({ "note": note }).to_string());
                Part::ToolCall(call)
            }
            other => other.clone(),
        })
        .collect();
    changed.then_some(Message {
        role: message.role,
        parts,
    })
}

/// Tokens of a message, estimated from its bytes.
// Three and a half bytes a token is on the safe side for code and English.
fn message_tokens(message: &Message) -> u64 {
    let bytes: u64 = message
        .parts
        .iter()
        .map(|part| match part {
            Part::Text { text } => text.len(),
            Part::Reasoning { text, signature } => {
                text.len() + signature.as_ref().map_or(0, Payload::len)
            }
            Part::ToolCall(call) => call.arguments.len() + call.name.len() as u64 + 16,
            Part::ToolResult(result) => result.content.len() + 16,
        })
        .sum();
    bytes * 2 / 7 + 4
}

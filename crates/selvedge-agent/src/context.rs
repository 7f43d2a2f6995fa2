//! What a model is sent: the conversation, kept small without losing anything.
//!
//! Cheapest first. Old tool results, and old long arguments, become pointers to
//! where the content still is. When that does not suffice, older turns are
//! replaced by a summary. Both happen in rare, large steps, so that providers
//! can cache the prefix. Results too long for any conversation become pointers
//! at once. The ledger keeps every byte.

use std::sync::Arc;

use selvedge_ledger::Payload;
use selvedge_model::{Image, Message, Messages, Part, Role, ToolResult};
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
/// Older turns are worth a summary when they are at least this part of the limit.
const SUMMARY_PART_MIN: u64 = 8;

/// Less than this is not worth a summary, even where one is asked for.
const COMPACT_TOKENS_MIN: u64 = 1_000;

/// The conversation as the model sees it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Context {
    messages: Messages,
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
    /// Where the turns end that the next summary takes the place of.
    summary_end: Option<usize>,
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
    pub fn messages(&self) -> &Messages {
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

    /// Adds results; `names` says how each can be read again. One whose name is
    /// empty cannot, and stays as it is.
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
        let max = limits.context_tokens_max;
        self.clear(limits.results_kept, CLEAR_TOKENS_MIN);
        if self.total > max {
            self.clear(limits.results_kept, 1);
        }
        if self.total <= max {
            return Fit::Fits;
        }
        // What stays word for word leaves room for the summary.
        let room = max - max / SUMMARY_PART_MIN;
        let worth = |range: &std::ops::Range<usize>| {
            self.sum(range.clone()) >= max / SUMMARY_PART_MIN && self.sum(0..range.end) <= max
        };
        self.summary_end = self.older_turns(room).filter(worth).map(|r| r.end);
        if self.summary_end.is_some() {
            return Fit::NeedsSummary;
        }
        // The latest turns are too long by themselves.
        self.shorten(max);
        if self.total <= max {
            return Fit::Fits;
        }
        let sendable = |range: &std::ops::Range<usize>| self.sum(0..range.end) <= max;
        self.summary_end = self.older_turns(max).filter(sendable).map(|r| r.end);
        match self.summary_end {
            Some(_) => Fit::NeedsSummary,
            None => Fit::TooLarge { tokens: self.total },
        }
    }

    /// Asks for a summary of everything before the last turn, though it would fit; false
    /// if there is too little of it.
    pub fn compact(&mut self) -> bool {
        let last = self.messages.rposition(|m| m.role == Role::Assistant);
        let is_worth = |end: &usize| *end > 2 && self.sum(1..*end) >= COMPACT_TOKENS_MIN;
        self.summary_end = last.filter(is_worth);
        self.summary_end.is_some()
    }

    fn sum(&self, range: std::ops::Range<usize>) -> u64 {
        self.tokens[range].iter().sum()
    }

    /// Makes pointers of everything older than the last `results_kept` results,
    /// if that gains `gain_min` tokens. The latest results always stay: the model
    /// has not seen them.
    fn clear(&mut self, results_kept: usize, gain_min: u64) {
        let mut newer = 0;
        let end = self.messages.rposition(|m| {
            let is_tool = m.role == Role::Tool;
            let is_old = is_tool && newer >= results_kept.max(1);
            newer += if is_tool { m.parts.len() } else { 0 };
            is_old
        });
        let Some(end) = end.map(|e| e + 1).filter(|e| *e > self.cleared) else {
            return;
        };
        if self.savings[self.cleared..end].iter().sum::<u64>() < gain_min {
            return;
        }
        for i in self.cleared..end {
            if let Some(message) = pointers(&self.messages[i], &self.names[i]) {
                self.replace(i, message);
            }
        }
        self.cleared = end;
        self.forget_reasoning();
    }

    /// Makes pointers of the longest results, new ones too, until the
    /// conversation fits or nothing is left to shorten.
    fn shorten(&mut self, max: u64) {
        let mut results: Vec<(u64, usize, usize)> = Vec::new();
        for (i, message) in self.messages.iter().enumerate() {
            results.extend(message.parts.iter().enumerate().filter_map(|(n, part)| {
                let name = self.names[i].get(n).filter(|name| !name.is_empty())?;
                match part {
                    Part::ToolResult(result) => {
                        let saved = result
                            .content
                            .len()
                            .checked_sub(unseen(result, name).len())?;
                        (saved > 0).then_some((saved, i, n))
                    }
                    _ => None,
                }
            }));
        }
        results.sort_by_key(|(saved, i, n)| (std::cmp::Reverse(*saved), *i, *n));
        for (_, i, n) in results {
            if self.total <= max {
                break;
            }
            let mut message = (*self.messages[i]).clone();
            if let Part::ToolResult(result) = &mut message.parts[n] {
                result.content = unseen(result, &self.names[i][n]);
                result.images.clear();
            }
            self.replace(i, message);
            self.forget_reasoning();
        }
    }

    fn replace(&mut self, i: usize, message: Message) {
        let tokens = message_tokens(&message);
        self.total = self.total - self.tokens[i] + tokens;
        self.tokens[i] = tokens;
        self.savings[i] = 0;
        self.messages.set(i, Arc::new(message));
    }

    /// A provider's seal on reasoning holds for the conversation it was made in;
    /// after a change to what came before, the reasoning cannot be sent back.
    fn forget_reasoning(&mut self) {
        let is_reasoning = |p: &Part| matches!(p, Part::Reasoning { .. });
        for (i, tokens) in self.tokens.iter_mut().enumerate() {
            if self.messages[i].parts.iter().any(is_reasoning) {
                let mut message = (*self.messages[i]).clone();
                message.parts.retain(|p| !is_reasoning(p));
                *tokens = message_tokens(&message);
                self.messages.set(i, Arc::new(message));
            }
        }
        self.total = self.tokens.iter().sum();
    }

    /// The turns that a summary would replace: all but the first message, which
    /// is the request, and the last turns, as many as fit into `room`. A turn
    /// begins with an assistant message, so that a call is never separated from
    /// its result.
    fn older_turns(&self, room: u64) -> Option<std::ops::Range<usize>> {
        let turns: Vec<usize> = (0..self.messages.len())
            .filter(|i| self.messages[*i].role == Role::Assistant)
            .collect();
        let stays = |end: usize| self.tokens[0] + self.sum(end..self.tokens.len());
        let kept = turns.iter().rev().take(TURNS_KEPT);
        // A summary in the place of a summary and nothing else gains nothing.
        let mut ends = kept.copied().filter(|end| *end > 2 && stays(*end) <= room);
        ends.next_back().map(|end| 1..end)
    }

    /// The same, with no summary asked for.
    pub fn without_summary(mut self) -> Self {
        self.summary_end = None;
        self
    }

    /// The part of the conversation that a summary is made of. It was sent
    /// before, so it fits, and the provider may have it cached.
    pub fn to_summarise(&self) -> Messages {
        let end = self.summary_end.unwrap_or(self.messages.len());
        self.messages.first(end)
    }

    /// Puts `summary` in the place of older turns. What people said stays.
    pub fn summarise(&mut self, summary: &str) {
        let Some(range) = self.summary_end.take().map(|end| 1..end) else {
            return;
        };
        let said: Vec<Arc<Message>> = range
            .clone()
            .map(|i| (&self.messages[i], i))
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
        // Inline: it is in no event, so no ledger could give it back.
        self.push(Message::user(Payload::inline(text)));
        for (message, names) in old.iter().zip(names).skip(range.end) {
            self.push_named((**message).clone(), names);
        }
        self.forget_reasoning();
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
                let name = names.get(nth_result).filter(|name| !name.is_empty());
                nth_result += 1;
                let Some(name) = name else {
                    return part.clone();
                };
                let pointer = format!(
                    "[cleared to save space: {} bytes; read them with read_file path=@result/{name}]",
                    result.content.len()
                );
                if result.content.len() <= pointer.len() as u64 {
                    return part.clone();
                }
                changed = true;
                Part::ToolResult(ToolResult {
                    id: result.id.clone(),
                    content: pointer.into(),
                    is_error: result.is_error,
                    images: Vec::new(),
                })
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

/// What stands in the place of a result that is too long to be shown at all.
fn unseen(result: &ToolResult, name: &str) -> Payload {
    let bytes = result.content.len();
    Payload::new(format!(
        "[too long to show: {bytes} bytes; read a part of them with read_file path=@result/{name} \
         offset=1 limit=100]"
    ))
}

/// Tokens of a message, estimated from its bytes.
// Three and a half bytes a token is on the safe side for code and English.
fn message_tokens(message: &Message) -> u64 {
    let bytes: u64 = message
        .parts
        .iter()
        .map(|part| match part {
            Part::Text { text } => text.len(),
            Part::Image(_) => Image::BYTES_OF_TEXT,
            Part::Reasoning { text, signature } => {
                text.len() + signature.as_ref().map_or(0, Payload::len)
            }
            Part::ToolCall(call) => call.arguments.len() + call.name.len() as u64 + 16,
            Part::ToolResult(result) => {
                result.content.len() + result.images.len() as u64 * Image::BYTES_OF_TEXT + 16
            }
        })
        .sum();
    bytes * 2 / 7 + 4
}

//! How many tokens a request may be, before a provider has counted them.
//!
//! Tokenizers differ and change, so this does not imitate one. It errs upward:
//! prose runs at about four bytes to a token, code at three, dense JSON,
//! numbers and most other scripts nearer to two.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::types::{Request, ToolDefinition};

/// The densest text that is common, in bytes per token.
const BYTES_PER_TOKEN_MIN: u64 = 2;
/// Roles, separators and the like around each message and each tool.
const TOKENS_PER_ENTRY: u64 = 16;
/// What providers add of their own when tools are offered.
const TOKENS_PER_REQUEST: u64 = 512;

/// More tokens than `request` is likely to be. Costs no pass over the text.
pub fn input_tokens_estimate(request: &Request) -> u64 {
    estimate(request, request.bytes())
}

fn estimate(request: &Request, bytes: u64) -> u64 {
    let entries = (request.messages.len() + request.tools.len()) as u64;
    bytes / BYTES_PER_TOKEN_MIN + entries * TOKENS_PER_ENTRY + TOKENS_PER_REQUEST
}

/// So many lists are remembered: one for each agent of a few crews.
const LISTS_MAX: usize = 64;

/// How long the tools of a request are. The same list goes with every request of
/// an agent, so its schemas are measured once.
#[derive(Default)]
pub(super) struct ToolSizes(Mutex<Vec<(Weak<[ToolDefinition]>, u64)>>);

impl ToolSizes {
    /// See `input_tokens_estimate`.
    pub(super) fn input_tokens_estimate(&self, request: &Request) -> u64 {
        let tools = self.bytes(&request.tools);
        estimate(request, request.bytes_without_tools() + tools)
    }

    fn bytes(&self, tools: &Arc<[ToolDefinition]>) -> u64 {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A list that is only weakly held keeps its address to itself.
        let is_same = |weak: &Weak<_>| std::ptr::addr_eq(weak.as_ptr(), Arc::as_ptr(tools));
        if let Some((_, bytes)) = known.iter().find(|(weak, _)| is_same(weak)) {
            return *bytes;
        }
        known.retain(|(weak, _)| weak.strong_count() > 0);
        if known.len() >= LISTS_MAX {
            known.clear();
        }
        let bytes = tools.iter().map(ToolDefinition::bytes).sum();
        known.push((Arc::downgrade(tools), bytes));
        bytes
    }
}

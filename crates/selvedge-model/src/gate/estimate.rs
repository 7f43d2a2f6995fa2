//! How many tokens a request may be, before a provider has counted them.
//!
//! Tokenizers differ and change, so this does not imitate one. It errs upward:
//! prose runs at about four bytes to a token, code at three, dense JSON,
//! numbers and most other scripts nearer to two.

use crate::types::Request;

/// The densest text that is common, in bytes per token.
const BYTES_PER_TOKEN_MIN: u64 = 2;
/// Roles, separators and the like around each message and each tool.
const TOKENS_PER_ENTRY: u64 = 16;
/// What providers add of their own when tools are offered.
const TOKENS_PER_REQUEST: u64 = 512;

/// More tokens than `request` is likely to be. Costs no pass over the text.
pub fn input_tokens_estimate(request: &Request) -> u64 {
    let entries = (request.messages.len() + request.tools.len()) as u64;
    request.bytes() / BYTES_PER_TOKEN_MIN + entries * TOKENS_PER_ENTRY + TOKENS_PER_REQUEST
}

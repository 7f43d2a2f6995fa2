//! One door to every model provider.
//!
//! # Map
//!
//! - `types`: one message, one delta, one usage for all providers
//! - `messages`: a conversation that is cheap to share and to continue
//! - `error`: why a call failed, by what to do about it
//! - `provider`: what every provider does: one attempt at one answer
//! - `providers`: those there are, and how they are found
//! - `scripted`: the model that answers from a file
//! - `catalogue`: tiers, aliases, sizes and prices, as data
//! - `credentials`: where keys come from, and where they are kept
//! - `probe`: one tiny call, to see whether a provider answers
//! - `fingerprint`: whether two requests are the same
//! - `cassette`: recorded exchanges, and the model that plays them
//! - `cache`: answers that are given again to the very same request
//! - `nearest`: the names somebody may have meant
//! - `money`: dollars, exactly
//! - `shared`: a state that all processes of a machine share
//! - `gate`: what every call passes: budgets before, retries around, costs after
//! - `ceilings`: what all sessions of a machine may spend together
//!
//! # Invariants
//!
//! - An answer is complete or it is an error; nothing is guessed to fill a gap.
//! - A call begins only if its worst case fits every budget above it.
//! - A price that is not known is `None`, never zero.
//! - A key is sent to its provider and shown to nobody.
//! - This crate knows nothing of tools, agents or terminals.

mod cache;
mod cassette;
mod catalogue;
mod ceilings;
mod credentials;
mod error;
mod fingerprint;
mod gate;
mod messages;
mod money;
mod nearest;
mod probe;
mod provider;
mod providers;
mod scripted;
mod shared;
mod types;

pub use cache::ResponseCache;
pub use cassette::{Cassette, CassetteError, Clean, Recorder};
pub use catalogue::{
    Catalogue, CatalogueError, ModelFacts, Protocol, ProviderFacts, ResolveError, ResolvedModel,
    Tier,
};
pub use ceilings::{Allowance, CallName, CeilingError, Ceilings, Past, Period, Rule, Strength};
pub use credentials::{
    CredentialError, Credentials, FoundKey, KeyLength, KeySource, Place, Profile, Stored,
};
pub use error::{ErrorTier, ModelError};
pub use gate::{
    Answered, Ask, BreakerOptions, Broken, Budget, BudgetError, Course, Failed, Gate, Limits,
    Reservation, Retry, Slots, Spend, Unit, Urgency, input_tokens_estimate,
};
pub use messages::Messages;
pub use money::{LongPrice, NotUsd, Price, Usd};
pub use probe::{Probe, probe};
pub use provider::{DeltaSink, Provider};
pub use providers::{
    Anthropic, Door, Endpoint, Gemini, HttpOptions, OpenAiChat, OpenAiResponses, Providers,
    provider_of,
};
pub use scripted::{Entry, ScriptError, ScriptedModel, Turn};
pub use types::{
    Delta, Effort, Image, Message, Part, Request, Response, Role, Stage, Stop, ToolCall,
    ToolDefinition, ToolResult, Usage,
};

//! Why a model call failed, by what to do about it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Why a model call failed. The variant says what to do.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// This call had an accident: a reset, a 500, a silent or cut stream.
    #[error("{provider}: {what}")]
    Transient {
        /// Whose.
        provider: String,
        /// What happened.
        what: String,
    },
    /// The provider asks for patience.
    #[error("{provider} limits the rate of calls: {what}")]
    RateLimited {
        /// Whose.
        provider: String,
        /// What it said.
        what: String,
        /// How long it asks for, if it says.
        retry_after: Option<Duration>,
    },
    /// The request itself is wrong; the same request will fail again.
    #[error("{provider} refused the request: {what}")]
    Permanent {
        /// Whose.
        provider: String,
        /// What it said.
        what: String,
    },
    /// A person can fix it: a key, a model name, a bill.
    #[error("{provider}: {what}")]
    UserFixable {
        /// Whose.
        provider: String,
        /// What is wrong.
        what: String,
        /// What to do.
        hint: String,
    },
    /// The provider is in trouble: overloaded, not there, or given a rest after
    /// it failed repeatedly.
    #[error("{provider} is in trouble: {what}")]
    Degraded {
        /// Whose.
        provider: String,
        /// What happened.
        what: String,
    },
    /// The answer grew beyond what was set aside for it, and was stopped.
    #[error("{provider}: {what}")]
    Overrun {
        /// Whose.
        provider: String,
        /// What happened.
        what: String,
    },
    /// The caller cancelled.
    #[error("the call was cancelled")]
    Cancelled,
}

/// The tier of an error, for events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorTier {
    /// See `ModelError::Transient`.
    Transient,
    /// See `ModelError::RateLimited`.
    RateLimited,
    /// See `ModelError::Permanent`.
    Permanent,
    /// See `ModelError::UserFixable`.
    UserFixable,
    /// See `ModelError::Degraded`.
    Degraded,
    /// See `ModelError::Overrun`.
    Overrun,
    /// See `ModelError::Cancelled`.
    Cancelled,
}

impl ModelError {
    /// The tier, for events.
    pub fn tier(&self) -> ErrorTier {
        match self {
            Self::Transient { .. } => ErrorTier::Transient,
            Self::RateLimited { .. } => ErrorTier::RateLimited,
            Self::Permanent { .. } => ErrorTier::Permanent,
            Self::UserFixable { .. } => ErrorTier::UserFixable,
            Self::Degraded { .. } => ErrorTier::Degraded,
            Self::Overrun { .. } => ErrorTier::Overrun,
            Self::Cancelled => ErrorTier::Cancelled,
        }
    }
}

//! What a cassette holds, line by line.

use std::time::Duration;

use selvedge_ledger::Payload;
use serde::{Deserialize, Serialize};

use crate::error::{ErrorTier, ModelError};
use crate::fingerprint::Fingerprint;
use crate::types::Response;

/// The version of these shapes.
pub(super) const VERSION: u32 = 1;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) cassette: u32,
}

/// One request and what came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Exchange {
    /// Who asked.
    pub(super) agent: String,
    /// The ordinal of the call in the agent's stream.
    pub(super) turn: u32,
    /// The hash of all of the request.
    pub(super) digest: String,
    /// Its parts, for saying what differs.
    pub(super) request: Fingerprint,
    #[serde(flatten)]
    pub(super) outcome: Outcome,
    /// Milliseconds to the first piece, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) first_token_ms: Option<u64>,
    /// Milliseconds to the end.
    pub(super) total_ms: u64,
}

/// What came of a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    Response(Box<Response>),
    Error(WrittenError),
}

/// An error, as it is written down.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct WrittenError {
    tier: ErrorTier,
    provider: String,
    what: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

/// Why a file is no cassette.
#[derive(Debug, thiserror::Error)]
#[error("`{file}` is no cassette: {why}")]
pub struct CassetteError {
    /// Which file.
    pub file: String,
    /// What is wrong with it.
    pub why: String,
}

impl Outcome {
    /// With every text inside, however long: there is no ledger to ask for it.
    pub(super) fn new(result: &Result<Response, ModelError>) -> Option<Self> {
        match result {
            Ok(response) => {
                let response = response.keeping(Payload::inline);
                Some(Self::Response(Box::new(response)))
            }
            Err(error) => WrittenError::new(error).map(Self::Error),
        }
    }
}

impl WrittenError {
    /// Nothing for what nobody said: a call that was cancelled.
    fn new(error: &ModelError) -> Option<Self> {
        let (provider, what) = match error {
            ModelError::Transient { provider, what }
            | ModelError::RateLimited { provider, what, .. }
            | ModelError::Permanent { provider, what }
            | ModelError::UserFixable { provider, what, .. }
            | ModelError::Degraded { provider, what }
            | ModelError::Overrun { provider, what } => (provider.clone(), what.clone()),
            ModelError::Cancelled => return None,
        };
        let hint = match error {
            ModelError::UserFixable { hint, .. } => Some(hint.clone()),
            _ => None,
        };
        let retry_after_ms = match error {
            ModelError::RateLimited { retry_after, .. } => {
                retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX))
            }
            _ => None,
        };
        Some(Self {
            tier: error.tier(),
            provider,
            what,
            hint,
            retry_after_ms,
        })
    }
}

impl From<WrittenError> for ModelError {
    fn from(written: WrittenError) -> Self {
        let WrittenError {
            tier,
            provider,
            what,
            hint,
            retry_after_ms,
        } = written;
        match tier {
            ErrorTier::Transient => Self::Transient { provider, what },
            ErrorTier::RateLimited => Self::RateLimited {
                provider,
                what,
                retry_after: retry_after_ms.map(Duration::from_millis),
            },
            ErrorTier::Permanent => Self::Permanent { provider, what },
            ErrorTier::UserFixable => Self::UserFixable {
                provider,
                what,
                hint: hint.unwrap_or_default(),
            },
            ErrorTier::Degraded => Self::Degraded { provider, what },
            ErrorTier::Overrun => Self::Overrun { provider, what },
            ErrorTier::Cancelled => Self::Cancelled,
        }
    }
}

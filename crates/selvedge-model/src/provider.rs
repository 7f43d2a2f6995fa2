//! What every provider does: one attempt at one answer.

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::error::ModelError;
use crate::money::Price;
use crate::types::{Delta, Request, Response};

/// Takes the pieces of an answer as they come.
pub trait DeltaSink: Send {
    /// One piece.
    fn take(&mut self, delta: Delta);
}

impl<F: FnMut(Delta) + Send> DeltaSink for F {
    fn take(&mut self, delta: Delta) {
        self(delta);
    }
}

/// One attempt at one answer. No retry, no waiting for limits: that is the gate's.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Asks. `Ok` only for an answer that is complete: an end without a stop
    /// reason, a cut stream or a half-written tool call is `Transient`.
    async fn ask(
        &self,
        request: &Request,
        deltas: &mut dyn DeltaSink,
        cancel: &CancellationToken,
    ) -> Result<Response, ModelError>;

    /// Which place and key it asks with, as a short word that gives neither away:
    /// limits and outages concern everybody who uses the same. `None` if nobody else can.
    fn place(&self) -> Option<&str> {
        None
    }

    /// Whether one of its models can be told how long to think while it has tools. Where it
    /// cannot, `Request::effort` is left out of what is sent.
    fn takes_effort(&self, _model: &str) -> bool {
        true
    }

    /// The price of one of its models, where the provider itself knows it.
    fn price(&self, _model: &str) -> Option<Price> {
        None
    }
}

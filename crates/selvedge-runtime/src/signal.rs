//! What somebody outside can say to a run: letters for its inbox.

use selvedge_ledger::{Ledger, LedgerError, Letter, NewEvent, Payload, Receipt, StreamId};
use serde::{Deserialize, Serialize};

use crate::clock::{Chance, Clock};
use crate::events::SteerMode;
use crate::machine::EffectId;

/// A request to a run, admitted to its inbox and taken up at a safe point.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum Signal {
    /// Says something to the agent.
    Steer {
        /// Whether it enters the current work.
        #[serde(default)]
        mode: SteerMode,
        /// What.
        text: Payload,
    },
    /// Answers a question.
    Answer {
        /// Which; the oldest open one if not said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effect: Option<EffectId>,
        /// The answer.
        text: Payload,
        /// Of an approval: the digest of what was shown. An answer to something
        /// else is no answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
    },
    /// Holds the run for a reason.
    Pause {
        /// Why.
        reason: String,
    },
    /// Takes a reason away; all of them if none is named.
    Resume {
        /// Which.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Ends the run.
    Cancel {
        /// Why.
        reason: String,
    },
    /// Sets a higher limit.
    RaiseBudget {
        /// In dollars.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usd: Option<f64>,
        /// In tokens.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens: Option<u64>,
        /// In model calls.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model_calls: Option<u32>,
    },
}

impl Signal {
    /// Puts the signal into the inbox of `stream`. With the same `id` it is
    /// admitted once, however often it is sent.
    pub async fn send(
        &self,
        ledger: &dyn Ledger,
        clock: &dyn Clock,
        stream: &StreamId,
        by: &str,
        id: String,
    ) -> Result<Receipt, LedgerError> {
        let event = NewEvent::new("SignalAdmitted", by, clock.now(), self);
        ledger.admit(stream, Letter { id, event }).await
    }

    /// As `send`, with a new id.
    pub async fn send_once(
        &self,
        ledger: &dyn Ledger,
        clock: &dyn Clock,
        chance: &dyn Chance,
        stream: &StreamId,
        by: &str,
    ) -> Result<Receipt, LedgerError> {
        self.send(ledger, clock, stream, by, chance.id("l")).await
    }
}

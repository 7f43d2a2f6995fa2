//! The budgets of sessions: what may be spent by whom, and what was already.
//!
//! A session has a budget, and below it each run whose agent has limits of its
//! own; a helper's run is below that of whoever called it. What was spent before
//! this process began is folded from the ledger.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use selvedge_ledger::{Event, Ledger, LedgerError, Position, StreamId};
use selvedge_model::{Budget, Limits, Spend, Usd};
use serde::Deserialize;

use crate::call::ModelCall;
use crate::definition;
use crate::usage::Spending;

/// The budgets of every session of this process.
pub(crate) struct Purses {
    ledger: Arc<dyn Ledger>,
    sessions: tokio::sync::Mutex<HashMap<StreamId, Purse>>,
}

impl Purses {
    pub(crate) fn new(ledger: Arc<dyn Ledger>) -> Self {
        Self {
            ledger,
            sessions: tokio::sync::Mutex::default(),
        }
    }

    /// What was spent and what is held, if the session is known here.
    pub(crate) async fn counted(&self, session: &StreamId) -> Option<(Spend, Spend)> {
        let sessions = self.sessions.lock().await;
        let budget = &sessions.get(session)?.session;
        Some((budget.spent(), budget.held()))
    }

    /// The budget that a call of `stream` draws on.
    pub(crate) async fn budget(
        &self,
        stream: &StreamId,
        call: &ModelCall,
    ) -> Result<Budget, LedgerError> {
        let session = stream.session();
        let limits = Limits {
            usd: call.budget_usd.and_then(Usd::from_dollars),
            ..Limits::default()
        };
        let mut sessions = self.sessions.lock().await;
        if !sessions.contains_key(&session) {
            let events = self.ledger.session_after(&session, Position::default());
            let purse = Purse::fold(&session, limits, &events.await?.0)?;
            sessions.insert(session.clone(), purse);
        }
        let purse = sessions.get_mut(&session).expect("just inserted");
        purse.session.raise(limits);
        purse.open(stream, &call.spec.agent, call.spec.limits);
        Ok(purse.budget(stream).clone())
    }
}

/// The budgets of one session.
struct Purse {
    session: Budget,
    /// Those of runs with limits of their own.
    runs: BTreeMap<StreamId, Budget>,
}

/// The part of `RunStarted` that is needed here.
#[derive(Deserialize)]
struct Started {
    spec: StartedSpec,
}

#[derive(Deserialize)]
struct StartedSpec {
    agent: String,
    limits: definition::Limits,
}

impl Purse {
    fn fold(session: &StreamId, limits: Limits, events: &[Event]) -> Result<Self, LedgerError> {
        let mut purse = Self {
            session: Budget::new(format!("session {session}"), limits),
            runs: BTreeMap::new(),
        };
        let mut spending: BTreeMap<&StreamId, Spending> = BTreeMap::new();
        for event in events {
            if &*event.kind == "RunStarted"
                && let Ok(Started { spec }) = event.decode()
            {
                purse.open(&event.stream, &spec.agent, spec.limits);
            }
            spending.entry(&event.stream).or_default().apply(event)?;
        }
        for (stream, spending) in spending {
            let raised = spending.raised_usd.and_then(Usd::from_dollars);
            purse.session.raise(Limits {
                usd: raised.filter(|_| limits.usd.is_some()),
                ..Limits::default()
            });
            purse.budget(stream).restore(spending.worst());
        }
        Ok(purse)
    }

    /// Gives a run a budget of its own, if its agent has limits.
    fn open(&mut self, stream: &StreamId, agent: &str, limits: definition::Limits) {
        let limits = Limits {
            usd: limits.usd,
            tokens: limits.tokens,
            calls: None,
        };
        if limits == Limits::default() || self.runs.contains_key(stream) {
            return;
        }
        let name = format!("{agent} of {stream}");
        let budget = self.budget(stream).child(name, limits);
        self.runs.insert(stream.clone(), budget);
    }

    /// The nearest budget, from `stream` upward.
    fn budget(&self, stream: &StreamId) -> &Budget {
        let mut name = stream.as_str();
        loop {
            if let Some(budget) = self.runs.get(&StreamId::new(name)) {
                return budget;
            }
            match name.rsplit_once('/') {
                Some((parent, _)) => name = parent,
                None => return &self.session,
            }
        }
    }
}

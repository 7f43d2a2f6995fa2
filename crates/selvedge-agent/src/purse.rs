//! The budgets of sessions: what may be spent by whom, and what was already.
//!
//! A session has a budget, and below it each run whose agent has limits of its
//! own; a helper's run is below that of whoever called it. Beside that tree stands
//! what an agent may spend in all its runs together. What was spent before this
//! process began is folded from the ledger.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use selvedge_ledger::{Event, Ledger, LedgerError, Position, StreamId};
use selvedge_model::{Budget, Limits, Spend, Usd};
use selvedge_runtime::Scene;
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

    /// The budget that a call of `scene` draws on.
    pub(crate) async fn budget(
        &self,
        scene: &Scene,
        call: &ModelCall,
    ) -> Result<Budget, LedgerError> {
        let stream = &scene.stream;
        let session = stream.session();
        let limits = Limits {
            usd: call.budget_usd.and_then(Usd::from_dollars),
            tokens: call.budget_tokens,
            ..Limits::default()
        };
        let mut sessions = self.sessions.lock().await;
        if !sessions.contains_key(&session) {
            // Before the first attempt at a session's first call, nothing was spent.
            let is_first = *stream == session && call.turn == 0 && scene.attempt == 1;
            let events = match is_first {
                true => Vec::new(),
                false => {
                    let events = self.ledger.session_after(&session, Position::default());
                    events.await?.0
                }
            };
            let purse = Purse::fold(&session, limits, &events)?;
            sessions.insert(session.clone(), purse);
        }
        let purse = sessions.get_mut(&session).expect("just inserted");
        purse.session.raise(limits);
        purse.open(stream, &call.spec.agent, call.spec.limits);
        let spec = &call.spec;
        let raised = Limits {
            usd: limits.usd.filter(|_| call.budget_usd != spec.budget_usd),
            tokens: limits
                .tokens
                .filter(|_| call.budget_tokens != spec.budget_tokens),
            calls: None,
        };
        purse.raise(stream, &spec.agent, raised);
        Ok(purse.drawn_on(stream, &call.spec.agent))
    }
}

/// The budgets of one session.
struct Purse {
    session: Budget,
    /// Those of runs with limits of their own.
    runs: BTreeMap<StreamId, Budget>,
    /// Those of agents with limits on all their runs, by name.
    agents: BTreeMap<String, Budget>,
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
            agents: BTreeMap::new(),
        };
        let mut spending: BTreeMap<&StreamId, Spending> = BTreeMap::new();
        let mut agents: BTreeMap<&StreamId, String> = BTreeMap::new();
        for event in events {
            if &*event.kind == "RunStarted"
                && let Ok(Started { spec }) = event.decode()
            {
                purse.open(&event.stream, &spec.agent, spec.limits);
                agents.insert(&event.stream, spec.agent);
            }
            spending.entry(&event.stream).or_default().apply(event)?;
        }
        for (stream, spending) in spending {
            let raised = Limits {
                usd: spending.raised_usd.and_then(Usd::from_dollars),
                tokens: spending.raised_tokens,
                calls: None,
            };
            let agent = agents.get(stream).map_or("", String::as_str);
            purse.raise(stream, agent, raised);
            purse.drawn_on(stream, agent).restore(spending.worst());
        }
        Ok(purse)
    }

    /// Gives a run a budget of its own, and its agent one for all its runs, if
    /// there are such limits.
    fn open(&mut self, stream: &StreamId, agent: &str, limits: definition::Limits) {
        let in_session = Limits {
            usd: limits.usd_in_session,
            tokens: limits.tokens_in_session,
            calls: None,
        };
        if in_session != Limits::default() && !self.agents.contains_key(agent) {
            let name = format!("{agent} in {}", stream.session());
            let budget = Budget::new(name, in_session);
            self.agents.insert(agent.to_owned(), budget);
        }
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

    /// Somebody said how much more may be spent: whatever is in the way of a call of
    /// `agent` in `stream` gives way to it.
    fn raise(&self, stream: &StreamId, agent: &str, limits: Limits) {
        let is_above = |run: &StreamId| {
            let rest = stream.as_str().strip_prefix(run.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let runs = self.runs.iter().filter(|(run, _)| is_above(run));
        let runs = runs.map(|(_, budget)| budget);
        let others = [Some(&self.session), self.agents.get(agent)];
        runs.chain(others.into_iter().flatten())
            .for_each(|budget| budget.raise(limits));
    }

    /// What a call of `agent` in `stream` draws on.
    fn drawn_on(&self, stream: &StreamId, agent: &str) -> Budget {
        let budget = self.budget(stream);
        match self.agents.get(agent) {
            Some(agent) => budget.beside(agent),
            None => budget.clone(),
        }
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

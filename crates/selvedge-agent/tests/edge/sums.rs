//! Whether the sums agree: of agents, of providers, of sessions, and of the account that
//! all processes keep together, each with what the providers themselves have billed.

use std::collections::BTreeMap;

use selvedge_agent::{Row, Spending};
use selvedge_ledger::{Ledger, StreamId};
use selvedge_model::{CallName, Spend, Usd, provider_of};
use serde::Deserialize;

use crate::PROVIDERS;
use crate::fickle::Bill;

/// Compares a session's record with the bill, agent by agent and provider by provider.
/// Where nobody was killed they are the same to the cent.
pub fn agree(seed: &str, spending: &Spending, bill: &Bill, is_unharmed: bool) {
    let mut recorded: BTreeMap<(&str, &str), Row> = BTreeMap::new();
    for ((agent, model), row) in &spending.rows {
        let sum = recorded.entry((agent, provider_of(model))).or_default();
        *sum = *sum + *row;
    }
    let agents: Vec<&str> = bill.0.keys().map(|(agent, _)| agent.as_str()).collect();
    for agent in agents {
        // Who would have answered what a kill cut off is not known, only who asked.
        let in_doubt = spending.in_doubt().filter(|begun| begun.agent == agent);
        let in_doubt: Vec<Spend> = in_doubt.map(|begun| begun.reserved).collect();
        let most = in_doubt.iter().fold(Spend::default(), |a, b| a + *b);
        for provider in PROVIDERS {
            let row = recorded.get(&(agent, provider)).copied();
            let row = row.unwrap_or_default();
            let line = bill.of(|a, p| (a, p) == (agent, provider));
            let who = format!("{seed}, {agent} at {provider}: {row:?} and {line:?}");
            let known = row.cost.saturating_sub(row.estimated.cost);
            let answered = line.usd.saturating_sub(line.usd_broken);
            assert!(known <= answered, "{who}: more is counted than billed");
            assert!(
                line.usd <= row.spend().usd + most.usd,
                "{who}: more is billed than counted"
            );
            let missing = (line.answered + line.broken).checked_sub(row.calls + row.broken);
            let missing = missing.unwrap_or_else(|| panic!("{who}: counted twice"));
            assert!(missing <= in_doubt.len() as u64, "{who}");
            if is_unharmed {
                let (calls, broken) = (row.calls, row.broken);
                assert_eq!((calls, broken), (line.answered, line.broken), "{who}");
                assert_eq!(known, answered, "{who}");
            }
        }
    }
}

/// What all processes know of one session, from the stream that they share.
#[derive(Default)]
pub struct Account {
    settled: BTreeMap<String, Spend>,
    held: BTreeMap<CallName, Spend>,
}

#[derive(Deserialize)]
struct Held {
    call: CallName,
    amount: Spend,
}

#[derive(Deserialize)]
struct Settled {
    call: CallName,
    provider: String,
    spend: Spend,
}

impl Account {
    pub async fn of(ledger: &dyn Ledger, session: &StreamId) -> Self {
        let stream = StreamId::new("machine#ceilings");
        let mut account = Self::default();
        // Before the first call nobody has opened it.
        let events = ledger.read(&stream, 0).await.unwrap_or_default();
        let is_ours = |call: &CallName| {
            let stream = call.call.split(' ').next().unwrap_or_default();
            StreamId::new(stream).session() == *session
        };
        for event in events {
            match &*event.kind {
                "SpendingHeld" => {
                    let Held { call, amount } = event.decode().unwrap();
                    if is_ours(&call) {
                        account.held.insert(call, amount);
                    }
                }
                "SpendingSettled" => {
                    let Settled {
                        call,
                        provider,
                        spend,
                    } = event.decode().unwrap();
                    if account.held.remove(&call).is_some() {
                        let sum = account.settled.entry(provider).or_default();
                        *sum = *sum + spend;
                    }
                }
                _ => {}
            }
        }
        account
    }

    /// The account covers what was billed, and where nobody was killed it says what the
    /// session's own record does, provider by provider.
    pub fn agrees(&self, seed: &str, spending: &Spending, bill: &Bill, is_unharmed: bool) {
        let settled = self.settled.values();
        let settled = settled.fold(Spend::default(), |a, b| a + *b);
        let counted = self.held.values().fold(settled, |a, b| a + *b);
        let billed = bill.total();
        assert!(billed.usd <= counted.usd, "{seed}: {billed:?}, {counted:?}");
        assert!(billed.tokens <= counted.tokens, "{seed}");
        if !is_unharmed {
            return;
        }
        assert!(self.held.is_empty(), "{seed}: something is still held");
        for provider in PROVIDERS {
            let rows = spending.rows.iter();
            let rows = rows.filter(|((_, model), _)| provider_of(model) == provider);
            let own = rows.fold(Spend::default(), |sum, (_, row)| sum + row.spend());
            let shared = self.settled.get(provider).copied().unwrap_or_default();
            let both = |spend: Spend| -> (Usd, u64) { (spend.usd, spend.tokens) };
            assert_eq!(both(own), both(shared), "{seed}: {provider}");
        }
    }
}

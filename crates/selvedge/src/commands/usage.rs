//! `usage`: what was spent, by session, agent and model.

use clap::Args;
use selvedge_agent::{Row, Spending};
use selvedge_ledger::{LedgerError, Position, StreamId};
use serde_json::json;

use crate::error::{Exit, Result};
use crate::out;
use crate::sessions;
use crate::text::{count, table};
use crate::wiring::Store;

#[derive(Args)]
pub struct Usage {
    /// Only this session.
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Print one row per line, as JSON.
    #[arg(long)]
    json: bool,
}

impl Usage {
    pub async fn perform(self) -> Result {
        let store = Store::open()?;
        let sessions: Vec<StreamId> = match &self.session {
            Some(text) => vec![sessions::find(&store, text).await?],
            None => {
                let all = sessions::all(&store).await?;
                all.into_iter().map(|info| info.id).collect()
            }
        };
        let heading = [
            "SESSION", "AGENT", "MODEL", "CALLS", "IN", "CACHED", "OUT", "COST",
        ];
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        let mut total = Row::default();
        for session in &sessions {
            let spending = match spending(&store, session).await {
                Ok(spending) => spending,
                Err(error) => {
                    out::warn(&format!("session `{session}` is left out: {error}"));
                    continue;
                }
            };
            for ((agent, model), row) in &spending.rows {
                if self.json {
                    out::json(&json!({
                        "session": session, "agent": agent, "model": model, "calls": row.calls,
                        "usage": row.usage, "cost_usd": known(row), "unpriced_calls": row.unpriced,
                    }));
                }
                let name = [session.to_string(), agent.clone(), model.clone()];
                rows.push(name.into_iter().chain(cells(row)).collect());
                total = sum(total, *row);
            }
            if spending.in_doubt().nanos() > 0 {
                out::warn(&format!(
                    "session `{session}` may have spent up to {} more, on calls whose end is not \
                     on record",
                    spending.in_doubt()
                ));
            }
        }
        if !self.json && total.calls == 0 {
            out::say("nothing was spent");
        } else if !self.json {
            let name = ["total".to_owned(), String::new(), String::new()];
            rows.push(name.into_iter().chain(cells(&total)).collect());
            out::line(&table(&rows));
        }
        Ok(Exit::Done)
    }
}

async fn spending(store: &Store, session: &StreamId) -> std::result::Result<Spending, LedgerError> {
    let mut spending = Spending::default();
    let all = store.ledger.session_after(session, Position::default());
    let all = all.await?.0;
    // What a fork has copied was paid for once, in the session it comes from.
    let forked = all.iter().find(|e| &*e.kind == "SessionForked");
    let forked = forked.map(|event| event.time);
    for event in all.iter().filter(|e| forked.is_none_or(|t| e.time > t)) {
        spending.apply(event)?;
    }
    Ok(spending)
}

fn cells(row: &Row) -> [String; 5] {
    [
        row.calls.to_string(),
        count(row.usage.input),
        count(row.usage.cached),
        count(row.usage.output),
        cost(row),
    ]
}

/// What it cost; a price that is not known is not zero.
fn cost(row: &Row) -> String {
    match row.unpriced {
        0 => row.cost.to_string(),
        n if n == row.calls => "unknown".into(),
        n => format!("{} and {n} calls of unknown price", row.cost),
    }
}

fn known(row: &Row) -> Option<selvedge_model::Usd> {
    (row.unpriced == 0).then_some(row.cost)
}

fn sum(a: Row, b: Row) -> Row {
    Row {
        calls: a.calls + b.calls,
        usage: a.usage + b.usage,
        cost: a.cost + b.cost,
        unpriced: a.unpriced + b.unpriced,
    }
}

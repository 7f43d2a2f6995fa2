//! `usage`: what was spent, by whom and on what.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use selvedge_agent::{Row, SchemaTokens, Spending};
use selvedge_ledger::{LedgerError, Position, StreamId, Time};
use selvedge_model::{Spend, Usd, provider_of};
use serde_json::json;

use crate::error::{Exit, Result};
use crate::out;
use crate::progress::about;
use crate::sessions;
use crate::text::{count, escape, moment, plural, table};
use crate::when::When;
use crate::wiring::Store;

/// Cells of the longest bar, and the fewest that still show a difference.
const BAR_CELLS: usize = 24;
const BAR_CELLS_MIN: usize = 4;
/// Amounts have cents at least, and all as many decimals as the longest of them needs: so
/// they are read at a glance, and add up.
const DECIMALS_MIN: u32 = 2;

#[derive(Args)]
pub struct Usage {
    /// Only this session.
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only this agent.
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Only this provider's models.
    #[arg(long, value_name = "PROVIDER")]
    provider: Option<String>,
    /// Only calls from then on: a day such as `2026-11-01`, or `7d`, `24h`, `30m`.
    #[arg(long, value_name = "WHEN", value_parser = When::parse)]
    since: Option<When>,
    /// One row for each of these, instead of each session, agent and model.
    #[arg(long, value_name = "WHAT")]
    by: Option<By>,
    /// Print one row per line, as JSON.
    #[arg(long)]
    json: bool,
}

/// What rows are summed by.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    Agent,
    Model,
    Provider,
    Session,
    Day,
}

/// A row's key: what it is about, in one to three words.
type Key = Vec<String>;

/// What was spent under a key.
#[derive(Clone, Copy, Default)]
struct Sum {
    row: Row,
    in_doubt: Spend,
}

impl Sum {
    /// What budgets count: the most that can have been spent.
    fn at_most(&self) -> Spend {
        self.row.spend() + self.in_doubt
    }
}

impl Usage {
    pub async fn perform(self) -> Result {
        let store = Store::open()?;
        let sessions = sessions::chosen(&store, self.session.as_deref()).await?;
        let since = self.since.map(|since| since.from(store.clock.now()));
        let mut sums: BTreeMap<Key, Sum> = BTreeMap::new();
        for session in &sessions {
            if let Err(error) = self.add(&store, session, since, &mut sums).await {
                out::warn(&format!("session `{session}` is left out: {error}"));
            }
        }
        if self.json {
            sums.iter().for_each(|(key, sum)| self.print(key, sum));
        } else {
            self.show(&sums);
        }
        Ok(Exit::Done)
    }

    /// Adds a session's calls; none of them if it cannot be read.
    async fn add(
        &self,
        store: &Store,
        session: &StreamId,
        since: Option<Time>,
        sums: &mut BTreeMap<Key, Sum>,
    ) -> std::result::Result<(), LedgerError> {
        let mut spending = Spending::default();
        let mut charges = Vec::new();
        let all = store.ledger.session_after(session, Position::default());
        // What a fork has copied was paid for once, in the session it comes from.
        let told = sessions::told(all.await?.0);
        for told in told.iter().filter(|told| told.is_own) {
            charges.extend(spending.charge(&told.event)?);
        }
        let is_meant = |agent: &str, model: &str, time: Time| {
            self.agent.as_deref().is_none_or(|wanted| wanted == agent)
                && self
                    .provider
                    .as_deref()
                    .is_none_or(|wanted| wanted == provider_of(model))
                && since.is_none_or(|since| time >= since)
        };
        for charge in charges {
            if is_meant(&charge.agent, &charge.model, charge.time) {
                let key = self.key(session, &charge.agent, &charge.model, charge.time);
                let sum = sums.entry(key).or_default();
                sum.row = sum.row + charge.row;
            }
        }
        for begun in spending.in_doubt() {
            if is_meant(&begun.agent, &begun.model, begun.time) {
                let key = self.key(session, &begun.agent, &begun.model, begun.time);
                let sum = sums.entry(key).or_default();
                sum.in_doubt = sum.in_doubt + begun.reserved;
            }
        }
        Ok(())
    }

    fn key(&self, session: &StreamId, agent: &str, model: &str, time: Time) -> Key {
        match self.by {
            None => vec![session.to_string(), agent.to_owned(), model.to_owned()],
            Some(By::Agent) => vec![agent.to_owned()],
            Some(By::Model) => vec![model.to_owned()],
            Some(By::Provider) => vec![provider_of(model).to_owned()],
            Some(By::Session) => vec![session.to_string()],
            Some(By::Day) => vec![moment(time).chars().take(10).collect()],
        }
    }

    /// The names of a key's words.
    fn names(&self) -> &'static [&'static str] {
        match self.by {
            None => &["session", "agent", "model"],
            Some(By::Agent) => &["agent"],
            Some(By::Model) => &["model"],
            Some(By::Provider) => &["provider"],
            Some(By::Session) => &["session"],
            Some(By::Day) => &["day"],
        }
    }

    fn print(&self, key: &Key, sum: &Sum) {
        let row = &sum.row;
        let mean = |millis: u64| (row.calls > 0).then(|| millis / row.calls);
        let mut line = json!({
            "calls": row.calls, "broken_attempts": row.broken, "cached_answers": row.cached,
            "usage": row.usage, "unpriced_calls": row.unpriced,
            "cost_usd": (row.unpriced == 0).then_some(row.cost), "priced_usd": row.cost,
            "estimated_calls": row.uncounted, "estimated_attempts": row.estimated.attempts, "estimated_usd": row.estimated.cost,
            "at_most_usd": sum.at_most().usd, "at_most_tokens": sum.at_most().tokens,
            "in_doubt_usd": sum.in_doubt.usd, "in_doubt_tokens": sum.in_doubt.tokens,
            "first_token_ms_mean": mean(row.latency.first_token_ms),
            "total_ms_mean": mean(row.latency.total_ms),
            "schema_tokens": row.schemas,
        });
        for (name, word) in self.names().iter().zip(key) {
            line[*name] = json!(word);
        }
        out::json(&line);
    }

    fn show(&self, sums: &BTreeMap<Key, Sum>) {
        let total = sums.values().fold(Sum::default(), |total, sum| Sum {
            row: total.row + sum.row,
            in_doubt: total.in_doubt + sum.in_doubt,
        });
        if sums.is_empty() {
            out::say("nothing was spent");
            return;
        }
        let most = sums
            .values()
            .map(|sum| sum.row.cost)
            .max()
            .unwrap_or_default();
        let needed = sums.values().map(|sum| sum.row.cost.decimals()).max();
        let decimals = needed.unwrap_or(0).max(DECIMALS_MIN);
        let heading = ["CALLS", "IN", "CACHED", "OUT", "COST"];
        let names = self.names().iter().map(|name| name.to_uppercase());
        let heading = heading.map(str::to_owned);
        let mut rows = vec![names.chain(heading).collect::<Vec<_>>()];
        for (key, sum) in sums {
            let mut row: Vec<String> = key.iter().map(|word| escape(word)).collect();
            row.extend(cells(&sum.row, decimals));
            rows.push(row);
        }
        let mut last = vec![String::new(); self.names().len()];
        last[0] = "total".to_owned();
        last.extend(cells(&total.row, decimals));
        rows.push(last);
        // Bars are for eyes: they fill the room that a terminal leaves, and a
        // program that reads the table gets none.
        let width = table(&rows).lines().map(|line| line.chars().count()).max();
        let columns = out::columns().unwrap_or_default();
        let room = columns.saturating_sub(width.unwrap_or_default() + 2);
        if room >= BAR_CELLS_MIN && most > Usd::ZERO {
            for (row, sum) in rows[1..].iter_mut().zip(sums.values()) {
                row.push(bar(sum.row.cost, most, room.min(BAR_CELLS)));
            }
        }
        out::line(&table(&rows));
        let estimated = total.row.estimated;
        if estimated.attempts > 0 {
            let attempts = plural(estimated.attempts, "attempt");
            out::say(&format!(
                "{attempts} broke off before the provider said what was used: {} of this is \
                 estimated by what was heard, and it is {} at most",
                estimated.cost,
                estimated.cost + estimated.more
            ));
        }
        if total.row.uncounted > 0 {
            let answers = plural(total.row.uncounted, "answer");
            out::say(&format!(
                "{answers} came without a count of tokens: what is marked with `~` and `about` is \
                 estimated by the length of the texts"
            ));
        }
        let counted = total.row.broken - estimated.attempts.min(total.row.broken);
        if counted > 0 {
            let attempts = plural(counted, "attempt");
            out::say(&format!(
                "{attempts} came to nothing and had to be paid for"
            ));
        }
        if total.row.cached > 0 {
            let answers = plural(total.row.cached, "answer");
            out::say(&format!("{answers} given again at no cost"));
        }
        if let Some(saved) = saved(&total.row.schemas) {
            out::say(&saved);
        }
        if total.in_doubt.tokens > 0 {
            out::warn(&format!(
                "up to {} and {} tokens more may have been spent, on calls whose end is not on \
                 record",
                total.in_doubt.usd,
                count(total.in_doubt.tokens)
            ));
        }
    }
}

fn cells(row: &Row, decimals: u32) -> [String; 5] {
    let tokens = |number| match row.uncounted {
        0 => count(number),
        _ => format!("~{}", count(number)),
    };
    [
        row.calls.to_string(),
        tokens(row.usage.input),
        count(row.usage.cached),
        tokens(row.usage.output),
        cost(row, decimals),
    ]
}

/// What it cost; a price that is not known is not zero.
fn cost(row: &Row, decimals: u32) -> String {
    let about = about(row);
    let cost = row.cost.with_decimals(decimals);
    match row.unpriced {
        0 => format!("{about}{cost}"),
        _ if row.is_unpriced() => "unknown".into(),
        n => format!("{about}{cost} and {} of unknown cost", plural(n, "call")),
    }
}

/// What it saved that not every tool was at hand from the beginning, estimated.
fn saved(schemas: &SchemaTokens) -> Option<String> {
    let SchemaTokens { sent, eager } = *schemas;
    (eager > 0).then_some(())?;
    let percent = 100 * sent.abs_diff(eager) / eager;
    let than = if sent <= eager { "fewer" } else { "more" };
    Some(format!(
        "tool schemas: about {} tokens sent, {percent}% {than} than with every tool at hand ({})",
        count(sent),
        count(eager)
    ))
}

/// A bar as long as `cost` is of `most`, which has `cells`; at least a sliver for
/// anything at all.
fn bar(cost: Usd, most: Usd, cells: usize) -> String {
    let eighths = u128::from(cost.nanos()) * cells as u128 * 8;
    let eighths = eighths.div_ceil(u128::from(most.nanos().max(1))) as usize;
    let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    format!("{}{part}", "█".repeat(eighths / 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lazy_loading_saved_or_cost_is_said() {
        let said = |sent, eager| saved(&SchemaTokens { sent, eager });
        assert_eq!(said(0, 0), None);
        let text = said(4_300, 10_000).unwrap();
        assert!(text.contains("4.3k tokens sent, 57% fewer"), "{text}");
        let text = said(1_100, 1_000).unwrap();
        assert!(text.contains("10% more than"), "{text}");
    }

    #[test]
    fn a_bar_is_as_long_as_its_part_of_the_most() {
        let most = Usd::from_nanos(1000);
        assert_eq!(bar(most, most, 24), "█".repeat(24));
        assert_eq!(bar(Usd::from_nanos(500), most, 24), "█".repeat(12));
        assert_eq!(bar(Usd::from_nanos(1), most, 24), "▏");
        assert_eq!(bar(Usd::ZERO, most, 24), "");
    }
}

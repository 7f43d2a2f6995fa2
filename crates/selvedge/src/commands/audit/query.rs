//! `audit query` and `audit export`: acts by filters, as a table, JSON or CSV.

use clap::Args;
use selvedge_ledger::{LedgerError, Position, StreamId, Time};
use selvedge_tool::glob;

use crate::audit::{Auditor, Category, Entry, Outcome};
use crate::error::{Exit, Result};
use crate::out;
use crate::sessions::{self, Told};
use crate::text::{fit, moment, one_line, plural, table};
use crate::when::When;
use crate::wiring::Store;

#[derive(Args)]
pub struct Query {
    #[command(flatten)]
    filter: Filter,
    /// No more than the newest so many.
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    limit: usize,
    /// Print one act per line, as JSON.
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print comma-separated values.
    #[arg(long)]
    csv: bool,
}

#[derive(Args)]
pub struct Export {
    #[command(flatten)]
    filter: Filter,
    /// Print comma-separated values instead of JSON.
    #[arg(long)]
    csv: bool,
}

#[derive(Args)]
struct Filter {
    /// Only this session.
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only this agent's acts.
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Only acts about this.
    #[arg(long, value_name = "CATEGORY")]
    category: Vec<Category>,
    /// Only this action, such as `run_command` or `judged`; `*` stands for any text.
    #[arg(long, value_name = "GLOB")]
    action: Option<String>,
    /// Only acts that ended like this.
    #[arg(long, value_name = "OUTCOME")]
    outcome: Vec<Outcome>,
    /// Only acts upon this: a command, a path; `*` stands for any text.
    #[arg(long, value_name = "GLOB")]
    target: Option<String>,
    /// Only from then on: a day such as `2026-11-01`, or `7d`, `24h`, `30m`.
    #[arg(long, value_name = "WHEN", value_parser = When::parse)]
    since: Option<When>,
    /// Only before then.
    #[arg(long, value_name = "WHEN", value_parser = When::parse)]
    before: Option<When>,
}

impl Query {
    pub async fn perform(self) -> Result {
        let mut entries = self.filter.entries().await?;
        let left_out = entries.len().saturating_sub(self.limit);
        entries.drain(..left_out);
        match (self.json, self.csv) {
            (true, _) => entries.iter().for_each(out::json),
            (_, true) => print_csv(&entries),
            _ if entries.is_empty() => out::say("nothing was done that fits"),
            _ => show(&entries),
        }
        if left_out > 0 {
            let count = plural(left_out as u64, "older act");
            out::say(&format!("{count} left out; ask for more with `--limit`"));
        }
        Ok(Exit::Done)
    }
}

impl Export {
    pub async fn perform(self) -> Result {
        let entries = self.filter.entries().await?;
        match self.csv {
            true => print_csv(&entries),
            false => entries.iter().for_each(out::json),
        }
        Ok(Exit::Done)
    }
}

impl Filter {
    /// The acts that are meant, the oldest first.
    async fn entries(&self) -> Result<Vec<Entry>> {
        let store = Store::open()?;
        let now = store.clock.now();
        let (since, before) = (
            self.since.map(|w| w.from(now)),
            self.before.map(|w| w.from(now)),
        );
        let chosen = sessions::chosen(&store, self.session.as_deref()).await?;
        let mut entries = Vec::new();
        for session in &chosen {
            match read(&store, session).await {
                Ok(read) => {
                    entries.extend(read.into_iter().filter(|e| self.means(e, since, before)))
                }
                Err(error) => out::warn(&format!("session `{session}` is left out: {error}")),
            }
        }
        entries.sort_by_key(|entry| entry.time);
        Ok(entries)
    }

    fn means(&self, entry: &Entry, since: Option<Time>, before: Option<Time>) -> bool {
        let is = |wanted: &Option<String>, text: &str| {
            wanted.as_deref().is_none_or(|pattern| glob(pattern, text))
        };
        is(&self.agent, &entry.agent)
            && is(&self.action, &entry.action)
            && is(&self.target, &entry.target)
            && (self.category.is_empty() || self.category.contains(&entry.category))
            && (self.outcome.is_empty() || self.outcome.contains(&entry.outcome))
            && since.is_none_or(|since| entry.time >= since)
            && before.is_none_or(|before| entry.time < before)
    }
}

async fn read(store: &Store, session: &StreamId) -> std::result::Result<Vec<Entry>, LedgerError> {
    let mut auditor = Auditor::default();
    let mut entries = Vec::new();
    let (events, _) = store
        .ledger
        .session_after(session, Position::default())
        .await?;
    for Told { event, is_own } in sessions::told(events) {
        let entry = auditor.audit(&*store.ledger, &event).await?;
        // What a fork has copied was done once, in the session it comes from.
        entries.extend(entry.filter(|_| is_own));
    }
    Ok(entries)
}

fn show(entries: &[Entry]) {
    let heading = [
        "TIME", "SESSION", "AGENT", "OUTCOME", "ACTION", "TARGET", "DETAIL",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for entry in entries {
        rows.push(vec![
            moment(entry.time),
            entry.session.to_string(),
            one_line(&entry.agent, 20),
            word(&entry.outcome),
            one_line(&entry.action, 20),
            one_line(&entry.target, 50),
            one_line(&entry.detail, 100),
        ]);
    }
    out::line(&fit(&table(&rows), out::columns()));
}

fn print_csv(entries: &[Entry]) {
    out::line("time,session,stream,seq,agent,category,action,target,outcome,detail,hash");
    for entry in entries {
        let cells = [
            moment(entry.time),
            entry.session.to_string(),
            entry.stream.to_string(),
            entry.seq.to_string(),
            entry.agent.clone(),
            word(&entry.category),
            entry.action.clone(),
            entry.target.clone(),
            word(&entry.outcome),
            entry.detail.clone(),
            entry.hash.to_string(),
        ];
        out::line(&cells.map(|text| cell(&text)).join(","));
    }
}

/// The word that a value is written as.
fn word<T: serde::Serialize>(value: &T) -> String {
    let value = serde_json::to_value(value).expect("a word is JSON");
    value.as_str().unwrap_or_default().to_owned()
}

/// A cell that a spreadsheet reads as text, and never as a formula.
fn cell(text: &str) -> String {
    let text = match text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        true => format!("'{text}"),
        false => text.to_owned(),
    };
    match text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_text_whatever_is_in_it() {
        for (text, expected) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("a\nb", "\"a\nb\""),
            ("=cmd()", "'=cmd()"),
            ("-1,2", "\"'-1,2\""),
        ] {
            assert_eq!(cell(text), expected);
        }
    }
}

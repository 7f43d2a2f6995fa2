//! `job list` and `job status`.

use clap::Args;
use selvedge_crews::{JobView, Stand};
use selvedge_ledger::StreamInfo;
use serde_json::{Value, json};

use crate::error::{Error, Exit, Result};
use crate::progress::spent;
use crate::text::{ago, escape, fit, one_line, table};
use crate::wiring::Store;
use crate::{jobs, out, sessions};

#[derive(Args)]
pub struct List {
    /// Print one job per line, as JSON.
    #[arg(long)]
    json: bool,
    /// Only those that have not ended.
    #[arg(long)]
    open: bool,
}

impl List {
    pub async fn perform(self) -> Result {
        let store = Store::open()?;
        let columns = ["ID", "STATE", "CONFIG", "PROGRESS", "SPENT", "CHANGED"];
        let mut rows = vec![columns.map(str::to_owned).to_vec()];
        let now = store.clock.now();
        for info in jobs::all(&store).await? {
            let view = jobs::view(&store, &info.id).await?;
            if self.open && view.ended.is_some() {
                continue;
            }
            let state = state(&store, &info, &view).await?;
            if self.json {
                out::json(&described(&info, &view, state));
                continue;
            }
            let config = view.terms.as_ref().map_or("?", |terms| &terms.config);
            rows.push(vec![
                info.id.to_string(),
                state.into(),
                config.to_owned(),
                view.progress(),
                spent(&view.spending.total()),
                ago(now, info.updated),
            ]);
        }
        match (self.json, rows.len()) {
            (true, _) => {}
            (false, 1) => out::say("there are no jobs; `selvedge demo job` makes two"),
            (false, _) => out::line(&fit(&table(&rows), out::columns())),
        }
        Ok(Exit::Done)
    }
}

#[derive(Args)]
pub struct Status {
    /// The job; the beginning of its id is enough.
    #[arg(value_name = "ID")]
    job: String,
    /// Print it as JSON.
    #[arg(long)]
    json: bool,
}

impl Status {
    pub async fn perform(self) -> Result {
        let store = Store::open()?;
        let session = sessions::find(&store, &self.job).await?;
        let info = store.ledger.stream(&session).await?;
        let info = info
            .filter(|info| info.kind == selvedge_crews::JOB)
            .ok_or_else(|| {
                Error::usage(format!("`{session}` is not a job")).hint(format!(
                    "look at it with `selvedge sessions show {session}`"
                ))
            })?;
        let view = jobs::view(&store, &session).await?;
        let state = state(&store, &info, &view).await?;
        if self.json {
            out::json(&described(&info, &view, state));
            return Ok(Exit::Done);
        }
        let mut lines = vec![
            format!("job {session}: {state}"),
            format!(
                "  config: {}",
                view.terms.as_ref().map_or("?".into(), |terms| {
                    escape(&format!("{} ({})", terms.config, terms.display_name))
                })
            ),
            format!("  folder: {}", escape(&view.folder.display().to_string())),
            match view.stand() {
                Stand::Done => format!("  progress: {}", view.progress()),
                _ => format!("  progress: {}, {} in all", view.progress(), view.completed),
            },
            format!("  iterations: {}", view.iterations()),
        ];
        let spent = spent(&view.spending.total());
        if !spent.is_empty() {
            lines.push(format!("  spent: {spent}"));
        }
        for ((_, reason), (detail, _)) in &view.pauses {
            lines.push(format!(
                "  stands still: {reason}: {}",
                one_line(detail, 200)
            ));
        }
        if let Some(ending) = &view.ended {
            let text = store.ledger.text(&ending.result).await?;
            lines.push(format!("  result: {}", one_line(&text, 400)));
        }
        // Of a job that is done, the last list says nothing more.
        if !view.todos.items.is_empty() && view.stand() != Stand::Done {
            lines.push(escape(&view.todos.render()));
        }
        out::line(&lines.join("\n"));
        Ok(Exit::Done)
    }
}

/// How a job stands, in a word.
async fn state(store: &Store, info: &StreamInfo, view: &JobView) -> Result<&'static str> {
    Ok(match view.stand() {
        Stand::Done => "done",
        Stand::Failed => "failed",
        Stand::Cancelled => "cancelled",
        _ if jobs::is_driven(store, &info.id).await? => "running",
        Stand::Queued => "queued",
        // Out of tries: it goes on when somebody says so, and until then it has failed.
        Stand::Stopped if selvedge_crews::error_report(view).is_some() => "failed",
        Stand::Stopped => "stopped",
        Stand::Open => "suspended",
    })
}

fn described(info: &StreamInfo, view: &JobView, state: &str) -> Value {
    let total = view.spending.total();
    let pauses: Vec<Value> = view
        .pauses
        .iter()
        .map(|((_, reason), (detail, until))| {
            json!({ "reason": reason, "detail": detail, "until": until })
        })
        .collect();
    json!({
        "id": info.id,
        "state": state,
        "config": view.terms.as_ref().map(|terms| &terms.config),
        "folder": view.folder,
        "phase": view.phase,
        "kind": view.kind,
        "todos_done": view.todos.done(),
        "todos": view.todos.items,
        "todos_completed_in_all": view.completed,
        "iterations": view.iterations(),
        "tokens": total.usage.total(),
        "cost_usd": total.cost,
        "pauses": pauses,
        "opened": info.opened,
        "updated": info.updated,
    })
}

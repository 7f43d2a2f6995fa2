//! `sessions list`: the newest sessions.

use clap::Args;
use selvedge_agent::RunSpec;
use serde_json::json;

use crate::error::{Exit, Result};
use crate::out;
use crate::sessions::{self, Listed};
use crate::text::{ago, fit, one_line, table};
use crate::wiring::Store;

#[derive(Args)]
pub struct List {
    /// How many, the newest first.
    #[arg(short = 'n', long, default_value_t = 20, value_name = "NUMBER")]
    limit: usize,
    /// All of them.
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    /// Print one session per line, as JSON.
    #[arg(long)]
    json: bool,
}

impl List {
    pub async fn perform(self) -> Result {
        let store = Store::open()?;
        let all = sessions::all(&store).await?;
        let limit = if self.all { all.len() } else { self.limit };
        let left_out = all.len().saturating_sub(limit);
        let mut listed = Vec::new();
        for info in all.into_iter().take(limit) {
            listed.push(Listed::look(&store, info).await?);
        }
        let form = match self.json {
            true => Form::Json,
            false => Form::Table {
                empty: "there are no sessions yet; `selvedge demo` makes one",
            },
        };
        print(&store, &listed, form).await;
        if left_out > 0 && !self.json {
            out::say(&format!("and {left_out} older ones; `--all` shows them"));
        }
        Ok(Exit::Done)
    }
}

/// How a list is printed.
pub enum Form {
    /// For programs.
    Json,
    /// For people.
    Table {
        /// What is said of an empty list.
        empty: &'static str,
    },
}

/// Prints sessions.
pub async fn print(store: &Store, listed: &[Listed], form: Form) {
    let now = store.clock.now();
    let mut rows = vec![
        ["ID", "STATE", "CREW", "CHANGED", "REQUEST"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for session in listed {
        let request = session.request(store).await;
        let crew = session.spec.as_ref().map(|spec| spec.crew.clone());
        match form {
            Form::Json => out::json(&json!({
                "id": session.info.id, "state": session.state, "crew": crew,
                "opened": session.info.opened, "updated": session.info.updated,
                "workspace": session.spec.as_ref().map(RunSpec::directory),
                "request": request,
            })),
            Form::Table { .. } => rows.push(vec![
                session.info.id.to_string(),
                session.state_word(),
                crew.unwrap_or_else(|| "?".into()),
                ago(now, session.info.updated),
                one_line(&request, 60),
            ]),
        }
    }
    match form {
        Form::Table { empty } if listed.is_empty() => out::say(empty),
        Form::Table { .. } => out::line(&fit(&table(&rows), out::columns())),
        Form::Json => {}
    }
}

//! `mcp list`: which servers there are, and how each stands.

use clap::Args;
use serde_json::json;

use super::{Here, way, whose};
use crate::error::{Exit, Result};
use crate::mcp::Standing;
use crate::out;
use crate::text::{fit, one_line, plural, table};

#[derive(Args)]
pub struct List {
    /// Print one server per line, as JSON.
    #[arg(long)]
    json: bool,
}

impl List {
    pub fn perform(self) -> Result {
        let here = Here::find()?;
        let standings = here.servers.standings(&here.paths, &here.workspace);
        let servers = here.servers.listed.iter().zip(standings);
        if self.json {
            for (listed, standing) in servers {
                let (state, more) = words(&standing);
                out::json(&json!({
                    "name": listed.name,
                    "from": whose(&listed.scope),
                    "way": way(&listed.entry),
                    "state": state,
                    "detail": more,
                }));
            }
            return Ok(Exit::Done);
        }
        if here.servers.listed.is_empty() {
            out::say("there are no MCP servers; add one: `selvedge mcp add NAME -- COMMAND`");
            return Ok(Exit::Done);
        }
        let mut rows = vec![["NAME", "STATE", "WAY"].map(str::to_owned).to_vec()];
        let mut hints = Vec::new();
        for (listed, standing) in servers {
            let (state, more) = words(&standing);
            let shown = match more.is_empty() {
                true => state.to_owned(),
                false => format!("{state}, {more}"),
            };
            let (name, way) = (
                one_line(&listed.name, 30),
                one_line(&way(&listed.entry), 80),
            );
            if matches!(standing, Standing::New | Standing::Changed) {
                hints.push(format!("selvedge mcp approve {name}"));
            }
            rows.push(vec![name, one_line(&shown, 50), way]);
        }
        out::line(&fit(&table(&rows), out::columns()));
        for hint in hints {
            out::say(&format!("next: {hint}"));
        }
        Ok(Exit::Done)
    }
}

/// How a server stands, in a word and what there is to add.
pub(super) fn words(standing: &Standing) -> (&'static str, String) {
    match standing {
        Standing::Approved(tools) => ("approved", plural(*tools as u64, "tool")),
        Standing::Changed => ("changed", String::new()),
        Standing::New => ("not approved", String::new()),
        Standing::Disabled => ("disabled", String::new()),
        Standing::Wrong(why) => ("wrong", why.clone()),
    }
}

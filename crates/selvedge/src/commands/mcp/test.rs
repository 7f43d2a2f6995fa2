//! `mcp test`: starts an approved server and compares it with what was approved.

use clap::Args;
use selvedge_mcp::{Changes, Server};
use serde_json::json;

use super::{Here, unreachable};
use crate::error::{Error, Exit, Result};
use crate::mcp::{self, Standing, standing};
use crate::out;
use crate::text::{escape, plural};

#[derive(Args)]
pub struct Test {
    /// The server.
    #[arg(value_name = "NAME")]
    name: String,
    /// Print what was found as JSON.
    #[arg(long)]
    json: bool,
}

impl Test {
    pub async fn perform(self) -> Result {
        let here = Here::find()?;
        let (listed, book) = (here.server(&self.name)?, here.book());
        let name = escape(&self.name);
        let refused = |why: &str| {
            Error::new(
                Exit::Denied,
                format!("the MCP server `{name}` was not started"),
            )
            .cause(why)
            .hint(format!("`selvedge mcp approve {name}`"))
        };
        let approved = match standing(&book, listed, &here.workspace) {
            Standing::Changed => {
                return Err(refused(
                    "its entry, or a script that it names, has changed since it was approved",
                ));
            }
            Standing::New => return Err(refused("nobody has approved it")),
            Standing::Wrong(why) => return Err(refused(&why)),
            Standing::Disabled | Standing::Approved(_) => book.current(listed, &here.workspace),
        };
        let approved = approved.ok_or_else(|| refused("nobody has approved it"))?;
        let look = Server::look(listed, &mcp::options(), &here.surroundings()?)
            .await
            .map_err(|error| unreachable(&self.name, &error))?;
        let changes = Changes::between(&approved.definitions, &look.definitions);
        if self.json {
            out::json(&json!({
                "name": self.name,
                "own_name": look.own_name,
                "protocol": look.version,
                "tools": look.definitions.len(),
                "new": changes.new,
                "changed": changes.changed,
                "gone": changes.gone,
            }));
        } else {
            let tools = plural(look.definitions.len() as u64, "tool");
            let own = escape(&look.own_name);
            out::line(&format!(
                "{name}: {own}, protocol {}, {tools}",
                escape(&look.version)
            ));
            for (what, names) in [
                ("not approved", &changes.new),
                ("changed since, and disabled", &changes.changed),
                ("gone", &changes.gone),
            ] {
                if !names.is_empty() {
                    out::line(&format!("  {what}: {}", escape(&names.join(", "))));
                }
            }
        }
        match changes.is_empty() {
            true => Ok(Exit::Done),
            false => {
                out::say(&format!("look at it again: `selvedge mcp approve {name}`"));
                Ok(Exit::Failed)
            }
        }
    }
}

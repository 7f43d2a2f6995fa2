//! `mcp remove`: takes a server out of the user's configuration, and forgets what was
//! approved of it.
//!
//! The file is the user's, with comments and an order of its own. So lines are taken out
//! of it, and what is left must say the same of everything else.

use clap::Args;
use selvedge_mcp::{Entry, Listed, Scope};
use toml::{Table, Value};

use super::Here;
use crate::error::{Error, Exit, Result};
use crate::out;
use crate::text::escape;

#[derive(Args)]
pub struct Remove {
    /// The server.
    #[arg(value_name = "NAME")]
    name: String,
}

impl Remove {
    pub fn perform(self) -> Result {
        let here = Here::find()?;
        let name = escape(&self.name);
        let own = here.config.settings().mcp.servers;
        if !own.contains_key(&self.name) {
            // One of a project is the project's; what is the user's is the approval.
            let listed = here.server(&self.name)?;
            forget(&here, listed)?;
            out::say(&format!(
                "`{name}` is listed by the project and stays there; what was approved of it is \
                 forgotten"
            ));
            return Ok(Exit::Done);
        }
        let path = here.paths.user_config();
        let by_hand = |why: &str| {
            Error::failed(format!(
                "`{name}` cannot be taken out of `{}`",
                path.display()
            ))
            .cause(why)
            .hint(format!("remove `[mcp.servers.{name}]` by hand"))
        };
        let text = std::fs::read_to_string(&path).map_err(|e| by_hand(&e.to_string()))?;
        let left = without(&text, &self.name)
            .ok_or_else(|| by_hand("it does not stand in a table of its own there"))?;
        std::fs::write(&path, left).map_err(|error| by_hand(&error.to_string()))?;
        let listed = Listed {
            name: self.name.clone(),
            scope: Scope::User,
            entry: Entry::default(),
        };
        forget(&here, &listed)?;
        out::say(&format!("`{name}` is removed"));
        Ok(Exit::Done)
    }
}

fn forget(here: &Here, listed: &Listed) -> Result<()> {
    here.book().forget(listed).map(drop).map_err(|error| {
        Error::failed("what was approved cannot be forgotten")
            .cause(error)
            .hint("make the data folder writable")
    })
}

/// The file without the tables of a server; nothing if that would change anything else.
fn without(text: &str, name: &str) -> Option<String> {
    let mut expected: Table = text.parse().ok()?;
    let servers = expected.get_mut("mcp")?.get_mut("servers")?;
    servers.as_table_mut()?.remove(name)?;
    let mut is_within = false;
    let mut left = String::new();
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with('[') {
            is_within = is_of(line, name);
        }
        if !is_within {
            left.push_str(line);
        }
    }
    let found: Table = left.parse().ok()?;
    (plain(&found) == plain(&expected)).then_some(left)
}

/// Whether a line is the heading of a server's table, or of one within it.
fn is_of(line: &str, name: &str) -> bool {
    let Ok(heading) = line.trim().parse::<Table>() else {
        return false;
    };
    let servers = heading.get("mcp").and_then(|mcp| mcp.get("servers"));
    let servers = servers.and_then(Value::as_table);
    servers.is_some_and(|servers| servers.len() == 1 && servers.contains_key(name))
}

/// A table without empty ones: a heading that is gone leaves none behind.
fn plain(table: &Table) -> Table {
    let kept = table.iter().filter_map(|(key, value)| match value {
        Value::Table(inner) => {
            let inner = plain(inner);
            (!inner.is_empty()).then(|| (key.clone(), Value::Table(inner)))
        }
        other => Some((key.clone(), other.clone())),
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_taken_out_and_the_rest_stays_as_it_was_written() {
        let text = "# mine\ncrew = \"solo\"\n\n[mcp.servers.git]\ncommand = \"g\"\n\n\
                    [mcp.servers.git.env]\nA = \"1\"\n\n[limits] # few\nmodel_calls_max = 3\n";
        let left = without(text, "git").unwrap();
        assert_eq!(
            left,
            "# mine\ncrew = \"solo\"\n\n[limits] # few\nmodel_calls_max = 3\n"
        );
        assert_eq!(without(text, "other"), None);
        let inline = "[mcp.servers]\ngit = { command = \"g\" }\n";
        assert_eq!(without(inline, "git"), None, "by hand, then");
    }
}

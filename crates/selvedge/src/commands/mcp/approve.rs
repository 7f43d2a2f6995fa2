//! `mcp approve`: looks at a server, shows what it is and says, and asks.
//!
//! Twice: before it is started, and before an agent is told of its tools.

use std::io::BufRead;

use clap::Args;
use selvedge_mcp::{Approved, Changes, Listed, Look, Server};

use super::show::told;
use super::{Here, description, unreachable};
use crate::error::{Error, Exit, Result};
use crate::mcp::{self, Standing, standing};
use crate::out;
use crate::text::{escape, indented, plural};

#[derive(Args)]
pub struct Approve {
    /// The server.
    #[arg(value_name = "NAME")]
    name: String,
    /// Do not ask: what is shown is approved.
    #[arg(long)]
    yes: bool,
}

impl Approve {
    pub async fn perform(self) -> Result {
        let here = Here::find()?;
        let (listed, book) = (here.server(&self.name)?, here.book());
        if let Err(why) = listed.check() {
            return Err(
                Error::usage(format!("the MCP server `{}` cannot be used", self.name))
                    .cause(why)
                    .hint("correct its entry"),
            );
        }
        let before = book.of(listed);
        out::say(&description(listed));
        if standing(&book, listed, &here.workspace) == Standing::Changed {
            out::say(
                "it was approved before; its entry, or a script that it names, has changed since",
            );
        }
        if !self.agreed("start it and look at its tools?")? {
            return Ok(not_approved(listed));
        }
        let around = here.surroundings()?;
        let look = Server::look(listed, &mcp::attended().await?, &around)
            .await
            .map_err(|error| unreachable(&self.name, &error))?;
        let known = before.map(|before| before.definitions).unwrap_or_default();
        let changes = Changes::between(&known, &look.definitions);
        show(&look, &changes);
        if !self.agreed("may agents use them?")? {
            return Ok(not_approved(listed));
        }
        let approved = Approved {
            server: listed.name.clone(),
            scope: listed.scope.clone(),
            entry: listed.entry.digest(&here.workspace),
            definitions: look.definitions,
            offer: look.offer,
        };
        here.paths.make_data()?;
        book.approve(&approved).map_err(|error| {
            Error::failed("the approval cannot be kept")
                .cause(error)
                .hint("make the data folder writable")
        })?;
        let name = escape(&listed.name);
        out::say(&format!(
            "`{name}` is approved as it is now, with {}; each call is asked about unless a rule \
             says otherwise: `[policy] allow = [\"@mcp {name}/*\"]`",
            plural(approved.definitions.len() as u64, "tool")
        ));
        Ok(Exit::Done)
    }

    fn agreed(&self, question: &str) -> Result<bool> {
        if self.yes {
            return Ok(true);
        }
        if !out::can_ask() {
            return Err(Error::new(
                Exit::Waiting,
                format!("nobody is there to be asked: {question}"),
            )
            .hint("look at what is shown, then say `--yes`"));
        }
        out::say(&format!("\n{question} yes or no"));
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        Ok(read.is_ok() && ["y", "yes"].contains(&line.trim().to_lowercase().as_str()))
    }
}

fn show(look: &Look, changes: &Changes) {
    let (own, version) = (escape(&look.own_name), escape(&look.version));
    out::say(&format!(
        "\nit calls itself {own} (protocol {version}), and has:"
    ));
    for definition in &look.definitions {
        let mark = match &definition.name {
            name if changes.changed.contains(name) => "  [changed]",
            name if changes.new.contains(name) => "  [new]",
            _ => "",
        };
        let told = told(definition);
        let mut lines = told.trim_start_matches('\n').splitn(2, '\n');
        let first = lines.next().unwrap_or_default();
        out::say(&format!("{first}{mark}"));
        lines.for_each(out::say);
    }
    let offer = look.offer;
    for (is_there, words) in [
        (offer.resources, "  resources, which can be listed and read"),
        (
            offer.prompts,
            "  prompts, which can be listed and filled in",
        ),
    ] {
        if is_there {
            out::say(words);
        }
    }
    for name in &changes.gone {
        out::say(&format!("  {}  [gone]", escape(name)));
    }
    if !look.log.is_empty() {
        out::say(&format!(
            "it said:\n{}",
            indented(&escape(&look.log), "    ")
        ));
    }
}

fn not_approved(listed: &Listed) -> Exit {
    out::say(&format!("`{}` is not approved", escape(&listed.name)));
    Exit::Denied
}

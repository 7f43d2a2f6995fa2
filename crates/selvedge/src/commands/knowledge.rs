//! `knowledge`: what an index holds, where it disagrees with itself, and what to forget.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use selvedge_knowledge::{Index, KnowledgeError, Node, Stats, freshness, trust};
use selvedge_ledger::Time;
use serde_json::json;

use super::run;
use crate::embedder;
use crate::error::{Error, Exit, Result};
use crate::paths::Paths;
use crate::text::{count, escape, moment, one_line, plural};
use crate::{knowledge, out};

#[derive(Subcommand)]
pub enum Knowledge {
    /// What the index holds, in numbers.
    Stats(StatsOf),
    /// One thing that is known: its text, its sources, how far to trust it.
    Show(Show),
    /// Contradictions that nobody has settled.
    Conflicts(Conflicts),
    /// Remove something that is known, with everything that hangs on it.
    Forget(Forget),
}

/// Which index is meant.
#[derive(Args)]
struct Which {
    /// The index, or the corpus that it was made of. Default: this project's.
    #[arg(long, value_name = "FILE")]
    index: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub struct StatsOf {
    #[command(flatten)]
    which: Which,
}

#[derive(Args)]
pub struct Show {
    /// Its id, or a symbol's name.
    id: String,
    #[command(flatten)]
    which: Which,
}

#[derive(Args)]
pub struct Conflicts {
    /// Settle the conflict of this number.
    #[arg(long, value_name = "NUMBER", requires = "resolution")]
    settle: Option<i64>,
    /// How it is settled.
    #[arg(long, value_name = "TEXT", requires = "settle")]
    resolution: Option<String>,
    /// Also those that are settled.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    which: Which,
}

#[derive(Args)]
pub struct Forget {
    /// The ids.
    #[arg(required = true)]
    ids: Vec<String>,
    #[command(flatten)]
    which: Which,
}

impl Which {
    fn open(&self) -> Result<Index> {
        let paths = Paths::find()?;
        match &self.index {
            Some(file) => knowledge::find_named(&paths, file, embedder::nobody()),
            None => {
                let here = run::workspace(None)?;
                Ok(knowledge::find(&paths, &here, embedder::nobody())?.0)
            }
        }
    }
}

impl Knowledge {
    pub fn perform(self) -> Result {
        match self {
            Self::Stats(command) => command.perform(),
            Self::Show(command) => command.perform(),
            Self::Conflicts(command) => command.perform(),
            Self::Forget(command) => command.perform(),
        }
    }
}

impl StatsOf {
    fn perform(self) -> Result {
        let stats = self.which.open()?.stats()?;
        match self.which.json {
            true => out::json(&stats),
            false => show_stats(&stats),
        }
        Ok(Exit::Done)
    }
}

fn show_stats(stats: &Stats) {
    let line = |name: &str, value: String| out::line(&format!("{name:<10} {value}"));
    if let Some(root) = &stats.root {
        line("of", escape(root));
    }
    if let Some(indexed) = stats.indexed {
        line("current as", moment(Time(indexed.0)));
    }
    let listed = |all: &mut dyn Iterator<Item = (String, u64)>| {
        let words: Vec<String> = all
            .map(|(name, n)| format!("{} {name}", count(n)))
            .collect();
        words.join(", ")
    };
    line(
        "files",
        listed(&mut stats.files.iter().map(|(name, n)| (name.clone(), *n))),
    );
    line("lines", count(stats.lines));
    line(
        "entries",
        listed(&mut stats.nodes.iter().map(|(name, n)| ((*name).to_owned(), *n))),
    );
    line("edges", count(stats.edges));
    let model = &stats.embedder;
    line(
        "vectors",
        format!(
            "{} by {} ({} dimensions)",
            count(stats.vectors),
            model.name,
            model.dimensions
        ),
    );
    line("conflicts", count(stats.conflicts));
    line("failures", count(stats.failures));
    line(
        "answers",
        format!(
            "{} kept, given {} times",
            stats.answers.kept, stats.answers.hits
        ),
    );
    line("on disk", format!("{:.1} MB", stats.bytes as f64 / 1e6));
}

impl Show {
    fn perform(self) -> Result {
        let index = self.which.open()?;
        let node = match index.node(&self.id) {
            Err(KnowledgeError::NoNode { .. }) => several(&index, &self.id)?,
            found => found?,
        };
        let now = index.now();
        let (trusted, fresh) = (trust(&node, now), freshness(&node, now));
        let sources = index.sources(&node.id)?;
        if self.which.json {
            out::json(&json!({
                "node": node, "trust": trusted, "freshness": fresh, "sources": sources,
            }));
            return Ok(Exit::Done);
        }
        let place = match (&node.path, node.lines) {
            (Some(path), Some((from, to))) => format!(" at {path}:{from}-{to}"),
            _ => String::new(),
        };
        let kind = node.node_type.name();
        out::line(&escape(&format!("{} ({kind}){place}", node.id)));
        let checked = if node.verified {
            "verified"
        } else {
            "unverified"
        };
        out::line(&format!(
            "trust {} ({}), {checked}, freshness {:.2}",
            trusted.level, trusted.label, fresh.score
        ));
        for warning in fresh
            .warning
            .iter()
            .map(String::as_str)
            .chain(trusted.warning)
        {
            out::line(&format!("warning: {}", escape(warning)));
        }
        for source in &sources {
            let from = source
                .node
                .as_ref()
                .or(source.path.as_ref())
                .or(source.url.as_ref());
            let from = from.map_or("", String::as_str);
            out::line(&format!(
                "source: {} {}",
                source.source_type.name(),
                escape(from)
            ));
        }
        if !node.doc.is_empty() {
            out::line(&format!("\n{}", escape(&node.doc)));
        }
        if !node.content.is_empty() {
            let lines: Vec<String> = node.content.lines().map(escape).collect();
            out::line(&format!("\n{}", lines.join("\n")));
        }
        Ok(Exit::Done)
    }
}

/// Says which are meant where a name is that of several.
fn several(index: &Index, name: &str) -> Result<Node> {
    let named = index.named(name)?;
    if named.is_empty() {
        return Err(KnowledgeError::NoNode { id: name.into() }.into());
    }
    let ids: Vec<String> = named
        .iter()
        .take(8)
        .map(|node| format!("`{}`", node.id))
        .collect();
    Err(Error::usage(format!(
        "`{name}` is the name of {}",
        plural(named.len() as u64, "symbol")
    ))
    .cause(ids.join(", "))
    .hint("name one of them by its id"))
}

impl Conflicts {
    fn perform(self) -> Result {
        let index = self.which.open()?;
        if let (Some(id), Some(resolution)) = (self.settle, &self.resolution) {
            index.settle(id, resolution)?;
            out::say(&format!("conflict {id} is settled"));
            return Ok(Exit::Done);
        }
        let conflicts = index.conflicts(self.all)?;
        for record in &conflicts {
            if self.which.json {
                out::json(record);
                continue;
            }
            let conflict = &record.conflict;
            let description = one_line(&conflict.description, 200);
            out::line(&format!(
                "{}  {}: {description}",
                record.id,
                conflict.kind.name()
            ));
            out::line(&escape(&format!(
                "    {} against {}",
                conflict.node_a, conflict.node_b
            )));
            let next = record.resolution.as_ref().unwrap_or(&conflict.suggestion);
            out::line(&format!("    {}", one_line(next, 200)));
        }
        if conflicts.is_empty() && !self.which.json {
            out::say("there are no conflicts");
        }
        Ok(Exit::Done)
    }
}

impl Forget {
    fn perform(self) -> Result {
        let index = self.which.open()?;
        for id in &self.ids {
            index.node(id)?;
        }
        let ids: Vec<&str> = self.ids.iter().map(String::as_str).collect();
        let gone = index.forget(&ids)?;
        if gone == 0 {
            return Err(Error::usage("nothing was forgotten")
                .cause("an id has to be written in full")
                .hint("`selvedge knowledge show NAME` prints it"));
        }
        out::say(&format!(
            "{} forgotten",
            plural(gone as u64, "entry").replace("entrys", "entries")
        ));
        out::say("what is still in a file comes back when that file is indexed again");
        Ok(Exit::Done)
    }
}

//! `search`: finds code, history and documents by what they mean.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use selvedge_knowledge::{Domain, Filter, Found, Hit, Index, Mode, NodeType, Query};
use serde_json::{Value, json};

use super::run;
use crate::config::Config;
use crate::embedder;
use crate::error::{Error, Exit, Result};
use crate::knowledge;
use crate::paths::Paths;
use crate::text::{escape, one_line};
use crate::{out, secrets};

/// Characters of a hit's text that are shown.
const SNIPPET_CHARS: usize = 160;

#[derive(Args)]
pub struct Search {
    /// What to look for, in any words.
    query: String,
    /// Print one hit per line, as JSON.
    #[arg(long)]
    json: bool,
    /// How many hits.
    #[arg(short, long, value_name = "COUNT", default_value_t = 10,
          value_parser = clap::value_parser!(u16).range(1..=1_000))]
    limit: u16,
    /// Only code, history or documents.
    #[arg(long, value_name = "DOMAIN")]
    domain: Option<Kind>,
    /// Only this type, such as `function`; may be given again.
    #[arg(long = "type", value_name = "TYPE", value_parser = node_type)]
    types: Vec<NodeType>,
    /// Only files that match, such as `src/**/*.rs`, or lie below this folder.
    #[arg(long, value_name = "PATTERN")]
    path: Option<String>,
    /// Only by words, only by likeness, or by both.
    #[arg(long, value_name = "HOW", default_value = "hybrid")]
    by: By,
    /// The index to look into, or the corpus that it was made of.
    #[arg(long, value_name = "FILE")]
    index: Option<PathBuf>,
    /// The project's folder. Default: this one.
    #[arg(short = 'C', long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    Code,
    History,
    Documents,
}

#[derive(Clone, Copy, ValueEnum)]
enum By {
    Hybrid,
    Words,
    Likeness,
}

fn node_type(name: &str) -> std::result::Result<NodeType, String> {
    NodeType::named(name).ok_or_else(|| {
        let all: Vec<&str> = NodeType::ALL.iter().map(|one| one.name()).collect();
        format!("the types are: {}", all.join(", "))
    })
}

impl Search {
    pub fn perform(self) -> Result {
        let paths = Paths::find()?;
        let here = run::workspace(self.directory.as_deref())?;
        let embedder = match self.by {
            By::Words => embedder::nobody(),
            By::Hybrid | By::Likeness => embedder::find(&Config::load(&paths, &here)?),
        };
        let (index, root) = match &self.index {
            Some(file) => (knowledge::find_named(&paths, file, embedder)?, None),
            None => {
                let (index, root) = knowledge::find(&paths, &here, embedder)?;
                (index, Some(root))
            }
        };
        if self.query.trim().is_empty() {
            return Err(Error::usage("there is nothing to look for")
                .hint("say what you look for: `selvedge search \"where do we retry\"`"));
        }
        let query = self.query();
        let mut found = index.search(&query)?;
        if let Some(root) = &root
            && index.is_behind(root, &found)?
            && refresh(&paths, &index, root)?
        {
            found = index.search(&query)?;
        }
        if let Some(why) = &found.by_words_only {
            out::warn(&format!("found by words only: {why}"));
        }
        match self.json {
            true => found.hits.iter().for_each(|hit| out::json(&line(hit))),
            false => show(&found),
        }
        match found.hits.is_empty() {
            true => {
                out::say(&nothing(&found, &query.filter));
                Ok(Exit::Failed)
            }
            false => Ok(Exit::Done),
        }
    }

    fn query(&self) -> Query {
        let in_domains = self.domain.map(|domain| match domain {
            Kind::Code => Domain::Code,
            Kind::History => Domain::History,
            Kind::Documents => Domain::Academic,
        });
        Query {
            text: self.query.clone(),
            limit: usize::from(self.limit),
            mode: match self.by {
                By::Hybrid => Mode::Hybrid,
                By::Words => Mode::Lexical,
                By::Likeness => Mode::Vector,
            },
            filter: Filter {
                in_domains: in_domains.into_iter().collect(),
                types: self.types.clone(),
                path: self.path.clone(),
                ..Filter::default()
            },
        }
    }
}

/// Brings the index up to date. `false` if somebody else is at it.
fn refresh(paths: &Paths, index: &Index, root: &Path) -> Result<bool> {
    secrets::learn(&Config::load(paths, root)?)?;
    Ok(knowledge::refresh(index, root)?)
}

fn show(found: &Found) {
    for hit in &found.hits {
        let node = &hit.node;
        let name = match node.name.is_empty() {
            true => String::new(),
            false => format!("  {} {}", node.node_type.name(), escape(&node.name)),
        };
        out::line(&format!("{}{name}", escape(&place(hit))));
        let said = [&node.doc, &node.signature, &node.content];
        let said = said.into_iter().find(|text| !text.is_empty());
        if let Some(said) = said {
            out::line(&format!("    {}", one_line(said, SNIPPET_CHARS)));
        }
        out::line(&format!("    why: {}", one_line(&hit.why, SNIPPET_CHARS)));
    }
}

fn place(hit: &Hit) -> String {
    let node = &hit.node;
    match (&node.path, node.lines) {
        (Some(path), Some((line, _))) => format!("{path}:{line}"),
        (Some(path), None) => format!("{path} {}", node.id),
        _ => node.id.clone(),
    }
}

/// A hit as a line of JSON: what a program needs, and not the whole text.
fn line(hit: &Hit) -> Value {
    let node = &hit.node;
    let mut line = json!({
        "id": node.id,
        "score": hit.score,
        "similarity": hit.similarity,
        "kind": node.node_type.name(),
        "domain": node.domain().name(),
        "name": node.name,
        "path": node.path,
        "line": node.lines.map(|(first, _)| first),
        "line_end": node.lines.map(|(_, last)| last),
        "why": hit.why,
        "verified": node.verified,
        "text": one_line(
            if node.doc.is_empty() { &node.content } else { &node.doc },
            400,
        ),
    });
    if !node.signature.is_empty() {
        line["signature"] = node.signature.clone().into();
    }
    if let Some(time) = node.time {
        line["time"] = time.0.into();
    }
    line
}

/// What is said when nothing was found: short, and where else to look.
fn nothing(found: &Found, filter: &Filter) -> String {
    // By the names that `--domain` knows.
    let name = |domain: &Domain| match domain {
        Domain::Academic => "documents",
        other => other.name(),
    };
    let others: Vec<&str> = found.also_in.iter().map(name).collect();
    if !others.is_empty() {
        return format!(
            "nothing found here; there is something in: {}",
            others.join(", ")
        );
    }
    let flags = [
        (filter.path.is_some(), "--path"),
        (!filter.types.is_empty(), "--type"),
        (!filter.in_domains.is_empty(), "--domain"),
    ];
    let flags: Vec<&str> = flags
        .iter()
        .filter(|flag| flag.0)
        .map(|flag| flag.1)
        .collect();
    match flags.is_empty() {
        true => "nothing found; try other words".into(),
        false => format!(
            "nothing found; try other words, or without {}",
            flags.join(" and ")
        ),
    }
}

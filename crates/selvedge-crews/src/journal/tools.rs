//! What the journal does to files, as tools: every reading and writing goes the way of
//! every call, is on record before and after, and is found out about after a crash.
//!
//! The workspace of a session is the folder of the notes. What is written is named in the
//! arguments, ids included, so doing it twice is doing it once.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::civil::{Date, Time};
use selvedge_tool::{Tool, ToolContext, ToolOutput, ToolProbe, ToolSpec, World};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::correction;
use super::domains::Domains;
use super::notes::context::GlobalContext;
use super::notes::{Correction, EntryId, NewEntry, Notes, ParseState, Parsed, Saved};
use super::protocol::{ActiveDomainContext, Change, ContextUpdate, EntryShown, Retrieval};
use super::rows::{Units, rows};
use super::searching;

/// The folder of the user's own domains, in that of the notes.
pub const DOMAINS: &str = "domains";

pub(super) const LOAD: &str = "journal_load";
pub(super) const SEARCH: &str = "journal_search";
pub(super) const STORE: &str = "journal_store";
pub(super) const REMEMBER: &str = "journal_remember";

/// The tools of the journal.
pub fn journal_tools() -> Vec<Arc<dyn Tool>> {
    let all = [Kind::Load, Kind::Search, Kind::Store, Kind::Remember];
    all.into_iter()
        .map(|kind| Arc::new(JournalTool(kind)) as Arc<dyn Tool>)
        .collect()
}

/// What they do to the world, by name.
pub fn journal_worlds() -> BTreeMap<String, World> {
    journal_tools()
        .iter()
        .map(|tool| (tool.spec().name, tool.spec().world))
        .collect()
}

struct JournalTool(Kind);

#[derive(Clone, Copy)]
enum Kind {
    Load,
    Search,
    Store,
    Remember,
}

/// Which domains are combined, and how much is shown of what was recorded last.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LoadArguments {
    pub(super) domains: Vec<String>,
    pub(super) recent: usize,
}

/// What was loaded.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Loaded {
    pub(super) context: ActiveDomainContext,
    pub(super) global_context: String,
    pub(super) recent: Vec<EntryShown>,
    pub(super) warnings: Vec<String>,
}

/// What is searched for.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SearchArguments {
    pub(super) searches: Vec<Retrieval>,
    pub(super) domains: Vec<String>,
    pub(super) today: Date,
    pub(super) entries_max: usize,
    pub(super) units: Units,
    /// How many searches there were before.
    pub(super) before: u32,
}

/// What is written down.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoreArguments {
    pub(super) id: EntryId,
    pub(super) date: Date,
    pub(super) time: Time,
    pub(super) text: String,
    pub(super) parsed: Parsed,
    pub(super) units: Units,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) target: Option<EntryId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) changes: Vec<Change>,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Stored {
    pub(super) id: EntryId,
    /// `stored`, `updated`, `corrected`, `unchanged` or `noted`.
    pub(super) how: String,
    #[serde(default)]
    pub(super) note: String,
}

/// What is remembered.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RememberArguments {
    pub(super) updates: Vec<ContextUpdate>,
    pub(super) today: Date,
    pub(super) tokens_max: usize,
}

impl Kind {
    fn spec(self) -> ToolSpec {
        let (name, description, world) = match self {
            Self::Load => (
                LOAD,
                "Combine domains, and read what is known.",
                World::Reads,
            ),
            Self::Search => (SEARCH, "Search the notes.", World::Reads),
            Self::Store => (STORE, "Write an entry or a correction down.", World::Writes),
            Self::Remember => (REMEMBER, "Remember something of the user.", World::Writes),
        };
        ToolSpec {
            name: name.into(),
            description: description.into(),
            // The arguments come from code, and are read as their type.
            schema: json!({ "type": "object" }),
            world,
        }
    }

    fn act(self, root: &Path, input: &Value) -> Result<ToolOutput, String> {
        let notes = Notes::at(root);
        let domains = || Domains::load(&root.join(DOMAINS));
        match self {
            Self::Load => load(&notes, &domains(), &read(input)?),
            Self::Search => {
                let arguments: SearchArguments = read(input)?;
                let found = searching::search(&notes, &domains(), &arguments);
                let found = found.map_err(|error| error.to_string())?;
                Ok(done(searching::summary(&found), &found))
            }
            Self::Store => store(&notes, &domains(), read(input)?),
            Self::Remember => remember(&notes, &read(input)?),
        }
    }

    /// Whether it happened that was begun.
    fn happened(self, root: &Path, input: &Value) -> Result<Option<ToolOutput>, String> {
        let notes = Notes::at(root);
        match self {
            Self::Load | Self::Search => Ok(None),
            Self::Store => {
                let arguments: StoreArguments = read(input)?;
                let entry = new_entry(&arguments, None);
                // Done again it is the same, and completes what was begun.
                match notes.has(&entry).map_err(|e| e.to_string())? && arguments.target.is_none() {
                    true => Ok(Some(told(&arguments.id, "stored", String::new()))),
                    false => Ok(None),
                }
            }
            Self::Remember => {
                let arguments: RememberArguments = read(input)?;
                let text = notes.get_global_context().map_err(|e| e.to_string())?;
                let mut context = GlobalContext::read(&text);
                // What is there already changes nothing but how often it was seen.
                let has_all = arguments
                    .updates
                    .iter()
                    .all(|update| text.contains(&update.value));
                let is_new = context.update(&arguments.updates, arguments.today);
                Ok((has_all || !is_new).then(|| ToolOutput::ok("remembered")))
            }
        }
    }
}

#[async_trait]
impl Tool for JournalTool {
    fn spec(&self) -> ToolSpec {
        self.0.spec()
    }

    fn contents(&self) -> &'static [&'static str] {
        // Notes are kept as they were written.
        match self.0 {
            Kind::Store => &["text"],
            _ => &[],
        }
    }

    async fn run(&self, context: &ToolContext, input: &Value, _: &Value) -> ToolOutput {
        let (kind, input) = (self.0, input.clone());
        blocking(context, move |root| {
            kind.act(root, &input).unwrap_or_else(ToolOutput::error)
        })
        .await
    }

    async fn probe(&self, context: &ToolContext, input: &Value, _: &Value) -> ToolProbe {
        let (kind, input) = (self.0, input.clone());
        blocking(context, move |root| match kind.happened(root, &input) {
            Ok(Some(output)) => ToolProbe::Happened(output),
            Ok(None) => ToolProbe::DidNotHappen,
            Err(_) => ToolProbe::Unknown,
        })
        .await
    }
}

async fn blocking<T: Send + 'static>(
    context: &ToolContext,
    act: impl FnOnce(&Path) -> T + Send + 'static,
) -> T {
    let root = context.workspace.root().to_owned();
    let done = tokio::task::spawn_blocking(move || act(&root)).await;
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
}

fn load(notes: &Notes, domains: &Domains, wanted: &LoadArguments) -> Result<ToolOutput, String> {
    let recent = notes.recent(wanted.recent).map_err(|e| e.to_string())?;
    let context = domains.combine(&wanted.domains);
    let loaded = Loaded {
        global_context: notes.get_global_context().map_err(|e| e.to_string())?,
        recent: recent.entries.iter().map(|entry| entry.shown()).collect(),
        warnings: recent.warnings,
        context,
    };
    let summary = format!("domains: {}", loaded.context.domains_loaded.join(", "));
    Ok(done(summary, &loaded))
}

fn store(
    notes: &Notes,
    domains: &Domains,
    mut wanted: StoreArguments,
) -> Result<ToolOutput, String> {
    let failed = |error: super::notes::NotesError| error.to_string();
    let said_again = notes.entry(wanted.id.as_str()).map_err(failed)?;
    let parsed = &mut wanted.parsed;
    if let Some(known) = said_again {
        // A value that was retired stays so, however often the note is parsed.
        correction::kept(known.parsed.corrections, parsed, domains);
    }
    for (name, data) in &parsed.domain_data {
        if let Some(domain) = domains.get(name) {
            parsed
                .rows
                .extend(rows(name, &domain.schema, data, wanted.units));
        }
    }
    let Some(target) = &wanted.target else {
        let saved = notes
            .save_entry(&new_entry(&wanted, None), None)
            .map_err(failed)?;
        let how = if saved == Saved::Stored {
            "stored"
        } else {
            "updated"
        };
        return Ok(told(&wanted.id, how, String::new()));
    };
    let applied = notes
        .entry(target.as_str())
        .map_err(failed)?
        .ok_or_else(|| format!("the entry `{target}` is not there any more"))
        .and_then(|entry| {
            let data = correction::applied(&entry.parsed.domain_data, &wanted.changes, domains)?;
            Ok((entry.id, data))
        });
    match applied {
        Ok((target, domain_data)) => {
            let rows = domain_data.iter().filter_map(|(name, data)| {
                let schema = &domains.get(name)?.schema;
                Some(rows(name, schema, data, wanted.units))
            });
            let correction = Correction {
                rows: rows.flatten().collect(),
                target: target.clone(),
                changes: wanted.changes.clone(),
                domain_data,
            };
            let said = correction::said(&wanted.changes, &correction.domain_data);
            let entry = new_entry(&wanted, Some(&said));
            let saved = notes
                .save_entry(&entry, Some(&correction))
                .map_err(failed)?;
            Ok(match saved {
                Saved::Unchanged => told(&target, "unchanged", "that was corrected before".into()),
                _ => told(&target, "corrected", said.replace(correction::SAID, "")),
            })
        }
        // Never lose a note: what cannot be applied is still what the user wrote.
        Err(why) => {
            notes
                .save_entry(&new_entry(&wanted, None), None)
                .map_err(failed)?;
            Ok(told(&wanted.id, "noted", why))
        }
    }
}

fn remember(notes: &Notes, wanted: &RememberArguments) -> Result<ToolOutput, String> {
    let today = wanted.today;
    let changed = notes.update_global_context(|text| {
        let mut context = GlobalContext::read(text);
        if !context.update(&wanted.updates, today) {
            return (text.to_owned(), String::new());
        }
        let left = context.fit(wanted.tokens_max, today);
        let archived: String = left
            .iter()
            .map(|line| format!("- {today}: {line}\n"))
            .collect();
        (context.render(today), archived)
    });
    let changed = changed.map_err(|error| error.to_string())?;
    Ok(ToolOutput::ok(match changed {
        true => "remembered",
        false => "nothing new",
    }))
}

fn new_entry(wanted: &StoreArguments, said: Option<&str>) -> NewEntry {
    let text = match said {
        Some(said) => format!("{}\n\n{said}", wanted.text),
        None => wanted.text.clone(),
    };
    let parsed = match said {
        Some(_) => Parsed {
            state: ParseState::Done,
            ..Parsed::default()
        },
        None => wanted.parsed.clone(),
    };
    NewEntry {
        id: wanted.id.clone(),
        date: wanted.date,
        time: wanted.time,
        text,
        parsed: Some(parsed),
    }
}

fn told(id: &EntryId, how: &str, note: String) -> ToolOutput {
    let stored = Stored {
        id: id.clone(),
        how: how.to_owned(),
        note,
    };
    done(format!("{how} {id}"), &stored)
}

fn done(text: String, facts: &impl Serialize) -> ToolOutput {
    ToolOutput::ok(text).with_facts(json!(facts))
}

fn read<T: DeserializeOwned>(input: &Value) -> Result<T, String> {
    T::deserialize(input).map_err(|error| format!("the arguments cannot be used: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bench(weight: u32) -> Parsed {
        let data = json!({ "exercises": [{ "name": "bench press", "weight": weight,
            "weight_unit": "lb", "reps": 5 }] });
        Parsed {
            state: ParseState::Done,
            domain_data: BTreeMap::from([("strength".to_owned(), data)]),
            ..Parsed::default()
        }
    }

    fn stored(text: &str, at: &str, parsed: Parsed) -> StoreArguments {
        let (date, time): (Date, Time) = ("2026-01-04".parse().unwrap(), at.parse().unwrap());
        StoreArguments {
            id: EntryId::new(date, time, at),
            date,
            time,
            text: text.into(),
            parsed,
            units: Units::Imperial,
            target: None,
            changes: Vec::new(),
        }
    }

    #[test]
    fn a_value_that_was_retired_is_not_counted_again_when_the_note_is_parsed_anew() {
        let folder = tempfile::tempdir().unwrap();
        let (notes, domains) = (
            Notes::at(folder.path()),
            Domains::load(Path::new("/nowhere")),
        );
        let store = |wanted: StoreArguments| super::store(&notes, &domains, wanted).unwrap();
        let target = stored("Bench 85x5", "10:30", bench(85)).id;
        store(stored("Bench 85x5", "10:30", bench(85)));
        let mut correction = stored("actually 185", "10:45", Parsed::default());
        correction.target = Some(target.clone());
        correction.changes = vec![Change {
            domain: "strength".into(),
            field: "/exercises/0/weight".into(),
            from: json!(85),
            to: json!(185),
        }];
        store(correction);
        let weight = || {
            let entry = notes.entry(target.as_str()).unwrap().unwrap();
            assert_eq!(entry.parsed.corrections.len(), 1);
            let rows = entry
                .parsed
                .rows
                .iter()
                .filter(|row| row.measure == "weight");
            rows.map(|row| row.written).collect::<Vec<f64>>()
        };
        assert_eq!(weight(), [185.0]);
        // The parser reads the original text again, and finds the old number.
        store(stored("Bench 85x5", "10:30", bench(85)));
        assert_eq!(weight(), [185.0]);
        // If the text itself was put right by hand, there is nothing to correct.
        store(stored("Bench 190x5", "10:30", bench(190)));
        assert_eq!(weight(), [190.0]);
    }
}

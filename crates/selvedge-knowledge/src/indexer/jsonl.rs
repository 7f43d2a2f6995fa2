//! A corpus of one's own: a line of JSON for each text.
//!
//! Fields: `id` and `text`; optional `path`, `kind`, `time`, `title`. What is said in a
//! conversation is found by the turns before it, too: an answer rarely repeats its
//! question.

use std::collections::{HashMap, VecDeque};
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::{Discretion, Lock, Progress, Report};
use crate::embed::Vector;
use crate::error::{KnowledgeError, Result};
use crate::kind::{NodeType, SourceType};
use crate::node::Node;
use crate::store::{Index, Source};
use crate::time::Time;

/// Texts that are embedded and written together.
const BATCH: usize = 1_000;
/// Turns before that are kept as context.
const CONTEXT_TURNS: usize = 6;
/// The most that is kept of each of them.
const CONTEXT_CHARS_MAX: usize = 1_000;

/// The last turns, by conversation.
type Before = HashMap<String, VecDeque<String>>;

/// A line of the corpus.
#[derive(Deserialize)]
struct Record {
    id: Value,
    text: String,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    time: Option<Value>,
    #[serde(default)]
    title: Option<String>,
}

/// Loads the corpus at `path` in place of what was loaded from it before.
pub fn load_jsonl(
    index: &Index,
    path: &Path,
    discretion: &dyn Discretion,
    progress: &dyn Fn(Progress),
) -> Result<Report> {
    let _lock = Lock::take(index.path())?;
    let text = std::fs::read_to_string(path).map_err(|error| KnowledgeError::file(path, error))?;
    let mut nodes: Vec<Node> = Vec::new();
    let mut before = Before::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let record: Record =
            serde_json::from_str(line).map_err(|error| KnowledgeError::Record {
                path: path.display().to_string(),
                line: number,
                why: error.to_string(),
            })?;
        nodes.push(node(record, discretion, &mut before));
    }
    let total = nodes.len();
    let mut report = Report {
        files: 1,
        indexed: 1,
        lines: total,
        ..Report::default()
    };
    let source = path.display().to_string();
    report.removed = remove_missing(index, &source, &nodes)?;
    for (at, some) in nodes.chunks(BATCH).enumerate() {
        let borrowed: Vec<&Node> = some.iter().collect();
        let vectors: Vec<Option<Vector>> = match index.embedder().is_slow() {
            true => vec![None; some.len()],
            false => index
                .embed_nodes(&borrowed)?
                .into_iter()
                .map(Some)
                .collect(),
        };
        index.transaction(|index| {
            for (node, vector) in some.iter().zip(&vectors) {
                let (_, is_changed) = index.put_embedded(node, None, vector.as_ref())?;
                if is_changed {
                    report.nodes += 1;
                    let origin = Source {
                        source_type: SourceType::UserProvided,
                        node: None,
                        path: Some(source.clone()),
                        url: None,
                        confidence: 1.0,
                        verified_at: None,
                    };
                    index.connection.execute(
                        "DELETE FROM provenance WHERE node = (SELECT key FROM nodes WHERE id = ?1)",
                        [&node.id],
                    )?;
                    index.add_source(&node.id, &origin)?;
                }
            }
            Ok(())
        })?;
        let done = (at * BATCH + some.len()).min(total);
        progress(Progress { done, total });
    }
    index.set_remark("corpus", &source)?;
    index.tidy_postings()?;
    Ok(report)
}

fn node(record: Record, discretion: &dyn Discretion, before: &mut Before) -> Node {
    let id = match record.id {
        Value::String(id) => id,
        other => other.to_string(),
    };
    let text = discretion.clean(&record.text).into_owned();
    let kind = record.kind.as_deref().unwrap_or_default();
    let is_turn = is_conversational(kind) || record.kind.is_none() && speaker(&text).is_some();
    let node_type = match is_turn {
        true => NodeType::Message,
        false => NodeType::named(kind).unwrap_or(NodeType::Documentation),
    };
    let mut node = Node::new(id, node_type, record.title.unwrap_or_default());
    if is_turn {
        let conversation = record.path.clone().unwrap_or_default();
        let turns = before.entry(conversation).or_default();
        node.context = turns.make_contiguous().join("\n");
        if turns.len() == CONTEXT_TURNS {
            turns.pop_front();
        }
        // A line for each.
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        turns.push_back(crate::node::cut(&line, CONTEXT_CHARS_MAX).to_owned());
    }
    node.content = text;
    node.path = record.path;
    node.category = record.kind;
    node.time = record.time.and_then(|time| moment(&time));
    node
}

/// Whether a kind of text is a turn of a conversation.
fn is_conversational(kind: &str) -> bool {
    let kind = kind.to_ascii_lowercase();
    let kinds = [
        "message",
        "turn",
        "utterance",
        "dialogue",
        "dialog",
        "chat",
        "conversation",
    ];
    kinds.contains(&kind.as_str())
}

/// Who says it, where a text begins with `Name: `.
fn speaker(text: &str) -> Option<&str> {
    let (name, said) = text.split_once(": ")?;
    let is_name = name.len() <= 32
        && name.split(' ').count() <= 3
        && name.chars().next().is_some_and(char::is_uppercase)
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || " .'-".contains(c));
    (is_name && !said.trim().is_empty()).then_some(name)
}

/// A moment as a number of seconds or milliseconds, or as RFC 3339 has it.
pub(crate) fn moment(value: &Value) -> Option<Time> {
    match value {
        Value::Number(number) => {
            let number = number.as_f64()?;
            // Seconds until the year 5138, milliseconds from 1973 on.
            let millis = if number.abs() < 1e11 {
                number * 1e3
            } else {
                number
            };
            Some(Time(millis as i64))
        }
        Value::String(text) => parse_moment(text),
        _ => None,
    }
}

/// A moment such as `2026-11-18T13:05:00Z` or `2026-11-18`.
pub fn parse_moment(text: &str) -> Option<Time> {
    let digits = |range: std::ops::Range<usize>| text.get(range)?.parse::<i64>().ok();
    let (year, month, day) = (digits(0..4)?, digits(5..7)?, digits(8..10)?);
    if !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
        || text.as_bytes().get(4) != Some(&b'-')
    {
        return None;
    }
    let mut millis = days(year, month, day) * 86_400_000;
    if text.len() > 10 {
        let (hour, minute) = (digits(11..13)?, digits(14..16)?);
        let second = digits(17..19).unwrap_or(0);
        millis += ((hour * 60 + minute) * 60 + second) * 1_000;
        let offset = text.get(16..).unwrap_or_default().find(['+', '-']);
        if let Some(at) = offset {
            let (sign, zone) = text[16 + at..].split_at(1);
            let hours: i64 = zone.get(0..2)?.parse().ok()?;
            let minutes: i64 = zone.get(3..5).and_then(|m| m.parse().ok()).unwrap_or(0);
            let shift = (hours * 60 + minutes) * 60_000;
            millis += if sign == "+" { -shift } else { shift };
        }
    }
    Some(Time(millis))
}

/// Days from 1970 to a day of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // The year begins in March, so that the odd day is its last.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Removes what was loaded from this corpus before and is no longer in it.
fn remove_missing(index: &Index, source: &str, nodes: &[Node]) -> Result<usize> {
    let there: std::collections::HashSet<&str> = nodes.iter().map(|n| n.id.as_str()).collect();
    let mut find = index.connection.prepare(
        "SELECT n.id FROM nodes n JOIN provenance p ON p.node = n.key WHERE p.source_path = ?1",
    )?;
    let loaded = find.query_map([source], |row| row.get(0))?;
    let loaded = loaded.collect::<rusqlite::Result<Vec<String>>>()?;
    let gone: Vec<&str> = loaded
        .iter()
        .map(String::as_str)
        .filter(|id| !there.contains(id))
        .collect();
    index.forget(&gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_read_as_it_is_written() {
        assert_eq!(parse_moment("1970-01-01T00:00:00Z"), Some(Time(0)));
        assert_eq!(
            parse_moment("2026-11-18T13:05:09Z"),
            Some(Time(1_795_007_109_000))
        );
        assert_eq!(
            parse_moment("2026-11-18T14:05:09+01:00"),
            Some(Time(1_795_007_109_000))
        );
        assert_eq!(parse_moment("2000-02-29"), Some(Time(951_782_400_000)));
        assert_eq!(parse_moment("yesterday"), None);
        assert_eq!(
            moment(&Value::from(1_795_007_109)),
            Some(Time(1_795_007_109_000))
        );
    }

    #[test]
    fn a_speaker_is_told_from_a_sentence() {
        assert_eq!(speaker("Ada: shall we?"), Some("Ada"));
        assert_eq!(speaker("what I mean: nothing"), None);
        assert_eq!(speaker("One two three four: no"), None);
    }
}

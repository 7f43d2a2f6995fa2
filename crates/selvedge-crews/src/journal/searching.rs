//! Carries searches out: days, files, words, numbers.

use std::collections::BTreeMap;

use jiff::civil::Date;

use super::dates;
use super::domains::Domains;
use super::notes::{Entry, EntryId, Found, Notes, NotesError, ParseState, expanded};
use super::protocol::{DateRange, Retrieval, RetrievalAttempt, RetrieverOutput};
use super::rows::{Counted, compute};
use super::tools::SearchArguments;

/// Makes the searches, in their order. An entry that several find is returned once.
pub(super) fn search(
    notes: &Notes,
    domains: &Domains,
    wanted: &SearchArguments,
) -> Result<RetrieverOutput, NotesError> {
    let vocabulary = domains.combine(&wanted.domains).vocabulary;
    let mut output = RetrieverOutput::default();
    let mut all: BTreeMap<EntryId, Entry> = BTreeMap::new();
    for (n, search) in wanted.searches.iter().enumerate() {
        let range = search
            .range
            .as_deref()
            .map(str::trim)
            .filter(|range| !range.is_empty());
        let days = range.and_then(|range| dates::range(range, wanted.today));
        if let (Some(range), None) = (range, days) {
            output
                .warnings
                .push(format!("`{range}` means no days: all were searched"));
        }
        let attempt = |strategy: &str, entries_found, summary| RetrievalAttempt {
            attempt_number: wanted.before + u32::try_from(n).unwrap_or(0) + 1,
            strategy: strategy.to_owned(),
            params: search.clone(),
            entries_found,
            summary,
        };
        let keywords: Vec<Vec<String>> = search
            .keywords
            .iter()
            .filter(|word| !word.trim().is_empty())
            .map(|word| expanded(word, &vocabulary))
            .collect();
        if let Some(question) = &search.compute {
            let found = notes.get_entries_by_pattern("**/*.md")?;
            let days = days.unwrap_or_else(|| whole(&found, wanted.today));
            let computed = number(question, days, &found, wanted);
            output.retrieval_summary.push(attempt(
                "compute",
                computed.entries_used.len(),
                computed.summary(),
            ));
            let used = found.entries.into_iter();
            let used = used.filter(|entry| computed.entries_used.contains(&entry.id.to_string()));
            let used: Vec<Entry> = used.collect();
            output.found_by.push((search.sub_query_id, ids(&used)));
            all.extend(used.into_iter().map(|entry| (entry.id.clone(), entry)));
            output.computed.push(computed);
            continue;
        }
        let pattern = search
            .pattern
            .as_deref()
            .map(str::trim)
            .filter(|p| !p.is_empty());
        let (strategy, mut found) = match (pattern, keywords.is_empty(), days) {
            (Some(pattern), _, _) => ("pattern", notes.get_entries_by_pattern(pattern)?),
            (None, false, _) => {
                let found = notes.search_entries(&keywords, days, search.match_all)?;
                ("keyword", found)
            }
            (None, true, Some((start, end))) => {
                ("date_range", notes.get_entries_by_date_range(start, end)?)
            }
            (None, true, None) => ("date_range", notes.get_entries_by_pattern("**/*.md")?),
        };
        if let (Some(_), Some((start, end))) = (pattern, days) {
            found.entries.retain(|e| {
                [e.date, e.about()]
                    .iter()
                    .any(|day| start <= *day && *day <= end)
            });
        }
        output.warnings.append(&mut found.warnings);
        let count = found.entries.len();
        if count == 0 {
            output
                .warnings
                .push(format!("nothing was found for: {}", described(search)));
        }
        let noun = if count == 1 { "entry" } else { "entries" };
        let summary = format!("{count} {noun} for: {}", described(search));
        output
            .retrieval_summary
            .push(attempt(strategy, count, summary));
        output
            .found_by
            .push((search.sub_query_id, ids(&found.entries)));
        all.extend(
            found
                .entries
                .into_iter()
                .map(|entry| (entry.id.clone(), entry)),
        );
    }
    output.total_entries_found = all.len();
    // The newest are kept where there are too many.
    let left_out = all.len().saturating_sub(wanted.entries_max);
    output.truncated = left_out > 0;
    let kept: Vec<Entry> = all.into_values().skip(left_out).collect();
    if let (Some(first), Some(last)) = (kept.first(), kept.last()) {
        output.date_range_covered = Some(DateRange {
            start: first.date.to_string(),
            end: last.date.to_string(),
            description: None,
        });
    }
    output.warnings.dedup();
    output.entries = kept.iter().map(Entry::shown).collect();
    Ok(output)
}

fn number(
    question: &super::rows::Question,
    days: dates::Days,
    found: &Found,
    wanted: &SearchArguments,
) -> super::rows::Computed {
    let in_days = |date: Date| days.0 <= date && date <= days.1;
    let entries = found
        .entries
        .iter()
        .filter(|e| in_days(e.about()) && e.corrects.is_none());
    let names: Vec<(&Entry, String)> = entries.map(|entry| (entry, entry.id.to_string())).collect();
    let mut counted: Vec<Counted<'_>> = names
        .iter()
        .map(|(entry, id)| Counted {
            entry: id,
            date: entry.about(),
            rows: &entry.parsed.rows,
            skipped: match entry.state() {
                ParseState::Done => None,
                ParseState::Pending => Some("it is not parsed yet"),
                ParseState::Stale => Some("its text was edited since it was parsed"),
            },
        })
        .collect();
    counted.sort_by_key(|entry| entry.date);
    compute(question, days, &counted, wanted.units)
}

fn whole(found: &Found, today: Date) -> dates::Days {
    let first = found.entries.iter().map(Entry::about).min();
    let last = found.entries.iter().map(Entry::about).max();
    (first.unwrap_or(today), last.unwrap_or(today).max(today))
}

fn ids(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(|entry| entry.id.to_string()).collect()
}

fn described(search: &Retrieval) -> String {
    let mut parts = Vec::new();
    if !search.keywords.is_empty() {
        parts.push(search.keywords.join(", "));
    }
    parts.extend(search.range.clone());
    parts.extend(search.pattern.clone());
    match parts.is_empty() {
        true => "everything".to_owned(),
        false => parts.join(", "),
    }
}

/// What was found, in a sentence.
pub(super) fn summary(found: &RetrieverOutput) -> String {
    let cut = if found.truncated { ", cut off" } else { "" };
    let numbers: Vec<String> = found.computed.iter().map(|c| c.summary()).collect();
    let mut text = match found.entries.len() {
        1 => format!("1 entry{cut}"),
        count => format!("{count} entries{cut}"),
    };
    for number in numbers {
        text.push_str(&format!("\n{number}"));
    }
    text
}

//! Which entry a correction means, and what it makes of it. Nothing is changed on a guess.

use std::collections::BTreeMap;

use serde_json::Value;

use super::domains::{Domains, fitting};
use super::notes::{Applied, Parsed};
use super::protocol::{Change, EntryShown};

/// What a correction comes to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Meant {
    /// This entry, and no other.
    One(String),
    /// One of these: the user is asked.
    OneOf(Vec<String>),
    /// This entry says so already.
    Already(String),
    /// None that is known.
    None,
}

/// The entry that is meant, among those recorded last. What fits is decided by the values
/// that are said to be wrong; what the parser names only counts where they do not tell.
pub(super) fn meant(changes: &[Change], named: Option<&str>, recent: &[EntryShown]) -> Meant {
    let has = |entry: &EntryShown, wanted: fn(&Change) -> &Value| {
        let is_so = |change: &Change| {
            let data = entry.domain_data.get(&change.domain);
            let value = data.and_then(|data| data.pointer(&change.field));
            value.is_some_and(|value| same(value, wanted(change)))
        };
        !changes.is_empty() && changes.iter().all(is_so)
    };
    let fits: Vec<&EntryShown> = recent
        .iter()
        .filter(|e| has(e, |change| &change.from))
        .collect();
    let named = named.map(str::trim).filter(|id| id.len() >= 10);
    let named: Vec<&EntryShown> = match named {
        Some(id) => recent
            .iter()
            .filter(|entry| entry.id.starts_with(id))
            .collect(),
        None => Vec::new(),
    };
    match (&fits[..], &named[..]) {
        ([one], _) => Meant::One(one.id.clone()),
        // Two fit by their values: a name that only one of them has decides, if the user
        // gave enough to name a time; a bare guess does not.
        ([_, _, ..], _) => Meant::OneOf(fits.iter().map(|entry| entry.id.clone()).collect()),
        ([], named) => {
            let already = recent
                .iter()
                .find(|entry| has(entry, |change| &change.to) && was_so_corrected(entry, changes));
            match (already, named) {
                (Some(entry), _) => Meant::Already(entry.id.clone()),
                (None, [one]) if !changes.is_empty() => Meant::One(one.id.clone()),
                _ => Meant::None,
            }
        }
    }
}

/// Whether an entry was corrected to these values before. That it says so from the first is
/// not enough: then the user means another, and their words must not be passed over.
fn was_so_corrected(entry: &EntryShown, changes: &[Change]) -> bool {
    changes.iter().all(|wanted| {
        entry.corrections.iter().any(|made| {
            made.domain == wanted.domain && made.field == wanted.field && same(&made.to, &wanted.to)
        })
    })
}

/// Numbers are the same however they are written.
fn same(left: &Value, right: &Value) -> bool {
    let number = |value: &Value| match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    match (number(left), number(right)) {
        (Some(left), Some(right)) => (left - right).abs() < 1e-9,
        _ => left == right,
    }
}

/// The data of an entry with the changes in it, if it fits its domains then.
pub(super) fn applied(
    data: &BTreeMap<String, Value>,
    changes: &[Change],
    domains: &Domains,
) -> Result<BTreeMap<String, Value>, String> {
    let mut data = data.clone();
    for change in changes {
        let known = data.get_mut(&change.domain);
        let place = known.and_then(|data| data.pointer_mut(&change.field));
        let place = place
            .ok_or_else(|| format!("the entry has no `{}` in `{}`", change.field, change.domain))?;
        *place = match (&*place, &change.to) {
            // A model may write a number as a text.
            (Value::Number(_), Value::String(text)) => {
                serde_json::from_str(text.trim()).unwrap_or_else(|_| change.to.clone())
            }
            _ => change.to.clone(),
        };
    }
    for (name, data) in &data {
        let schema = domains.get(name).map(|domain| &domain.schema);
        if let Some(schema) = schema
            && let (_, unfit @ [_, ..]) = (0, &fitting(schema, data).1[..])
        {
            return Err(format!(
                "`{}` would not fit the domain `{name}`",
                unfit.join("`, `")
            ));
        }
    }
    Ok(data)
}

/// Makes the corrections of an entry anew in what was parsed of it again: those whose wrong
/// value stands there still.
pub(super) fn kept(corrections: Vec<Applied>, parsed: &mut Parsed, domains: &Domains) {
    for correction in &corrections {
        for change in &correction.changes {
            let data = parsed.domain_data.get(&change.domain);
            let value = data.and_then(|data| data.pointer(&change.field));
            if !value.is_some_and(|value| same(value, &change.from)) {
                continue;
            }
            if let Ok(data) = applied(&parsed.domain_data, std::slice::from_ref(change), domains) {
                parsed.domain_data = data;
            }
        }
    }
    parsed.corrections = corrections;
}

/// What the words of a correction in the notes begin with.
pub(super) const SAID: &str = "Correction: ";

/// What changed, in words that stay in the notes. What has a name is called by it.
pub(super) fn said(changes: &[Change], data: &BTreeMap<String, Value>) -> String {
    let one = |change: &Change| {
        let (parent, last) = change.field.rsplit_once('/').unwrap_or(("", &change.field));
        let parent = data
            .get(&change.domain)
            .and_then(|data| data.pointer(parent));
        let name = parent.and_then(|parent| parent["name"].as_str());
        let last = last.replace('_', " ");
        let field = match name {
            Some(name) if last != "name" => format!("{name} {last}"),
            _ => format!(
                "{} {}",
                change.domain,
                change.field.replace(['/', '_'], " ").trim()
            ),
        };
        let plain = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let (from, to) = (plain(&change.from), plain(&change.to));
        format!("{SAID}{field} recorded as {from} → corrected to {to}")
    };
    changes.iter().map(one).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(id: &str, weight: u32) -> EntryShown {
        EntryShown {
            id: id.into(),
            date: id[..10].into(),
            timestamp: id[..16].into(),
            raw_content: format!("bench {weight}"),
            domain_data: BTreeMap::from([(
                "strength".to_owned(),
                json!({ "exercises": [{ "name": "bench press", "weight": weight }] }),
            )]),
            source_file: String::new(),
            corrects: None,
            corrections: Vec::new(),
        }
    }

    fn change(from: Value, to: Value) -> Vec<Change> {
        vec![Change {
            domain: "strength".into(),
            field: "/exercises/0/weight".into(),
            from,
            to,
        }]
    }

    #[test]
    fn the_wrong_value_says_which_entry_is_meant() {
        let mut recent = [
            entry("2026-01-04T10:30-a", 85),
            entry("2026-01-03T10:30-b", 100),
        ];
        let wrong = change(json!("85"), json!(185));
        assert_eq!(
            meant(&wrong, None, &recent),
            Meant::One("2026-01-04T10:30-a".into())
        );
        let done = change(json!(90), json!(100));
        assert_eq!(
            meant(&done, None, &recent),
            Meant::None,
            "it was 100 from the first: another entry is meant"
        );
        recent[1].corrections = change(json!(90), json!("100"));
        assert_eq!(
            meant(&done, None, &recent),
            Meant::Already("2026-01-03T10:30-b".into())
        );
        let unknown = change(json!(1), json!(2));
        assert_eq!(meant(&unknown, None, &recent), Meant::None);
        assert_eq!(meant(&[], Some("2026-01-04T10:30"), &recent), Meant::None);
    }

    #[test]
    fn if_two_fit_the_user_is_asked() {
        let recent = [
            entry("2026-01-04T10:30-a", 85),
            entry("2026-01-03T10:30-b", 85),
        ];
        let wrong = change(json!(85), json!(185));
        let both = vec![
            "2026-01-04T10:30-a".to_owned(),
            "2026-01-03T10:30-b".to_owned(),
        ];
        assert_eq!(
            meant(&wrong, Some("2026-01-04T10:30-a"), &recent),
            Meant::OneOf(both)
        );
    }

    #[test]
    fn a_correction_that_breaks_the_schema_is_refused() {
        let domains = Domains::load(std::path::Path::new("/nowhere"));
        let data = entry("2026-01-04T10:30-a", 85).domain_data;
        let fixed = applied(&data, &change(json!(85), json!("185")), &domains).unwrap();
        assert_eq!(fixed["strength"]["exercises"][0]["weight"], 185);
        assert!(applied(&data, &change(json!(85), json!("heavy")), &domains).is_err());
    }
}

//! Keeps what fits of a structured answer that does not.
//!
//! What a schema complains about is left out: a field, an element, a name it does
//! not know. If something that is required goes with it, its container goes too,
//! until the rest fits or nothing is left.

use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

// Each round leaves something out; an answer that needs more is beyond repair.
const ROUNDS_MAX: usize = 32;

/// The part of `data` that fits `schema`, and the places that were left out.
/// `None` if nothing fits.
pub fn salvage(schema: &Value, mut data: Value) -> Option<(Value, Vec<String>)> {
    let validator = jsonschema::validator_for(schema).ok()?;
    let mut left_out = Vec::new();
    for _ in 0..ROUNDS_MAX {
        let mut wrong: Vec<String> = validator.iter_errors(&data).flat_map(places).collect();
        if wrong.is_empty() {
            return Some((data, left_out));
        }
        // From the end, so that what is left out of a list does not move the rest;
        // what is inside of something else goes before it.
        wrong.sort_by(|a, b| order(b).cmp(&order(a)));
        wrong.dedup();
        let deepest = wrong.iter().map(|place| depth(place)).max()?;
        wrong.retain(|place| depth(place) == deepest);
        for place in wrong {
            remove(&mut data, &place)?;
            left_out.push(format!("`{place}`"));
        }
    }
    None
}

const NOTE: &str = "Salvaged from an answer that did not fit the schema; left out: ";

/// The first line of a result that was salvaged.
pub fn note(left_out: &[String]) -> String {
    format!("{NOTE}{}.", left_out.join(", "))
}

/// The first line of a result, if it says that it was salvaged.
pub fn salvage_note(result: &str) -> Option<&str> {
    result.lines().next().filter(|line| line.starts_with(NOTE))
}

/// What must go because of an error.
fn places(error: jsonschema::ValidationError<'_>) -> Vec<String> {
    let at = error.instance_path().to_string();
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let escaped = unexpected.iter().map(|name| escape(name));
            escaped.map(|name| format!("{at}/{name}")).collect()
        }
        _ => vec![at],
    }
}

/// Removes what a JSON pointer names; `None` for the whole.
fn remove(data: &mut Value, place: &str) -> Option<()> {
    let (container, name) = place.rsplit_once('/')?;
    match data.pointer_mut(container)? {
        Value::Object(fields) => drop(fields.remove(&unescape(name))),
        Value::Array(items) => {
            let at: usize = name.parse().ok()?;
            (at < items.len()).then(|| items.remove(at))?;
        }
        _ => return None,
    }
    Some(())
}

fn depth(place: &str) -> usize {
    place.matches('/').count()
}

/// Places in the order in which they stand; numbers as numbers.
fn order(place: &str) -> Vec<(usize, &str)> {
    let step = |name| (str::parse(name).unwrap_or(0), name);
    place.split('/').map(step).collect()
}

fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn unescape(name: &str) -> String {
    name.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "required": ["title"],
            "additionalProperties": false,
            "properties": {
                "title": { "type": "string" },
                "pages": { "type": "integer" },
                "tags": { "type": "array", "items": { "type": "string" } },
                "author": {
                    "type": "object",
                    "required": ["name"],
                    "properties": { "name": { "type": "string" }, "age": { "type": "integer" } },
                },
            },
        })
    }

    #[test]
    fn fields_and_elements_that_do_not_fit_are_left_out() {
        let data = json!({
            "title": "a", "pages": "ten", "mood/tone": 1,
            "tags": ["x", 1, "y", null, "z"],
            "author": { "name": "b", "age": "old" },
        });
        let (kept, left_out) = salvage(&schema(), data).unwrap();
        assert_eq!(
            kept,
            json!({ "title": "a", "tags": ["x", "y", "z"], "author": { "name": "b" } })
        );
        assert_eq!(left_out.len(), 5, "{left_out:?}");
        assert!(
            left_out.contains(&"`/mood~1tone`".to_owned()),
            "{left_out:?}"
        );
    }

    #[test]
    fn what_lacks_something_required_goes_as_a_whole() {
        let data = json!({ "title": "a", "author": { "name": 7, "age": 3 } });
        let (kept, _) = salvage(&schema(), data).unwrap();
        assert_eq!(kept, json!({ "title": "a" }));
    }

    #[test]
    fn nothing_is_kept_where_a_required_field_does_not_fit() {
        assert!(salvage(&schema(), json!({ "title": 7, "pages": 3 })).is_none());
        assert!(salvage(&schema(), json!("a")).is_none());
    }
}

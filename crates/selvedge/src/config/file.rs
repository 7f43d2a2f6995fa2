//! A configuration file: its text, checked, or the line that is wrong.

use std::path::Path;

use super::settings::Settings;
use crate::error::{Error, Result};
use crate::text::nearest;

/// The table in `text`, checked against what can be configured.
pub(super) fn parse(path: &Path, text: &str) -> Result<toml::Table> {
    let wrong = |error: &toml::de::Error| explain(path, text, error);
    // Twice: the typed reading checks, the untyped one keeps what was written.
    toml::from_str::<Settings>(text).map_err(|error| wrong(&error))?;
    toml::from_str(text).map_err(|error| wrong(&error))
}

/// What is wrong, where, and what was probably meant.
fn explain(path: &Path, text: &str, error: &toml::de::Error) -> Error {
    let start = error.span().map_or(0, |span| span.start).min(text.len());
    let before = &text.as_bytes()[..start];
    let line = before.iter().filter(|byte| **byte == b'\n').count();
    let key = text.lines().nth(line).and_then(key_of);
    let place = format!("`{}` line {}", path.display(), line + 1);
    let message = error.message().lines().next().unwrap_or_default();
    if let Some((unknown, known)) = unknown_name(message) {
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let meant = nearest(&unknown, &known);
        return Error::usage(format!("the configuration {place} cannot be used"))
            .cause(format!(
                "there is no `{unknown}`; there is: {}",
                known.join(", ")
            ))
            .hint(match meant {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "`selvedge config schema` describes every key".into(),
            });
    }
    let cause = match key {
        Some(key) => format!("`{key}`: {message}"),
        None => message.to_owned(),
    };
    Error::usage(format!("the configuration {place} cannot be used"))
        .cause(cause)
        .hint("correct the line; `selvedge config schema` describes every key")
}

/// The key of a line such as `budget_usd = 5`.
fn key_of(line: &str) -> Option<&str> {
    let (key, _) = line.split_once('=')?;
    Some(key.trim()).filter(|key| !key.is_empty())
}

/// The name that is not known, and those that are, from serde's message.
fn unknown_name(message: &str) -> Option<(String, Vec<String>)> {
    let (_, rest) = message.split_once("unknown ")?;
    let mut ticked = rest.split('`').skip(1).step_by(2).map(str::to_owned);
    let unknown = ticked.next()?;
    Some((unknown, ticked.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        parse(Path::new("config.toml"), text)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_typo_in_a_key_is_answered_with_the_key_that_was_meant() {
        let error = error("crew = \"solo\"\n\nbudget_us = 3\n");
        assert!(error.contains("`config.toml` line 3"), "{error}");
        assert!(error.contains("there is no `budget_us`"), "{error}");
        assert!(error.contains("did you mean `budget_usd`?"), "{error}");
    }

    #[test]
    fn a_wrong_type_or_value_names_line_and_key() {
        let wrong_type = error("model = 3");
        assert!(wrong_type.contains("line 1"), "{wrong_type}");
        assert!(wrong_type.contains("`model`: invalid type"), "{wrong_type}");
        let negative = error("# money\nbudget_usd = -1\n");
        assert!(negative.contains("line 2"), "{negative}");
        assert!(negative.contains("not an amount"), "{negative}");
        let approve = error("approve = \"yes\"");
        assert!(approve.contains("there is no `yes`"), "{approve}");
        let inner = error("[limits]\nmodel_calls = 3");
        assert!(inner.contains("did you mean `model_calls_max`?"), "{inner}");
    }

    #[test]
    fn broken_toml_names_its_line() {
        assert!(error("crew = \"solo\"\nmodel = \n").contains("line 2"));
    }
}

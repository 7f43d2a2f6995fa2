//! A marker on its way back: into a file, where it would destroy the secret it
//! stands for, or into a command, where it means nothing.

use std::path::Path;

use serde_json::Value;

use super::{MARK, Secrets, Severity, Sighting};
use crate::tool::ToolOutput;

/// Why a file must not be changed like this, if it must not: the new text has
/// markers where the file has secrets that the model was never shown.
pub(crate) fn loses_secrets(
    secrets: &Secrets,
    path: &Path,
    before: Option<&[u8]>,
    after: &[u8],
) -> Option<ToolOutput> {
    let before = String::from_utf8_lossy(before?);
    let after = String::from_utf8_lossy(after);
    let count = |text: &str| text.matches(MARK).count();
    if count(&after) <= count(&before) {
        return None;
    }
    let hides = secrets.is_sensitive(path) || secrets.redact(&before) != before;
    hides.then(|| {
        ToolOutput::error(format!(
            "`{}` was not changed: `{MARK}` stands for a secret that you are not shown, and \
             writing it would destroy the secret; use `edit_file` on the lines around it, with an \
             `old` and a `new` that leave it out",
            path.display()
        ))
    })
}

/// What a tool's arguments must not have, said to the model.
///
/// `contents` names the fields that hold the text of files: a fixture may well need
/// something that looks like a key.
pub(crate) fn refuse_marker(
    secrets: &Secrets,
    name: &str,
    input: &Value,
    contents: &[&str],
    is_run: bool,
) -> Result<(), ToolOutput> {
    let mut refused = None;
    each_text(input, "", &mut |field, text| {
        if refused.is_some() || contents.contains(&field) {
            return;
        }
        let found = secrets.scan(text);
        if let Some(found) = found.iter().find(|found| is_refused(found)) {
            refused = Some(format!(
                "`{name}` was not called: `{field}` holds a secret ({}, near `{}`); secrets are \
                 not passed in arguments: let the program read it from its environment or a file",
                found.pattern, found.context
            ));
        } else if is_run && text.contains(MARK) {
            refused = Some(format!(
                "`{name}` was not called: `{field}` has `{MARK}`, which stands for a secret that \
                 you are not shown and would be taken literally; use a variable or a file that \
                 holds the secret (to find the word itself, use `search_files`)"
            ));
        }
    });
    refused.map_or(Ok(()), |text| Err(ToolOutput::error(text)))
}

/// The names of the shapes that the file contents of a call hold.
pub(super) fn in_contents(secrets: &Secrets, input: &Value, contents: &[&str]) -> Vec<String> {
    let mut names = Vec::new();
    each_text(input, "", &mut |field, text| {
        if contents.contains(&field) {
            let found = secrets.scan(text).into_iter();
            names.extend(found.filter(is_refused).map(|found| found.pattern));
        }
    });
    names.sort();
    names.dedup();
    names
}

/// Replaces what arguments must not have; answers whether there was anything.
pub(super) fn scrub(secrets: &Secrets, input: &mut Value, field: &str, contents: &[&str]) -> bool {
    match input {
        Value::String(text) => {
            let mut clean = secrets.redact_known(text).into_owned();
            if !contents.contains(&field) && secrets.scan(&clean).iter().any(is_refused) {
                clean = secrets.redact(&clean).into_owned();
            }
            let is_new = clean != *text;
            *text = clean;
            is_new
        }
        Value::Array(items) => items.iter_mut().fold(false, |any, item| {
            scrub(secrets, item, field, contents) | any
        }),
        Value::Object(fields) => fields.iter_mut().fold(false, |any, (name, value)| {
            scrub(secrets, value, name, contents) | any
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A password in a command is likely one of a test's own, and without it the test
/// cannot be run.
fn is_refused(found: &Sighting) -> bool {
    found.severity >= Severity::High && found.pattern != "password_assignment"
}

/// Visits every text, with the name of the field it is in.
fn each_text<'a>(value: &'a Value, field: &'a str, visit: &mut dyn FnMut(&'a str, &'a str)) {
    match value {
        Value::String(text) => visit(field, text),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, field, visit)),
        Value::Object(fields) => fields
            .iter()
            .for_each(|(name, value)| each_text(value, name, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn token() -> String {
        format!("{}{}", "ghp_", "q8Zt1VbX0pLr7KdM2nWc".repeat(2))
    }

    #[test]
    fn a_secret_is_found_however_deep_it_lies_and_not_in_file_contents() {
        let secrets = Secrets::new();
        let check =
            |input: &Value, is_run| refuse_marker(&secrets, "tool", input, &["content"], is_run);
        let deep = json!({"a": [{"b": {"headers": ["x", token()]}}]});
        let refused = check(&deep, false).unwrap_err();
        assert!(
            refused
                .text
                .contains("`headers` holds a secret (github_token"),
            "{}",
            refused.text
        );
        assert!(!refused.text.contains(&token()));
        assert!(check(&json!({"content": token()}), true).is_ok());
        assert_eq!(
            secrets.in_contents(&json!({"content": token()}), &["content"]),
            ["github_token"]
        );
        // A marker is harmless where nothing is run.
        let marked = json!({"pattern": MARK});
        assert!(check(&marked, false).is_ok());
        assert!(
            check(&marked, true)
                .unwrap_err()
                .text
                .contains("`search_files`")
        );
        // Tests have passwords of their own.
        assert!(check(&json!({"command": "PGPASSWORD=test-pass-1 psql"}), true).is_ok());
    }

    #[test]
    fn a_file_without_secrets_may_have_the_marker_in_it() {
        let secrets = Secrets::new();
        let loses = |path: &str, before: &str, after: &str| {
            loses_secrets(
                &secrets,
                Path::new(path),
                Some(before.as_bytes()),
                after.as_bytes(),
            )
            .is_some()
        };
        assert!(!loses(
            "log.rs",
            "let mark = 1;",
            "let mark = \"[REDACTED]\";"
        ));
        assert!(loses(
            "a.toml",
            "password = \"hunter22!\"",
            "password = \"[REDACTED]\""
        ));
        assert!(!loses("a.toml", "password = \"hunter22!\"\na = 1", "a = 2"));
        assert!(loses(".env", "A=1", "A=[REDACTED]"));
        assert!(!loses(".env", "A=1", "A=2"));
    }
}

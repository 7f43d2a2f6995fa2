//! What an agent says it did, held against what is on record.
//!
//! "Done" needs evidence. The files of the workspace are compared before and after, the
//! file tools say what they changed, commands have exit codes; where a result says
//! otherwise, the difference goes into it for whoever asked for the work.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use selvedge_tool::{Surveyed, Tested};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::call::ToolOutcome;

/// The field that differences are put into.
pub const DISCREPANCIES: &str = "discrepancies";
/// A caller does not need more to know that a result is wrong.
const FOUND_MAX: usize = 40;
/// Commands that are named as what was run instead of tests.
const NAMED_MAX: usize = 5;

/// The fields of a result that claim something, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Claims {
    /// A list of files that it says it created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// A list of files that it says it modified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified: Option<String>,
    /// Whether it says that it ran tests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tests_run: Option<String>,
    /// Whether it says that they passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tests_passed: Option<String>,
}

/// What an agent's tools really did, folded from their outcomes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Deeds {
    /// Files that file tools changed, and whether they were new.
    files: BTreeMap<String, bool>,
    commands: Vec<Ran>,
    in_doubt: Vec<String>,
}

/// A command that ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Ran {
    command: String,
    code: Option<i64>,
    /// How many tests failed, where a report of them was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed: Option<u64>,
}

impl Claims {
    /// The files that a result claims to have changed, as they are from the root.
    pub(crate) fn files(&self, result: &Value, root: &Path) -> Vec<String> {
        let lists = [&self.created, &self.modified];
        let said = lists.map(|name| paths(name, result, root));
        said.into_iter().flatten().flatten().collect()
    }
}

impl Ran {
    fn is_test(&self) -> bool {
        self.failed.is_some() || Tested::by(&self.command) != Tested::No
    }

    /// Why it does not show that tests pass, if it does not.
    fn objection(&self) -> Option<String> {
        let command = &self.command;
        match (self.code, self.failed) {
            (None, _) => Some(format!("`{command}` was stopped before its end")),
            (_, Some(failed)) if failed > 0 => {
                Some(format!("`{command}` reported {failed} failed"))
            }
            (Some(0), Some(_)) => None,
            (Some(0), None) if Tested::by(command) == Tested::Hidden => Some(format!(
                "the exit code of `{command}` is not that of its tests"
            )),
            (Some(0), None) => None,
            (Some(code), _) => Some(format!("`{command}` ended with exit code {code}")),
        }
    }
}

impl Deeds {
    /// Takes note of what a tool came to; `command` if it was one.
    pub(crate) fn heed(&mut self, outcome: &ToolOutcome, command: Option<String>) {
        if let Some(command) = command {
            // One that was refused has no facts, and did nothing.
            if let Some(code) = outcome.facts.get("exit_code") {
                let code = code.as_i64();
                let failed = outcome.facts.pointer("/report/tests/failed");
                let failed = failed.and_then(Value::as_u64);
                self.commands.push(Ran {
                    command,
                    code,
                    failed,
                });
            }
            return;
        }
        if outcome.is_error {
            return;
        }
        for change in changes(&outcome.facts) {
            let Some(path) = change["path"].as_str() else {
                continue;
            };
            let is_new = change["before"].is_null() && change.get("after").is_some();
            self.files.entry(path.to_owned()).or_insert(is_new);
        }
    }

    /// Nobody knows whether this happened.
    pub(crate) fn doubt(&mut self, what: String) {
        self.in_doubt.push(what);
    }

    /// Where `result` says something else than the record; `changed` is what became of
    /// the workspace, if that was looked at.
    pub(crate) fn contradict(
        &self,
        claims: &Claims,
        result: &Value,
        changed: Option<&Surveyed>,
        root: &Path,
    ) -> Vec<String> {
        let mut found = Vec::new();
        self.check_files(claims, result, changed, root, &mut found);
        self.check_tests(claims, result, &mut found);
        found.extend(self.in_doubt.iter().map(|what| {
            format!("`{what}` was under way when the process was stopped: it may or may not have happened")
        }));
        found.truncate(FOUND_MAX);
        found
    }

    fn check_files(
        &self,
        claims: &Claims,
        result: &Value,
        changed: Option<&Surveyed>,
        root: &Path,
        found: &mut Vec<String>,
    ) {
        let created = paths(&claims.created, result, root).unwrap_or_default();
        let modified = paths(&claims.modified, result, root).unwrap_or_default();
        for path in &created {
            found.extend(self.is_not_created(path, changed));
        }
        for path in &modified {
            found.extend(self.is_not_modified(path, changed));
        }
        if claims.created.is_none() && claims.modified.is_none() {
            return;
        }
        let Some(changed) = changed else { return };
        let is_told = |path: &&String| created.contains(path) || modified.contains(path);
        let untold = changed.created.iter().filter(|path| !is_told(path));
        found.extend(untold.map(|path| format!("it does not say that it created `{path}`")));
        let untold = changed.modified.iter().filter(|path| !is_told(path));
        found.extend(untold.map(|path| format!("it does not say that it modified `{path}`")));
        let untold = changed.deleted.iter().filter(|path| !is_told(path));
        found.extend(untold.map(|path| format!("it does not say that it removed `{path}`")));
    }

    /// Why a file cannot be said to have been created. What is there in the end counts: a
    /// file that was made and removed again is no result. What git ignores is in no
    /// survey; of that only the file tools know anything.
    fn is_not_created(&self, path: &String, changed: Option<&Surveyed>) -> Option<String> {
        let by_tool = self.files.get(path);
        let was_there = || {
            Some(format!(
                "it says that it created `{path}`, which was there before"
            ))
        };
        match changed {
            Some(changed) if changed.created.contains(path) => None,
            Some(changed) if changed.absent.contains(path) => Some(match by_tool {
                Some(_) => format!("it says that it created `{path}`, which is not there any more"),
                None => format!("it says that it created `{path}`, and no such file was created"),
            }),
            Some(c) if c.modified.contains(path) || c.unchanged.contains(path) => was_there(),
            _ if by_tool == Some(&false) => was_there(),
            _ => None,
        }
    }

    /// The same for a file that was there and was changed. To remove one is to change it.
    fn is_not_modified(&self, path: &String, changed: Option<&Surveyed>) -> Option<String> {
        let changed = changed?;
        if changed.deleted.contains(path) {
            return None;
        }
        if changed.absent.contains(path) {
            let why = match self.files.contains_key(path) {
                true => "which is not there any more",
                false => "and there is no such file",
            };
            return Some(format!("it says that it modified `{path}`, {why}"));
        }
        changed
            .unchanged
            .contains(path)
            .then(|| format!("it says that it modified `{path}`, and the file is unchanged"))
    }

    fn check_tests(&self, claims: &Claims, result: &Value, found: &mut Vec<String>) {
        let said = |name: &Option<String>| result.get(name.as_ref()?)?.as_bool();
        let (run, passed) = (said(&claims.tests_run), said(&claims.tests_passed));
        let claim = match (run, passed) {
            (Some(true), _) => "it ran tests",
            (_, Some(true)) => "tests passed",
            _ => return,
        };
        if self.commands.is_empty() {
            return found.push(format!("it says that {claim}, and it ran no command"));
        }
        let tests = self.last_tests();
        if tests.is_empty() {
            let commands = self.commands.iter().map(|ran| &ran.command);
            return found.push(format!(
                "it says that {claim}, and nothing that it ran looks like a test: {}",
                named(commands.collect())
            ));
        }
        let objections: Vec<String> = tests.iter().filter_map(|ran| ran.objection()).collect();
        match passed {
            Some(true) => found.extend(
                objections
                    .into_iter()
                    .map(|why| format!("it says that tests passed, and {why}")),
            ),
            Some(false) if objections.is_empty() => found.push(format!(
                "it says that tests did not pass, and {} ended with exit code 0",
                named(tests.iter().map(|ran| &ran.command).collect())
            )),
            _ => {}
        }
    }

    /// The last run of every test. One that a later run contains, as `cargo test` contains
    /// `cargo test parser`, is not looked at again.
    fn last_tests(&self) -> Vec<&Ran> {
        let tests: Vec<&Ran> = self.commands.iter().filter(|ran| ran.is_test()).collect();
        let is_last = |(n, ran): &(usize, &&Ran)| {
            let mut later = tests[n + 1..].iter();
            !later.any(|later| ran.command.starts_with(&later.command))
        };
        let last = tests.iter().enumerate().filter(is_last);
        last.map(|(_, ran)| *ran).collect()
    }
}

/// Commands as they are named in a line, each once.
fn named(commands: Vec<&String>) -> String {
    let all: BTreeSet<&String> = commands.into_iter().collect();
    let named: Vec<String> = all
        .iter()
        .take(NAMED_MAX)
        .map(|c| format!("`{c}`"))
        .collect();
    match all.len().saturating_sub(NAMED_MAX) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// The paths in a list of a result, as they are from the root.
fn paths(name: &Option<String>, result: &Value, root: &Path) -> Option<Vec<String>> {
    let list = result.get(name.as_ref()?)?.as_array()?;
    let paths = list.iter().filter_map(Value::as_str);
    Some(paths.map(|path| plain(root, path)).collect())
}

/// Puts what was found into a result.
pub(crate) fn annotate(result: &mut Value, found: Vec<String>) {
    if let (Value::Object(fields), false) = (result, found.is_empty()) {
        fields.insert(DISCREPANCIES.to_owned(), json!(found));
    }
}

/// The changes that a file tool's facts tell of.
fn changes(facts: &Value) -> Vec<&Value> {
    match facts.get("files").and_then(Value::as_array) {
        Some(files) => files.iter().collect(),
        None if facts.get("after").is_some() => vec![facts],
        None => Vec::new(),
    }
}

/// A path as it is from the workspace's root, however it was written.
fn plain(root: &Path, path: &str) -> String {
    let path = Path::new(path);
    let path = path.strip_prefix(root).unwrap_or(path);
    let parts = path.components().filter(|part| *part != Component::CurDir);
    let path: PathBuf = parts.collect();
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use selvedge_ledger::Payload;

    use super::*;

    fn claims() -> Claims {
        Claims {
            created: Some("made".into()),
            modified: Some("changed".into()),
            tests_run: Some("ran".into()),
            tests_passed: Some("passed".into()),
        }
    }

    fn outcome(tool: &str, facts: Value) -> ToolOutcome {
        ToolOutcome {
            tool: tool.into(),
            text: Payload::new(""),
            whole: None,
            facts,
            is_error: false,
            interrupted: false,
            denied: None,
            asks: None,
            hooked: None,
            looks: false,
            failure: None,
        }
    }

    fn ran(deeds: &mut Deeds, command: &str, code: i64) {
        let outcome = outcome("run_command", json!({ "exit_code": code }));
        deeds.heed(&outcome, Some(command.into()));
    }

    fn found(deeds: &Deeds, result: Value, changed: Surveyed) -> Vec<String> {
        deeds.contradict(&claims(), &result, Some(&changed), Path::new("/copy"))
    }

    #[test]
    fn an_honest_result_is_not_contradicted() {
        let mut deeds = Deeds::default();
        let facts = json!({ "path": "a", "before": null, "after": "1" });
        deeds.heed(&outcome("write_file", facts), None);
        ran(&mut deeds, "sh test.sh", 1);
        ran(&mut deeds, "sh test.sh", 0);
        // Neither a look that fails nor a lint is a test.
        ran(&mut deeds, "grep x a", 1);
        let changed = Surveyed {
            created: vec!["a".into()],
            modified: vec!["b".into()],
            ..Surveyed::default()
        };
        let result =
            json!({ "made": ["./a"], "changed": ["/copy/b"], "ran": true, "passed": true });
        assert_eq!(found(&deeds, result, changed), Vec::<String>::new());
    }

    #[test]
    fn files_and_tests_that_are_claimed_and_not_there_are_named() {
        let mut deeds = Deeds::default();
        ran(&mut deeds, "sh test.sh", 2);
        let changed = Surveyed {
            modified: vec!["b".into(), "quiet".into()],
            deleted: vec!["d".into(), "lost".into()],
            absent: vec!["a".into()],
            unchanged: vec!["c".into()],
            ..Surveyed::default()
        };
        let result =
            json!({ "made": ["a", "b"], "changed": ["c", "d"], "ran": true, "passed": true });
        let found = found(&deeds, result, changed);
        assert_eq!(
            found,
            [
                "it says that it created `a`, and no such file was created",
                "it says that it created `b`, which was there before",
                "it says that it modified `c`, and the file is unchanged",
                "it does not say that it modified `quiet`",
                "it does not say that it removed `lost`",
                "it says that tests passed, and `sh test.sh` ended with exit code 2",
            ]
        );
    }

    #[test]
    fn a_file_that_was_made_and_removed_again_is_no_result() {
        let mut deeds = Deeds::default();
        let facts = json!({ "path": "a", "before": null, "after": "1" });
        deeds.heed(&outcome("write_file", facts), None);
        let changed = Surveyed {
            absent: vec!["a".into()],
            ..Surveyed::default()
        };
        let result = json!({ "made": ["a"], "changed": ["a"], "ran": false, "passed": false });
        assert_eq!(
            found(&deeds, result, changed),
            [
                "it says that it created `a`, which is not there any more",
                "it says that it modified `a`, which is not there any more",
            ]
        );
        // What git ignores is in no survey. It is there, and a tool made it.
        let result = json!({ "made": ["a"], "changed": [], "ran": false, "passed": false });
        assert!(found(&deeds, result, Surveyed::default()).is_empty());
    }

    #[test]
    fn only_tests_show_that_tests_pass() {
        let claim = json!({ "made": [], "changed": [], "ran": true, "passed": true });
        let after = |commands: &[(&str, i64)]| {
            let mut deeds = Deeds::default();
            for (command, code) in commands {
                ran(&mut deeds, command, *code);
            }
            found(&deeds, claim.clone(), Surveyed::default())
        };
        for (commands, expected) in [
            (&[][..], "it ran no command"),
            (
                &[("true", 0), ("ls tests", 0)],
                "nothing that it ran looks like a test: `ls tests`, `true`",
            ),
            (
                &[("sh test.sh || true", 0)],
                "the exit code of `sh test.sh || true` is not that of its tests",
            ),
            (&[("sh test.sh", 0), ("sh test.sh", 1)], "exit code 1"),
        ] {
            let found = after(commands);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].contains(expected), "{found:?}");
        }
        // What failed at first, and passed as part of a whole, passed.
        let mended = after(&[("cargo test parser", 101), ("cargo test", 0), ("ls", 2)]);
        assert_eq!(mended, Vec::<String>::new());
    }

    #[test]
    fn a_report_says_more_than_an_exit_code() {
        let claim = json!({ "made": [], "changed": [], "ran": true, "passed": true });
        let with = |failed: u64| {
            let mut deeds = Deeds::default();
            let report = json!({ "tests": { "passed": 2, "failed": failed } });
            let facts = json!({ "exit_code": 0, "report": report });
            deeds.heed(&outcome("run_command", facts), Some("make | tail".into()));
            found(&deeds, claim.clone(), Surveyed::default())
        };
        assert_eq!(with(0), Vec::<String>::new());
        assert_eq!(
            with(1),
            ["it says that tests passed, and `make | tail` reported 1 failed"]
        );
    }
}

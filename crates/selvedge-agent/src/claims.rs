//! What an agent says it did, held against what is on record.
//!
//! "Done" needs evidence. The files of the workspace are compared before and after, the
//! file tools say what they changed, commands have exit codes; where a result says
//! otherwise, the difference goes into it for whoever asked for the work.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use selvedge_tool::Surveyed;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::call::ToolOutcome;

/// The field that differences are put into.
pub const DISCREPANCIES: &str = "discrepancies";
/// A caller does not need more to know that a result is wrong.
const FOUND_MAX: usize = 40;
/// Words of a command by which it is taken for a test.
const TEST_WORDS: [&str; 6] = ["test", "tests", "check", "spec", "verify", "pytest"];

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
}

impl Deeds {
    /// Takes note of what a tool came to; `command` if it was one.
    pub(crate) fn heed(&mut self, outcome: &ToolOutcome, command: Option<String>) {
        if let Some(command) = command {
            // One that was refused has no facts, and did nothing.
            if let Some(code) = outcome.facts.get("exit_code") {
                let code = code.as_i64();
                self.commands.push(Ran { command, code });
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
        let said = |name: &Option<String>| -> Option<Vec<String>> {
            let list = result.get(name.as_ref()?)?.as_array()?;
            let paths = list.iter().filter_map(Value::as_str);
            Some(paths.map(|path| plain(root, path)).collect())
        };
        let created = said(&claims.created).unwrap_or_default();
        let modified = said(&claims.modified).unwrap_or_default();
        let is_partial = changed.is_none_or(|changed| changed.is_partial);
        let really_created = |path: &String| match changed {
            Some(changed) if changed.created.contains(path) => true,
            // What git ignores is not surveyed; the tool knows.
            _ => self.files.get(path) == Some(&true),
        };
        let really_touched = |path: &String| {
            self.files.contains_key(path)
                || changed.is_some_and(|c| c.created.contains(path) || c.modified.contains(path))
        };
        for path in &created {
            match (really_created(path), really_touched(path)) {
                (true, _) => {}
                (false, true) => found.push(format!(
                    "it says that it created `{path}`, which was there before"
                )),
                (false, false) if is_partial => {}
                (false, false) => found.push(format!(
                    "it says that it created `{path}`, and no such file was created"
                )),
            }
        }
        for path in &modified {
            if !really_touched(path) && !is_partial {
                found.push(format!(
                    "it says that it modified `{path}`, and the file is unchanged"
                ));
            }
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
    }

    fn check_tests(&self, claims: &Claims, result: &Value, found: &mut Vec<String>) {
        let said = |name: &Option<String>| result.get(name.as_ref()?)?.as_bool();
        let (run, passed) = (said(&claims.tests_run), said(&claims.tests_passed));
        if run == Some(true) && self.commands.is_empty() {
            found.push("it says that it ran tests, and it ran no command".into());
            return;
        }
        let last = self.last_runs();
        let failed: Vec<&&Ran> = last.iter().filter(|ran| ran.code != Some(0)).collect();
        match passed {
            Some(true) if last.is_empty() => {
                found.push("it says that tests passed, and it ran no command".into());
            }
            Some(true) => found.extend(failed.iter().map(|ran| {
                let how = match ran.code {
                    Some(code) => format!("ended with exit code {code}"),
                    None => "was stopped before its end".to_owned(),
                };
                format!("it says that tests passed, and `{}` {how}", ran.command)
            })),
            Some(false) if run == Some(true) && failed.is_empty() => {
                let commands: Vec<String> = last
                    .iter()
                    .map(|ran| format!("`{}`", ran.command))
                    .collect();
                found.push(format!(
                    "it says that tests did not pass, and {} ended with exit code 0",
                    commands.join(", ")
                ));
            }
            _ => {}
        }
    }

    /// The last run of every test; of every command, if none looks like a test.
    fn last_runs(&self) -> Vec<&Ran> {
        let mut last: BTreeMap<&str, &Ran> = BTreeMap::new();
        for ran in &self.commands {
            last.insert(&ran.command, ran);
        }
        let is_test = |ran: &&Ran| {
            let mut words = ran.command.split(|c: char| !c.is_ascii_alphanumeric());
            words.any(|word| TEST_WORDS.contains(&word.to_ascii_lowercase().as_str()))
        };
        let all: Vec<&Ran> = last.into_values().collect();
        let tests: Vec<&Ran> = all.iter().copied().filter(is_test).collect();
        if tests.is_empty() { all } else { tests }
    }
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
            ..Surveyed::default()
        };
        let result = json!({ "made": ["a", "b"], "changed": ["c"], "ran": true, "passed": true });
        let found = found(&deeds, result, changed);
        assert_eq!(
            found,
            [
                "it says that it created `a`, and no such file was created",
                "it says that it created `b`, which was there before",
                "it says that it modified `c`, and the file is unchanged",
                "it does not say that it modified `quiet`",
                "it says that tests passed, and `sh test.sh` ended with exit code 2",
            ]
        );
    }

    #[test]
    fn tests_that_nobody_ran_did_not_pass() {
        let result = json!({ "made": [], "changed": [], "ran": true, "passed": true });
        let found = found(&Deeds::default(), result, Surveyed::default());
        assert_eq!(found, ["it says that it ran tests, and it ran no command"]);
    }
}

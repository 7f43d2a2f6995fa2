//! What tools report, as structure: how many tests ran, which failed and where.
//!
//! A program that decides by an exit code knows that something failed; one that reads
//! a report knows what. A parser recognises the output of one tool and reads it; what
//! it does not recognise is nobody's report. The text itself stays as it is.

mod cargo;
mod eslint;
mod git;
mod go_test;
mod jest;
mod pytest;

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde::Serialize;

/// What a tool reported.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Report {
    /// Which tool.
    pub(crate) tool: &'static str,
    /// How its tests went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tests: Option<Tests>,
    /// Errors, other than tests that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) errors: Option<u64>,
    /// Warnings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) warnings: Option<u64>,
    /// What went wrong, and where.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) failures: Vec<Failure>,
    /// The state of a repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) repository: Option<git::Repository>,
}

/// How tests went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Tests {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

/// Something that went wrong.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Failure {
    /// A test's name, or an error's code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
}

/// Reads the reports of one tool.
trait Parser: Sync {
    /// Whether a command is likely to print them.
    fn expects(&self, command: &str) -> bool;

    /// The report, if the text is one.
    fn parse(&self, text: &str) -> Option<Report>;
}

// A new one is a new file and one line here.
static PARSERS: [&dyn Parser; 6] = [
    &cargo::Cargo,
    &pytest::Pytest,
    &jest::Jest,
    &go_test::GoTest,
    &eslint::Eslint,
    &git::Git,
];

// A list that long is not read; the counts are exact.
const FAILURES_MAX: usize = 50;
const MESSAGE_CHARS_MAX: usize = 300;

/// The report that `command` printed, if it is one that somebody can read. A tool is
/// often started by another (`make`, `npm test`), so the text is tried too.
pub(crate) fn read(command: &str, text: &str) -> Option<Report> {
    let text = plain(text);
    let expected = PARSERS.iter().filter(|parser| parser.expects(command));
    let starters = [
        "make", "npm", "npx", "pnpm", "yarn", "bun", "just", "tox", "uv", "sh", "bash", "./",
    ];
    let is_starter = starters.iter().any(|starter| mentions(command, starter));
    let others = PARSERS
        .iter()
        .filter(|parser| is_starter && !parser.expects(command));
    let mut report = expected
        .chain(others)
        .find_map(|parser| parser.parse(&text))?;
    report.failures.truncate(FAILURES_MAX);
    for failure in &mut report.failures {
        if let Some(message) = &mut failure.message {
            message.truncate(crate::cut::end_of(message, MESSAGE_CHARS_MAX));
        }
    }
    Some(report)
}

/// Whether a word of the command is this one, or begins with a path that is.
fn mentions(command: &str, word: &str) -> bool {
    command
        .split(|c: char| c.is_whitespace() || "|&;()".contains(c))
        .any(|part| match word.ends_with('/') {
            true => part.starts_with(word),
            false => part.rsplit('/').next() == Some(word),
        })
}

/// The text without colours.
fn plain(text: &str) -> String {
    static COLOURS: LazyLock<Regex> = LazyLock::new(|| pattern("\u{1b}\\[[0-9;]*[A-Za-z]"));
    match text.contains('\u{1b}') {
        true => COLOURS.replace_all(text, "").into_owned(),
        false => text.to_owned(),
    }
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is valid")
}

/// The number in a group of a match; 0 if there is none.
fn number(captures: &Captures<'_>, group: &str) -> u64 {
    captures
        .name(group)
        .and_then(|found| found.as_str().parse().ok())
        .unwrap_or(0)
}

/// The number that stands before a word, such as `3 failed`.
fn before(text: &str, word: &str) -> Option<u64> {
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || c == ',' || c == '(' || c == ')')
        .filter(|part| !part.is_empty())
        .collect();
    words
        .windows(2)
        .find(|pair| pair[1] == word)
        .and_then(|pair| pair[0].parse().ok())
}

fn text_of(captures: &Captures<'_>, group: &str) -> Option<String> {
    captures
        .name(group)
        .map(|found| found.as_str().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_found_behind_whoever_started_it_and_nowhere_else() {
        let text = "====== 2 passed, 1 skipped in 0.12s ======\n";
        assert_eq!(read("make check", text).unwrap().tool, "pytest");
        assert_eq!(read("python -m pytest -q", text).unwrap().tool, "pytest");
        assert_eq!(read("cat notes.txt", text), None);
        assert_eq!(read("cargo test", "nothing of the kind\n"), None);
    }

    #[test]
    fn colours_do_not_matter() {
        let text = "\u{1b}[32m=== \u{1b}[1m2 passed\u{1b}[0m in 0.12s ===\u{1b}[0m\n";
        assert_eq!(read("pytest", text).unwrap().tests.unwrap().passed, 2);
    }

    #[test]
    fn a_long_list_is_cut_and_its_count_is_exact() {
        let failed: String = (0..200)
            .map(|n| format!("FAILED a.py::t{n} - x\n"))
            .collect();
        let report = read("pytest", &format!("{failed}=== 200 failed in 1s ===\n")).unwrap();
        assert_eq!(report.tests.unwrap().failed, 200);
        assert_eq!(report.failures.len(), FAILURES_MAX);
    }

    /// What the tools themselves have printed, kept as it was.
    #[test]
    fn real_reports_are_read() {
        macro_rules! printed {
            ($name:literal) => {
                include_str!(concat!("../../tests/fixtures/reports/", $name, ".txt"))
            };
        }
        let tests = |passed, failed, skipped| Tests {
            passed,
            failed,
            skipped,
        };
        for (command, text, expected, place) in [
            (
                "cargo test",
                printed!("cargo-test"),
                tests(1, 1, 1),
                ("src/lib.rs", 3),
            ),
            (
                "pytest",
                printed!("pytest"),
                tests(1, 2, 1),
                ("test_a.py", 3),
            ),
            (
                "python3 -m pytest -q",
                printed!("pytest-q"),
                tests(1, 2, 1),
                ("test_a.py", 3),
            ),
            (
                "npx vitest run",
                printed!("vitest"),
                tests(1, 1, 1),
                ("t/a.test.js", 3),
            ),
            (
                "npm test",
                printed!("vitest"),
                tests(1, 1, 1),
                ("t/a.test.js", 3),
            ),
            (
                "go test ./...",
                printed!("go-test"),
                tests(0, 3, 0),
                ("loom_test.go", 19),
            ),
            (
                "make check",
                printed!("go-test"),
                tests(0, 3, 0),
                ("/home/weaver/loom/weave/weave_test.go", 13),
            ),
            (
                "go test -v .",
                printed!("go-test-v"),
                tests(2, 2, 1),
                ("loom_test.go", 19),
            ),
            (
                "npx jest",
                printed!("jest"),
                tests(1, 1, 1),
                ("j/b.test.js", 2),
            ),
        ] {
            let report = read(command, text).unwrap_or_else(|| panic!("{command} is not read"));
            assert_eq!(report.tests, Some(expected), "{command}");
            let is_there = |failure: &Failure| {
                (failure.file.as_deref(), failure.line) == (Some(place.0), Some(place.1))
            };
            assert!(
                report.failures.iter().any(is_there),
                "{command}: {:?}",
                report.failures
            );
        }
        let report = read("cargo build", printed!("cargo-build")).unwrap();
        assert_eq!(report.errors, Some(1));
        let failure = &report.failures[0];
        assert_eq!(failure.name.as_deref(), Some("E0277"));
        assert_eq!(
            (failure.file.as_deref(), failure.line),
            (Some("src/lib.rs"), Some(1))
        );
        let report = read("go test ./...", printed!("go-test")).unwrap();
        assert_eq!(report.errors, Some(1), "a package does not compile");
        assert_eq!(
            report.failures[0].file.as_deref(),
            Some("spool/spool_test.go")
        );
        let panicked = report.failures.last().unwrap();
        let words = "runtime error: index out of range [3] with length 0 [recovered]";
        assert_eq!(panicked.message.as_deref(), Some(words));
        let report = read("npx eslint bad.js", printed!("eslint")).unwrap();
        assert_eq!((report.errors, report.warnings), (Some(1), Some(1)));
        assert_eq!(report.failures[0].line, Some(2));
        for text in [printed!("git-status"), printed!("git-short")] {
            let report = read("git status", text).unwrap();
            let repository = serde_json::to_value(report.repository).unwrap();
            assert_eq!(repository["branch"], "main");
            assert_eq!(
                (&repository["changed"], &repository["untracked"]),
                (&1.into(), &1.into())
            );
        }
    }
}

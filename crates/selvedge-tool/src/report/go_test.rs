//! Go: `go test`, and the compiler's errors of `go build` and `go vet`.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::{Failure, Parser, Report, Tests, mentions, number, pattern, text_of};

pub(super) struct GoTest;

static OUTCOME: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?m)^\s*--- (?<outcome>PASS|FAIL|SKIP): (?<name>\S+)"));
static PLACE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?m)^\s+(?<file>\S+\.go):(?<line>\d+): (?<message>[^\n]*)"));
static PANIC: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?m)^panic: (?<message>[^\n]*)"));
// A frame of the stack that is in a test's own file.
static FRAME: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?m)^\t(?<file>\S+_test\.go):(?<line>\d+)\b"));
static ERROR: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?m)^(?<file>\S+\.go):(?<line>\d+):\d+: (?<message>[^\n]+)"));
static PACKAGE: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?m)^(?:ok  |FAIL|\?   )\t\S+"));

impl Parser for GoTest {
    fn expects(&self, command: &str) -> bool {
        mentions(command, "go") || mentions(command, "gotestsum")
    }

    fn parse(&self, text: &str) -> Option<Report> {
        let outcomes: Vec<_> = OUTCOME.captures_iter(text).collect();
        let errors: Vec<_> = ERROR.captures_iter(text).collect();
        let has_packages = PACKAGE.is_match(text);
        if outcomes.is_empty() && errors.is_empty() && !has_packages {
            return None;
        }
        let count = |wanted: &str| {
            let is_it = |found: &&regex::Captures<'_>| &found["outcome"] == wanted;
            outcomes.iter().filter(is_it).count() as u64
        };
        let failed = outcomes.iter().filter(|found| &found["outcome"] == "FAIL");
        let failed_tests = failed.map(|found| failure(text, found));
        let compiler = errors.iter().map(|found| Failure {
            name: None,
            file: text_of(found, "file"),
            line: Some(number(found, "line")),
            message: text_of(found, "message"),
        });
        Some(Report {
            tool: "go",
            tests: (has_packages || !outcomes.is_empty()).then(|| Tests {
                passed: count("PASS"),
                failed: count("FAIL"),
                skipped: count("SKIP"),
            }),
            errors: Some(errors.len() as u64),
            failures: compiler.chain(failed_tests).collect(),
            ..Report::default()
        })
    }
}

/// A test that failed, and where: its words stand behind its outcome, or before it where
/// every test is announced (`-v`); of one that panicked there is a stack.
fn failure(text: &str, outcome: &Captures<'_>) -> Failure {
    let name = text_of(outcome, "name");
    let whole = outcome.get(0).expect("group 0 is the match");
    let after = &text[whole.end()..];
    // Up to the next outcome: what follows belongs to another test.
    let own = OUTCOME
        .find(after)
        .map_or(after, |next| &after[..next.start()]);
    let panicked = PANIC.captures(own);
    let place = match &panicked {
        Some(_) => FRAME.captures(own),
        None => match announced(&text[..whole.start()], name.as_deref().unwrap_or_default()) {
            Some(said) => PLACE.captures(said),
            None => PLACE.captures(own),
        },
    };
    let place = place.as_ref();
    let said = panicked.as_ref().or(place);
    Failure {
        file: place.and_then(|place| text_of(place, "file")),
        line: place.map(|place| number(place, "line")),
        message: said.and_then(|said| text_of(said, "message")),
        name,
    }
}

/// What a test said after it was announced; nothing if it was not.
fn announced<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let start = ["RUN  ", "CONT "].iter().filter_map(|word| {
        let line = format!("=== {word} {name}\n");
        text.rfind(&line).map(|at| at + line.len())
    });
    let said = &text[start.max()?..];
    let end = ["\n=== ", "\n--- "]
        .iter()
        .filter_map(|next| said.find(next));
    Some(&said[..end.min().unwrap_or(said.len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_and_their_places_are_read() {
        let text = "\
--- PASS: TestOne (0.00s)
--- FAIL: TestTwo (0.00s)
    math_test.go:12: got 2, want 3
--- SKIP: TestThree (0.00s)
FAIL
FAIL\texample.com/math\t0.002s
";
        let report = GoTest.parse(text).unwrap();
        let tests = Tests {
            passed: 1,
            failed: 1,
            skipped: 1,
        };
        assert_eq!(report.tests, Some(tests));
        let failure = Failure {
            name: Some("TestTwo".into()),
            file: Some("math_test.go".into()),
            line: Some(12),
            message: Some("got 2, want 3".into()),
        };
        assert_eq!(report.failures, [failure]);
    }

    #[test]
    fn a_compiler_s_errors_are_read() {
        let text = "# example.com/math\n./math.go:7:2: undefined: x\n";
        let report = GoTest.parse(text).unwrap();
        assert_eq!((report.errors, report.tests), (Some(1), None));
        assert_eq!(report.failures[0].line, Some(7));
    }
}

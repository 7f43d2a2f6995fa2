//! Go: `go test`, and the compiler's errors of `go build` and `go vet`.

use std::sync::LazyLock;

use regex::Regex;

use super::{Failure, Parser, Report, Tests, mentions, number, pattern, text_of};

pub(super) struct GoTest;

static OUTCOME: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?m)^\s*--- (?<outcome>PASS|FAIL|SKIP): (?<name>\S+)"));
static PLACE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?m)^\s+(?<file>\S+\.go):(?<line>\d+): (?<message>[^\n]*)"));
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
        let failed_tests = failed.map(|found| {
            let after = &text[found.get(0).map_or(0, |whole| whole.end())..];
            // Up to the next outcome: what follows belongs to another test.
            let own = OUTCOME
                .find(after)
                .map_or(after, |next| &after[..next.start()]);
            let place = PLACE.captures(own);
            let place = place.as_ref();
            Failure {
                name: text_of(found, "name"),
                file: place.and_then(|place| text_of(place, "file")),
                line: place.map(|place| number(place, "line")),
                message: place.and_then(|place| text_of(place, "message")),
            }
        });
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

//! Cargo: the compiler's errors and warnings, and the results of `test` and `nextest`.

use std::sync::LazyLock;

use regex::Regex;

use super::{Failure, Parser, Report, Tests, mentions, number, pattern, text_of};

pub(super) struct Cargo;

static RESULT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?m)^test result: \w+\. (?<passed>\d+) passed; (?<failed>\d+) failed; (?<skipped>\d+) ignored",
    )
});
static SUMMARY: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?m)^\s+Summary \[.*\] +(?:\d+/)?\d+ tests? run: (?<passed>\d+) passed(?:.*?(?<failed>\d+) failed)?(?:.*?(?<skipped>\d+) skipped)?",
    )
});
// `panicked at` names the place, the line before it the test.
static PANIC: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?m)^\s*thread '(?<name>[^']+)'[^\n]* panicked at (?<file>[^\n:]+):(?<line>\d+):\d+:\n(?<message>[^\n]*)",
    )
});
static FAILED: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?m)^test (?<name>\S+) \.\.\. FAILED$"));
static DIAGNOSTIC: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?m)^(?<kind>error|warning)(?:\[(?<name>\w+)\])?: (?<message>[^\n]+)\n\s+--> (?<file>[^\n:]+):(?<line>\d+):\d+",
    )
});

impl Parser for Cargo {
    fn expects(&self, command: &str) -> bool {
        mentions(command, "cargo") || mentions(command, "rustc")
    }

    fn parse(&self, text: &str) -> Option<Report> {
        let results = RESULT
            .captures_iter(text)
            .chain(SUMMARY.captures_iter(text));
        let tests = results.map(|found| Tests {
            passed: number(&found, "passed"),
            failed: number(&found, "failed"),
            skipped: number(&found, "skipped"),
        });
        let tests = tests.reduce(|one, other| Tests {
            passed: one.passed + other.passed,
            failed: one.failed + other.failed,
            skipped: one.skipped + other.skipped,
        });
        let (mut errors, mut warnings) = (0, 0);
        let mut failures = Vec::new();
        for found in DIAGNOSTIC.captures_iter(text) {
            if &found["kind"] == "warning" {
                warnings += 1;
                continue;
            }
            errors += 1;
            failures.push(Failure {
                name: text_of(&found, "name"),
                file: text_of(&found, "file"),
                line: Some(number(&found, "line")),
                message: text_of(&found, "message"),
            });
        }
        failures.extend(failed_tests(text));
        let is_cargo = tests.is_some()
            || errors + warnings > 0
            || text
                .lines()
                .any(|line| line.trim_start().starts_with("Finished `"));
        is_cargo.then_some(Report {
            tool: "cargo",
            tests,
            errors: Some(errors),
            warnings: Some(warnings),
            failures,
            ..Report::default()
        })
    }
}

/// The tests that failed, with the place where they did if it was printed.
fn failed_tests(text: &str) -> Vec<Failure> {
    let panics = PANIC.captures_iter(text).map(|found| Failure {
        name: text_of(&found, "name"),
        file: text_of(&found, "file"),
        line: Some(number(&found, "line")),
        message: text_of(&found, "message").filter(|message| !message.is_empty()),
    });
    let mut failures: Vec<Failure> = Vec::new();
    for failure in panics {
        if !failures.iter().any(|known| known.name == failure.name) {
            failures.push(failure);
        }
    }
    for found in FAILED.captures_iter(text) {
        let name = text_of(&found, "name");
        if !failures.iter().any(|known| known.name == name) {
            failures.push(Failure {
                name,
                ..Failure::default()
            });
        }
    }
    failures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_summed_up_and_failures_have_their_place() {
        let text = "\
running 3 tests
test a::works ... ok
test a::breaks ... FAILED

failures:

---- a::breaks stdout ----

thread 'a::breaks' (4711) panicked at src/a.rs:12:9:
assertion `left == right` failed
  left: 1

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s

test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out
";
        let report = Cargo.parse(text).unwrap();
        let tests = Tests {
            passed: 5,
            failed: 1,
            skipped: 1,
        };
        assert_eq!(report.tests, Some(tests));
        let failure = Failure {
            name: Some("a::breaks".into()),
            file: Some("src/a.rs".into()),
            line: Some(12),
            message: Some("assertion `left == right` failed".into()),
        };
        assert_eq!(report.failures, [failure]);
    }

    #[test]
    fn a_compiler_s_errors_have_their_code_and_place() {
        let text = "\
warning: unused variable: `x`
 --> src/main.rs:1:9
  |
error[E0308]: mismatched types
  --> src/main.rs:4:18
   |
error: could not compile `x` (bin \"x\") due to 1 previous error; 1 warning emitted
";
        let report = Cargo.parse(text).unwrap();
        assert_eq!((report.errors, report.warnings), (Some(1), Some(1)));
        let failure = &report.failures[0];
        assert_eq!(failure.name.as_deref(), Some("E0308"));
        assert_eq!(
            (failure.file.as_deref(), failure.line),
            (Some("src/main.rs"), Some(4))
        );
    }

    #[test]
    fn nextest_has_a_summary_of_its_own() {
        let text = "     Summary [   0.035s] 4 tests run: 3 passed, 1 failed, 2 skipped\n";
        let tests = Tests {
            passed: 3,
            failed: 1,
            skipped: 2,
        };
        assert_eq!(Cargo.parse(text).unwrap().tests, Some(tests));
        let text = "     Summary [   0.035s] 4 tests run: 4 passed, 0 skipped\n";
        assert_eq!(Cargo.parse(text).unwrap().tests.unwrap().passed, 4);
    }

    #[test]
    fn a_build_without_a_word_is_a_report_of_nothing() {
        let text =
            "   Compiling x v0.1.0\n    Finished `dev` profile [unoptimized] target(s) in 1s\n";
        let report = Cargo.parse(text).unwrap();
        assert_eq!((report.errors, report.tests), (Some(0), None));
    }
}

//! Pytest: its last line, and its short summary.

use std::sync::LazyLock;

use regex::Regex;

use super::{Failure, Parser, Report, Tests, before, mentions, number, pattern, text_of};

pub(super) struct Pytest;

static LAST: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?m)^=* ?(?<counts>\d+ (?:passed|failed|errors?|skipped|xfailed|xpassed|deselected)[^\n]*) in [\d.]+s",
    )
});
static FAILED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?m)^(?:FAILED|ERROR) (?<file>[^\s:]+)(?:::(?<name>[^\n]*?))?(?: - (?<message>[^\n]*))?$",
    )
});
static PLACE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?m)^(?<file>[^\s:]+\.py):(?<line>\d+): (?<message>\S+)"));

impl Parser for Pytest {
    fn expects(&self, command: &str) -> bool {
        mentions(command, "pytest") || mentions(command, "py.test")
    }

    fn parse(&self, text: &str) -> Option<Report> {
        let last = LAST.captures_iter(text).last()?;
        let counts = &last["counts"];
        let count = |word: &str| before(counts, word).unwrap_or(0);
        let errors = count("error") + count("errors");
        let mut places: Vec<(String, u64)> = PLACE
            .captures_iter(text)
            .map(|found| (found["file"].to_owned(), number(&found, "line")))
            .collect();
        let failures = FAILED.captures_iter(text).map(|found| {
            let file = text_of(&found, "file");
            // Places are printed in the order of the failures.
            let at = places
                .iter()
                .position(|(name, _)| Some(name) == file.as_ref());
            Failure {
                name: text_of(&found, "name"),
                line: at.map(|at| places.remove(at).1),
                message: text_of(&found, "message"),
                file,
            }
        });
        Some(Report {
            tool: "pytest",
            tests: Some(Tests {
                passed: count("passed") + count("xpassed"),
                failed: count("failed"),
                skipped: count("skipped") + count("xfailed") + count("deselected"),
            }),
            errors: Some(errors),
            warnings: Some(count("warning") + count("warnings")),
            failures: failures.collect(),
            ..Report::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_failures_are_read() {
        let text = "\
.F.                                                                      [100%]
=================================== FAILURES ===================================
__________________________________ test_adds ___________________________________

    def test_adds():
>       assert add(1, 1) == 3
E       assert 2 == 3

test_math.py:5: AssertionError
=========================== short test summary info ============================
FAILED test_math.py::test_adds - assert 2 == 3
========= 1 failed, 2 passed, 1 skipped, 3 warnings, 1 error in 0.03s ==========
";
        let report = Pytest.parse(text).unwrap();
        let tests = Tests {
            passed: 2,
            failed: 1,
            skipped: 1,
        };
        assert_eq!(report.tests, Some(tests));
        assert_eq!((report.errors, report.warnings), (Some(1), Some(3)));
        let failure = Failure {
            name: Some("test_adds".into()),
            file: Some("test_math.py".into()),
            line: Some(5),
            message: Some("assert 2 == 3".into()),
        };
        assert_eq!(report.failures, [failure]);
    }
}

//! Jest and Vitest: their summaries, and the files and tests that failed.

use std::sync::LazyLock;

use regex::Regex;

use super::{Failure, Parser, Report, Tests, before, mentions, number, pattern, text_of};

pub(super) struct Jest;

// `Tests:       1 failed, 2 passed, 3 total`, and Vitest's `Tests  1 failed | 2 passed (3)`.
static SUMMARY: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?m)^\s*Tests(?<jest>:)?\s+(?<counts>[^\n]*\b(?:passed|failed|skipped|total|todo)\b[^\n]*)$",
    )
});
static FAILED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?m)^\s*(?:● (?<jest>[^\n]+)|FAIL\s+(?<file>[^\s>]+) > (?<vitest>[^\n]+))$")
});
// `at Object.<anonymous> (src/a.test.js:4:17)`, and Vitest's `❯ src/a.test.ts:4:17`.
static PLACE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?m)^\s*(?:at [^\n(]*\(?|❯ )(?<file>[^\s()]+?\.[cm]?[jt]sx?):(?<line>\d+):\d+\)?$")
});

impl Parser for Jest {
    fn expects(&self, command: &str) -> bool {
        mentions(command, "jest") || mentions(command, "vitest")
    }

    fn parse(&self, text: &str) -> Option<Report> {
        let summary = SUMMARY.captures_iter(text).last()?;
        let counts = summary["counts"].replace('|', " ");
        let count = |word: &str| before(&counts, word).unwrap_or(0);
        let failures = FAILED.captures_iter(text).map(|found| {
            let after = &text[found.get(0).map_or(0, |whole| whole.end())..];
            let place = PLACE
                .captures_iter(after)
                .find(|place| !place["file"].contains("node_modules"));
            Failure {
                name: text_of(&found, "jest").or_else(|| text_of(&found, "vitest")),
                file: text_of(&found, "file")
                    .or_else(|| place.as_ref().and_then(|place| text_of(place, "file"))),
                line: place.as_ref().map(|place| number(place, "line")),
                message: first_line(after),
            }
        });
        let mut known: Vec<Failure> = Vec::new();
        for failure in failures {
            // Both print a failure where it happens and again at the end.
            if !known.iter().any(|other| other.name == failure.name) {
                known.push(failure);
            }
        }
        Some(Report {
            tool: match summary.name("jest") {
                Some(_) => "jest",
                None => "vitest",
            },
            tests: Some(Tests {
                passed: count("passed"),
                failed: count("failed"),
                skipped: count("skipped") + count("todo"),
            }),
            failures: known,
            ..Report::default()
        })
    }
}

fn first_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jest_is_read() {
        let text = "\
FAIL src/sum.test.js
  ● sum › adds

    expect(received).toBe(expected)

      at Object.toBe (src/sum.test.js:4:17)
      at node_modules/jest-circus/build/x.js:12:3

Test Suites: 1 failed, 1 total
Tests:       1 failed, 1 skipped, 2 passed, 4 total
Snapshots:   0 total
";
        let report = Jest.parse(text).unwrap();
        let tests = Tests {
            passed: 2,
            failed: 1,
            skipped: 1,
        };
        assert_eq!((report.tool, report.tests), ("jest", Some(tests)));
        let failure = Failure {
            name: Some("sum › adds".into()),
            file: Some("src/sum.test.js".into()),
            line: Some(4),
            message: Some("expect(received).toBe(expected)".into()),
        };
        assert_eq!(report.failures, [failure]);
    }

    #[test]
    fn vitest_is_read() {
        let text = "\
 FAIL  src/sum.test.ts > sum > adds
AssertionError: expected 2 to be 3 // Object.is equality
 ❯ src/sum.test.ts:5:23

 Test Files  1 failed (1)
      Tests  1 failed | 2 passed | 1 skipped (4)
";
        let report = Jest.parse(text).unwrap();
        let tests = Tests {
            passed: 2,
            failed: 1,
            skipped: 1,
        };
        assert_eq!((report.tool, report.tests), ("vitest", Some(tests)));
        let failure = &report.failures[0];
        assert_eq!(failure.name.as_deref(), Some("sum > adds"));
        assert_eq!(
            (failure.file.as_deref(), failure.line),
            (Some("src/sum.test.ts"), Some(5))
        );
    }
}

//! ESLint, in the form it prints by itself.

use std::sync::LazyLock;

use regex::Regex;

use super::{Failure, Parser, Report, mentions, number, pattern, text_of};

pub(super) struct Eslint;

static SUMMARY: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?m)^✖ \d+ problems? \((?<errors>\d+) errors?, (?<warnings>\d+) warnings?\)")
});
static PROBLEM: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^\s+(?<line>\d+):\d+\s+error\s+(?<message>.+?)(?:\s{2,}(?<name>\S+))?$")
});

impl Parser for Eslint {
    fn expects(&self, command: &str) -> bool {
        mentions(command, "eslint")
    }

    fn parse(&self, text: &str) -> Option<Report> {
        let summary = SUMMARY.captures(text)?;
        let mut file = None;
        let mut failures = Vec::new();
        for line in text.lines() {
            if let Some(found) = PROBLEM.captures(line) {
                failures.push(Failure {
                    name: text_of(&found, "name"),
                    file: file.clone(),
                    line: Some(number(&found, "line")),
                    message: text_of(&found, "message"),
                });
            } else if !line.starts_with(char::is_whitespace) && !line.is_empty() {
                file = Some(line.trim().to_owned());
            }
        }
        Some(Report {
            tool: "eslint",
            errors: Some(number(&summary, "errors")),
            warnings: Some(number(&summary, "warnings")),
            failures,
            ..Report::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_have_their_file_and_line() {
        let text = "\
src/a.js
  1:10  error    'x' is defined but never used  no-unused-vars
  3:1   warning  Unexpected console statement   no-console

✖ 2 problems (1 error, 1 warning)
";
        let report = Eslint.parse(text).unwrap();
        assert_eq!((report.errors, report.warnings), (Some(1), Some(1)));
        let failure = Failure {
            name: Some("no-unused-vars".into()),
            file: Some("src/a.js".into()),
            line: Some(1),
            message: Some("'x' is defined but never used".into()),
        };
        assert_eq!(report.failures, [failure]);
    }
}

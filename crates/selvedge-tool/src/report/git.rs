//! Git: the state of a repository, from `status` in either form, and the size of a diff.

use std::sync::LazyLock;

use regex::Regex;
use serde::Serialize;

use super::{Parser, Report, mentions, number, pattern};

pub(super) struct Git;

/// What git said of a repository.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Repository {
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    /// Files that differ from the last commit.
    changed: u64,
    /// Files that git does not know.
    untracked: u64,
    /// Files with both sides of a conflict in them.
    conflicts: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    insertions: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deletions: Option<u64>,
}

static BRANCH: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?m)^(?:On branch |## )(?<branch>[^\s.]+(?:\.[^\s.]+)*)"));
static SHORT: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(?<state>[ MADRCUT?!]{2}) \S"));
static LONG: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^\t(?:modified|new file|deleted|renamed|copied|typechange): "));
static STAT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?m)^ (?<changed>\d+) files? changed(?:, (?<insertions>\d+) insertions?\(\+\))?(?:, (?<deletions>\d+) deletions?\(-\))?",
    )
});

impl Parser for Git {
    fn expects(&self, command: &str) -> bool {
        mentions(command, "git")
    }

    fn parse(&self, text: &str) -> Option<Report> {
        let mut repository = Repository::default();
        let mut is_known = false;
        if let Some(found) = BRANCH.captures(text) {
            repository.branch = Some(found["branch"].to_owned());
            is_known = true;
        }
        let mut is_untracked = false;
        for line in text.lines() {
            if line.starts_with("Untracked files:") {
                is_untracked = true;
            } else if LONG.is_match(line) {
                repository.changed += 1;
            } else if line.starts_with("\tboth ") {
                repository.conflicts += 1;
            } else if line.starts_with('\t') && is_untracked {
                repository.untracked += 1;
            } else if let Some(found) = SHORT.captures(line) {
                is_known = true;
                match &found["state"] {
                    "??" => repository.untracked += 1,
                    "!!" => {}
                    "UU" | "AA" | "DD" | "AU" | "UA" | "DU" | "UD" => repository.conflicts += 1,
                    _ => repository.changed += 1,
                }
            }
        }
        if let Some(found) = STAT.captures_iter(text).last() {
            is_known = true;
            repository.changed = number(&found, "changed");
            repository.insertions = Some(number(&found, "insertions"));
            repository.deletions = Some(number(&found, "deletions"));
        }
        is_known.then_some(Report {
            tool: "git",
            repository: Some(repository),
            ..Report::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Repository {
        Git.parse(text).unwrap().repository.unwrap()
    }

    #[test]
    fn both_forms_of_status_say_the_same() {
        let expected = Repository {
            branch: Some("main".into()),
            changed: 2,
            untracked: 1,
            ..Repository::default()
        };
        let long = "On branch main\nChanges not staged for commit:\n\tmodified:   a\n\tdeleted:    b\n\nUntracked files:\n  (use \"git add\")\n\tc\n";
        assert_eq!(read(long), expected);
        assert_eq!(read("## main...origin/main\n M a\n D b\n?? c\n"), expected);
    }

    #[test]
    fn the_size_of_a_diff_is_read() {
        let diff = read(" a | 3 ++-\n 1 file changed, 2 insertions(+), 1 deletion(-)\n");
        assert_eq!((diff.insertions, diff.deletions), (Some(2), Some(1)));
        assert!(Git.parse("fatal: not a git repository\n").is_none());
    }
}

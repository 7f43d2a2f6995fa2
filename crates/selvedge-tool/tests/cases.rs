//! The table of cases is whole, and names tests that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const TABLE: &str = include_str!("cases.md");

/// The numbers of the threat model. Those that are missing were never given.
const CASES: [u32; 72] = [
    1, 2, 3, 5, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17, 19, 20, 21, 22, 23, 24, 28, 29, 30, 31, 32,
    33, 34, 35, 38, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 54, 55, 56, 57, 58, 59, 60,
    63, 64, 65, 66, 67, 68, 70, 71, 72, 75, 76, 77, 78, 79, 80, 82, 83, 85, 86, 87, 88, 89, 91,
];

/// The lines of the table: how each case is tried, and by what.
fn lines() -> BTreeMap<u32, (&'static str, &'static str)> {
    let cells = |line: &'static str| -> Option<(u32, (&str, &str))> {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let number = cells.get(1)?.parse().ok()?;
        Some((number, (cells.get(3)?, cells.get(4)?)))
    };
    TABLE.lines().filter_map(cells).collect()
}

#[test]
fn every_case_has_a_line_that_says_how_it_is_tried() {
    let expected: BTreeSet<u32> = CASES.into_iter().collect();
    let found: BTreeSet<u32> = lines().into_keys().collect();
    assert_eq!(found, expected);
    for (number, (how, tests)) in lines() {
        let is_known = |word: &str| ["agent", "user", "real", "pure", "later"].contains(&word);
        assert!(how.split(", ").all(is_known), "{number}: {how}");
        assert!(!tests.is_empty(), "{number}");
    }
}

#[test]
fn every_test_that_the_table_names_exists() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut tests = BTreeSet::new();
    collect(crates, &mut tests);
    assert!(tests.len() > 500, "only {} tests were found", tests.len());
    for (number, (how, named)) in lines() {
        for name in named.split(", ").filter(|_| how != "later") {
            assert!(
                tests.contains(name),
                "case {number}: there is no test `{name}`"
            );
        }
    }
}

/// What a model has no call for.
const UNSAID: [(u32, &str); 1] = [(
    32,
    "the name of a file that is not yet in its place is made up while it is written: no call \
     can name it, and nothing of a command runs beside a call",
)];

/// Shell, files and git.
#[test]
fn every_case_of_shell_files_and_git_is_said_by_a_model_through_the_binary() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folder = crates.join("selvedge/tests/cli/adversary");
    let mut tests = BTreeSet::new();
    collect(&folder, &mut tests);
    let mut said = String::new();
    for file in ["shell.rs", "files.rs", "git/mod.rs", "limits.rs"] {
        said.push_str(&std::fs::read_to_string(folder.join(file)).unwrap());
    }
    let said: String = said.split_whitespace().collect();
    for number in CASES.into_iter().filter(|number| *number <= 45) {
        let (how, named) = lines()[&number];
        let is_agent = how.split(", ").any(|word| word == "agent");
        let reason = UNSAID.iter().find(|(unsaid, _)| *unsaid == number);
        assert_eq!(is_agent, reason.is_none(), "{number}: {how} {reason:?}");
        if !is_agent {
            continue;
        }
        let by_model = named.split(", ").filter(|name| tests.contains(*name));
        assert!(by_model.count() > 0, "{number}: no test of {named}");
        // A table has the case by its number; what has a test of its own says it.
        let is_in_table = said.contains(&format!("case({number},"));
        let has_words = said.contains(&format!("///{number}:"));
        assert!(is_in_table || has_words, "{number} is in no table");
    }
}

#[test]
fn each_of_the_ten_risks_of_agents_is_tried_by_three_cases_or_more() {
    let cases = lines();
    for risk in 1..=10 {
        let begin = format!("| ASI{risk:02} |");
        let line = TABLE.lines().find(|line| line.starts_with(&begin));
        let line = line.unwrap_or_else(|| panic!("{begin} has no line"));
        let named = line.split('|').nth(3).unwrap_or_default().split(", ");
        let named: BTreeSet<u32> = named.map(|case| case.trim().parse().unwrap()).collect();
        let tried = named.iter().filter(|case| cases[*case].0 != "later");
        assert!(tried.count() >= 3, "{begin}");
    }
}

/// The names of all tests below a folder.
fn collect(folder: &Path, tests: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            if path.file_name().is_none_or(|name| name != "target") {
                collect(&path, tests);
            }
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let mut lines = text.lines();
            while let Some(line) = lines.next() {
                let line = line.trim();
                if line == "#[test]" || line.starts_with("#[tokio::test") {
                    let name = lines.by_ref().find_map(|line| {
                        let (_, rest) = line.split_once("fn ")?;
                        Some(rest.split('(').next()?.to_owned())
                    });
                    tests.extend(name);
                }
            }
        }
    }
}

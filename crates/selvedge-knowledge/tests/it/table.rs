//! The acceptance list is whole, and names tests that exist.

use std::path::Path;

const TABLE: &str = include_str!("../acceptance.md");
const ITEMS: usize = 30;

/// The lines of the table: the number of the item, and the tests.
fn lines() -> Vec<(usize, Vec<&'static str>)> {
    let cells = |line: &'static str| -> Option<(usize, Vec<&str>)> {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        Some((
            cells.get(1)?.parse().ok()?,
            cells.get(3)?.split(", ").collect(),
        ))
    };
    TABLE.lines().filter_map(cells).collect()
}

#[test]
fn every_item_has_a_line_and_every_test_it_names_exists() {
    let lines = lines();
    let numbers: Vec<usize> = lines.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (1..=ITEMS).collect::<Vec<_>>());
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut sources = String::new();
    for name in ["selvedge-knowledge", "selvedge-agent", "selvedge"] {
        for folder in ["src", "tests"] {
            collect(&crates.join(name).join(folder), &mut sources);
        }
    }
    for (number, tests) in lines {
        for name in tests {
            let is_there = sources.contains(&format!("#[test]\nfn {name}("))
                || sources.contains(&format!("#[test]\n    fn {name}("));
            assert!(is_there, "item {number}: there is no test `{name}`");
        }
    }
}

fn collect(folder: &Path, sources: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, sources);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            sources.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

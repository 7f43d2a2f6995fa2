//! A crate uses only crates below it.

use toml::{Table, Value};

use crate::tree::Package;

/// The rooms from top to bottom. Those on one floor do not know one another.
const FLOORS: [&[&str]; 8] = [
    &["selvedge"],
    &["selvedge-tui", "selvedge-server"],
    &["selvedge-crews"],
    &["selvedge-flow"],
    &["selvedge-agent", "selvedge-mcp"],
    &["selvedge-model", "selvedge-tool", "selvedge-knowledge"],
    &["selvedge-runtime"],
    &["selvedge-ledger"],
];
/// Used by tests of every crate, and by no crate's code.
const TESTKIT: &str = "selvedge-testkit";
/// Outside the house: they may look at everything.
const WORKSHOP: [&str; 3] = ["xtask", "selvedge-bench", TESTKIT];

/// Every arrow that points the wrong way.
pub fn findings(packages: &[Package]) -> Vec<String> {
    let mut findings = Vec::new();
    for Package { name, manifest } in packages {
        if floor(name).is_none() && !WORKSHOP.contains(&name.as_str()) {
            findings.push(format!(
                "`{name}` has no floor; give it one in xtask/src/tidy/arrows.rs"
            ));
        }
        for (used, is_dev) in uses(manifest) {
            findings.extend(objection(name, &used, is_dev));
        }
    }
    findings
}

/// What is wrong with `name` using `used`, if anything is.
fn objection(name: &str, used: &str, is_dev: bool) -> Option<String> {
    if WORKSHOP.contains(&name) || (used == TESTKIT && is_dev) {
        return None;
    }
    if WORKSHOP.contains(&used) {
        return Some(format!("`{name}` uses `{used}` outside of its tests"));
    }
    match (floor(name)?, floor(used)?) {
        (from, to) if from < to => None,
        (from, to) if from == to => Some(format!(
            "`{name}` uses `{used}`, which is on the same floor"
        )),
        _ => Some(format!("`{name}` uses `{used}`, which is above it")),
    }
}

fn floor(name: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&name))
}

/// The workspace's crates that a manifest names, and whether for tests only.
fn uses(manifest: &Table) -> Vec<(String, bool)> {
    let of = |table: &Table| -> Vec<(String, bool)> {
        let kinds = [
            ("dependencies", false),
            ("build-dependencies", false),
            ("dev-dependencies", true),
        ];
        kinds
            .into_iter()
            .filter_map(|(key, is_dev)| Some((table.get(key)?.as_table()?, is_dev)))
            .flat_map(|(used, is_dev)| used.iter().map(move |(name, how)| (name, how, is_dev)))
            .map(|(name, how, is_dev)| (package(name, how), is_dev))
            .filter(|(name, _)| name.starts_with("selvedge") || name == "xtask")
            .collect()
    };
    let mut all = of(manifest);
    let targets = manifest.get("target").and_then(Value::as_table);
    for target in targets.into_iter().flat_map(|t| t.values()) {
        all.extend(target.as_table().map(of).unwrap_or_default());
    }
    all
}

/// The package behind a dependency, which may go by another name.
fn package(name: &str, how: &Value) -> String {
    let renamed = how.get("package").and_then(Value::as_str);
    renamed.unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, manifest: &str) -> Vec<String> {
        let package = Package {
            name: name.into(),
            manifest: manifest.parse().unwrap(),
        };
        findings(&[package])
    }

    #[test]
    fn an_arrow_may_point_down() {
        let manifest = "[dependencies]\nselvedge-ledger.workspace = true\nserde = \"1\"";
        assert!(check("selvedge-runtime", manifest).is_empty());
    }

    #[test]
    fn an_arrow_may_not_point_up_or_sideways() {
        let up = "[dependencies]\nselvedge-runtime.workspace = true";
        assert_eq!(
            check("selvedge-ledger", up),
            ["`selvedge-ledger` uses `selvedge-runtime`, which is above it"]
        );
        let sideways = "[dependencies]\nmodels = { package = \"selvedge-model\", path = \"x\" }";
        assert_eq!(
            check("selvedge-tool", sideways),
            ["`selvedge-tool` uses `selvedge-model`, which is on the same floor"]
        );
        let of_one_system = "[target.'cfg(unix)'.dependencies]\nselvedge-agent.workspace = true";
        assert_eq!(check("selvedge-model", of_one_system).len(), 1);
        let for_tests = "[dev-dependencies]\nselvedge-agent.workspace = true";
        assert_eq!(check("selvedge-model", for_tests).len(), 1);
    }

    #[test]
    fn the_testkit_is_for_tests() {
        let dev = "[dev-dependencies]\nselvedge-testkit.workspace = true";
        assert!(check("selvedge-ledger", dev).is_empty());
        let code = "[dependencies]\nselvedge-testkit.workspace = true";
        assert_eq!(
            check("selvedge-agent", code),
            ["`selvedge-agent` uses `selvedge-testkit` outside of its tests"]
        );
        assert!(check("selvedge-bench", code).is_empty());
    }

    #[test]
    fn a_new_crate_needs_a_floor() {
        assert_eq!(check("selvedge-attic", "").len(), 1);
    }
}

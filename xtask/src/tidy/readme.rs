//! The commands in README.md exist, and CI runs the one that tests.

use anyhow::Result;

use super::fenced_lines;
use crate::tree::{self, Package};

const README: &str = "README.md";
const CI: &str = ".ci/run";
const TEST_COMMAND: &str = "cargo xtask check";
/// A file for each command of the program.
const COMMANDS: &str = "crates/selvedge/src/commands";

/// What the page promises and the repository does not have.
pub fn findings(packages: &[Package]) -> Result<Vec<String>> {
    let readme = tree::read(README)?;
    let lines = fenced_lines(&readme, "sh");
    let mut findings: Vec<String> = lines
        .iter()
        .filter_map(|line| Some((line, objection(line, packages)?)))
        .map(|(line, why)| format!("{README} says `{line}`, but {why}"))
        .collect();
    for (name, text) in [(README, lines.join("\n")), (CI, tree::read(CI)?)] {
        if !text.lines().any(|line| line.trim() == TEST_COMMAND) {
            findings.push(format!("{name} does not run `{TEST_COMMAND}`"));
        }
    }
    Ok(findings)
}

/// What is wrong with a command line, if anything is.
fn objection(line: &str, packages: &[Package]) -> Option<String> {
    let line = line.strip_prefix("$ ").unwrap_or(line);
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["cargo", "xtask", command, ..] => (!crate::COMMANDS.contains(&command))
            .then(|| format!("xtask has no command `{command}`")),
        ["cargo", "run", ..] => {
            let named = words
                .windows(2)
                .find(|w| ["-p", "--package"].contains(&w[0]));
            let package = named.map_or("selvedge", |w| w[1]);
            if !packages.iter().any(|p| p.name == package) {
                return Some(format!("there is no crate `{package}`"));
            }
            let own = words.iter().position(|w| *w == "--");
            let command = own.and_then(|at| words.get(at + 1));
            command.and_then(|c| unknown_command(c))
        }
        ["selvedge", command, ..] => unknown_command(command),
        _ => None,
    }
}

fn unknown_command(command: &str) -> Option<String> {
    let folder = tree::root().join(COMMANDS);
    let is_known = command.starts_with('-')
        || folder.join(command).is_dir()
        || folder.join(format!("{command}.rs")).is_file();
    (!is_known).then(|| format!("selvedge has no command `{command}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str) -> Option<String> {
        objection(line, &tree::packages().unwrap())
    }

    #[test]
    fn commands_that_exist_are_fine() {
        assert_eq!(check("cargo xtask check"), None);
        assert_eq!(check("cargo run --release -p selvedge -- --version"), None);
        assert_eq!(check("git clone https://example.invalid/selvedge"), None);
    }

    #[test]
    fn commands_that_do_not_exist_are_named() {
        let expected = "xtask has no command `polish`";
        assert_eq!(check("cargo xtask polish").as_deref(), Some(expected));
        let expected = "there is no crate `selvedge-gone`";
        assert_eq!(
            check("cargo run -p selvedge-gone").as_deref(),
            Some(expected)
        );
        let expected = "selvedge has no command `unravel`";
        assert_eq!(check("$ selvedge unravel").as_deref(), Some(expected));
    }
}

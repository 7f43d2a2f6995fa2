//! Everything that must hold before a change is done; CI runs the same.

use anyhow::Result;

use crate::command::{has, step};
use crate::{provisions, tidy, tree};

/// Runs all checks, the quick ones first.
///
/// All in the release profile: the simulation is ten times as fast there, the
/// binary that is killed is the one that people run, and one build serves all.
pub fn check() -> Result<()> {
    step(&["fmt", "--all", "--check"])?;
    step(&[
        "clippy",
        "--release",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ])?;
    provisions::provisions()?;
    tests()?;
    sentence_model()?;
    tidy::tidy()?;
    eprintln!("── all checks passed");
    Ok(())
}

/// Every test. One process per test where nextest is installed, which is faster
/// and keeps tests apart; the plain runner does as well.
fn tests() -> Result<()> {
    if !has("nextest") {
        return step(&["test", "--release", "--workspace", "--no-fail-fast"]);
    }
    step(&[
        "nextest",
        "run",
        "--release",
        "--workspace",
        "--no-fail-fast",
    ])?;
    if has_doc_tests()? {
        step(&["test", "--release", "--workspace", "--doc"])?;
    }
    Ok(())
}

/// The room of knowledge with the local sentence model, which is no part of the default
/// build: its lints, and its own tests with the published files.
fn sentence_model() -> Result<()> {
    let with_model = [
        "--release",
        "-p",
        "selvedge-knowledge",
        "--features",
        "minilm",
    ];
    let lints = ["--all-targets", "--", "-D", "warnings"];
    step(&[&["clippy"], &with_model[..], &lints].concat())?;
    let tests = ["--test", "minilm"];
    match has("nextest") {
        true => step(&[&["nextest", "run"], &with_model[..], &tests].concat()),
        false => step(&[&["test"], &with_model[..], &tests].concat()),
    }
}

/// Nextest leaves doc tests out, and looking for none takes cargo long.
fn has_doc_tests() -> Result<bool> {
    for file in tree::rust_files()? {
        if has_example(&std::fs::read_to_string(&file)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a documentation comment of `text` holds an example that is run.
fn has_example(text: &str) -> bool {
    let mut is_open = false;
    for line in text.lines() {
        let line = line.trim_start();
        let words = line.strip_prefix("///").or(line.strip_prefix("//!"));
        let Some(fence) = words.and_then(|words| words.trim().strip_prefix("```")) else {
            // A comment ends with its last line, and with it whatever was open.
            is_open &= words.is_some();
            continue;
        };
        if !is_open && ["", "rust", "no_run", "should_panic"].contains(&fence) {
            return true;
        }
        is_open = !is_open;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_is_told_from_a_picture() {
        assert!(has_example(
            "/// Adds.\n///\n/// ```\n/// add(1, 2);\n/// ```\nfn add() {}\n"
        ));
        assert!(has_example(
            "//! ```text\n//! a\n//! ```\n//! ```rust\n//! b();\n//! ```\n"
        ));
        assert!(!has_example(
            "//! ```text\n//! a picture\n//! ```\n\nlet text = \"```\";\n"
        ));
        assert!(!has_example(
            "/// ```json\n/// {}\n/// ```\nfn a() {}\n/// No example.\nfn b() {}\n"
        ));
    }
}

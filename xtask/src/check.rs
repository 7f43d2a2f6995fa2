//! Everything that must hold before a change is done; CI runs the same.

use anyhow::Result;

use crate::command::{has, step};
use crate::{tidy, tree};

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
    let opens_example = |line: &str| {
        let text = line.trim_start();
        let text = text.strip_prefix("///").or(text.strip_prefix("//!"));
        text.is_some_and(|t| ["```", "```rust", "```no_run"].contains(&t.trim()))
    };
    for file in tree::rust_files()? {
        let text = std::fs::read_to_string(&file)?;
        // Every second fence closes an example, and looks like one without a name.
        if text.lines().any(opens_example) {
            return Ok(true);
        }
    }
    Ok(false)
}

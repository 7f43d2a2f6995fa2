//! What the compiler does not see.
//!
//! # Map
//!
//! - `arrows`: a crate uses only crates below it
//! - `atlas`: ARCHITECTURE.md names every crate, and no path that is not there
//! - `readme`: the commands in README.md exist
//! - `leftovers`: nothing unfinished is left in the code

mod arrows;
mod atlas;
mod leftovers;
mod readme;

use anyhow::{Result, bail};

use crate::tree;

/// Looks for everything that is out of place, and names all of it.
pub fn tidy() -> Result<()> {
    eprintln!("── tidy");
    let packages = tree::packages()?;
    let mut findings = arrows::findings(&packages);
    findings.extend(atlas::findings(&packages)?);
    findings.extend(readme::findings(&packages)?);
    findings.extend(leftovers::findings()?);
    for warning in leftovers::warnings()? {
        eprintln!("warning: {warning}");
    }
    for finding in &findings {
        eprintln!("untidy: {finding}");
    }
    match findings.len() {
        0 => Ok(()),
        1 => bail!("one thing is out of place"),
        n => bail!("{n} things are out of place"),
    }
}

/// The words in backticks, outside of fenced blocks.
fn code_spans(markdown: &str) -> Vec<&str> {
    let mut is_fenced = false;
    let mut spans = Vec::new();
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced {
            spans.extend(line.split('`').skip(1).step_by(2));
        }
    }
    spans
}

/// The lines of fenced blocks that begin with `language`.
fn fenced_lines<'a>(markdown: &'a str, language: &str) -> Vec<&'a str> {
    let mut open: Option<bool> = None;
    let mut lines = Vec::new();
    for line in markdown.lines() {
        match (line.trim_start().strip_prefix("```"), open) {
            (Some(name), None) => open = Some(name.trim() == language),
            (Some(_), Some(_)) => open = None,
            (None, Some(true)) => lines.push(line.trim()),
            (None, _) => {}
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "See `a/b.rs` and `c`.\n```sh\ncargo xtask `x`\n```\nThen `d`.";

    #[test]
    fn code_spans_are_those_outside_of_blocks() {
        assert_eq!(code_spans(PAGE), ["a/b.rs", "c", "d"]);
    }

    #[test]
    fn fenced_lines_are_those_of_their_language() {
        assert_eq!(fenced_lines(PAGE, "sh"), ["cargo xtask `x`"]);
        assert!(fenced_lines(PAGE, "text").is_empty());
    }
}

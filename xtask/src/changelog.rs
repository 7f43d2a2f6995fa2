//! Gathers the notes in `changes/` into the changelog.
//!
//! A note per change, each in a file of its own, so that two changes made at the
//! same time do not meet in one place.

use anyhow::{Context, Result};

use crate::tree;

const PLACE: &str = "## Unreleased\n";

/// Moves every note under the heading of what is not released yet.
pub fn assemble() -> Result<()> {
    let mut notes = String::new();
    let mut taken = Vec::new();
    for path in tree::entries(&tree::root().join("changes"))? {
        if path.extension().is_some_and(|e| e == "md") {
            notes += &item(&std::fs::read_to_string(&path)?);
            taken.push(path);
        }
    }
    let changelog = tree::read("CHANGELOG.md")?;
    let changelog = insert(&changelog, &notes)?;
    std::fs::write(tree::root().join("CHANGELOG.md"), changelog)?;
    for path in &taken {
        std::fs::remove_file(path)?;
    }
    eprintln!("{} notes were moved into CHANGELOG.md", taken.len());
    Ok(())
}

/// A note as an item of a list.
fn item(note: &str) -> String {
    let lines: Vec<&str> = note.trim().lines().collect();
    format!("- {}\n", lines.join("\n  "))
}

fn insert(changelog: &str, notes: &str) -> Result<String> {
    let (before, after) = changelog
        .split_once(PLACE)
        .with_context(|| format!("CHANGELOG.md has no heading `{}`", PLACE.trim()))?;
    let after = after.trim_start_matches('\n');
    Ok(format!("{before}{PLACE}\n{notes}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_come_before_older_ones() {
        let changelog = "# Changelog\n\n## Unreleased\n\n- old\n";
        let notes = item("new\nwith a second line\n");
        assert_eq!(
            insert(changelog, &notes).unwrap(),
            "# Changelog\n\n## Unreleased\n\n- new\n  with a second line\n- old\n"
        );
    }

    #[test]
    fn a_changelog_without_the_heading_is_refused() {
        assert!(insert("# Changelog\n", "- x\n").is_err());
    }
}

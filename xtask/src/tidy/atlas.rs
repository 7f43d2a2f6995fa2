//! ARCHITECTURE.md names every crate and every dependency, and no path that is
//! not there.

use anyhow::Result;
use toml::Table;

use super::code_spans;
use crate::tree::{self, Package};

const ATLAS: &str = "ARCHITECTURE.md";
/// A word that ends like this is meant as a path, even if nothing is there.
const ENDINGS: [&str; 6] = ["/", ".rs", ".toml", ".md", ".yaml", ".sh"];

/// What the map gets wrong.
pub fn findings(packages: &[Package]) -> Result<Vec<String>> {
    let atlas = tree::read(ATLAS)?;
    let spans = code_spans(&atlas);
    let mut findings = Vec::new();
    for Package { name, .. } in packages {
        if !spans.contains(&name.as_str()) {
            findings.push(format!("{ATLAS} does not name the crate `{name}`"));
        }
    }
    for name in packages.iter().flat_map(|p| dependencies(&p.manifest)) {
        let finding = format!("{ATLAS} does not say what the dependency `{name}` spares us");
        if !spans.contains(&name.as_str()) && !findings.contains(&finding) {
            findings.push(finding);
        }
    }
    for span in spans {
        if is_path(span) && !exists(span) {
            findings.push(format!("{ATLAS} names `{span}`, which is not there"));
        }
    }
    Ok(findings)
}

/// What a crate uses from elsewhere.
fn dependencies(manifest: &Table) -> Vec<String> {
    ["dependencies", "build-dependencies", "dev-dependencies"]
        .into_iter()
        .filter_map(|kind| manifest.get(kind)?.as_table())
        .flat_map(|table| table.keys().cloned())
        .filter(|name| !name.starts_with("selvedge"))
        .collect()
}

/// Whether `span` is meant as a path of this repository: it has a slash, no
/// placeholder, and begins or ends like one.
fn is_path(span: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let first = span.split('/').next().unwrap_or_default();
    let begins =
        !first.is_empty() && (first.starts_with("selvedge") || tree::root().join(first).is_dir());
    let ends = ENDINGS.iter().any(|e| span.ends_with(e));
    span.contains('/') && !span.starts_with('/') && span.chars().all(is_plain) && (begins || ends)
}

/// Paths are written from the repository or from its folder of crates.
fn exists(path: &str) -> bool {
    let root = tree::root();
    root.join(path).exists() || root.join("crates").join(path).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_told_from_other_words_with_a_slash() {
        for path in [
            "xtask/src/main.rs",
            "selvedge-ledger/src/",
            "selvedge-gone/src/x",
            "gone/room.rs",
        ] {
            assert!(is_path(path), "{path}");
        }
        for other in [
            "main.rs",
            "provider/model",
            "@result/NAME",
            "/proc/self",
            "changes/*.md",
            "s_1/t3.0",
        ] {
            assert!(!is_path(other), "{other}");
        }
    }

    #[test]
    fn dependencies_are_those_from_elsewhere() {
        let manifest = "[dependencies]\nserde = \"1\"\nselvedge-ledger = { path = \"x\" }\n\
                        [dev-dependencies]\ntempfile.workspace = true";
        let manifest = manifest.parse().unwrap();
        assert_eq!(dependencies(&manifest), ["serde", "tempfile"]);
    }

    #[test]
    fn paths_may_begin_at_the_crates() {
        assert!(exists("xtask/src/main.rs"));
        assert!(exists("selvedge-ledger/src/lib.rs"));
        assert!(!exists("selvedge-ledger/src/gone.rs"));
    }
}

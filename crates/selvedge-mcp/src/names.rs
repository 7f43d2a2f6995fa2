//! What a server's tools are called here: `mcp__SERVER__TOOL`.
//!
//! Model providers take letters, digits, `_` and `-`, and at most 64 of them. Names that
//! would be the same after that get a piece of their digest, all of them: which one a
//! name means must not depend on what else is installed before it.

use std::collections::BTreeMap;

/// What every name begins with.
pub const BUNDLED: &str = "mcp__";
const NAME_CHARS_MAX: usize = 64;
const DIGEST_CHARS: usize = 6;

/// The names of tools, given as server and tool, in their order.
pub fn names(tools: &[(&str, &str)]) -> Vec<String> {
    let plain: Vec<String> = tools
        .iter()
        .map(|(server, tool)| join(server, tool))
        .collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for name in &plain {
        *counts.entry(name).or_default() += 1;
    }
    let name = |(plain, (server, tool)): (&String, &(&str, &str))| match counts[plain.as_str()] == 1
        && plain.len() <= NAME_CHARS_MAX
    {
        true => plain.clone(),
        false => shortened(plain, server, tool),
    };
    plain.iter().zip(tools).map(name).collect()
}

fn join(server: &str, tool: &str) -> String {
    format!("{BUNDLED}{}__{}", plain(server), plain(tool))
}

fn shortened(name: &str, server: &str, tool: &str) -> String {
    let digest = blake3::hash(format!("{server}\0{tool}").as_bytes()).to_hex();
    let kept = name.len().min(NAME_CHARS_MAX - DIGEST_CHARS - 1);
    format!("{}_{}", &name[..kept], &digest[..DIGEST_CHARS])
}

/// What is neither a letter, a digit, `_` nor `-` becomes `_`. The result is ASCII.
fn plain(text: &str) -> String {
    let fit = |c: char| match c {
        c if c.is_ascii_alphanumeric() || c == '_' || c == '-' => c,
        _ => '_',
    };
    text.chars().map(fit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_fit_for_every_provider_and_means_one_tool() {
        let long = "x".repeat(90);
        let tools = [
            ("git", "git_status"),
            ("my server", "read file"),
            ("a", "b.c"),
            ("a", "b/c"),
            ("a", long.as_str()),
            ("ä", "ö"),
        ];
        let found = names(&tools);
        assert_eq!(found[0], "mcp__git__git_status");
        assert_eq!(found[1], "mcp__my_server__read_file");
        let mut distinct = found.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), tools.len(), "{found:?}");
        for name in &found {
            let is_fit = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
            assert!(name.len() <= 64 && name.chars().all(is_fit), "{name}");
        }
    }

    #[test]
    fn a_name_does_not_depend_on_the_order() {
        let tools = [("a", "b.c"), ("a", "b/c"), ("z", "y")];
        let mut turned = tools;
        turned.reverse();
        let (mut found, turned) = (names(&tools), names(&turned));
        found.reverse();
        assert_eq!(found, turned);
    }
}

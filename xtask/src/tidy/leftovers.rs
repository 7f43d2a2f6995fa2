//! Nothing unfinished is left in the code, and no file grows out of hand.

use anyhow::Result;

use crate::tree;

/// Macros that mean "not yet".
const UNFINISHED: [&str; 3] = ["todo", "unimplemented", "dbg"];
/// Beyond this a file has surely acquired a second noun.
const LINES_MAX: usize = 700;

/// What must not stay.
pub fn findings() -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for path in tree::rust_files()? {
        let text = std::fs::read_to_string(&path)?;
        for (number, line) in text.lines().enumerate() {
            if let Some(name) = unfinished(line) {
                let (path, number) = (tree::shown(&path), number + 1);
                findings.push(format!("{path}:{number} has a `{name}!`"));
            }
        }
    }
    Ok(findings)
}

/// What is worth a thought.
pub fn warnings() -> Result<Vec<String>> {
    let mut warnings = Vec::new();
    for path in tree::rust_files()? {
        let lines = std::fs::read_to_string(&path)?.lines().count();
        if lines > LINES_MAX {
            let path = tree::shown(&path);
            warnings.push(format!(
                "{path} has {lines} lines; does it hold two things?"
            ));
        }
    }
    Ok(warnings)
}

/// The unfinished macro that a line of code calls.
fn unfinished(line: &str) -> Option<&'static str> {
    let code = line.split("//").next().unwrap_or_default();
    UNFINISHED.into_iter().find(|name| {
        let calls = format!("{name}!(");
        code.match_indices(&calls).any(|(at, _)| {
            let before = code[..at].chars().next_back();
            before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '"')
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_code_is_told_from_talk_about_it() {
        let call = |name: &str| format!("    {name}!(x)");
        assert_eq!(unfinished(&call("todo")), Some("todo"));
        assert_eq!(unfinished(&call("dbg")), Some("dbg"));
        assert_eq!(unfinished(&call("my_todo")), None);
        assert_eq!(unfinished(&format!("// {}", call("todo"))), None);
    }
}

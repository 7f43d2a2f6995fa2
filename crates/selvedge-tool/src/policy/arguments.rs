//! What the arguments of some programs mean: where they write, what they run, what
//! they destroy.

use std::path::Path;

use super::programs::PROGRAMS;
use super::shell::Word;
use super::site::{Guard, guard};
use super::verdict::{Decision, Finding, Source};

/// What is said of a place of the workspace that is to be changed.
pub(super) fn guarded(place: &Path) -> Option<Finding> {
    let shown = place.display();
    let (decision, says, why) = match guard(place)? {
        Guard::Git => (
            Decision::Deny,
            ".git",
            "git's own: a hook or a setting there runs later",
        ),
        Guard::Selvedge => (
            Decision::Deny,
            ".selvedge",
            "Selvedge's own: it decides what agents may do",
        ),
        Guard::Instructions => (Decision::Ask, "instructions", "what agents are told"),
        Guard::Automation => return None,
    };
    Some(Finding::new(
        decision,
        Source::BuiltIn,
        says,
        format!("`{shown}` is {why}"),
    ))
}

/// The commands that `find` and `fd` run for what they find.
pub(super) fn inner_commands(name: &str, words: &[Word]) -> Vec<Vec<Word>> {
    let starts: &[&str] = match name {
        "find" => &["-exec", "-execdir", "-ok", "-okdir"],
        "fd" | "fdfind" => &["-x", "--exec", "-X", "--exec-batch"],
        _ => return Vec::new(),
    };
    let begins = |word: &Word| starts.contains(&word.shown());
    let ends = |word: &&Word| !matches!(word.shown(), ";" | "+");
    let inner = |at: usize| words[at + 1..].iter().take_while(ends).cloned().collect();
    let at = words.iter().enumerate().filter(|(_, word)| begins(word));
    at.map(|(at, _)| inner(at))
        .filter(|inner: &Vec<Word>| !inner.is_empty())
        .collect()
}

/// Removing a folder as a whole, where a slip costs everything.
pub(super) fn removal(words: &[Word]) -> Option<Finding> {
    let is_deep = |text: &str| {
        text == "--recursive"
            || (text.starts_with('-') && !text.starts_with("--") && text.contains(['r', 'R']))
    };
    if !words[1..].iter().any(|word| is_deep(word.shown())) {
        return None;
    }
    let is_broad = |word: &&Word| {
        let text = word.shown().trim_end_matches('/');
        word.is_dynamic() || matches!(text, "" | "." | ".." | "*" | "./*" | "~" | ".*" | "/*")
    };
    let targets = words[1..]
        .iter()
        .filter(|word| !word.shown().starts_with('-'));
    let broad = targets.clone().find(is_broad)?;
    let reason = format!("it removes `{}` with everything in it", broad.shown());
    Some(Finding::ask("rm -r", reason))
}

/// The variables that a builtin of the shell sets by their names, and what it runs
/// where it expects a number.
pub(super) fn set_by(name: &str, words: &[Word]) -> Option<Finding> {
    const SETS: [&str; 9] = [
        "read",
        "mapfile",
        "readarray",
        "getopts",
        "printf",
        "let",
        "unset",
        "local",
        "wait",
    ];
    let sets = SETS.contains(&name);
    if !sets && !matches!(name, "test" | "[") {
        return None;
    }
    let texts = || words[1..].iter().map(Word::shown);
    let runs = |text: &str| text.contains('[') && (text.contains("$(") || text.contains('`'));
    if texts().any(runs) {
        let reason = "it may run what stands in the index of an array";
        return Some(Finding::ask(name, reason));
    }
    let variable = texts().find(|text| {
        let text = match name {
            "printf" => text.strip_prefix("-v").unwrap_or(text),
            _ => text,
        };
        let variable = text.split('=').next().unwrap_or(text);
        sets && PROGRAMS.is_decisive(variable)
    })?;
    let reason = format!("it sets `{variable}`, which decides what runs");
    Some(Finding::ask(format!("variable {variable}"), reason))
}

/// Programs whose first argument is no path but a pattern or a script.
pub(super) fn takes_text_first(name: &str) -> bool {
    matches!(
        name,
        "grep"
            | "egrep"
            | "fgrep"
            | "rg"
            | "ag"
            | "sed"
            | "awk"
            | "gawk"
            | "mawk"
            | "nawk"
            | "original-awk"
            | "jq"
            | "yq"
    )
}

pub(super) fn leading_options<'a, 'b>(texts: &'b [&'a str]) -> &'b [&'a str] {
    let count = texts
        .iter()
        .take_while(|t| t.starts_with('-') && **t != "-" && **t != "--")
        .count();
    &texts[..count]
}

//! Commands that run another command: what they run, and what they set for it.

use super::shell::Word;

/// What is behind a wrapper.
pub(super) struct Inner<'a> {
    /// The command.
    pub(super) words: &'a [Word],
    /// The variables that are set for it.
    pub(super) assigns: Vec<&'a str>,
}

/// The short options that take a value, and how many arguments come before the
/// command.
fn shape(name: &str) -> (&'static str, usize) {
    match name {
        "env" => ("uC", 0),
        "nice" => ("n", 0),
        "timeout" => ("sk", 1),
        "time" => ("fo", 0),
        "stdbuf" => ("ioe", 0),
        "ionice" => ("cnp", 0),
        "exec" => ("a", 0),
        "taskset" | "chrt" | "chroot" => ("", 1),
        "flock" => ("wE", 1),
        "xargs" => ("IinPLdsEa", 0),
        "sudo" | "doas" => ("ugCDhpRrTtU", 0),
        "strace" | "ltrace" => ("eopsuE", 0),
        "watch" => ("n", 0),
        _ => ("", 0),
    }
}

/// Takes the wrapper's own options away.
pub(super) fn strip<'a>(name: &str, mut words: &'a [Word]) -> Inner<'a> {
    let (takes_value, mut before) = shape(name);
    let mut assigns = Vec::new();
    while let Some((word, rest)) = words.split_first() {
        let text = word.shown();
        let short = text.strip_prefix('-').filter(|t| t.len() == 1);
        if text == "--" {
            words = rest;
            break;
        }
        if text.starts_with('-') {
            let has_value = short.is_some_and(|option| takes_value.contains(option));
            words = rest.get(usize::from(has_value)..).unwrap_or_default();
            continue;
        }
        if name == "env"
            && let Some((variable, _)) = text.split_once('=')
        {
            assigns.push(variable);
            words = rest;
            continue;
        }
        if before == 0 {
            break;
        }
        before -= 1;
        words = rest;
    }
    Inner { words, assigns }
}

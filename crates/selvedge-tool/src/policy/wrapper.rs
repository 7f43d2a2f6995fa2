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
        "taskset" | "chrt" | "chroot" | "setarch" | "gosu" => ("", 1),
        "flock" => ("wE", 1),
        "xargs" => ("IinPLdsEa", 0),
        "sudo" | "doas" => ("ugCDhpRrTtU", 0),
        "strace" | "ltrace" => ("eopsuE", 0),
        "watch" => ("n", 0),
        _ => ("", 0),
    }
}

/// Long options whose value is the next word.
const LONG_WITH_VALUE: [&str; 15] = [
    "--adjustment",
    "--chdir",
    "--class",
    "--classdata",
    "--conflict-exit-code",
    "--error",
    "--format",
    "--input",
    "--interval",
    "--kill-after",
    "--output",
    "--signal",
    "--timeout",
    "--unset",
    "--wait",
];

/// Takes the wrapper's own options away.
pub(super) fn strip<'a>(name: &str, mut words: &'a [Word]) -> Inner<'a> {
    let (takes_value, mut before) = shape(name);
    let mut assigns = Vec::new();
    while let Some((word, rest)) = words.split_first() {
        let text = word.shown();
        // The last of several that stand together can have a value, too.
        let short = text.strip_prefix('-').filter(|t| !t.starts_with('-'));
        let last = short.and_then(|options| options.chars().next_back());
        let first_with_value = short.and_then(|options| options.find(|c| takes_value.contains(c)));
        if text == "--" {
            words = rest;
            break;
        }
        if text.starts_with('-') {
            let is_last = first_with_value.is_some_and(|at| {
                let options = short.unwrap_or_default();
                last.is_some_and(|last| at + last.len_utf8() == options.len())
            });
            let is_somebody =
                matches!(name, "sudo" | "doas" | "runuser") && matches!(text, "--user" | "--group");
            let has_value = is_last || is_somebody || LONG_WITH_VALUE.contains(&text);
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

//! How a command is started: by itself where that is enough, else by a shell.
//!
//! A shell between Selvedge and a program is one more thing that reads the text, and
//! expands what was not meant. Plain words need none.

use std::time::Duration;

use crate::process::Patience;

/// The words of a command that needs no shell: nothing in it means anything to one.
pub(super) fn plain_words(command: &str) -> Option<Vec<&str>> {
    // Everything that any shell expands, joins, quotes or redirects, and assignments.
    const MEANT_FOR_A_SHELL: &[char] = &[
        '|', '&', ';', '<', '>', '(', ')', '$', '`', '\\', '"', '\'', '*', '?', '[', ']', '{', '}',
        '#', '~', '=', '!', '%', '^', '\n', '\r', '\0',
    ];
    if command.contains(MEANT_FOR_A_SHELL) {
        return None;
    }
    let words: Vec<&str> = command.split_ascii_whitespace().collect();
    let first = words.first()?;
    // What a shell does itself is not the program of that name.
    (!BUILTINS.contains(first) && !first.starts_with('-')).then_some(words)
}

const BUILTINS: [&str; 42] = [
    ".", ":", "alias", "bg", "break", "case", "cd", "command", "continue", "declare", "do", "echo",
    "eval", "exec", "exit", "export", "fg", "for", "function", "hash", "if", "jobs", "kill", "let",
    "local", "printf", "pwd", "read", "return", "set", "shift", "source", "test", "time", "times",
    "trap", "type", "ulimit", "umask", "unset", "until", "wait",
];

/// How long a command may run if nobody says: what is known to take long has longer.
/// `limit` is what holds for the others.
pub(super) fn patience(command: &str, limit: Duration) -> Patience {
    // A limit below the usual one was set by somebody who means it.
    if limit < USUAL {
        return Patience::exactly(limit);
    }
    let known = KNOWN.iter().find(|(words, _)| has_words(command, words));
    Patience::adaptive(known.map_or(limit, |(_, seconds)| Duration::from_secs(*seconds)))
}

const USUAL: Duration = Duration::from_secs(120);

const KNOWN: [(&[&str], u64); 20] = [
    (&["cargo", "test"], 600),
    (&["cargo", "nextest"], 600),
    (&["cargo", "build"], 600),
    (&["cargo", "check"], 600),
    (&["cargo", "clippy"], 600),
    (&["cargo", "run"], 600),
    (&["go", "build"], 600),
    (&["go", "test"], 300),
    (&["npm", "run", "build"], 600),
    (&["npm", "install"], 300),
    (&["npm", "ci"], 300),
    (&["npm", "test"], 300),
    (&["pip", "install"], 300),
    (&["pytest"], 300),
    (&["jest"], 300),
    (&["vitest"], 300),
    (&["make"], 600),
    (&["eslint"], 60),
    (&["prettier"], 30),
    (&["git"], 30),
];

/// Whether a command, or a part of it, begins with these words.
fn has_words(command: &str, words: &[&str]) -> bool {
    let parts = command.split(['|', '&', ';', '\n', '(', ')']);
    parts.into_iter().any(|part| {
        let mut found = part.split_ascii_whitespace();
        words.iter().all(|word| found.next() == Some(word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_words_need_no_shell() {
        let words = ["cargo", "test", "--workspace"];
        assert_eq!(plain_words(" cargo  test --workspace "), Some(words.into()));
        for command in [
            "ls | wc",
            "ls *.rs",
            "echo $HOME",
            "a && b",
            "a; b",
            "a > b",
            "a &",
            "cd ~",
            "f()",
            "a\nb",
            "`a`",
            "'a b'",
            "A=1 b",
            "cd x",
            "exit 3",
            "--version",
            "",
            "  ",
        ] {
            assert_eq!(plain_words(command), None, "{command}");
        }
    }

    #[test]
    fn what_is_known_to_take_long_has_longer() {
        for (command, seconds) in [
            ("cargo test -p x", 600),
            ("cd x && go test ./...", 300),
            ("git status", 30),
            ("./script", 120),
            ("echo cargo test", 120),
        ] {
            let patience = patience(command, USUAL);
            assert_eq!(patience.base.as_secs(), seconds, "{command}");
            assert_eq!(patience.most.as_secs(), 1_800);
        }
        let strict = patience("cargo build", Duration::from_secs(10));
        assert_eq!(strict, Patience::exactly(Duration::from_secs(10)));
    }
}

//! What is known of programs, from `programs.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::Deserialize;

use super::rules::{Pattern, glob};

/// The table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Programs {
    reads: BTreeSet<String>,
    writes: BTreeSet<String>,
    wrappers: BTreeSet<String>,
    shells: BTreeSet<String>,
    interpreters: BTreeSet<String>,
    fetchers: BTreeSet<String>,
    variables: Vec<String>,
    options: BTreeMap<String, Vec<String>>,
    ask: Vec<Concern>,
}

/// Commands that are asked about, and why.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Concern {
    because: String,
    commands: Vec<Pattern>,
}

/// What a program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Looks.
    Reads,
    /// Changes the files that it is given.
    Writes,
    /// Runs code of the workspace, or something unknown.
    Runs,
    /// Runs the command that follows.
    Wraps,
    /// Runs a program that it is given as text or as a file; a shell if so.
    Interprets { is_shell: bool },
}

/// What is known of programs.
pub(super) static PROGRAMS: LazyLock<Programs> = LazyLock::new(|| {
    toml::from_str(include_str!("programs.toml")).expect("the table is checked by its tests")
});

impl Programs {
    /// What a program of this name does.
    pub(super) fn kind(&self, name: &str) -> Kind {
        match () {
            () if self.shells.contains(name) => Kind::Interprets { is_shell: true },
            () if self.interpreters.contains(name) => Kind::Interprets { is_shell: false },
            () if self.wrappers.contains(name) => Kind::Wraps,
            // A loader runs the program that it is given.
            () if name.starts_with("ld") && name.contains(".so") => Kind::Wraps,
            () if self.reads.contains(name) => Kind::Reads,
            () if self.writes.contains(name) => Kind::Writes,
            () => Kind::Runs,
        }
    }

    /// The name by which a program is known here: `python3.11` is `python`.
    pub(super) fn known_as<'a>(&self, name: &'a str) -> &'a str {
        let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
        let is_known = |name: &str| {
            self.shells.contains(name)
                || self.interpreters.contains(name)
                || self.options.contains_key(name)
        };
        match !is_known(name) && is_known(bare) {
            true => bare,
            false => name,
        }
    }

    /// Whether what it prints comes from elsewhere.
    pub(super) fn is_fetcher(&self, name: &str) -> bool {
        self.fetchers.contains(name)
    }

    /// Whether a variable decides what runs.
    pub(super) fn is_decisive(&self, variable: &str) -> bool {
        self.variables.iter().any(|pattern| glob(pattern, variable))
    }

    /// The argument by which a harmless program writes or runs something.
    pub(super) fn reaching<'a>(&self, name: &str, arguments: &[&'a str]) -> Option<&'a str> {
        let options = self.options.get(name)?;
        arguments
            .iter()
            .take_while(|argument| **argument != "--")
            .find(|argument| options.iter().any(|option| is_option(option, argument)))
            .copied()
    }

    /// Why a whole command is asked about, and the pattern that says so.
    pub(super) fn concern(&self, words: &[&str]) -> Option<(&Pattern, &str)> {
        let spellings = spellings(words);
        self.ask.iter().find_map(|concern| {
            let is_meant = |p: &&Pattern| spellings.iter().any(|words| p.matches(words, true));
            let pattern = concern.commands.iter().find(is_meant)?;
            Some((pattern, concern.because.as_str()))
        })
    }
}

/// The same words without the options that stand between them, as which `npm --prefix a
/// install` is `npm install`. Whether an option has a value is not known: it may and may
/// not.
pub(super) fn spellings<'a>(words: &[&'a str]) -> Vec<Vec<&'a str>> {
    let mut spellings = vec![words.to_vec()];
    let is_option = |word: &str| word.len() > 1 && word.starts_with(['-', '+']);
    if !words.iter().skip(1).any(|word| is_option(word)) {
        return spellings;
    }
    for with_values in [false, true] {
        let mut kept = Vec::new();
        let mut is_value = false;
        for (at, word) in words.iter().enumerate() {
            if *word == "--" {
                kept.extend(&words[at..]);
                break;
            }
            if at > 0 && is_option(word) {
                is_value = with_values && word.starts_with('-') && !word.contains('=');
            } else if !std::mem::take(&mut is_value) {
                kept.push(*word);
            }
        }
        spellings.push(kept);
    }
    spellings
}

/// Whether `argument` gives `option`: shortened, with a value, or among others.
fn is_option(option: &str, argument: &str) -> bool {
    let name = argument.split('=').next().unwrap_or(argument);
    match option.strip_prefix("--") {
        Some(_) => name.len() > 3 && name.starts_with("--") && option.starts_with(name),
        None if option.len() == 2 && option.starts_with('-') => {
            argument.starts_with('-')
                && !argument.starts_with("--")
                && argument[1..].contains(&option[1..])
        }
        None => glob(option, argument),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_found_however_it_is_written() {
        for (name, argument, expected) in [
            ("rg", "--pre=x", true),
            ("rg", "--pre", true),
            ("rg", "--pretty", false),
            ("rg", "-n", false),
            ("sort", "-o", true),
            ("sort", "-uoout", true),
            ("sort", "--out=x", true),
            ("sort", "-n", false),
            ("find", "-exec", true),
            ("find", "-executable", false),
            ("find", "-name", false),
            ("perl", "-lane", true),
            ("python3", "-Bc", true),
            ("ls", "-o", false),
        ] {
            assert_eq!(
                PROGRAMS.reaching(name, &[argument]).is_some(),
                expected,
                "{name} {argument}"
            );
        }
        assert_eq!(PROGRAMS.reaching("rg", &["--", "--pre=x"]), None);
    }

    #[test]
    fn variables_that_decide_what_runs_are_known() {
        for name in [
            "PATH",
            "LD_PRELOAD",
            "GIT_SSH_COMMAND",
            "BASH_ENV",
            "PAGER",
            "GIT_PAGER",
        ] {
            assert!(PROGRAMS.is_decisive(name), "{name}");
        }
        for name in [
            "RUST_BACKTRACE",
            "CI",
            "A",
            "NODE_ENV",
            "RUST_LOG",
            "PYTHONPATH",
        ] {
            assert!(!PROGRAMS.is_decisive(name), "{name}");
        }
    }
}

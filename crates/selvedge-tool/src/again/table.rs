//! Which commands can be answered again, from `table.toml`.

use std::sync::LazyLock;

use serde::Deserialize;

/// The table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    pub(super) seconds: u64,
    runners: Vec<String>,
    pub(super) skip: Vec<String>,
    pub(super) packages: Vec<String>,
    pub(super) above: Vec<String>,
    commands: Vec<Command>,
}

/// A command of the table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Command {
    words: Vec<String>,
    #[serde(default)]
    needs: Vec<String>,
    #[serde(default)]
    never: Vec<String>,
    pub(super) codes: Vec<i64>,
    pub(super) inputs: Vec<String>,
    #[serde(default)]
    pub(super) packages: bool,
}

/// A command line that the table knows.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// What is known of it.
    pub(super) command: Command,
    /// The programs it runs: a runner, and the command's own.
    pub(super) programs: Vec<String>,
}

pub(super) static TABLE: LazyLock<Table> = LazyLock::new(|| {
    toml::from_str(include_str!("table.toml")).expect("the table is checked by its tests")
});

impl Table {
    /// What is known of a command line, if it needs no shell and stays inside.
    pub(super) fn find(&self, line: &str) -> Option<Known> {
        let words = plain_words(line)?;
        let mut words = words.as_slice();
        let mut programs = Vec::new();
        if let Some(length) = self.runner(words) {
            programs.push(words[0].clone());
            words = &words[length..];
        }
        let program = words.first()?;
        let name = program.rsplit('/').next()?;
        let command = self.commands.iter().find(|command| {
            let follow = words.iter().skip(1);
            let wanted = command.words.iter().skip(1);
            command.words[0] == name && wanted.clone().eq(follow.take(wanted.len()))
        })?;
        programs.push(program.clone());
        let arguments = &words[command.words.len()..];
        let has = |options: &[String]| {
            let is = |argument: &String| options.iter().any(|o| is_option(o, argument));
            arguments.iter().any(is)
        };
        let leads_out = |word: &String| word.starts_with(['/', '~']) || word.contains("..");
        let is_fit = (command.needs.is_empty() || has(&command.needs))
            && !has(&command.never)
            && !arguments.iter().any(leads_out);
        is_fit.then(|| Known {
            command: command.clone(),
            programs,
        })
    }

    /// How many words at the beginning name a runner.
    fn runner(&self, words: &[String]) -> Option<usize> {
        self.runners.iter().find_map(|runner| {
            let runner: Vec<&str> = runner.split(' ').collect();
            let is_first = words.iter().take(runner.len()).eq(runner.iter());
            // An option of the runner may make it fetch something else.
            let is_plain = words.get(runner.len()).is_some_and(|w| !w.starts_with('-'));
            (is_first && is_plain).then_some(runner.len())
        })
    }
}

/// Whether an argument gives an option, perhaps with a value.
fn is_option(option: &str, argument: &str) -> bool {
    argument == option
        || argument
            .strip_prefix(option)
            .is_some_and(|rest| option.starts_with("--") && rest.starts_with('='))
}

/// The words of a command line, if a program would see them as they are written:
/// nothing is expanded, joined, redirected or assigned.
fn plain_words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        let (word, end) = match rest.chars().next()? {
            quote @ ('\'' | '"') => {
                let end = rest[1..].find(quote)?;
                let word = &rest[1..1 + end];
                let is_literal = quote == '\'' || !word.contains(['$', '`', '\\', '!']);
                (is_literal.then_some(word)?, end + 2)
            }
            _ => {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
                let word = &rest[..end];
                (word.chars().all(is_plain).then_some(word)?, end)
            }
        };
        words.push(word.to_owned());
        let after = &rest[end..];
        rest = after.trim_start();
        // `'a'b` is one word, and a line break ends the command.
        let is_next = after.is_empty() || after.starts_with([' ', '\t']);
        if !is_next || after.contains('\n') {
            return None;
        }
    }
    let is_assignment = words.first()?.contains('=');
    (!is_assignment).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_only_looks_at_files_is_known() {
        for (line, programs) in [
            ("eslint src", &["eslint"][..]),
            (
                "npx eslint 'src/**/*.ts' --max-warnings 0",
                &["npx", "eslint"],
            ),
            (
                "./node_modules/.bin/eslint .",
                &["./node_modules/.bin/eslint"],
            ),
            ("ruff check .", &["ruff"]),
            ("uv run ruff format --check", &["uv", "ruff"]),
            ("cargo fmt --all -- --check", &["cargo"]),
            ("prettier --check \"src/**\"", &["prettier"]),
            ("tsc --noEmit -p tsconfig.json", &["tsc"]),
        ] {
            let known = TABLE.find(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(known.programs, programs, "{line}");
        }
    }

    #[test]
    fn a_command_that_changes_reads_more_or_needs_a_shell_is_not() {
        for line in [
            "eslint --fix src",
            "eslint --output-file=out.txt src",
            "eslint src > out.txt",
            "eslint src | head",
            "eslint src && echo ok",
            "eslint $DIR",
            "eslint src/*.js",
            "eslint \"$DIR\"",
            "eslint 'a'b",
            "eslint src\nrm x",
            "NODE_ENV=x eslint src",
            "eslint ../other",
            "eslint /etc",
            "npx --yes eslint src",
            "prettier src",
            "ruff format .",
            "ruff",
            "ruff clean",
            "tsc",
            "cargo clippy",
            "cargo test",
            "cargo fmt",
            "echo eslint src",
            "",
        ] {
            assert!(TABLE.find(line).is_none(), "{line}");
        }
    }
}

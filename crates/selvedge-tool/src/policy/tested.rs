//! Whether a command runs tests, and whether its exit code says how they went.
//!
//! Nobody can tell for certain what a program does. What is known of test frameworks
//! decides first, then what a person would go by: the words of the command, without
//! programs that only look, move or install things.

use super::programs::{Kind, PROGRAMS};
use super::shell::{Word, deciding, read};
use super::wrapper;
use crate::discovery::{Category, calls};

/// Words by which a person knows a test.
const TEST_WORDS: [&str; 8] = [
    "check", "prove", "pytest", "selftest", "spec", "specs", "unittest", "verify",
];
/// Programs that only run what follows, without the wrappers of the shell.
const LAUNCHERS: [&[&str]; 12] = [
    &["npx"],
    &["bunx"],
    &["bundle", "exec"],
    &["uv", "run"],
    &["poetry", "run"],
    &["pipenv", "run"],
    &["hatch", "run"],
    &["pdm", "run"],
    &["pnpm", "exec"],
    &["yarn", "exec"],
    &["npm", "exec"],
    &["mise", "exec"],
];
/// Programs that make or fetch tests, and run none.
const MAKERS: [&str; 16] = [
    "apk", "apt", "apt-get", "brew", "c++", "cc", "clang", "clang++", "dnf", "g++", "gcc", "ghc",
    "javac", "pip", "rustc", "tsc",
];
/// The same, as the first word of a program that can do both.
const MAKING: [&str; 12] = [
    "add",
    "build",
    "ci",
    "doc",
    "fetch",
    "i",
    "init",
    "install",
    "new",
    "remove",
    "sync",
    "uninstall",
];
/// Signs that code on a command line tests something.
const TEST_SIGNS: [&str; 4] = ["assert", "doctest", "pytest", "unittest"];

/// What a command has to do with tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tested {
    /// It does not look like a test.
    No,
    /// It runs tests, and its exit code may be that of something else.
    Hidden,
    /// It runs tests, and fails if they do.
    Told,
}

impl Tested {
    /// What a shell command has to do with tests.
    pub fn by(command: &str) -> Self {
        let runs_tests = |text: &str| {
            let script = read(text);
            script.segments.iter().any(|part| is_test(&part.words))
        };
        match runs_tests(command) {
            false => Self::No,
            true if deciding(command).into_iter().any(runs_tests) => Self::Told,
            true => Self::Hidden,
        }
    }
}

fn is_test(words: &[Word]) -> bool {
    let Some((program, rest)) = words.split_first() else {
        return false;
    };
    let name = program.shown().rsplit('/').next().unwrap_or_default();
    let kind = PROGRAMS.kind(PROGRAMS.known_as(name));
    match kind {
        Kind::Wraps => return is_test(wrapper::strip(name, rest).words),
        Kind::Reads | Kind::Writes => return false,
        Kind::Runs | Kind::Interprets { .. } => {}
    }
    let code = words.windows(2).find(|pair| is_code(pair[0].shown()));
    match (kind, code) {
        (Kind::Interprets { is_shell: true }, Some(pair)) => {
            return Tested::by(pair[1].shown()) != Tested::No;
        }
        (Kind::Interprets { .. }, Some(pair)) => {
            let code = pair[1].shown();
            return TEST_SIGNS.iter().any(|sign| code.contains(sign));
        }
        _ => {}
    }
    let mut line: Vec<&str> = rest.iter().map(Word::shown).collect();
    line.insert(0, name);
    is_test_line(&line)
}

/// `-c` and its like, also among others: `-lc`.
fn is_code(option: &str) -> bool {
    let letters = option.strip_prefix('-').filter(|o| !o.starts_with('-'));
    letters.is_some_and(|letters| letters.len() <= 3 && letters.ends_with(['c', 'e']))
}

fn is_test_line(line: &[&str]) -> bool {
    if let Some(category) = calls(line) {
        return category == Category::TestFramework;
    }
    let launcher = LAUNCHERS.iter().find(|words| line.starts_with(words));
    if let Some(words) = launcher {
        let rest = &line[words.len()..];
        let options = rest.iter().take_while(|word| word.starts_with('-')).count();
        return is_test_line(&rest[options..]);
    }
    if let [python, "-m", module @ ..] = line
        && python.starts_with("python")
    {
        return is_test_line(module);
    }
    let [name, rest @ ..] = line else {
        return false;
    };
    if MAKERS.contains(name) || rest.first().is_some_and(|word| MAKING.contains(word)) {
        return false;
    }
    let tells = |word: &&str| !word.starts_with('-') || word.starts_with("--test");
    line.iter().filter(|word| tells(word)).any(|word| {
        let mut parts = word.split(|c: char| !c.is_ascii_alphanumeric());
        parts.any(|part| {
            let part = part.to_ascii_lowercase();
            part.starts_with("test")
                || part.ends_with("tests")
                || TEST_WORDS.contains(&part.as_str())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_test_is_one_and_what_only_names_tests_is_not() {
        for command in [
            "sh test.sh",
            "./run_tests.sh",
            "cd sub && sh ./test.sh",
            "cargo test -p x",
            "cargo +nightly test",
            "cargo nextest run",
            "go test ./...",
            "pytest",
            "python3 -m pytest -q",
            "python -m unittest discover",
            "uv run pytest",
            "npx jest --ci",
            "npm test",
            "npm run test:unit",
            "node --test",
            "make check",
            "bundle exec rspec",
            "timeout 60 sh test.sh",
            "bash -lc 'sh test.sh'",
            "python3 -c 'import a; assert a.f() == 1'",
            "bats tests",
            "CI=1 mvn -q verify",
            "set -o pipefail; pytest | tail -5",
            "set -e\nsh test.sh\necho ok",
            "sh test.sh || exit 1",
            "sh test.sh 2>&1",
            "(cd sub; sh test.sh)",
        ] {
            assert_eq!(Tested::by(command), Tested::Told, "{command}");
        }
        for command in [
            "sh test.sh | tail -5",
            "sh test.sh || true",
            "sh test.sh; echo done",
            "sh test.sh &",
            "! sh test.sh",
            "out=$(sh test.sh)",
        ] {
            assert_eq!(Tested::by(command), Tested::Hidden, "{command}");
        }
        for command in [
            "true",
            "ls tests",
            "cat test.sh",
            "test -e done.txt",
            "[ -e test.sh ]",
            "echo tests passed",
            "grep -r test .",
            "chmod +x test.sh",
            "git commit -m 'add tests'",
            "cargo check",
            "cargo clippy --tests",
            "cargo build --tests",
            "ruff check .",
            "npm install --save-dev jest",
            "pip install pytest",
            "gcc -o test test.c",
            "python3 -c 'print(\"test\")'",
            "./hello.sh Ada",
            "make",
            "",
        ] {
            assert_eq!(Tested::by(command), Tested::No, "{command}");
        }
    }
}

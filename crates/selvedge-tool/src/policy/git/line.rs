//! A command line of git, read for what it does.
//!
//! `checkout -b` makes a branch; `reset` without a word about it throws no work away.
//! What is not known here is `Unknown`, which nobody may do.

use super::Operation;

/// What a command line of git does.
#[derive(Debug, PartialEq)]
pub(in crate::policy) struct Line<'a> {
    pub(in crate::policy) operation: Operation,
    /// The words without the options before the subcommand: `git push origin`.
    pub(in crate::policy) words: Vec<&'a str>,
    /// A reason to ask: an option that makes git write or run something.
    pub(in crate::policy) doubt: Option<String>,
}

/// Subcommands that only look, whatever their arguments.
const READING: [&str; 30] = [
    "status",
    "diff",
    "log",
    "show",
    "blame",
    "annotate",
    "ls-files",
    "ls-tree",
    "rev-parse",
    "rev-list",
    "describe",
    "shortlog",
    "grep",
    "cat-file",
    "name-rev",
    "merge-base",
    "diff-tree",
    "diff-index",
    "diff-files",
    "for-each-ref",
    "show-ref",
    "check-ignore",
    "check-attr",
    "whatchanged",
    "count-objects",
    "help",
    "version",
    "range-diff",
    "cherry",
    "show-branch",
];

/// Options by which a looking subcommand writes a file or runs a program.
const REACHING: [&str; 9] = [
    "--output",
    "--ext-diff",
    "--textconv",
    "--open-files-in-pager",
    "--filters",
    "-O",
    "--paginate",
    "--exec",
    "--upload-pack",
];

/// Options before the subcommand that change nothing of importance.
const HARMLESS: [&str; 6] = [
    "-C",
    "-P",
    "--no-pager",
    "--no-optional-locks",
    "--literal-pathspecs",
    "--no-replace-objects",
];

/// Options before the subcommand whose value is the next word.
const TAKING: [&str; 9] = [
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--exec-path",
    "--config-env",
    "--super-prefix",
    "--attr-source",
];

/// Reads a command line, the word `git` included.
pub(in crate::policy) fn read<'a>(words: &[&'a str]) -> Line<'a> {
    let mut rest = words.get(1..).unwrap_or_default();
    let mut doubt = None;
    while let Some(option) = rest.first().copied().filter(|w| w.starts_with('-')) {
        if matches!(option, "--version" | "--help") {
            return Line {
                operation: Operation::Read,
                words: vec!["git", option],
                doubt,
            };
        }
        if !HARMLESS.contains(&option) {
            doubt = Some(format!("`git {option}` can change which programs git runs"));
        }
        let takes_value = TAKING.contains(&option);
        rest = rest.get(1 + usize::from(takes_value)..).unwrap_or_default();
    }
    let subcommand = rest.first().copied().unwrap_or_default();
    let arguments = rest.get(1..).unwrap_or_default();
    let operation = operation(subcommand, arguments);
    if operation.is_read() {
        let reaching = arguments
            .iter()
            .take_while(|a| **a != "--")
            .find(|argument| {
                let name = argument.split('=').next().unwrap_or(argument);
                REACHING.iter().any(|option| match option.len() {
                    // `-Oless` is `-O less`; a long option may be shortened.
                    2 => argument.starts_with(option),
                    _ => name.len() > 4 && option.starts_with(name),
                })
            });
        if let Some(option) = reaching {
            doubt = Some(format!(
                "`{option}` makes git write a file or run a program"
            ));
        }
    }
    let words = ["git"].into_iter().chain(rest.iter().copied()).collect();
    Line {
        operation,
        words,
        doubt,
    }
}

fn operation(subcommand: &str, arguments: &[&str]) -> Operation {
    let has = |options: &[&str]| arguments.iter().any(|a| options.contains(a));
    // Only options, or nothing, or patterns after `--list`.
    let lists = |options: &[&str]| {
        arguments.is_empty() || has(options) || arguments.iter().all(|a| a.starts_with('-'))
    };
    let first = arguments.first().copied().unwrap_or_default();
    match subcommand {
        _ if READING.contains(&subcommand) => Operation::Read,
        "branch" if has(&["-d", "-D", "--delete", "-f", "--force"]) => Operation::Unknown,
        "branch" if has(&["-m", "-M", "--move", "-c", "-C", "--copy"]) => Operation::Unknown,
        "branch" if has(&["--edit-description"]) => Operation::Unknown,
        "branch" if lists(&["-l", "--list", "--contains", "--merged"]) => Operation::Read,
        "branch" => Operation::BranchCreate,
        "tag" if has(&["-d", "--delete", "-f", "--force", "-a", "-s", "-m"]) => Operation::Unknown,
        "tag" if lists(&["-l", "--list", "--contains"]) => Operation::Read,
        "remote" if first == "get-url" => Operation::Read,
        "remote" if arguments.iter().all(|a| matches!(*a, "-v" | "--verbose")) => Operation::Read,
        "config" if has(&["--get", "--get-all", "--list", "-l", "--get-regexp"]) => Operation::Read,
        "config" if matches!(first, "get" | "list") => Operation::Read,
        "reflog" if matches!(first, "" | "show") => Operation::Read,
        "worktree" if first == "list" => Operation::Read,
        "worktree" if first == "add" => Operation::BranchCreate,
        "stash" if matches!(first, "list" | "show") => Operation::Read,
        "stash" if matches!(first, "drop" | "clear" | "branch") => Operation::Unknown,
        "stash" => Operation::Stash,
        "add" | "rm" | "mv" => Operation::Add,
        "restore" if has(&["--staged", "-S"]) && !has(&["--worktree", "-W"]) => Operation::Add,
        "commit" if has(&["--amend", "--fixup"]) => Operation::History,
        "commit" => Operation::Commit,
        "checkout" | "switch" if creates(arguments) => Operation::BranchCreate,
        "checkout" | "switch" => Operation::Checkout,
        "revert" | "cherry-pick" => Operation::History,
        "reset" if has(&["--hard", "--merge", "--keep"]) => Operation::ResetHard,
        "reset" if has(&["--soft"]) => Operation::History,
        // Takes paths out of the next commit; the files stay.
        "reset" => Operation::Add,
        "fetch" | "ls-remote" => Operation::Fetch,
        "pull" => Operation::Pull,
        "clone" => Operation::Clone,
        "push" | "send-email" | "request-pull" => Operation::Push,
        "merge" | "rebase" | "am" | "octopus" | "subtree" => Operation::Merge,
        "clean" => Operation::ResetHard,
        _ => Operation::Unknown,
    }
}

/// Whether `checkout` or `switch` makes a branch.
fn creates(arguments: &[&str]) -> bool {
    arguments.iter().any(|a| {
        matches!(
            *a,
            "--create" | "--force-create" | "--orphan" | "--track" | "-t"
        ) || (a.starts_with('-') && !a.starts_with("--") && a.contains(['b', 'B', 'c', 'C']))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_read_for_what_it_does() {
        use Operation::*;
        for (line, expected) in [
            ("git status -s", Read),
            ("git diff HEAD~1 -- src", Read),
            ("git -C sub log --oneline", Read),
            ("git branch", Read),
            ("git branch -a -v", Read),
            ("git branch --list feature/*", Read),
            ("git branch new", BranchCreate),
            ("git branch -D old", Unknown),
            ("git checkout main", Checkout),
            ("git checkout -b new", BranchCreate),
            ("git checkout -Bnew", BranchCreate),
            ("git switch -c new", BranchCreate),
            ("git switch main", Checkout),
            ("git reset", Add),
            ("git reset HEAD a", Add),
            ("git reset --soft HEAD~1", History),
            ("git reset --hard", ResetHard),
            ("git clean -fd", ResetHard),
            ("git add .", Add),
            ("git restore --staged a", Add),
            ("git restore a", Unknown),
            ("git commit -m x", Commit),
            ("git commit --amend", History),
            ("git push", Push),
            ("git -c a.b=c push", Push),
            ("git merge x", Merge),
            ("git rebase x", Merge),
            ("git stash", Stash),
            ("git stash list", Read),
            ("git stash drop", Unknown),
            ("git tag", Read),
            ("git tag v1", Unknown),
            ("git tag -d v1", Unknown),
            ("git update-ref -d refs/heads/x", Unknown),
            ("git reflog expire --all", Unknown),
            ("git filter-branch", Unknown),
            ("git gc", Unknown),
            ("git mine", Unknown),
            ("git config --get a.b", Read),
            ("git config a.b c", Unknown),
            ("git remote -v", Read),
            ("git remote add x y", Unknown),
            ("git clone x", Clone),
            ("git submodule update --init", Unknown),
            ("git worktree add x", BranchCreate),
            ("git", Unknown),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(read(&words).operation, expected, "{line}");
        }
    }

    #[test]
    fn an_option_that_writes_or_runs_is_doubted_and_its_twin_is_not() {
        for (line, is_doubted) in [
            ("git diff --output=x", true),
            ("git diff --output x", true),
            ("git diff --outp=x", true),
            ("git diff --ext-diff", true),
            ("git log --textconv", true),
            ("git grep -Oless x", true),
            ("git grep --open-files-in-pager=vi x", true),
            ("git -c core.pager=evil log", true),
            ("git --exec-path=. status", true),
            ("git --git-dir=x status", true),
            ("git diff --stat", false),
            ("git log --oneline -5", false),
            ("git diff -- --output", false),
            ("git grep output", false),
            ("git --no-pager log", false),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(read(&words).doubt.is_some(), is_doubted, "{line}");
        }
    }
}

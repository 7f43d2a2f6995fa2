//! Who may do what with git: one table, for the git tools and for the shell.
//!
//! What is not in the table is forbidden, and so is everything to an agent that has
//! no column in it. A command line of git is first read for what it does: `checkout
//! -b` makes a branch, `reset` without a word about it does not throw work away.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::verdict::{Decision, Finding, Source};

/// The work that an agent does, as far as git is concerned.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Craft {
    /// Writes code.
    Engineer,
    /// Writes interfaces.
    Designer,
    /// Looks for faults.
    Inspector,
    /// Writes and runs tests.
    Tester,
    /// Decides how things are built.
    Architect,
    /// Knows where things are.
    Librarian,
}

/// What is done with git.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Looking: status, diff, log, show, blame, the names of branches.
    Read,
    /// Changing what the next commit will hold.
    Add,
    /// Committing.
    Commit,
    /// Putting changes aside, and back.
    Stash,
    /// Making a branch, or a working tree for one.
    BranchCreate,
    /// Changing which commit the files come from.
    Checkout,
    /// Reverting, picking, moving a branch back while the files stay.
    History,
    /// Fetching from another repository.
    Fetch,
    /// Fetching and merging.
    Pull,
    /// Copying a repository.
    Clone,
    /// Sending to another repository.
    Push,
    /// Merging, rebasing.
    Merge,
    /// Moving a branch and throwing away changes.
    ResetHard,
    /// Anything else.
    Unknown,
}

/// A cell of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Yes.
    Yes,
    /// No.
    No,
    /// Only if a person agrees that the condition holds.
    If(&'static str),
}

use Cell::{If, No, Yes};

const TESTS: &str = "a tester commits when its tests have improved";
const HERE: &str = "an architect pulls into this repository only";
const TEMPORARY: &str = "a librarian clones into a temporary folder only";

/// The columns of the table.
pub const CRAFTS: [Craft; 6] = [
    Craft::Engineer,
    Craft::Designer,
    Craft::Inspector,
    Craft::Tester,
    Craft::Architect,
    Craft::Librarian,
];

/// The table. Columns as in [`CRAFTS`].
#[rustfmt::skip]
pub const MATRIX: [(Operation, [Cell; 6]); 14] = [
    //                         Eng  Des  Insp Test       Arch         Lib
    (Operation::Read,         [Yes, Yes, Yes, Yes,       Yes,         Yes]),
    (Operation::Add,          [Yes, Yes, No,  If(TESTS), Yes,         No]),
    (Operation::Commit,       [Yes, Yes, No,  If(TESTS), Yes,         No]),
    (Operation::Stash,        [Yes, Yes, No,  Yes,       Yes,         No]),
    (Operation::BranchCreate, [No,  No,  No,  No,        Yes,         No]),
    (Operation::Checkout,     [No,  No,  No,  No,        Yes,         Yes]),
    (Operation::History,      [No,  No,  No,  No,        Yes,         No]),
    (Operation::Fetch,        [No,  No,  No,  No,        Yes,         Yes]),
    (Operation::Pull,         [No,  No,  No,  No,        If(HERE),    Yes]),
    (Operation::Clone,        [No,  No,  No,  No,        No,          If(TEMPORARY)]),
    (Operation::Push,         [No,  No,  No,  No,        No,          No]),
    (Operation::Merge,        [No,  No,  No,  No,        No,          No]),
    (Operation::ResetHard,    [No,  No,  No,  No,        No,          No]),
    (Operation::Unknown,      [No,  No,  No,  No,        No,          No]),
];

impl Craft {
    /// The craft of that name, if there is one.
    pub fn named(name: &str) -> Option<Self> {
        CRAFTS.into_iter().find(|craft| craft.to_string() == name)
    }

    fn cell(self, operation: Operation) -> Cell {
        let row = MATRIX.iter().find(|(row, _)| *row == operation);
        row.map_or(No, |(_, cells)| cells[self as usize])
    }
}

impl fmt::Display for Craft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Engineer => "engineer",
            Self::Designer => "designer",
            Self::Inspector => "inspector",
            Self::Tester => "tester",
            Self::Architect => "architect",
            Self::Librarian => "librarian",
        })
    }
}

/// What the table says of an operation, for an agent of these crafts: its own, and
/// those of the agents above it. No craft is no permission.
pub(super) fn judge(crafts: &[Craft], operation: Operation) -> Finding {
    let deny =
        |says: String, reason: String| Finding::new(Decision::Deny, Source::Git, says, reason);
    if crafts.is_empty() {
        return deny(
            "no column".into(),
            "this agent has no place in the table of who may use git".into(),
        );
    }
    let says = |craft: &Craft| format!("{craft} × {operation:?}").to_lowercase();
    let cells = || crafts.iter().map(|craft| (craft, craft.cell(operation)));
    if let Some((craft, _)) = cells().find(|(_, cell)| *cell == No) {
        let reason = match operation {
            Operation::Unknown => "this use of git is not one that agents are given".to_owned(),
            _ => format!("{} is not for the {craft}", operation.words()),
        };
        return deny(says(craft), reason);
    }
    let condition = cells().find_map(|(craft, cell)| match cell {
        If(condition) => Some((craft, condition)),
        _ => None,
    });
    match condition {
        Some((craft, condition)) => {
            Finding::new(Decision::Ask, Source::Git, says(craft), condition)
        }
        None => {
            let reason = format!("{} is for the {}", operation.words(), crafts[0]);
            Finding::new(Decision::Allow, Source::Git, says(&crafts[0]), reason)
        }
    }
}

impl Operation {
    /// Whether it talks to another repository.
    pub(super) fn is_remote(self) -> bool {
        matches!(self, Self::Fetch | Self::Pull | Self::Clone | Self::Push)
    }

    /// Whether it only looks.
    pub fn is_read(self) -> bool {
        self == Self::Read
    }

    fn words(self) -> &'static str {
        match self {
            Self::Read => "looking at the repository",
            Self::Add => "staging",
            Self::Commit => "committing",
            Self::Stash => "stashing",
            Self::BranchCreate => "making branches and working trees",
            Self::Checkout => "checking out",
            Self::History => "rewriting history",
            Self::Fetch => "fetching",
            Self::Pull => "pulling",
            Self::Clone => "cloning",
            Self::Push => "pushing",
            Self::Merge => "merging",
            Self::ResetHard => "throwing away changes",
            Self::Unknown => "this",
        }
    }
}

/// What a command line of git does.
#[derive(Debug, PartialEq)]
pub(super) struct Line<'a> {
    pub(super) operation: Operation,
    /// The words without the options before the subcommand: `git push origin`.
    pub(super) words: Vec<&'a str>,
    /// A reason to ask: an option that makes git write or run something.
    pub(super) doubt: Option<String>,
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
pub(super) fn read<'a>(words: &[&'a str]) -> Line<'a> {
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
        "remote" if matches!(first, "" | "-v" | "--verbose" | "get-url") => Operation::Read,
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
    fn every_cell_of_the_table_is_what_is_decided() {
        for (operation, cells) in MATRIX {
            for (craft, cell) in CRAFTS.into_iter().zip(cells) {
                let expected = match cell {
                    Yes => Decision::Allow,
                    No => Decision::Deny,
                    If(_) => Decision::Ask,
                };
                let finding = judge(&[craft], operation);
                assert_eq!(finding.decision, expected, "{craft} {operation:?}");
                assert_eq!(finding.rule.source, Source::Git);
                // Whoever has no column has nothing, and a helper no more than its chief.
                assert_eq!(judge(&[], operation).decision, Decision::Deny);
                for chief in CRAFTS {
                    let together = judge(&[craft, chief], operation).decision;
                    let alone = [craft, chief].map(|c| judge(&[c], operation).decision);
                    assert_eq!(
                        Some(together),
                        alone.into_iter().max(),
                        "{craft} below {chief}"
                    );
                }
            }
        }
    }

    #[test]
    fn nobody_pushes_merges_or_throws_work_away() {
        for craft in CRAFTS {
            for operation in [Operation::Push, Operation::Merge, Operation::ResetHard] {
                assert_eq!(judge(&[craft], operation).decision, Decision::Deny);
            }
        }
    }

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

//! Who may do what with git: one table, for the git tools and for the shell.
//!
//! What is not in the table is forbidden, and so is everything to an agent that has
//! no column in it.

mod line;

pub(super) use line::{Line, read};

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

#[cfg(test)]
mod tests;

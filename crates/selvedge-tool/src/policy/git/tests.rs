//! The table, held against the one that was asked for, by the tools and in a shell.

use super::*;
use crate::policy::site::tests::site;
use crate::policy::{Act, Deed, Policy, judge as judged};
use crate::tool::World;

/// What was asked for, a second time: a cell that is changed in one of both is found. In
/// each row, what the operation is called in a shell.
const ASKED_FOR: &str = "
    Read          y y y y  y  y  | git status; git diff; git log; git show; git blame a; git ls-files; git branch --list
    Add           y y n if y  n  | git add a; git rm --cached a
    Commit        y y n if y  n  | git commit -m x
    Stash         y y n y  y  n  | git stash; git stash push -u; git stash pop
    BranchCreate  n n n n  y  n  | git branch new; git checkout -b new; git switch -c new; git worktree add ../x
    Checkout      n n n n  y  y  | git checkout main; git switch main
    History       n n n n  y  n  | git revert HEAD; git cherry-pick abc; git reset --soft HEAD~1
    Fetch         n n n n  y  y  | git fetch; git fetch origin
    Pull          n n n n  if y  | git pull; git pull origin main
    Clone         n n n n  n  if | git clone https://example.org/x /tmp/x
    Push          n n n n  n  n  | git push; git push --force; git push origin :main
    Merge         n n n n  n  n  | git merge x; git rebase x
    ResetHard     n n n n  n  n  | git reset --hard; git reset --hard HEAD~1
    Unknown       n n n n  n  n  | git frobnicate; git update-ref refs/heads/x HEAD; git tag -d v1; git stash drop
";

/// The rows: an operation, its cells, and its commands.
fn asked_for() -> Vec<(&'static str, Vec<Decision>, Vec<&'static str>)> {
    let row = |line: &'static str| {
        let (cells, commands) = line.split_once('|').unwrap();
        let mut words = cells.split_whitespace();
        let operation = words.next().unwrap();
        let cells = words.map(|cell| match cell {
            "y" => Decision::Allow,
            "n" => Decision::Deny,
            "if" => Decision::Ask,
            _ => panic!("{cell} is no cell"),
        });
        let commands = commands.split(';').map(str::trim);
        (operation, cells.collect(), commands.collect())
    };
    ASKED_FOR.trim().lines().map(row).collect()
}

#[test]
fn every_cell_is_as_it_was_asked_for() {
    let rows = asked_for();
    assert_eq!(rows.len(), MATRIX.len());
    for ((operation, _), (name, cells, _)) in MATRIX.into_iter().zip(rows) {
        assert_eq!(format!("{operation:?}"), name);
        assert_eq!(cells.len(), CRAFTS.len());
        for (craft, expected) in CRAFTS.into_iter().zip(cells) {
            let finding = judge(&[craft], operation);
            assert_eq!(finding.decision, expected, "{craft} {operation:?}");
            assert_eq!(finding.rule.source, Source::Git);
            // Whoever has no column has nothing.
            assert_eq!(judge(&[], operation).decision, Decision::Deny);
        }
    }
}

#[test]
fn every_cell_holds_in_a_shell_too() {
    for (operation, cells, commands) in asked_for() {
        for command in commands {
            for (craft, cell) in CRAFTS.into_iter().zip(&cells) {
                let act = Act {
                    tool: "run_command",
                    world: World::Runs,
                    deed: Deed::Command {
                        command: command.into(),
                        cwd: String::new(),
                    },
                };
                let mut policy = Policy {
                    crafts: vec![craft],
                    fence: Some("on".into()),
                    ..Policy::default()
                };
                let verdict = judged(&policy, &site(), &act);
                let finding = &verdict.finding;
                match cell {
                    Decision::Deny => {
                        assert_eq!(verdict.decision(), Decision::Deny, "{craft}: {command}");
                        let says = format!("{craft} × {operation}").to_lowercase();
                        assert_eq!(finding.rule.says, says, "{craft}: {command}");
                    }
                    // Where it talks to others, there may be another reason to ask.
                    expected => assert!(
                        verdict.decision() != Decision::Deny && verdict.decision() >= *expected,
                        "{craft}: {command}: {finding:?}"
                    ),
                }
                policy.crafts.clear();
                let verdict = judged(&policy, &site(), &act);
                assert_eq!(verdict.decision(), Decision::Deny, "nobody: {command}");
            }
        }
    }
}

#[test]
fn a_helper_has_no_more_than_its_chief() {
    for (operation, _) in MATRIX {
        for craft in CRAFTS {
            for chief in CRAFTS {
                let together = judge(&[craft, chief], operation).decision;
                let alone = [craft, chief].map(|c| judge(&[c], operation).decision);
                let strictest = alone.into_iter().max();
                assert_eq!(Some(together), strictest, "{craft} below {chief}");
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

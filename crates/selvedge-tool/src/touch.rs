//! What a call may change, known before it begins.
//!
//! A file tool names its files. A command may change anything, unless the policy
//! would let it run without a fence: then it only looks.

use std::path::Path;

use crate::policy::{Act, Craft, Decision, Deed, Policy, Site, judge};
use crate::tool::World;

/// What a call may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Touch {
    /// Nothing: it looks.
    Nothing,
    /// These files, named from the workspace root.
    Files(Vec<String>),
    /// Whatever the fence lets it reach.
    Anything,
}

impl Touch {
    pub(crate) fn of(root: &Path, tool: &str, world: World, deed: Deed) -> Self {
        match (world, deed) {
            (World::Writes, Deed::Files { paths }) => Self::Files(paths),
            (World::Writes, _) => Self::Anything,
            (World::Runs, deed) if only_looks(root, tool, deed.clone()) => Self::Nothing,
            (World::Runs, _) => Self::Anything,
            _ => Self::Nothing,
        }
    }
}

/// Programs that are fine without a fence, and yet edit the files they are given.
const EDITORS: [&str; 5] = ["sed", "gsed", "awk", "gawk", "mawk"];

/// Whether somebody who may only look, and has no fence around, may do it unasked.
fn only_looks(root: &Path, tool: &str, deed: Deed) -> bool {
    if let Deed::Command { command, .. } = &deed {
        let mut words = command.split(|c: char| !c.is_alphanumeric());
        if words.any(|word| EDITORS.contains(&word)) {
            return false;
        }
    }
    let onlooker = Policy {
        crafts: vec![Craft::Inspector],
        fence: None,
        ..Policy::default()
    };
    let world = World::Runs;
    let act = Act { tool, world, deed };
    judge(&onlooker, &Site::of(root), &act).decision() == Decision::Allow
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_only_looks_touches_nothing() {
        let scratch = tempfile::tempdir().unwrap();
        for (command, expected) in [
            ("ls -la src", Touch::Nothing),
            ("grep -rn main src | head", Touch::Nothing),
            ("git status && git diff", Touch::Nothing),
            ("rm -r src", Touch::Anything),
            ("echo x > src/main.rs", Touch::Anything),
            ("sed -i s/a/b/ a.txt", Touch::Anything),
            ("cargo test", Touch::Anything),
            ("git commit -am x", Touch::Anything),
            ("find . -delete", Touch::Anything),
            ("ls $(touch a)", Touch::Anything),
        ] {
            let deed = Deed::Command {
                command: command.into(),
                cwd: String::new(),
            };
            let touch = Touch::of(scratch.path(), "run_command", World::Runs, deed);
            assert_eq!(touch, expected, "{command}");
        }
    }

    #[test]
    fn a_file_tool_touches_the_files_that_it_names() {
        let deed = Deed::Files {
            paths: vec!["a".into()],
        };
        let root = Path::new("/");
        let touch = Touch::of(root, "write_file", World::Writes, deed.clone());
        assert_eq!(touch, Touch::Files(vec!["a".into()]));
        let touch = Touch::of(root, "read_file", World::Reads, deed);
        assert_eq!(touch, Touch::Nothing);
    }
}

//! Skills: folders with a `SKILL.md`, for particular kinds of work.
//!
//! They are disclosed in three steps: name and description in the prompt, the
//! instructions when a skill is used, its other files when the instructions speak of
//! them. All of it is text for a model. A skill changes nothing of what an agent may
//! do, and a script in it runs as any command does, through policy and sandbox.

mod file;
mod find;
mod folder;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use file::{SkillFault, SkillFile};
pub use find::{ContentRoot, FoundSkills, LeftOut, find_skills};
pub use folder::check_skill;
pub(crate) use folder::{Bundled, Contents, skill_file};

use crate::workspace::{PathError, Workspace};

/// A skill, as a run knows it from its beginning to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skill {
    /// Its name.
    pub name: String,
    /// What it is for, and when to use it.
    pub description: String,
    /// Whose it is.
    pub owner: Owner,
    /// Its folder: from the root of the workspace if the workspace brings it along.
    pub folder: PathBuf,
    /// The tools it was written for. It gives none of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<String>,
    /// Whether it has something that could be run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub brings_code: bool,
    /// What its files were: when one changes, so does this.
    pub digest: String,
}

/// Whose a skill is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// The user's own.
    User,
    /// Content of the repository.
    Project,
}

impl Skill {
    /// Its folder, as a place that nothing leads out of.
    pub(crate) fn open(&self, workspace: &Workspace) -> Result<Workspace, PathError> {
        match self.owner {
            Owner::Project => workspace.below(&self.folder.to_string_lossy()),
            Owner::User => {
                let text = self.folder.to_string_lossy();
                Workspace::open(&self.folder).map_err(|e| PathError::from_io(&text, e))
            }
        }
    }

    /// Whether it is still what it was, for a run in `workspace`.
    pub fn has_changed(&self, workspace: &Path) -> bool {
        let workspace = Workspace::open(workspace);
        let contents = workspace
            .ok()
            .and_then(|workspace| Contents::read(&self.open(&workspace).ok()?));
        contents.is_none_or(|contents| contents.digest() != self.digest)
    }
}

/// What a prompt says of skills: a line each, by name.
pub fn skills_list(skills: &[Skill]) -> String {
    let mut text = "There are skills: instructions for particular kinds of work. When one fits \
                    what you are about to do, read it first with `use_skill`."
        .to_owned();
    for skill in skills.iter().take(LISTED_MAX) {
        text.push_str(&format!("\n- {}: {}", skill.name, line(&skill.description)));
    }
    if skills.len() > LISTED_MAX {
        let more = skills.len() - LISTED_MAX;
        text.push_str(&format!(
            "\n- and {more} more: `use_skill` without a name lists all"
        ));
    }
    text
}

/// So many are in a prompt, with so much of their descriptions.
const LISTED_MAX: usize = 50;
const LINE_CHARS_MAX: usize = 300;

/// A description in one short line, with nothing hidden in it.
pub(crate) fn line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = crate::visible(&words.join(" "));
    if text.chars().count() <= LINE_CHARS_MAX {
        return text;
    }
    let kept: String = text.chars().take(LINE_CHARS_MAX - 1).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_in_a_prompt_is_bounded() {
        let skill = |n: usize| Skill {
            name: format!("skill-{n:03}"),
            description: format!("Does\n {}\u{202e}", "much ".repeat(200)),
            owner: Owner::Project,
            folder: ".agents/skills/x".into(),
            allowed_tools: Vec::new(),
            brings_code: false,
            digest: String::new(),
        };
        let skills: Vec<Skill> = (0..60).map(skill).collect();
        let list = skills_list(&skills);
        assert_eq!(list.lines().count(), 52);
        assert!(list.ends_with("and 10 more: `use_skill` without a name lists all"));
        assert!(list.lines().all(|line| line.chars().count() < 330));
        assert!(list.len() < 20_000 && !list.contains('\u{202e}'));
    }
}

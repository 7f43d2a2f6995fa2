//! Where skills are found, and which of two with the same name counts.
//!
//! The user's own come first: a repository cannot take the place of a skill that its
//! user relies on. A skill of a repository that brings scripts along counts once the
//! user vouches for the repository. One that is broken is named, and the others work.

use std::path::{Path, PathBuf};

use super::file::SkillFault;
use super::folder::{Contents, SKILL_FILE, skill_file};
use super::{Owner, Skill};
use crate::workspace::Workspace;

/// More skills than this in one folder are not looked at.
const SKILLS_MAX: usize = 300;

/// A folder of skills or of commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentRoot {
    /// Whose they are.
    pub owner: Owner,
    /// Where: from the root of the workspace if the workspace brings them along.
    pub folder: PathBuf,
}

impl ContentRoot {
    /// The folder, as a place that nothing leads out of; `None` if it is not there.
    pub fn open(&self, workspace: &Workspace) -> Option<Workspace> {
        match self.owner {
            Owner::Project => workspace.below(&self.folder.to_string_lossy()).ok(),
            Owner::User => Workspace::open(&self.folder).ok(),
        }
    }
}

/// The skills of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundSkills {
    /// Those that count, by name.
    pub skills: Vec<Skill>,
    /// Those that do not, and why.
    pub left_out: Vec<(PathBuf, LeftOut)>,
}

/// Why a skill does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeftOut {
    /// It is broken.
    #[error("{0}")]
    Broken(SkillFault),
    /// Another one of the same name comes first.
    #[error("`{}` has the same name and comes first", .by.display())]
    Shadowed {
        /// Which.
        by: PathBuf,
    },
    /// It brings code along, and nobody vouches for the repository it comes with.
    #[error("it brings scripts along, and nobody vouches for this folder")]
    Untrusted,
}

/// Looks for skills in `roots`, the first of a name counting.
pub fn find_skills(workspace: &Path, roots: &[ContentRoot], is_trusted: bool) -> FoundSkills {
    let mut found = FoundSkills::default();
    let Ok(workspace) = Workspace::open(workspace) else {
        return found;
    };
    // The same folder is often reached by two names.
    let mut seen: Vec<PathBuf> = Vec::new();
    for root in roots {
        for folder in folders(&workspace, root) {
            let place = match root.owner {
                Owner::Project => workspace.root().join(&folder),
                Owner::User => folder.clone(),
            };
            let Ok(place) = place.canonicalize() else {
                continue;
            };
            if seen.contains(&place) {
                continue;
            }
            seen.push(place);
            match skill(&workspace, root.owner, &folder, is_trusted) {
                Ok(skill) => match found.skills.iter().find(|s| s.name == skill.name) {
                    Some(first) => {
                        let by = first.folder.clone();
                        found.left_out.push((folder, LeftOut::Shadowed { by }));
                    }
                    None => found.skills.push(skill),
                },
                Err(why) => found.left_out.push((folder, why)),
            }
        }
    }
    found.skills.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// The folders below a root that have a `SKILL.md`, by name.
fn folders(workspace: &Workspace, root: &ContentRoot) -> Vec<PathBuf> {
    let Some(opened) = root.open(workspace) else {
        return Vec::new();
    };
    let entries = opened.dir().entries().into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name()).take(SKILLS_MAX);
    let mut names: Vec<_> = names.collect();
    names.sort();
    let folders = names.into_iter().map(|name| root.folder.join(name));
    let is_skill = |folder: &PathBuf| match root.owner {
        // A link out of the repository leads nowhere.
        Owner::Project => {
            let file = folder.join(SKILL_FILE);
            workspace.dir().symlink_metadata(&file).is_ok()
        }
        Owner::User => folder.join(SKILL_FILE).exists(),
    };
    folders.filter(is_skill).collect()
}

fn skill(
    workspace: &Workspace,
    owner: Owner,
    folder: &Path,
    is_trusted: bool,
) -> Result<Skill, LeftOut> {
    let broken = |why: String| LeftOut::Broken(SkillFault::Unreadable(why));
    let mut skill = Skill {
        name: String::new(),
        description: String::new(),
        owner,
        folder: folder.to_owned(),
        allowed_tools: Vec::new(),
        brings_code: false,
        digest: String::new(),
    };
    let opened = skill.open(workspace).map_err(|e| broken(e.to_string()))?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let file = skill_file(&opened, &name).map_err(LeftOut::Broken)?;
    let contents = Contents::read(&opened)
        .ok_or_else(|| broken("its folder is too large, or cannot be read".into()))?;
    skill.brings_code = contents.brings_code();
    if owner == Owner::Project && skill.brings_code && !is_trusted {
        return Err(LeftOut::Untrusted);
    }
    skill.name = file.name;
    skill.description = file.description;
    skill.allowed_tools = file.allowed_tools;
    skill.digest = contents.digest();
    Ok(skill)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    struct Ground {
        root: tempfile::TempDir,
    }

    impl Ground {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            std::fs::create_dir(root.path().join("work")).unwrap();
            Self { root }
        }

        fn write(&self, path: &str, text: &str) -> PathBuf {
            let path = self.root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            path
        }

        fn skill(&self, folder: &str, description: &str) {
            let name = folder.rsplit('/').next().unwrap();
            let text = format!("---\nname: {name}\ndescription: {description}\n---\nDo it.\n");
            self.write(&format!("{folder}/SKILL.md"), &text);
        }

        fn find(&self, is_trusted: bool) -> FoundSkills {
            let root = |owner, folder: PathBuf| ContentRoot { owner, folder };
            let roots = [
                root(Owner::User, self.root.path().join("home/.claude/skills")),
                root(Owner::Project, ".agents/skills".into()),
                root(Owner::Project, ".claude/skills".into()),
            ];
            find_skills(&self.root.path().join("work"), &roots, is_trusted)
        }
    }

    fn names(found: &FoundSkills) -> Vec<&str> {
        found.skills.iter().map(|skill| &*skill.name).collect()
    }

    fn why(found: &FoundSkills) -> Vec<String> {
        let shown = |(folder, why): &(PathBuf, LeftOut)| {
            format!("{}: {why}", folder.file_name().unwrap().display())
        };
        found.left_out.iter().map(shown).collect()
    }

    #[test]
    fn the_users_own_skill_comes_before_one_of_the_repository() {
        let ground = Ground::new();
        ground.skill("work/.claude/skills/pdf", "Theirs.");
        ground.skill("work/.agents/skills/docs", "Of all.");
        ground.skill("home/.claude/skills/pdf", "Mine.");
        let found = ground.find(false);
        assert_eq!(names(&found), ["docs", "pdf"]);
        assert_eq!(found.skills[1].description, "Mine.");
        assert_eq!(found.left_out.len(), 1);
        assert!(matches!(&found.left_out[0].1, LeftOut::Shadowed { by } if by.ends_with("pdf")));
    }

    #[test]
    fn a_broken_skill_is_named_and_the_others_work() {
        let ground = Ground::new();
        ground.skill("work/.agents/skills/good", "Works.");
        ground.write("work/.agents/skills/bad/SKILL.md", "no front matter");
        ground.write("work/.agents/skills/none/README.md", "no skill");
        let found = ground.find(false);
        assert_eq!(names(&found), ["good"]);
        assert_eq!(
            why(&found),
            ["bad: it must begin with front matter between two lines of `---`"]
        );
    }

    #[test]
    fn a_skill_with_scripts_counts_when_its_repository_is_trusted() {
        let ground = Ground::new();
        ground.skill("work/.agents/skills/a", "Has scripts.");
        ground.write("work/.agents/skills/a/scripts/run.py", "print()");
        ground.skill("work/.agents/skills/b", "Has a program.");
        let program = ground.write("work/.agents/skills/b/go", "#!/bin/sh\n");
        std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
        ground.skill("work/.agents/skills/c", "Has words.");
        ground.write("work/.agents/skills/c/more.md", "words");
        assert_eq!(names(&ground.find(true)), ["a", "b", "c"]);
        let found = ground.find(false);
        assert_eq!(names(&found), ["c"]);
        assert!(
            found
                .left_out
                .iter()
                .all(|(_, why)| *why == LeftOut::Untrusted)
        );
    }

    #[test]
    fn a_link_out_of_the_repository_is_no_skill_and_one_within_is_no_second() {
        let ground = Ground::new();
        ground.skill("elsewhere/leak", "Outside.");
        ground.skill("work/.agents/skills/pdf", "Inside.");
        let work = ground.root.path().join("work");
        std::fs::create_dir_all(work.join(".claude")).unwrap();
        symlink("../.agents/skills", work.join(".claude/skills")).unwrap();
        symlink(
            ground.root.path().join("elsewhere/leak"),
            work.join(".agents/skills/leak"),
        )
        .unwrap();
        let found = ground.find(true);
        assert_eq!(names(&found), ["pdf"]);
        assert_eq!(found.left_out, []);
    }

    #[test]
    fn a_skill_has_changed_when_any_of_its_files_has() {
        let ground = Ground::new();
        ground.skill("work/.agents/skills/pdf", "Reads.");
        ground.write("work/.agents/skills/pdf/more.md", "one");
        let work = ground.root.path().join("work");
        let skill = ground.find(false).skills.remove(0);
        assert!(!skill.has_changed(&work));
        ground.write("work/.agents/skills/pdf/more.md", "two");
        assert!(skill.has_changed(&work));
        ground.write("work/.agents/skills/pdf/more.md", "one");
        assert!(!skill.has_changed(&work));
        ground.write("work/.agents/skills/pdf/new.md", "");
        assert!(skill.has_changed(&work));
        std::fs::remove_dir_all(work.join(".agents")).unwrap();
        assert!(skill.has_changed(&work));
    }
}

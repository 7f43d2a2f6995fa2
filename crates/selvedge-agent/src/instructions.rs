//! What a workspace has to say to agents: `AGENTS.md`, else `CLAUDE.md`.
//!
//! Two of them count: that of the repository, and the one nearest above the folder
//! that is worked in, which knows more of it. They are content of the repository: a
//! link that leads out of it, or something that is not a file, is not read.

use std::io::Read;
use std::path::{Path, PathBuf};

use selvedge_tool::{Workspace, visible};

/// Instructions longer than this are cut, and say so.
const BYTES_MAX: u64 = 32 * 1024;
/// The names of such files; the first that is there counts.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// What a workspace has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instructions {
    /// The files, for people and models.
    pub file: String,
    /// What they say.
    pub text: String,
}

impl Instructions {
    /// Those for work in `workspace`.
    pub fn find(workspace: &Path) -> Option<Self> {
        let workspace = workspace.canonicalize().ok()?;
        let is_repository = |folder: &&Path| folder.join(".git").exists();
        let root = workspace.ancestors().find(is_repository);
        let root = root.unwrap_or(&workspace);
        let below = workspace.strip_prefix(root).ok()?;
        let opened = Workspace::open(root).ok()?;
        // From the folder that is worked in upwards; the root itself comes last.
        let nearest = below.ancestors().find_map(|folder| read(&opened, folder))?;
        let of_root = read(&opened, Path::new(""));
        Some(
            match of_root.filter(|general| general.file != nearest.file) {
                None => nearest,
                Some(general) => Self {
                    text: format!(
                        "[`{}`:]\n{}\n\n[`{}`, which counts where they differ:]\n{}",
                        general.file,
                        general.text.trim_end(),
                        nearest.file,
                        nearest.text.trim_end()
                    ),
                    file: format!("{} and {}", general.file, nearest.file),
                },
            },
        )
    }
}

/// What the user has to say to agents in every project, if `file` is there.
pub fn user_instructions(file: &Path) -> Option<String> {
    let text = bounded(std::fs::File::open(file).ok()?)?;
    (!text.trim().is_empty()).then_some(text)
}

/// The instructions of one folder, named from the root.
fn read(root: &Workspace, folder: &Path) -> Option<Instructions> {
    NAMES.into_iter().find_map(|name| {
        let path: PathBuf = folder.join(name);
        let path = path.to_str()?;
        let (file, _) = root.open_file(path).ok()?;
        Some(Instructions {
            file: path.to_owned(),
            text: bounded(file)?,
        })
    })
}

fn bounded(file: std::fs::File) -> Option<String> {
    let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mut text = Vec::new();
    let kept = file.take(BYTES_MAX).read_to_end(&mut text).ok()?;
    let left_out = metadata.len().saturating_sub(kept as u64);
    // What no reader of the file would see, no model is told in secret.
    let mut text = visible(&String::from_utf8_lossy(&text));
    if left_out > 0 {
        text.push_str(&format!(
            "\n[cut: {left_out} more bytes; read the file for the rest]"
        ));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn found(folder: &Path) -> Option<(String, String)> {
        Instructions::find(folder).map(|found| (found.file, found.text))
    }

    #[test]
    fn instructions_are_read_from_the_workspace_and_from_nowhere_else() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("key"), "secret").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        assert_eq!(found(folder.path()), None);
        symlink(outside.path().join("key"), path("AGENTS.md")).unwrap();
        assert_eq!(found(folder.path()), None);
        std::fs::remove_file(path("AGENTS.md")).unwrap();
        let mut mkfifo = std::process::Command::new("mkfifo");
        assert!(mkfifo.arg(path("AGENTS.md")).status().unwrap().success());
        assert_eq!(found(folder.path()), None, "and nobody waits for it");
        std::fs::write(path("CLAUDE.md"), "be kind").unwrap();
        let expected = ("CLAUDE.md".to_owned(), "be kind".to_owned());
        assert_eq!(found(folder.path()), Some(expected));
    }

    #[test]
    fn long_instructions_are_cut_and_say_so() {
        let folder = tempfile::tempdir().unwrap();
        let long = "ä".repeat(BYTES_MAX as usize);
        std::fs::write(folder.path().join("AGENTS.md"), long).unwrap();
        let (_, text) = found(folder.path()).unwrap();
        assert!(text.ends_with("[cut: 32768 more bytes; read the file for the rest]"));
    }

    #[test]
    fn the_repositorys_and_the_nearest_count_and_none_above_the_repository() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("repo");
        let deep = root.join("crates/one/src");
        std::fs::create_dir_all(&deep).unwrap();
        let write = |path: &Path, text: &str| std::fs::write(path, text).unwrap();
        write(&outer.path().join("AGENTS.md"), "of another");
        write(&root.join("crates/AGENTS.md"), "between");
        assert_eq!(
            found(&deep),
            None,
            "without a repository, only the folder itself"
        );
        std::fs::create_dir(root.join(".git")).unwrap();
        let one = |file: &str, text: &str| Some((file.to_owned(), text.to_owned()));
        assert_eq!(found(&deep), one("crates/AGENTS.md", "between"));
        write(&root.join("AGENTS.md"), "general");
        write(&root.join("crates/one/CLAUDE.md"), "special");
        assert_eq!(
            found(&deep),
            one(
                "AGENTS.md and crates/one/CLAUDE.md",
                "[`AGENTS.md`:]\ngeneral\n\n[`crates/one/CLAUDE.md`, which counts where they \
                 differ:]\nspecial"
            )
        );
        assert_eq!(found(&root), one("AGENTS.md", "general"));
    }
}

//! Slash commands: requests that are kept as Markdown files, as `/NAME ARGUMENTS`.
//!
//! A command is words, in the place of words. What its file says of tools, models or
//! shell lines to run beforehand is not acted upon.

use std::io::Read;
use std::path::{Path, PathBuf};

use selvedge_tool::{ContentRoot, Owner, Skill, Workspace, front_matter, visible};
use serde::Deserialize;

/// Longer commands are refused, and so many files and folders are looked at.
const BYTES_MAX: u64 = 64 * 1024;
const FILES_MAX: usize = 500;
const DEPTH_MAX: usize = 3;

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlashCommand {
    /// Its name: that of its file, after those of the folders it is in.
    pub name: String,
    /// Whose it is.
    pub owner: Owner,
    /// Its file: from the root of the workspace if the workspace brings it along.
    pub file: PathBuf,
    /// What it is for.
    pub description: Option<String>,
    /// What is asked for.
    pub body: String,
}

/// Why a request that begins with `/` cannot be taken.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SlashError {
    /// There is no such command.
    #[error("there is no command `/{name}`")]
    Unknown {
        /// The name.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// Its file cannot be used.
    #[error("the command `/{name}` cannot be used: `{}`: {why}", .file.display())]
    Broken {
        /// The name.
        name: String,
        /// Its file.
        file: PathBuf,
        /// Why not.
        why: String,
    },
}

#[derive(Default, Deserialize)]
struct Front {
    description: Option<String>,
}

/// The request that `request` stands for; the same, if it is no command.
pub fn expand(
    request: &str,
    workspace: &Path,
    roots: &[ContentRoot],
    skills: &[Skill],
) -> Result<String, SlashError> {
    let Some((name, arguments)) = named(request) else {
        return Ok(request.to_owned());
    };
    let files = files(workspace, roots);
    if let Some(found) = files.iter().find(|found| found.name == name) {
        let command = found.read()?;
        let whose = match command.owner {
            Owner::User => "the user's own",
            Owner::Project => "content of the repository",
        };
        return Ok(format!(
            "{request}\n\n[`/{name}` stands for this, from `{}`, {whose}:]\n\n{}",
            command.file.display(),
            fill(&command.body, arguments)
        ));
    }
    if skills.iter().any(|skill| skill.name == name) {
        return Ok(format!("{request}\n\n[Use the skill `{name}` for this.]"));
    }
    let skills = skills.iter().map(|skill| skill.name.clone());
    let mut known: Vec<String> = files.into_iter().map(|f| f.name).chain(skills).collect();
    known.sort();
    known.dedup();
    let name = name.to_owned();
    Err(SlashError::Unknown { name, known })
}

/// Every command, the first of a name counting; those that cannot be used, too.
pub fn slash_commands(
    workspace: &Path,
    roots: &[ContentRoot],
) -> Vec<Result<SlashCommand, SlashError>> {
    let files = files(workspace, roots);
    files.iter().map(File::read).collect()
}

/// The name and the arguments, if `request` is a command. `/usr/bin is full` is none.
fn named(request: &str) -> Option<(&str, &str)> {
    let rest = request.strip_prefix('/')?;
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (name, arguments) = rest.split_at(end);
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | ':' | '.');
    let is_name = !name.is_empty() && name.chars().all(is_plain);
    is_name.then_some((name, arguments.trim()))
}

/// The body with the arguments in their places; at its end, if it has none.
fn fill(body: &str, arguments: &str) -> String {
    let words = words(arguments);
    let mut filled = String::with_capacity(body.len() + arguments.len());
    let mut has_place = false;
    let mut rest = body;
    while let Some(at) = rest.find('$') {
        filled.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let digit = after.chars().next().and_then(|c| c.to_digit(10));
        if let Some(tail) = after.strip_prefix("ARGUMENTS") {
            (has_place, rest) = (true, tail);
            filled.push_str(arguments);
        } else if let Some(n @ 1..) = digit {
            (has_place, rest) = (true, &after[1..]);
            filled.push_str(words.get(n as usize - 1).map_or("", String::as_str));
        } else {
            rest = after;
            filled.push('$');
        }
    }
    filled.push_str(rest);
    if !has_place && !arguments.is_empty() {
        filled.push_str(&format!("\n\nARGUMENTS: {arguments}"));
    }
    filled
}

/// Words between blanks; quotes hold some together.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut quote, mut is_open) = (None, false);
    for c in text.chars() {
        match (c, quote) {
            (c, Some(q)) if c == q => quote = None,
            ('"' | '\'', None) => {
                quote = Some(c);
                if !is_open {
                    words.push(String::new());
                    is_open = true;
                }
            }
            (c, None) if c.is_whitespace() => is_open = false,
            (c, _) => {
                if !is_open {
                    words.push(String::new());
                    is_open = true;
                }
                words.last_mut().expect("one is open").push(c);
            }
        }
    }
    words
}

/// A file that may be a command.
struct File {
    name: String,
    owner: Owner,
    /// For people.
    shown: PathBuf,
    opened: std::io::Result<std::fs::File>,
}

impl File {
    fn read(&self) -> Result<SlashCommand, SlashError> {
        let broken = |why: String| SlashError::Broken {
            name: self.name.clone(),
            file: self.shown.clone(),
            why,
        };
        let mut text = String::new();
        let file = self.opened.as_ref().map_err(|e| broken(e.to_string()))?;
        let read = file.take(BYTES_MAX + 1).read_to_string(&mut text);
        read.map_err(|e| broken(e.to_string()))?;
        if text.len() as u64 > BYTES_MAX {
            return Err(broken(format!("it has more than {BYTES_MAX} bytes")));
        }
        let (front, body) = match front_matter(&text) {
            Some((front, body)) if !front.trim().is_empty() => (front, body),
            Some((_, body)) => ("{}", body),
            None => ("{}", text.as_str()),
        };
        let front: Front = serde_saphyr::from_str(front).map_err(|e| broken(e.to_string()))?;
        if body.trim().is_empty() {
            return Err(broken("it says nothing".into()));
        }
        Ok(SlashCommand {
            name: self.name.clone(),
            owner: self.owner,
            file: self.shown.clone(),
            description: front.description,
            body: visible(body.trim()),
        })
    }
}

/// The files of all commands, the first of a name counting.
fn files(workspace: &Path, roots: &[ContentRoot]) -> Vec<File> {
    let mut found: Vec<File> = Vec::new();
    let Ok(workspace) = Workspace::open(workspace) else {
        return found;
    };
    for root in roots {
        let Some(opened) = root.open(&workspace) else {
            continue;
        };
        for path in paths(&opened) {
            let name = path.with_extension("");
            let name: Vec<_> = name.iter().map(|part| part.to_string_lossy()).collect();
            let name = name.join(":");
            if found.len() >= FILES_MAX || found.iter().any(|file| file.name == name) {
                continue;
            }
            let file = opened.open_file(&path.to_string_lossy());
            found.push(File {
                name,
                owner: root.owner,
                shown: root.folder.join(&path),
                opened: file.map(|(file, _)| file).map_err(std::io::Error::other),
            });
        }
    }
    found
}

/// The Markdown files below a folder, in order.
fn paths(root: &Workspace) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![(PathBuf::new(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let listed = match depth {
            0 => root.dir().entries(),
            _ => root.dir().read_dir(&folder),
        };
        for entry in listed.into_iter().flatten().flatten().take(FILES_MAX) {
            let path = folder.join(entry.file_name());
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder && depth < DEPTH_MAX {
                folders.push((path, depth + 1));
            } else if path.extension().is_some_and(|e| e == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_a_word_after_a_slash_and_a_path_is_none() {
        for (request, expected) in [
            (
                "/review src/main.rs now",
                Some(("review", "src/main.rs now")),
            ),
            ("/git:commit", Some(("git:commit", ""))),
            ("/fix\nthis", Some(("fix", "this"))),
            ("/usr/bin is full", None),
            ("/ x", None),
            ("review", None),
        ] {
            assert_eq!(named(request), expected, "{request}");
        }
    }

    #[test]
    fn arguments_take_their_places_once() {
        for (body, arguments, expected) in [
            ("Look at $ARGUMENTS.", "a b", "Look at a b."),
            ("From $1 to $2$3.", "'a b' c", "From a b to c."),
            ("Costs $0 or $x.", "a", "Costs $0 or $x.\n\nARGUMENTS: a"),
            ("Say $1.", "'$2 $ARGUMENTS' b", "Say $2 $ARGUMENTS."),
            ("Plain.", "", "Plain."),
        ] {
            assert_eq!(fill(body, arguments), expected, "{body}");
        }
    }

    #[test]
    fn a_command_is_found_where_it_may_be_and_others_are_named() {
        let scratch = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = scratch.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("work/.claude/commands/review.md", "Theirs.");
        write(
            "work/.claude/commands/git/tidy.md",
            "---\ndescription: Tidies.\n---\nTidy\u{200b} $1.",
        );
        write("work/.claude/commands/empty.md", " ");
        write("home/commands/review.md", "Mine: $ARGUMENTS");
        write("outside.md", "Outside.");
        let link = scratch.path().join("work/.claude/commands/out.md");
        std::os::unix::fs::symlink(scratch.path().join("outside.md"), link).unwrap();
        let roots = [
            ContentRoot {
                owner: Owner::User,
                folder: scratch.path().join("home/commands"),
            },
            ContentRoot {
                owner: Owner::Project,
                folder: ".claude/commands".into(),
            },
        ];
        let work = scratch.path().join("work");
        let expand = |request| expand(request, &work, &roots, &[]);
        assert_eq!(expand("do it").unwrap(), "do it");
        let review = expand("/review a").unwrap();
        assert!(review.starts_with("/review a\n\n[") && review.ends_with("\n\nMine: a"));
        let tidy = expand("/git:tidy x").unwrap();
        assert!(tidy.contains("content of the repository") && tidy.ends_with("Tidy\\u{200b} x."));
        let error = expand("/reviw a").unwrap_err();
        assert!(matches!(error, SlashError::Unknown { known, .. }
            if known == ["empty", "git:tidy", "out", "review"]));
        for broken in ["/empty", "/out"] {
            assert!(
                matches!(expand(broken), Err(SlashError::Broken { .. })),
                "{broken}"
            );
        }
    }
}

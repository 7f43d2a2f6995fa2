//! What a `SKILL.md` says of its skill, checked as the public convention has it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::front::front_matter;

/// The bounds of the convention, in characters.
const NAME_CHARS_MAX: usize = 64;
const DESCRIPTION_CHARS_MAX: usize = 1024;
const COMPATIBILITY_CHARS_MAX: usize = 500;

/// The content of a `SKILL.md`.
#[derive(Clone, Debug, PartialEq)]
pub struct SkillFile {
    /// The name, which is also that of its folder.
    pub name: String,
    /// What it does, and when to use it.
    pub description: String,
    /// Its licence.
    pub license: Option<String>,
    /// What it needs around it.
    pub compatibility: Option<String>,
    /// Whatever its author wanted to say.
    pub metadata: BTreeMap<String, Value>,
    /// The tools it was written for.
    pub allowed_tools: Vec<String>,
    /// Keys that mean nothing here.
    pub unknown: Vec<String>,
    /// The instructions.
    pub body: String,
}

/// What is wrong with a skill.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SkillFault {
    /// The folder has no `SKILL.md` that can be read.
    #[error("`SKILL.md` cannot be read: {0}")]
    Unreadable(String),
    /// The file is too long.
    #[error("`SKILL.md` has {bytes} bytes, more than {bytes_max}: move details to other files")]
    TooLong {
        /// How long it is.
        bytes: u64,
        /// How long it may be.
        bytes_max: u64,
    },
    /// It does not begin with front matter.
    #[error("it must begin with front matter between two lines of `---`")]
    NoFrontMatter,
    /// The front matter is not YAML, or a value has the wrong type.
    #[error("its front matter cannot be read: {0}")]
    FrontMatter(String),
    /// A key is missing or empty.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// A text is too long.
    #[error("`{key}` has {chars} characters, more than {chars_max}")]
    Long {
        /// Of which key.
        key: &'static str,
        /// How long it is.
        chars: usize,
        /// How long it may be.
        chars_max: usize,
    },
    /// The name has other signs than it may have.
    #[error("`name: {0}` must be lowercase letters, digits and single hyphens between them")]
    Name(String),
    /// The name is another than that of the folder.
    #[error("`name: {name}` must be that of its folder, `{folder}`")]
    Folder {
        /// The name.
        name: String,
        /// The folder's.
        folder: String,
    },
    /// There are no instructions.
    #[error("it has no instructions after the front matter")]
    NoBody,
}

#[derive(Deserialize)]
struct Front {
    name: Option<String>,
    description: Option<String>,
    license: Option<String>,
    compatibility: Option<String>,
    #[serde(default)]
    metadata: Option<BTreeMap<String, Value>>,
    #[serde(default, rename = "allowed-tools")]
    allowed_tools: Option<Tools>,
    #[serde(flatten)]
    unknown: BTreeMap<String, Value>,
}

/// The convention has words with blanks in between; others write commas, or a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum Tools {
    Text(String),
    List(Vec<String>),
}

impl SkillFile {
    /// Reads the text of a file that lies in `folder`.
    pub fn parse(folder: &str, text: &str) -> Result<Self, SkillFault> {
        let (front, body) = front_matter(text).ok_or(SkillFault::NoFrontMatter)?;
        let front: Front =
            serde_saphyr::from_str(front).map_err(|e| SkillFault::FrontMatter(e.to_string()))?;
        let name = present("name", front.name)?;
        bounded("name", &name, NAME_CHARS_MAX)?;
        if !is_name(&name) {
            return Err(SkillFault::Name(name));
        }
        if name != folder {
            let folder = folder.to_owned();
            return Err(SkillFault::Folder { name, folder });
        }
        let description = present("description", front.description)?;
        bounded("description", &description, DESCRIPTION_CHARS_MAX)?;
        if let Some(text) = &front.compatibility {
            bounded("compatibility", text, COMPATIBILITY_CHARS_MAX)?;
        }
        if body.trim().is_empty() {
            return Err(SkillFault::NoBody);
        }
        Ok(Self {
            name,
            description,
            license: front.license,
            compatibility: front.compatibility,
            metadata: front.metadata.unwrap_or_default(),
            allowed_tools: front.allowed_tools.map(Tools::names).unwrap_or_default(),
            unknown: front.unknown.into_keys().collect(),
            body: body.trim().to_owned(),
        })
    }
}

impl Tools {
    fn names(self) -> Vec<String> {
        match self {
            Self::List(names) => names,
            Self::Text(text) => split(&text),
        }
    }
}

/// Words between blanks and commas; what stands in brackets, as in `Bash(git add:*)`,
/// belongs to the word before.
fn split(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut depth = 0_usize;
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match words.last_mut() {
            Some(word) if depth > 0 || !(c == ',' || c.is_whitespace()) => word.push(c),
            _ => words.push(String::new()),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn present(key: &'static str, value: Option<String>) -> Result<String, SkillFault> {
    let value = value.map(|value| value.trim().to_owned());
    value
        .filter(|value| !value.is_empty())
        .ok_or(SkillFault::Missing(key))
}

fn bounded(key: &'static str, text: &str, chars_max: usize) -> Result<(), SkillFault> {
    match text.chars().count() {
        chars if chars > chars_max => Err(SkillFault::Long {
            key,
            chars,
            chars_max,
        }),
        _ => Ok(()),
    }
}

fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let mut parts = name.split('-');
    parts.all(|part| !part.is_empty() && part.chars().all(is_plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(front: &str) -> Result<SkillFile, SkillFault> {
        SkillFile::parse("pdf", &format!("---\n{front}\n---\nDo this.\n"))
    }

    #[test]
    fn a_skill_of_the_convention_is_read_whole() {
        let skill = parse(
            "name: pdf\ndescription: Reads PDF files.\nlicense: MIT\n\
             compatibility: needs pdftotext\nmetadata: {author: somebody, version: 1.0}\n\
             allowed-tools: Read Bash(git add:*), Grep\nmodel: large",
        )
        .unwrap();
        assert_eq!(skill.name, "pdf");
        assert_eq!(skill.allowed_tools, ["Read", "Bash(git add:*)", "Grep"]);
        assert_eq!(skill.metadata["author"], "somebody");
        assert_eq!(skill.unknown, ["model"]);
        assert_eq!(skill.body, "Do this.");
        let listed = parse("name: pdf\ndescription: x\nallowed-tools: [Read, Grep]").unwrap();
        assert_eq!(listed.allowed_tools, ["Read", "Grep"]);
    }

    #[test]
    fn what_is_wrong_with_a_skill_has_a_name() {
        for (front, words) in [
            ("description: x", "`name` is missing"),
            ("name: pdf", "`description` is missing"),
            ("name: pdf\ndescription: ' '", "`description` is missing"),
            ("name: PDF\ndescription: x", "must be lowercase"),
            ("name: -pdf\ndescription: x", "single hyphens"),
            ("name: pd--f\ndescription: x", "single hyphens"),
            ("name: ../pdf\ndescription: x", "must be lowercase"),
            ("name: doc\ndescription: x", "that of its folder, `pdf`"),
            (
                "name: pdf\ndescription: a: b: c",
                "front matter cannot be read",
            ),
            ("name: pdf\ndescription: [x]", "front matter cannot be read"),
        ] {
            let fault = parse(front).unwrap_err().to_string();
            assert!(fault.contains(words), "{front}: {fault}");
        }
        let long = format!("name: pdf\ndescription: {}", "x".repeat(1025));
        let fault = parse(&long).unwrap_err().to_string();
        assert!(fault.contains("1025 characters, more than 1024"), "{fault}");
        assert_eq!(
            SkillFile::parse("x", "Do it."),
            Err(SkillFault::NoFrontMatter)
        );
        let empty = "---\nname: x\ndescription: y\n---\n \n";
        assert_eq!(SkillFile::parse("x", empty), Err(SkillFault::NoBody));
    }
}

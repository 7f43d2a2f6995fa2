//! Remembers, for each project, what was found and what the user chose.
//!
//! A finding rests on what the survey saw. It holds as long as the survey sees the
//! same; a choice holds until another is made.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use super::evidence::Survey;
use super::table::Category;
use super::{Choices, Discovery};

/// Where findings and choices are remembered.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// A folder with a file for each project; without one they last as long as this.
    folder: Option<PathBuf>,
    projects: Mutex<BTreeMap<PathBuf, Project>>,
}

/// What is remembered of a project.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Project {
    root: PathBuf,
    #[serde(default)]
    choices: BTreeMap<Category, Choices>,
    /// By category and path.
    #[serde(default)]
    found: BTreeMap<String, Remembered>,
}

/// A finding, and what it rests on.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Remembered {
    seen: String,
    discovery: Discovery,
}

impl Memory {
    /// Remembers in `folder`, beyond the end of this process.
    pub(crate) fn at(folder: PathBuf) -> Self {
        Self {
            folder: Some(folder),
            ..Self::default()
        }
    }

    /// What was found before, if the survey sees what it saw then.
    pub(crate) fn recall(
        &self,
        root: &Path,
        category: Category,
        path: &str,
        survey: &Survey,
    ) -> Option<Discovery> {
        let project = self.project(root);
        let remembered = project.found.get(&key(category, path))?;
        (remembered.seen == digest(survey)).then(|| remembered.discovery.clone())
    }

    /// What the user chose before.
    pub(crate) fn choices(&self, root: &Path, category: Category) -> Choices {
        let project = self.project(root);
        project.choices.get(&category).cloned().unwrap_or_default()
    }

    /// Remembers a finding.
    pub(crate) fn found(
        &self,
        root: &Path,
        category: Category,
        path: &str,
        survey: &Survey,
        discovery: &Discovery,
    ) -> io::Result<()> {
        self.change(root, |project| {
            let remembered = Remembered {
                seen: digest(survey),
                discovery: discovery.clone(),
            };
            project.found.insert(key(category, path), remembered);
        })
    }

    /// Remembers a choice, and forgets what was found without it.
    pub(crate) fn choose(
        &self,
        root: &Path,
        category: Category,
        languages: &[String],
        tool: &str,
    ) -> io::Result<()> {
        self.change(root, |project| {
            let choices = project.choices.entry(category).or_default();
            for language in languages {
                choices.insert(language.clone(), tool.to_owned());
            }
            let of_category = key(category, "");
            project
                .found
                .retain(|key, _| !key.starts_with(&of_category));
        })
    }

    fn project(&self, root: &Path) -> Project {
        let stored = self.file(root).and_then(|file| std::fs::read(file).ok());
        // What cannot be read is found out again.
        let stored = stored.and_then(|text| serde_json::from_slice::<Project>(&text).ok());
        let projects = self.projects.lock().expect("no panic under this lock");
        let known = || projects.get(root).cloned().unwrap_or_default();
        stored.filter(|p| p.root == root).unwrap_or_else(known)
    }

    fn change(&self, root: &Path, change: impl FnOnce(&mut Project)) -> io::Result<()> {
        let mut project = self.project(root);
        project.root = root.to_owned();
        change(&mut project);
        let text = serde_json::to_vec(&project).map_err(io::Error::other)?;
        let mut projects = self.projects.lock().expect("no panic under this lock");
        projects.insert(root.to_owned(), project);
        let Some(file) = self.file(root) else {
            return Ok(());
        };
        let mut folder = std::fs::DirBuilder::new();
        folder.recursive(true).mode(0o700);
        folder.create(file.parent().unwrap_or(Path::new(".")))?;
        let fresh = file.with_extension("new");
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        options.open(&fresh)?.write_all(&text)?;
        std::fs::rename(&fresh, &file)
    }

    fn file(&self, root: &Path) -> Option<PathBuf> {
        let name = blake3::hash(root.as_os_str().as_encoded_bytes()).to_hex();
        Some(self.folder.as_ref()?.join(format!("{}.json", &name[..32])))
    }
}

fn key(category: Category, path: &str) -> String {
    format!("{}:{path}", category.name())
}

/// What a finding rests on.
fn digest(survey: &Survey) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(include_bytes!("table.toml"));
    hasher.update(format!("{survey:?}").as_bytes());
    hasher.finalize().to_hex().to_string()
}

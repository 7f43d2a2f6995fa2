//! A crew: a folder with a `crew.toml` and `agents/*.md`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use selvedge_tool::{Pattern, Policy, Rules, Source};
use serde::Deserialize;

use crate::definition::{AgentDefinition, DefinitionError};

/// A team of agents, as its files describe it.
#[derive(Clone, Debug, PartialEq)]
pub struct Crew {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The agent that takes the request.
    pub entry: String,
    /// All agents, by name.
    pub agents: BTreeMap<String, AgentDefinition>,
    /// The commands that its work needs, declared beforehand.
    pub commands: Vec<Pattern>,
    /// Where its files are; none if it is built in.
    pub folder: Option<PathBuf>,
}

/// The content of a `crew.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CrewFile {
    name: String,
    #[serde(default)]
    description: String,
    entry: String,
    #[serde(default)]
    permissions: Permissions,
}

/// What a crew's work needs: shown before it begins, and granted with it.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Permissions {
    #[serde(default)]
    commands: Vec<Pattern>,
}

/// Why there is no such crew.
#[derive(Debug, thiserror::Error)]
pub enum CrewError {
    /// Nothing has that name.
    #[error("there is no crew `{name}`")]
    Unknown {
        /// The name.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// A file cannot be read.
    #[error("`{file}` cannot be read: {why}")]
    Unreadable {
        /// Which.
        file: String,
        /// Why not.
        why: String,
    },
    /// `crew.toml` is wrong.
    #[error("`{file}` does not define a crew: {why}")]
    Wrong {
        /// Which.
        file: String,
        /// Why not.
        why: String,
    },
    /// An agent's file is wrong.
    #[error(transparent)]
    Agent(#[from] DefinitionError),
}

/// A built-in crew: its `crew.toml`, and its agents' files by name.
type BuiltIn = (&'static str, &'static [(&'static str, &'static str)]);

const BUILT_IN: &[(&str, BuiltIn)] = &[(
    "solo",
    (
        include_str!("../crews/solo/crew.toml"),
        &[(
            "solo/agents/engineer.md",
            include_str!("../crews/solo/agents/engineer.md"),
        )],
    ),
)];

impl Crew {
    /// Finds a crew in `folders` (each may hold `NAME/crew.toml`), else among
    /// the built-in ones.
    pub fn find(name: &str, folders: &[PathBuf]) -> Result<Self, CrewError> {
        let folder = folders
            .iter()
            .map(|f| f.join(name))
            .find(|f| f.join("crew.toml").is_file());
        if let Some(folder) = folder {
            return Self::load(&folder);
        }
        match BUILT_IN.iter().find(|(n, _)| *n == name) {
            Some((_, (crew, agents))) => Self::parse("crew.toml", crew, agents),
            None => Err(CrewError::Unknown {
                name: name.to_owned(),
                known: Self::names(folders),
            }),
        }
    }

    /// What holds for all its agents, within `common`. The commands it declares are
    /// granted if somebody vouches for its files.
    pub fn policy(&self, common: &Policy, is_trusted: bool) -> Policy {
        let allow = match is_trusted {
            true => self.commands.clone(),
            false => Vec::new(),
        };
        let rules = Rules {
            allow,
            ..Rules::default()
        };
        common.clone().with(Source::Crew, rules)
    }

    /// The names of all crews.
    pub fn names(folders: &[PathBuf]) -> Vec<String> {
        let mut names: Vec<String> = BUILT_IN.iter().map(|(n, _)| (*n).to_owned()).collect();
        for folder in folders {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            names.extend(
                entries
                    .filter(|e| e.path().join("crew.toml").is_file())
                    .filter_map(|e| e.file_name().into_string().ok()),
            );
        }
        names.sort();
        names.dedup();
        names
    }

    fn load(folder: &Path) -> Result<Self, CrewError> {
        let crew_file = folder.join("crew.toml");
        let crew = read(&crew_file)?;
        let mut files = Vec::new();
        let agents = folder.join("agents");
        let entries = std::fs::read_dir(&agents).map_err(|e| unreadable(&agents, &e))?;
        for path in entries.flatten().map(|e| e.path()) {
            if path.extension().is_some_and(|e| e == "md") {
                files.push((path.display().to_string(), read(&path)?));
            }
        }
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(n, t)| (n.as_str(), t.as_str()))
            .collect();
        let crew = Self::parse(&crew_file.display().to_string(), &crew, &files)?;
        Ok(Self {
            folder: Some(folder.to_owned()),
            ..crew
        })
    }

    fn parse(file: &str, crew: &str, agents: &[(&str, &str)]) -> Result<Self, CrewError> {
        let wrong = |why: String| CrewError::Wrong {
            file: file.to_owned(),
            why,
        };
        let crew: CrewFile = toml::from_str(crew).map_err(|e| wrong(e.to_string()))?;
        let mut by_name = BTreeMap::new();
        for (file, text) in agents {
            let agent = AgentDefinition::parse(file, text)?;
            by_name.insert(agent.name.clone(), agent);
        }
        let missing = |name: &String| !by_name.contains_key(name);
        if missing(&crew.entry) {
            return Err(wrong(format!(
                "its entry `{}` is none of its agents",
                crew.entry
            )));
        }
        if let Some(unknown) = by_name
            .values()
            .flat_map(|a| &a.agents)
            .find(|n| missing(n))
        {
            return Err(wrong(format!(
                "an agent may hand work to `{unknown}`, which it does not have"
            )));
        }
        let CrewFile {
            name,
            description,
            entry,
            permissions,
        } = crew;
        Ok(Self {
            name,
            description,
            entry,
            agents: by_name,
            commands: permissions.commands,
            folder: None,
        })
    }
}

fn read(path: &Path) -> Result<String, CrewError> {
    std::fs::read_to_string(path).map_err(|e| unreadable(path, &e))
}

fn unreadable(path: &Path, error: &std::io::Error) -> CrewError {
    CrewError::Unreadable {
        file: path.display().to_string(),
        why: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_crew_loads() {
        for name in Crew::names(&[]) {
            let crew = Crew::find(&name, &[]).unwrap();
            assert_eq!(crew.name, name);
            assert!(crew.agents.contains_key(&crew.entry));
        }
    }

    #[test]
    fn an_unknown_crew_is_refused_with_the_known_ones() {
        let error = Crew::find("sola", &[]).unwrap_err();
        assert!(matches!(error, CrewError::Unknown { known, .. } if known == ["solo"]));
    }

    #[test]
    fn a_crew_needs_its_entry_and_its_helpers() {
        let agent = "---\nname: a\ndescription: b\nagents: [c]\n---\nhello\n";
        let no_entry = Crew::parse("crew.toml", "name = 'x'\nentry = 'z'", &[("a.md", agent)]);
        assert!(no_entry.unwrap_err().to_string().contains("`z`"));
        let no_helper = Crew::parse("crew.toml", "name = 'x'\nentry = 'a'", &[("a.md", agent)]);
        assert!(no_helper.unwrap_err().to_string().contains("`c`"));
    }
}

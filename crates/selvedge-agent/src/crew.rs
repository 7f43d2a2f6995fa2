//! A crew: a folder with a `crew.toml` and `agents/*.md`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use selvedge_tool::{Pattern, Policy, Rules, Source};
use serde::Deserialize;
use serde_json::Value;

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
    /// How it works together with people.
    pub ways: Ways,
    /// Where its files are; none if it is built in.
    pub folder: Option<PathBuf>,
}

/// How a crew works together with people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ways {
    /// Whether people are asked. If not, what would have to be approved is refused.
    /// Default: true.
    pub asks: bool,
    /// Whether it works on a copy of the user's files, merged in the end. Default: false.
    pub isolated: bool,
    /// Whether what its agents say and hear is kept in a folder, too. Default: false.
    pub record: bool,
}

impl Default for Ways {
    fn default() -> Self {
        Self {
            asks: true,
            isolated: false,
            record: false,
        }
    }
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
    #[serde(default)]
    ways: Ways,
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

/// A crew that comes with the program.
#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    /// Its name.
    pub name: &'static str,
    /// Its `crew.toml`.
    pub crew: &'static str,
    /// Its agents' files, by name.
    pub agents: &'static [(&'static str, &'static str)],
    /// The schemas that its agents' files name.
    pub schemas: fn() -> Vec<(&'static str, Value)>,
}

const SOLO: BuiltIn = BuiltIn {
    name: "solo",
    crew: include_str!("../crews/solo/crew.toml"),
    agents: &[(
        "solo/agents/engineer.md",
        include_str!("../crews/solo/agents/engineer.md"),
    )],
    schemas: Vec::new,
};

/// The crews that come with the program.
#[derive(Clone, Debug)]
pub struct Crews(Vec<BuiltIn>);

impl Default for Crews {
    fn default() -> Self {
        Self(vec![SOLO])
    }
}

impl Crews {
    /// The same and one more.
    pub fn with(mut self, crew: BuiltIn) -> Self {
        self.0.push(crew);
        self
    }

    /// Finds a crew in `folders` (each may hold `NAME/crew.toml`), else among
    /// the built-in ones. One in the place of a built-in one may use the latter's schemas.
    pub fn find(&self, name: &str, folders: &[PathBuf]) -> Result<Crew, CrewError> {
        let folder = folders
            .iter()
            .map(|f| f.join(name))
            .find(|f| f.join("crew.toml").is_file());
        let built_in = self.0.iter().find(|built_in| built_in.name == name);
        // They are made from types, so there is no file of them that somebody could copy.
        let schemas: Schemas = built_in
            .map_or_else(Vec::new, |built_in| (built_in.schemas)())
            .into_iter()
            .map(|(name, schema)| (name.to_owned(), schema))
            .collect();
        if let Some(folder) = folder {
            return Crew::load(&folder, schemas);
        }
        match built_in {
            Some(built_in) => Crew::parse("crew.toml", built_in.crew, built_in.agents, &schemas),
            None => Err(CrewError::Unknown {
                name: name.to_owned(),
                known: self.names(folders),
            }),
        }
    }

    /// The names of all crews.
    pub fn names(&self, folders: &[PathBuf]) -> Vec<String> {
        let mut names: Vec<String> = self.0.iter().map(|crew| crew.name.to_owned()).collect();
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
}

/// Schemas by name.
type Schemas = BTreeMap<String, Value>;

impl Crew {
    /// Finds a crew in `folders` (each may hold `NAME/crew.toml`), else the one that
    /// comes with this crate.
    pub fn find(name: &str, folders: &[PathBuf]) -> Result<Self, CrewError> {
        Crews::default().find(name, folders)
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

    /// Reads a crew from its folder. Its own schemas go before those it is `lent`.
    fn load(folder: &Path, lent: Schemas) -> Result<Self, CrewError> {
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
        let mut schemas = lent;
        schemas.extend(schemas_in(&folder.join("schemas"))?);
        let crew = Self::parse(&crew_file.display().to_string(), &crew, &files, &schemas)?;
        Ok(Self {
            folder: Some(folder.to_owned()),
            ..crew
        })
    }

    fn parse(
        file: &str,
        crew: &str,
        agents: &[(&str, &str)],
        schemas: &Schemas,
    ) -> Result<Self, CrewError> {
        let wrong = |why: String| CrewError::Wrong {
            file: file.to_owned(),
            why,
        };
        let crew: CrewFile = toml::from_str(crew).map_err(|e| wrong(e.to_string()))?;
        let mut by_name = BTreeMap::new();
        for (file, text) in agents {
            let mut agent = AgentDefinition::parse(file, text)?;
            let AgentDefinition {
                input_schema,
                output_schema,
                ends_schema,
                ..
            } = &mut agent;
            for schema in [input_schema, output_schema, ends_schema] {
                resolve(file, schema, schemas)?;
            }
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
            ways,
        } = crew;
        Ok(Self {
            name,
            description,
            entry,
            agents: by_name,
            commands: permissions.commands,
            ways,
            folder: None,
        })
    }
}

/// Puts the schema in the place of its name.
fn resolve(
    file: &str,
    schema: &mut Option<Value>,
    schemas: &Schemas,
) -> Result<(), DefinitionError> {
    let wrong = |why: String| DefinitionError {
        file: file.to_owned(),
        why,
    };
    if let Some(Value::String(name)) = schema {
        let found = schemas.get(name).cloned();
        let known: Vec<&str> = schemas.keys().map(String::as_str).collect();
        *schema = Some(found.ok_or_else(|| {
            let known = known.join(", ");
            wrong(format!("its crew has no schema `{name}`; it has: {known}"))
        })?);
    }
    match schema.as_ref().map(jsonschema::validator_for) {
        Some(Err(error)) => Err(wrong(format!("a schema is not valid: {error}"))),
        _ => Ok(()),
    }
}

/// The schemas of a crew of the user's own: `NAME.json` each.
fn schemas_in(folder: &Path) -> Result<Schemas, CrewError> {
    let mut schemas = Schemas::new();
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for path in entries.map(|e| e.path()) {
        let is_schema = path.extension().is_some_and(|e| e == "json");
        let (true, Some(name)) = (is_schema, path.file_stem()) else {
            continue;
        };
        let schema = serde_json::from_str(&read(&path)?).map_err(|e| CrewError::Unreadable {
            file: path.display().to_string(),
            why: e.to_string(),
        })?;
        schemas.insert(name.to_string_lossy().into_owned(), schema);
    }
    Ok(schemas)
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
        for name in Crews::default().names(&[]) {
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
        let parse = |crew: &str, agent: &str| {
            let error = Crew::parse("crew.toml", crew, &[("a.md", agent)], &Schemas::new());
            error.unwrap_err().to_string()
        };
        assert!(parse("name = 'x'\nentry = 'z'", agent).contains("`z`"));
        assert!(parse("name = 'x'\nentry = 'a'", agent).contains("`c`"));
        let agent = agent.replace("agents: [c]", "input_schema: Request");
        assert!(parse("name = 'x'\nentry = 'a'", &agent).contains("`Request`"));
    }
}

//! What is known of tools and languages, from `table.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::policy::glob;

/// What a tool is for.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum Category {
    Linter,
    Formatter,
    TypeChecker,
    TestFramework,
    Lsp,
}

/// The table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    pub(super) languages: BTreeMap<String, Language>,
    pub(super) files: Files,
    tools: BTreeMap<Category, Vec<Tool>>,
}

/// How a language shows itself.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Language {
    pub(super) manifests: Vec<String>,
    pub(super) ends: Vec<String>,
}

/// The files that are read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Files {
    pub(super) manifests: Vec<String>,
    pub(super) scripts: Vec<String>,
    pub(super) editors: Vec<String>,
}

/// A tool.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) r#for: Vec<String>,
    pub(super) run: String,
    program: Option<String>,
    pub(super) install: Option<String>,
    #[serde(default)]
    pub(super) configs: Vec<String>,
    #[serde(default)]
    sections: Vec<String>,
    #[serde(default)]
    pub(super) packages: Vec<String>,
    #[serde(default)]
    pub(super) official: Vec<String>,
    #[serde(default)]
    says: Vec<String>,
    #[serde(default)]
    pub(super) ide: Vec<String>,
    #[serde(default)]
    pub(super) beats: Vec<String>,
    #[serde(default)]
    pub(super) first: bool,
}

pub(super) static TABLE: LazyLock<Table> = LazyLock::new(|| {
    toml::from_str(include_str!("table.toml")).expect("the table is checked by its tests")
});

impl Category {
    /// Its name, as it is written.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Linter => "linter",
            Self::Formatter => "formatter",
            Self::TypeChecker => "type_checker",
            Self::TestFramework => "test_framework",
            Self::Lsp => "lsp",
        }
    }
}

impl Table {
    /// The tools of a category.
    pub(super) fn tools(&self, category: Category) -> &[Tool] {
        self.tools.get(&category).map_or(&[], Vec::as_slice)
    }

    /// Every program that a tool needs.
    pub(super) fn programs(&self) -> impl Iterator<Item = &str> {
        self.tools.values().flatten().map(Tool::program)
    }

    /// Whether names of files in some language end so.
    pub(super) fn is_of_a_language(&self, end: &str) -> bool {
        let mut ends = self.languages.values().flat_map(|l| &l.ends);
        ends.any(|known| known == end)
    }

    /// Whether a file's name or content can say anything.
    pub(super) fn is_telling(&self, name: &str) -> bool {
        let of_language = |language: &Language| matches(&language.manifests, name);
        let of_tool = |tool: &Tool| {
            matches(&tool.configs, name)
                || matches(&tool.official, name)
                || tool.sections().any(|(file, _)| file == name)
        };
        self.is_read(name)
            || self.languages.values().any(of_language)
            || self.tools.values().flatten().any(of_tool)
    }

    /// Whether a file's content is looked at.
    pub(super) fn is_read(&self, name: &str) -> bool {
        let Files {
            manifests,
            scripts,
            editors,
        } = &self.files;
        let has_section = |tool: &Tool| tool.sections().any(|(file, _)| file == name);
        [manifests, scripts, editors]
            .iter()
            .any(|patterns| matches(patterns, name))
            || self.tools.values().flatten().any(has_section)
    }
}

/// What a command line is for, if it begins as somebody calls a tool of the table. The
/// longest beginning decides: `cargo check` is no test, and `cargo nextest` is one.
pub(crate) fn calls(words: &[&str]) -> Option<Category> {
    let length = |said: &str| {
        let said: Vec<&str> = said.split(' ').collect();
        words.starts_with(&said).then_some(said.len())
    };
    let tools = TABLE.tools.iter().flat_map(|(category, tools)| {
        let tools = tools.iter();
        tools.map(move |tool| (*category, tool))
    });
    let known = tools.filter_map(|(category, tool)| {
        let said = tool.says().chain([tool.run.as_str(), tool.program()]);
        // A program of many uses says nothing by its name alone.
        let is_telling = |said: &&str| said.contains(' ') || tool.name == *said;
        let longest = said.filter(is_telling).filter_map(length).max()?;
        Some((longest, category))
    });
    known
        .max_by_key(|(length, _)| *length)
        .map(|(_, category)| category)
}

impl Tool {
    /// The program that must be there.
    pub(super) fn program(&self) -> &str {
        match &self.program {
            Some(program) => program,
            None if self.run.starts_with("npx ") => &self.name,
            None => self.run.split(' ').next().unwrap_or(&self.name),
        }
    }

    /// How scripts call it.
    pub(super) fn says(&self) -> impl Iterator<Item = &str> {
        let own = Some(self.name.as_str()).filter(|_| self.says.is_empty());
        self.says.iter().map(String::as_str).chain(own)
    }

    /// Files, and text within them that says that it is used.
    pub(super) fn sections(&self) -> impl Iterator<Item = (&str, &str)> {
        self.sections.iter().filter_map(|s| s.split_once(": "))
    }

    pub(super) fn is_for(&self, language: &str) -> bool {
        self.r#for.iter().any(|name| name == language)
    }
}

/// Whether a name is one of the patterns'.
pub(super) fn matches(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| glob(pattern, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole() {
        assert_eq!(TABLE.languages.len(), 22);
        for (category, tools) in &TABLE.tools {
            for tool in tools {
                let name = format!("{category:?} {}", tool.name);
                assert!(!tool.r#for.is_empty(), "{name}");
                for language in &tool.r#for {
                    assert!(TABLE.languages.contains_key(language), "{name}: {language}");
                }
                for beaten in &tool.beats {
                    let is_known = tools.iter().any(|other| other.name == *beaten);
                    assert!(is_known, "{name} beats {beaten}");
                }
                assert!(tool.sections.len() == tool.sections().count(), "{name}");
                assert!(!tool.program().is_empty(), "{name}");
            }
            for language in TABLE.languages.keys() {
                let firsts = tools.iter().filter(|t| t.first && t.is_for(language));
                let firsts: Vec<&str> = firsts.map(|tool| tool.name.as_str()).collect();
                assert!(firsts.len() <= 2, "{category:?} for {language}: {firsts:?}");
            }
        }
    }

    #[test]
    fn the_tools_that_the_field_uses_are_recommended() {
        use Category::*;
        for (language, category, expected) in [
            ("go", Linter, "golangci-lint"),
            ("python", Linter, "ruff"),
            ("python", Formatter, "ruff"),
            ("python", TestFramework, "pytest"),
            ("typescript", Linter, "oxlint"),
            ("typescript", Formatter, "prettier"),
            ("typescript", TypeChecker, "tsc"),
            ("typescript", TestFramework, "vitest"),
            ("rust", Linter, "clippy"),
            ("rust", Formatter, "rustfmt"),
            ("rust", Lsp, "rust-analyzer"),
        ] {
            let mut tools = TABLE.tools(category).iter();
            let first = tools.find(|tool| tool.first && tool.is_for(language));
            assert_eq!(first.unwrap().name, expected, "{language}");
        }
    }
}

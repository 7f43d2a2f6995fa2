//! What a project says of a tool, read from the names and texts of its files.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::table::{TABLE, Tool, matches};

/// A project as it is looked at: nothing here touches a disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Survey {
    /// The folders that speak for a path, the nearest first.
    pub(crate) folders: Vec<Folder>,
    /// The ends of file names below it.
    pub(crate) ends: BTreeSet<String>,
    /// Programs that are there.
    pub(crate) installed: BTreeSet<String>,
}

/// The telling files of a folder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Folder {
    /// Where it is, from the workspace root.
    pub(crate) path: String,
    /// By name, with their text where that is looked at.
    pub(crate) files: BTreeMap<String, Option<String>>,
}

/// What kind of thing says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Source {
    ConfigFile,
    PackageManifest,
    Script,
    EditorSettings,
    UserChoice,
}

/// One thing that speaks for a tool.
#[derive(Clone, Debug)]
pub(super) struct Evidence {
    pub(super) source: Source,
    /// From 0 to 1; further away counts a little less.
    pub(super) score: f64,
    /// The file.
    pub(super) path: String,
    pub(super) version: Option<String>,
    /// How the project calls it.
    pub(super) command: Option<String>,
}

const CONFIG: f64 = 0.95;
const OFFICIAL: f64 = 0.9;
const SCRIPT: f64 = 0.85;
const PACKAGE: f64 = 0.7;
const EDITOR: f64 = 0.6;
const STEP: f64 = 0.01;

impl Survey {
    /// The languages there are: of its files, or of its manifests where it has none.
    pub(super) fn languages(&self) -> BTreeSet<String> {
        let has = |patterns: &[String]| {
            let mut names = self.folders.iter().flat_map(|f| f.files.keys());
            names.any(|name| matches(patterns, name))
        };
        let by_files = TABLE
            .languages
            .iter()
            .filter(|(_, l)| l.ends.iter().any(|end| self.ends.contains(end)));
        let languages: BTreeSet<String> = by_files.map(|(name, _)| name.clone()).collect();
        if !languages.is_empty() {
            return languages;
        }
        let by_manifests = TABLE.languages.iter().filter(|(_, l)| has(&l.manifests));
        by_manifests.map(|(name, _)| name.clone()).collect()
    }

    /// Everything that speaks for a tool.
    pub(super) fn evidence(&self, tool: &Tool) -> Vec<Evidence> {
        let mut all = Vec::new();
        for (distance, folder) in self.folders.iter().enumerate() {
            let less = STEP * distance as f64;
            for (name, text) in &folder.files {
                let path = match folder.path.as_str() {
                    "" => name.clone(),
                    folder => format!("{folder}/{name}"),
                };
                let text = text.as_deref().unwrap_or_default();
                all.extend(in_file(tool, name, text).map(|mut evidence| {
                    evidence.score -= less;
                    evidence.path = path.clone();
                    evidence
                }));
            }
        }
        all
    }
}

fn in_file<'a>(tool: &'a Tool, name: &'a str, text: &'a str) -> impl Iterator<Item = Evidence> {
    let files = &TABLE.files;
    let has_section = |(file, says): (&str, &str)| file == name && says_so(name, text, says);
    let is_config = matches(&tool.configs, name) || tool.sections().any(has_section);
    let package = || match matches(&files.manifests, name) {
        true => dependency(tool, name, text),
        false => None,
    };
    let in_editor = || {
        let is_named = tool.ide.iter().any(|id| text.contains(id.as_str()));
        is_named && matches(&files.editors, name)
    };
    let evidence = |source, score| Evidence {
        source,
        score,
        path: String::new(),
        version: None,
        command: None,
    };
    let found = [
        is_config.then(|| evidence(Source::ConfigFile, CONFIG)),
        matches(&tool.official, name).then(|| evidence(Source::PackageManifest, OFFICIAL)),
        call(tool, name, text).map(|command| Evidence {
            command,
            ..evidence(Source::Script, SCRIPT)
        }),
        package().map(|version| Evidence {
            version,
            ..evidence(Source::PackageManifest, PACKAGE)
        }),
        in_editor().then(|| evidence(Source::EditorSettings, EDITOR)),
    ];
    found.into_iter().flatten()
}

/// Whether a file has a section.
fn says_so(name: &str, text: &str, section: &str) -> bool {
    if name != "package.json" {
        return text.contains(section);
    }
    let manifest: Option<Value> = serde_json::from_str(text).ok();
    manifest.is_some_and(|manifest| manifest.get(section).is_some())
}

/// Whether a manifest lists a tool among its dependencies, and in which version.
fn dependency(tool: &Tool, name: &str, text: &str) -> Option<Option<String>> {
    if name == "package.json" {
        let manifest: Value = serde_json::from_str(text).ok()?;
        let kinds = ["devDependencies", "dependencies", "peerDependencies"];
        let mut listed = kinds
            .iter()
            .flat_map(|kind| tool.packages.iter().map(move |p| (kind, p)));
        return listed.find_map(|(kind, package)| {
            let version = manifest.get(kind)?.get(package)?;
            Some(version.as_str().map(str::to_owned))
        });
    }
    let at = tool.packages.iter().find_map(|p| after(text, p))?;
    let version: String = at
        .trim_start_matches([' ', '=', '"', '\''])
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || "<>=~^!.*-".contains(*c))
        .collect();
    let has_digit = version.contains(|c: char| c.is_ascii_digit());
    Some(Some(version).filter(|_| has_digit))
}

/// Whether a script calls a tool, and with which command where that is plain.
fn call(tool: &Tool, name: &str, text: &str) -> Option<Option<String>> {
    if name == "package.json" {
        let manifest: Value = serde_json::from_str(text).ok()?;
        let scripts = manifest.get("scripts")?.as_object()?;
        let mut calls = scripts.iter().filter(|(_, line)| {
            let line = line.as_str().unwrap_or_default();
            tool.says().any(|says| after(line, says).is_some())
        });
        return calls
            .next()
            .map(|(name, _)| Some(format!("npm run {name}")));
    }
    if !matches(&TABLE.files.scripts, name) {
        return None;
    }
    let is_call = |line: &&str| {
        let is_comment = line.trim_start().starts_with('#');
        !is_comment && tool.says().any(|says| after(line, says).is_some())
    };
    text.lines().find(is_call).map(|line| plain(tool, line))
}

/// The command of a line, if the line is nothing but one.
fn plain(tool: &Tool, line: &str) -> Option<String> {
    let line = line.trim().trim_start_matches("- ").trim_start_matches('@');
    let line = line.strip_prefix("run:").unwrap_or(line).trim();
    let line = line.trim_matches(['"', '\'']);
    let runners = [
        "",
        "npx ",
        "pnpm ",
        "yarn ",
        "uv run ",
        "poetry run ",
        "bundle exec ",
    ];
    let is_command = tool.says().any(|says| {
        let mut starts = runners.iter().map(|runner| format!("{runner}{says}"));
        starts.any(|start| line.starts_with(&start))
    });
    let is_plain = !line.contains(['$', '`', '|', ';', '&', '>', '<', '{']);
    (is_command && is_plain).then(|| line.to_owned())
}

/// What follows a word in a text, if the word is there by itself.
fn after<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let is_part = |c: char| c.is_alphanumeric() || "_-/@.".contains(c);
    text.match_indices(word).find_map(|(at, _)| {
        let (before, rest) = (&text[..at], &text[at + word.len()..]);
        let is_alone = !before.ends_with(is_part) && !rest.starts_with(is_part);
        is_alone.then_some(rest)
    })
}

//! Finds out which linter, formatter, type checker, test runner or language server a
//! project uses.
//!
//! What the project itself says comes first: configuration files, manifests, CI files
//! and scripts. What is installed decides little, and what nobody says is asked of the
//! user, once. The decision is pure; `scout` looks at the disk for it, and `memory`
//! remembers what was found and chosen.

mod evidence;
mod memory;
mod scout;
mod table;

pub(crate) use evidence::Survey;
pub(crate) use memory::Memory;
pub(crate) use scout::scout;
pub(crate) use table::{Category, calls};

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use evidence::{Evidence, Source};
use table::{TABLE, Tool};

/// Evidence above this is used without a question.
const HIGH: f64 = 0.8;
const MEDIUM: f64 = 0.5;

/// What a person chose before, by language.
pub(crate) type Choices = BTreeMap<String, String>;

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Discovery {
    /// 1 for what the project says, 3 for what the user does or must.
    pub(crate) tier: u8,
    /// The tools to use.
    pub(crate) tools: Vec<Found>,
    /// Languages for which the user must choose.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) open: Vec<Open>,
}

/// A tool to use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Found {
    pub(crate) name: String,
    pub(crate) languages: Vec<String>,
    pub(crate) confidence: Confidence,
    pub(crate) source: Source,
    /// Where the project says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) config_path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    pub(crate) run_command: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) install_command: Option<String>,
    pub(crate) is_installed: bool,
    /// What else was found, and left for this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) alternatives: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) warning: Option<String>,
}

/// Languages for which the user must choose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Open {
    pub(crate) languages: Vec<String>,
    /// The tools there are, the recommended one first.
    pub(crate) options: Vec<String>,
    /// Why the project does not decide it.
    pub(crate) why: String,
}

/// How sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Confidence {
    High,
    Medium,
}

/// A tool, and what speaks for it.
struct Candidate<'a> {
    tool: &'a Tool,
    evidence: Vec<Evidence>,
}

/// Finds the tools of a category.
pub(crate) fn discover(survey: &Survey, category: Category, choices: &Choices) -> Discovery {
    let candidate = |tool| Candidate {
        tool,
        evidence: survey.evidence(tool),
    };
    let candidates: Vec<Candidate<'_>> = TABLE.tools(category).iter().map(candidate).collect();
    let mut discovery = Discovery {
        tier: 1,
        tools: Vec::new(),
        open: Vec::new(),
    };
    for language in languages(survey, &candidates) {
        let of_language = candidates.iter().filter(|c| c.tool.is_for(&language));
        let of_language: Vec<&Candidate<'_>> = of_language.collect();
        let choice = choices.get(&language);
        match decide(survey, &language, &of_language, choice) {
            Some(Ok(found)) => match discovery.tools.iter_mut().find(|t| t.is_like(&found)) {
                Some(same) => same.languages.extend(found.languages),
                None => discovery.tools.push(found),
            },
            Some(Err(open)) => match discovery.open.iter_mut().find(|o| o.is_like(&open)) {
                Some(same) => same.languages.extend(open.languages),
                None => discovery.open.push(open),
            },
            None => {}
        }
    }
    let is_users = |found: &Found| found.source == Source::UserChoice;
    if !discovery.open.is_empty() || discovery.tools.iter().any(is_users) {
        discovery.tier = 3;
    }
    discovery
}

/// The languages for which a choice of the user would count.
pub(crate) fn languages_of(category: Category, tool: &str) -> Option<Vec<String>> {
    let tool = TABLE.tools(category).iter().find(|t| t.name == tool)?;
    Some(tool.r#for.clone())
}

/// The languages of the project, and those that only a tool's configuration shows.
fn languages(survey: &Survey, candidates: &[Candidate<'_>]) -> BTreeSet<String> {
    let mut languages = survey.languages();
    for Candidate { tool, evidence } in candidates {
        let is_sure = evidence.iter().any(|e| e.score >= HIGH);
        let is_seen = tool
            .r#for
            .iter()
            .any(|language| languages.contains(language));
        if is_sure && !is_seen {
            languages.extend(tool.r#for.first().cloned());
        }
    }
    languages
}

/// The tool for a language, or the question to ask; nothing if there are no tools.
fn decide(
    survey: &Survey,
    language: &str,
    candidates: &[&Candidate<'_>],
    choice: Option<&String>,
) -> Option<Result<Found, Open>> {
    if let Some(chosen) = choice.and_then(|c| candidates.iter().find(|k| k.tool.name == *c)) {
        let mut found = chosen.found(survey, language);
        found.source = Source::UserChoice;
        found.confidence = Confidence::High;
        return Some(Ok(found));
    }
    let beaten: BTreeSet<&str> = candidates
        .iter()
        .filter(|c| c.score() >= MEDIUM)
        .flat_map(|c| c.tool.beats.iter().map(String::as_str))
        .collect();
    let mut seen: Vec<_> = candidates
        .iter()
        .filter(|c| c.score() >= MEDIUM && !beaten.contains(c.tool.name.as_str()))
        .collect();
    seen.sort_by(|left, right| right.score().total_cmp(&left.score()));
    let open = |why: &str| {
        let options = options(candidates, &seen);
        let open = Open {
            languages: vec![language.to_owned()],
            options,
            why: why.to_owned(),
        };
        (!open.options.is_empty()).then_some(Err(open))
    };
    match seen.as_slice() {
        [] => open("nothing in the project says which"),
        [first, second, ..] if first.score() == second.score() => {
            open("the project speaks for more than one")
        }
        [first, others @ ..] => {
            let mut found = first.found(survey, language);
            found.alternatives = others.iter().map(|c| c.tool.name.clone()).collect();
            found.alternatives.extend(
                candidates
                    .iter()
                    .filter(|c| c.score() >= MEDIUM && beaten.contains(c.tool.name.as_str()))
                    .map(|c| c.tool.name.clone()),
            );
            match (found.confidence, found.is_installed) {
                (Confidence::Medium, false) => open("it is only hinted at, and is not installed"),
                (Confidence::Medium, true) => {
                    found.warning = Some("it is inferred, not configured".into());
                    Some(Ok(found))
                }
                (Confidence::High, _) => Some(Ok(found)),
            }
        }
    }
}

/// The tools to choose from: those the project hints at, the recommended, the others.
fn options(candidates: &[&Candidate<'_>], seen: &[&&Candidate<'_>]) -> Vec<String> {
    let hinted = seen.iter().map(|c| &c.tool.name);
    let first = candidates.iter().filter(|c| c.tool.first);
    let all = hinted
        .chain(first.map(|c| &c.tool.name))
        .chain(candidates.iter().map(|c| &c.tool.name));
    let mut options = Vec::new();
    for name in all {
        if !options.contains(name) {
            options.push(name.clone());
        }
    }
    options
}

impl Found {
    /// Whether it is the same, for another language.
    fn is_like(&self, other: &Self) -> bool {
        let languages = self.languages.clone();
        *self
            == Self {
                languages,
                ..other.clone()
            }
    }
}

impl Open {
    /// Whether it is the same question, for another language.
    fn is_like(&self, other: &Self) -> bool {
        (&self.options, &self.why) == (&other.options, &other.why)
    }
}

impl Candidate<'_> {
    fn score(&self) -> f64 {
        self.evidence.iter().map(|e| e.score).fold(0.0, f64::max)
    }

    fn best(&self) -> Option<&Evidence> {
        let by_score = |left: &&Evidence, right: &&Evidence| left.score.total_cmp(&right.score);
        self.evidence.iter().max_by(by_score)
    }

    fn found(&self, survey: &Survey, language: &str) -> Found {
        let tool = self.tool;
        // The project's own way to call it comes first.
        let own = self.evidence.iter().find_map(|e| e.command.clone());
        Found {
            name: tool.name.clone(),
            languages: vec![language.to_owned()],
            confidence: match self.score() >= HIGH {
                true => Confidence::High,
                false => Confidence::Medium,
            },
            source: self.best().map_or(Source::UserChoice, |best| best.source),
            config_path: self.best().map(|best| best.path.clone()),
            version: self.evidence.iter().find_map(|e| e.version.clone()),
            run_command: own.unwrap_or_else(|| tool.run.clone()),
            install_command: tool.install.clone(),
            is_installed: survey.installed.contains(tool.program()),
            alternatives: Vec::new(),
            warning: None,
        }
    }
}

#[cfg(test)]
mod tests;

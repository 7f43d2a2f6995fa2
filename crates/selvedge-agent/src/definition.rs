//! An agent is data: a Markdown file with front matter and a prompt.

use selvedge_model::Usd;
use selvedge_tool::{Craft, Policy, Role, Rules, Source, front_matter};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::claims::Claims;

/// What a file says of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentDefinition {
    /// Its name, unique in its crew.
    pub name: String,
    /// What it is for, in a sentence; other agents see it when they delegate.
    pub description: String,
    /// A tier (`low`, `medium`, `high`), an alias, or `provider/model`.
    #[serde(default = "medium")]
    pub model: String,
    /// Models to ask instead, in this order, when its own cannot answer. Those
    /// whose provider is not available are passed over.
    #[serde(default)]
    pub fallback: Vec<String>,
    /// How soon its model calls have their turn when there are more than slots:
    /// 0 to 100, more is sooner. Default: 60.
    #[serde(default = "crate::spec::usual_priority")]
    pub priority: u8,
    /// The tools it may use, by name or by a pattern such as `mcp__*`.
    /// What a pattern brings is on offer, and what is named is at hand.
    #[serde(default)]
    pub tools: Vec<String>,
    /// More tools, which it is told of in a line each and loads when it needs them.
    #[serde(default)]
    pub more_tools: Vec<String>,
    /// The agents of its crew it may hand work to.
    #[serde(default)]
    pub agents: Vec<String>,
    /// What it is trusted with. Default: `worker`, or `supervisor` if it hands on work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Its column in the table of who may do what with git. Default: its name, if
    /// that is one; else no git at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<Craft>,
    /// What is allowed, asked about and denied to it, beside the rules for all.
    #[serde(default, skip_serializing_if = "Rules::is_empty")]
    pub policy: Rules,
    /// Its bounds.
    #[serde(default)]
    pub limits: Limits,
    /// The JSON Schema its result must fit, or the name of one of its crew's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// The JSON Schema that a request to it must fit, or the name of one of its crew's.
    /// It is then called by a tool of its own, with these arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// The tool by which it is called, if it has a schema for that. Default: its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called_by: Option<String>,
    /// The tool that alone ends its work, called with a summary and an outcome. Without
    /// one, an answer without calls is its last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_by: Option<String>,
    /// The JSON Schema of that tool, or the name of one of its crew's: an object with a
    /// `summary`, and an `outcome` that is `done` or `failed`. Default: these two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_schema: Option<Value>,
    /// The fields of its result that are compared with what it really did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claims: Option<Claims>,
    /// Whether it has failed when the last work that it handed on has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub answerable: bool,
    /// Whether no other helper of its caller is at work meanwhile.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
    /// The prompt template, after the front matter.
    #[serde(skip)]
    pub prompt: String,
}

fn medium() -> String {
    "medium".into()
}

/// The bounds of an agent. Recorded with every run, so that what a run decides
/// does not change when a default does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Model calls in one run. Default: 200.
    pub model_calls_max: u32,
    /// Tokens of one answer. Default: 8192.
    pub output_tokens_max: u32,
    /// Above this many tokens, older conversation is summarised. Default: 80,000.
    pub context_tokens_max: u64,
    /// Tool results that are always sent in full. Default: 5.
    pub results_kept: usize,
    /// Seconds a tool may run. Default: 120.
    pub tool_seconds_max: u64,
    /// Failures in a row of what changes files or runs commands, after which files are
    /// put back to what they were and the task is over; 0 for never. Default: 3.
    pub strikes_max: u32,
    /// How often a tool is tried that fails for a reason that may pass by itself, before
    /// the run stands still until somebody lets it go on; 0 leaves it to the agent.
    /// Default: 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub tool_attempts_max: u32,
    /// US dollars that one run may cost, its helpers included. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd: Option<Usd>,
    /// Tokens that one run may use, its helpers included. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// US dollars that the agent itself may cost in all its runs of one session.
    /// Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd_in_session: Option<Usd>,
    /// Tokens that the agent itself may use in all its runs of one session. Default:
    /// no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_in_session: Option<u64>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            model_calls_max: 200,
            output_tokens_max: 8192,
            context_tokens_max: 80_000,
            results_kept: 5,
            tool_seconds_max: 120,
            strikes_max: 3,
            tool_attempts_max: 0,
            usd: None,
            tokens: None,
            usd_in_session: None,
            tokens_in_session: None,
        }
    }
}

/// Why a file is not an agent.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{file}` does not define an agent: {why}")]
pub struct DefinitionError {
    /// Which file.
    pub file: String,
    /// What is wrong with it.
    pub why: String,
}

impl AgentDefinition {
    /// What it may do, within `common`, which holds for its whole run. What its own
    /// file allows counts only if somebody vouches for the file.
    pub fn policy(&self, common: &Policy, is_trusted: bool) -> Policy {
        let role = match self.agents.is_empty() {
            true => Role::Worker,
            false => Role::Supervisor,
        };
        let craft = self.git.or_else(|| Craft::named(&self.name));
        let mut rules = self.policy.clone();
        if !is_trusted {
            rules.allow.clear();
        }
        Policy {
            role: self.role.unwrap_or(role),
            crafts: craft.into_iter().collect(),
            ..common.clone()
        }
        .with(Source::Agent, rules)
    }

    /// Reads the text of a file. `file` is for messages.
    pub fn parse(file: &str, text: &str) -> Result<Self, DefinitionError> {
        let wrong = |why: String| DefinitionError {
            file: file.to_owned(),
            why,
        };
        let (front, prompt) = front_matter(text).ok_or_else(|| {
            wrong("it must begin with front matter between two lines of `---`".into())
        })?;
        let mut definition: Self =
            serde_saphyr::from_str(front).map_err(|e| wrong(e.to_string()))?;
        if !is_name(&definition.name) {
            return Err(wrong(
                "`name` is 1 to 64 letters, digits, `-` or `_`: folders are called by it".into(),
            ));
        }
        if definition.priority > 100 {
            return Err(wrong("`priority` is a number from 0 to 100".into()));
        }
        if prompt.trim().is_empty() {
            return Err(wrong("it has no prompt after the front matter".into()));
        }
        definition.prompt = prompt.trim().to_owned();
        Ok(definition)
    }
}

/// Whether a word can stand for an agent wherever agents are told apart, in names of
/// folders too.
fn is_name(word: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    (1..=64).contains(&word.len()) && word.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "---\nname: engineer\ndescription: Writes code.\ntools: [read_file]\nlimits:\n  model_calls_max: 9\n---\nYou are an engineer.\n";

    #[test]
    fn a_file_is_front_matter_and_a_prompt() {
        let agent = AgentDefinition::parse("engineer.md", FILE).unwrap();
        assert_eq!(agent.name, "engineer");
        assert_eq!(agent.model, "medium");
        assert_eq!(agent.limits.model_calls_max, 9);
        assert_eq!(agent.limits.results_kept, 5);
        assert_eq!(agent.prompt, "You are an engineer.");
    }

    #[test]
    fn a_name_cannot_be_a_path() {
        for name in ["/home", "..", "a/b", ".", "\"\"", "ä", "a b"] {
            let text = FILE.replace("name: engineer", &format!("name: {name}"));
            let error = AgentDefinition::parse("engineer.md", &text).unwrap_err();
            assert!(error.to_string().contains("`name` is"), "{name}: {error}");
        }
    }

    #[test]
    fn an_unknown_key_is_named() {
        let text = FILE.replace("tools:", "tolls:");
        let error = AgentDefinition::parse("engineer.md", &text).unwrap_err();
        assert!(error.to_string().contains("tolls"), "{error}");
        assert!(error.to_string().contains("engineer.md"), "{error}");
    }

    #[test]
    fn a_file_without_front_matter_or_prompt_is_refused() {
        for text in [
            "",
            "name: x",
            "---\nname: x",
            "---\nname: a\ndescription: b\n---\n \n",
        ] {
            assert!(AgentDefinition::parse("a.md", text).is_err(), "{text:?}");
        }
    }
}

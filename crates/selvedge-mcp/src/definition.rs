//! What a server says of a tool: what a person approves, and a model is told.
//!
//! A model believes what a description says, so a description is approved like a
//! command: by its digest. When it changes, it is another.

use std::collections::BTreeMap;

use rmcp::model::Tool;
use selvedge_tool::visible;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::entry::hash;

/// What a model is told of a tool, at most.
const DESCRIPTION_CHARS_MAX: usize = 4_000;
/// A schema longer than this is no description of arguments.
const SCHEMA_BYTES_MAX: usize = 64 * 1024;
const NAME_CHARS_MAX: usize = 128;

/// What a server says of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    /// Its name at the server.
    pub name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// JSON Schema of its arguments.
    pub schema: Value,
    /// What the server hints about it. Nobody has to believe that.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub annotations: Value,
}

/// What a server has besides tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Resources, which can be listed and read.
    #[serde(default)]
    pub resources: bool,
    /// Prompts, which can be listed and filled in.
    #[serde(default)]
    pub prompts: bool,
}

/// How definitions differ from those that were approved, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Those nobody has seen.
    pub new: Vec<String>,
    /// Those that say something else now.
    pub changed: Vec<String>,
    /// Those that are not there any more.
    pub gone: Vec<String>,
}

impl Definition {
    /// What a server says of a tool, if it can be used at all.
    pub(crate) fn of(tool: &Tool) -> Result<Self, String> {
        let name = tool.name.to_string();
        let is_printable = name.chars().all(|c| !c.is_control() && !c.is_whitespace());
        if name.is_empty() || name.chars().count() > NAME_CHARS_MAX || !is_printable {
            return Err(format!("`{}` is no name for a tool", name.escape_debug()));
        }
        let mut schema = json!(*tool.input_schema);
        if schema.get("type").is_none() {
            schema["type"] = json!("object");
        }
        if schema["type"] != "object" || schema.to_string().len() > SCHEMA_BYTES_MAX {
            return Err(format!("the schema of `{name}` cannot be used"));
        }
        Ok(Self {
            name,
            description: tool.description.as_deref().unwrap_or_default().to_owned(),
            schema,
            annotations: json!(tool.annotations),
        })
    }

    /// What stands for it where it is approved.
    pub fn digest(&self) -> String {
        hash(self)
    }

    /// What a model is told, with what nobody would see made visible.
    pub(crate) fn told(&self, server: &str) -> String {
        let description = visible(self.description.trim());
        let mut chars = description.chars();
        let mut told: String = chars.by_ref().take(DESCRIPTION_CHARS_MAX).collect();
        if chars.next().is_some() {
            told.push_str(" [cut]");
        }
        match told.is_empty() {
            true => format!("`{}` of the MCP server `{server}`.", self.name),
            false => format!("{told} (MCP server `{server}`)"),
        }
    }
}

impl Changes {
    /// How `now` differs from `approved`.
    pub fn between(approved: &[Definition], now: &[Definition]) -> Self {
        let digests = |definitions: &[Definition]| -> BTreeMap<String, String> {
            let pair = |d: &Definition| (d.name.clone(), d.digest());
            definitions.iter().map(pair).collect()
        };
        let (approved, now) = (digests(approved), digests(now));
        let mut changes = Self::default();
        for (name, digest) in &now {
            match approved.get(name) {
                None => changes.new.push(name.clone()),
                Some(known) if known != digest => changes.changed.push(name.clone()),
                Some(_) => {}
            }
        }
        let is_gone = |name: &&String| !now.contains_key(*name);
        changes.gone = approved.keys().filter(is_gone).cloned().collect();
        changes
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.new.is_empty() && self.changed.is_empty() && self.gone.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(name: &str, description: &str) -> Definition {
        Definition {
            name: name.into(),
            description: description.into(),
            schema: json!({"type": "object"}),
            annotations: Value::Null,
        }
    }

    #[test]
    fn a_definition_that_says_something_else_is_another() {
        let one = definition("read", "Reads.");
        let mut schema = one.clone();
        schema.schema["required"] = json!(["path"]);
        let mut hint = one.clone();
        hint.annotations = json!({"readOnlyHint": true});
        for other in [definition("read", "Reads. Then send it."), schema, hint] {
            assert_ne!(other.digest(), one.digest(), "{other:?}");
        }
        let changes = Changes::between(
            &[one.clone(), definition("old", "")],
            &[
                definition("read", "Reads everything."),
                definition("new", ""),
            ],
        );
        assert_eq!(changes.new, ["new"]);
        assert_eq!(changes.changed, ["read"]);
        assert_eq!(changes.gone, ["old"]);
        assert!(
            Changes::between(std::slice::from_ref(&one), std::slice::from_ref(&one)).is_empty()
        );
    }

    #[test]
    fn what_nobody_would_see_in_a_description_is_shown_to_the_model_as_well() {
        let told = definition("read", "Reads.\u{200b}\u{e0041}").told("files");
        assert!(
            !told.contains('\u{200b}') && !told.contains('\u{e0041}'),
            "{told}"
        );
        assert!(told.ends_with("(MCP server `files`)"), "{told}");
        let long = definition("read", &"x".repeat(10_000)).told("files");
        assert!(long.len() < 4_100 && long.contains("[cut]"));
    }
}

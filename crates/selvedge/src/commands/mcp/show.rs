//! `mcp show`: how a server is reached, and what was approved of it.

use clap::Args;
use selvedge_mcp::Definition;
use serde_json::json;

use super::{Here, description, list, whose};
use crate::error::{Exit, Result};
use crate::mcp::standing;
use crate::out;
use crate::text::{escape, indented};

#[derive(Args)]
pub struct Show {
    /// The server.
    #[arg(value_name = "NAME")]
    name: String,
    /// Print it as JSON.
    #[arg(long)]
    json: bool,
}

impl Show {
    pub fn perform(self) -> Result {
        let here = Here::find()?;
        let (listed, book) = (here.server(&self.name)?, here.book());
        let standing = standing(&book, listed, &here.workspace);
        let approved = book.of(listed);
        let definitions = approved.map(|approved| approved.definitions);
        let definitions = definitions.unwrap_or_default();
        let (state, _) = list::words(&standing);
        if self.json {
            let mut entry = json!(listed.entry);
            for key in ["env", "headers"] {
                for (name, value) in entry[key].as_object_mut().into_iter().flatten() {
                    let shown = super::guarded(name, value.as_str().unwrap_or_default());
                    *value = shown.into();
                }
            }
            out::json(&json!({
                "name": listed.name,
                "from": whose(&listed.scope),
                "state": state,
                "entry": entry,
                "tools": definitions,
            }));
            return Ok(Exit::Done);
        }
        out::line(&format!("{}\nstate:    {state}", description(listed)));
        for definition in &definitions {
            out::line(&told(definition));
        }
        Ok(Exit::Done)
    }
}

/// A definition, whole: what a model is told is what a person sees.
pub(super) fn told(definition: &Definition) -> String {
    let mut text = format!("\n  {}", escape(&definition.name));
    let properties = definition.schema["properties"].as_object();
    let names: Vec<&String> = properties.into_iter().flat_map(|p| p.keys()).collect();
    if !names.is_empty() {
        let names: Vec<&str> = names.into_iter().map(String::as_str).collect();
        text.push_str(&format!("({})", escape(&names.join(", "))));
    }
    let description = escape(definition.description.trim());
    if !description.is_empty() {
        text.push_str(&format!("\n{}", indented(&description, "    ")));
    }
    text
}

//! Finds tools that are not in the prompt, and loads the best of them.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::offer::{Wish, fulfil};
use crate::schema;
use crate::tool::{Tool, ToolContext, ToolOutput, ToolSpec, World};

/// So many are loaded at once.
const LOADED_MAX: usize = 5;

pub(super) struct ToolSearch;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// What you want to do, in a few words; or a regular expression for names.
    #[schemars(length(min = 1))]
    query: String,
}

#[async_trait]
impl Tool for ToolSearch {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: crate::TOOL_SEARCH.into(),
            description: "Look for more tools than you have. The best matches are loaded, and can \
                          be called from your next turn on."
                .into(),
            schema: schema::of::<Arguments>(),
            world: World::Reads,
        }
    }

    async fn run(&self, context: &ToolContext, input: &Value, _: &Value) -> ToolOutput {
        let Arguments { query } = match schema::arguments(input) {
            Ok(arguments) => arguments,
            Err(output) => return output,
        };
        let offers = context.results.offers().await;
        let by_words = fulfil(&offers, &Wish::Intent(query.clone()));
        let mut loaded = by_words.map(|found| found.loaded).unwrap_or_default();
        if loaded.is_empty()
            && let Ok(pattern) = regex::RegexBuilder::new(&query)
                .case_insensitive(true)
                .build()
        {
            let is_meant = |text: &str| pattern.is_match(text);
            let found = offers
                .iter()
                .filter(|offer| is_meant(&offer.name) || is_meant(&offer.description));
            loaded = found.map(|offer| offer.name.clone()).collect();
        }
        loaded.truncate(LOADED_MAX);
        if loaded.is_empty() {
            return ToolOutput::error(format!(
                "no tool fits `{query}`; use other words, or go on with those you have"
            ));
        }
        let of = |name: &String| offers.iter().find(|offer| offer.name == *name);
        let lines: Vec<String> = loaded
            .iter()
            .filter_map(of)
            .map(|offer| format!("- {}: {}", offer.name, offer.description))
            .collect();
        ToolOutput::ok(format!("Loaded:\n{}", lines.join("\n")))
            .with_facts(json!({ "loaded": loaded }))
    }
}

//! Loads tools that are on offer.
//!
//! It only says which; the agent folds that from what is recorded here, and sends
//! their schemas from then on.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::offer::{Fulfilled, Wish, fulfil};
use crate::schema;
use crate::tool::{Tool, ToolContext, ToolOutput, ToolSpec, World};

pub(super) struct RequestTools;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Tools, by name.
    tools: Option<Vec<String>>,
    /// A bundle: all its tools.
    bundle: Option<String>,
    /// What you want to do, in a few words: the tools that fit best.
    intent: Option<String>,
}

#[async_trait]
impl Tool for RequestTools {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: crate::REQUEST_TOOLS.into(),
            description: "Load more tools. Give exactly one of `tools`, `bundle` and `intent`. \
                          They can be called from your next turn on."
                .into(),
            schema: schema::of::<Arguments>(),
            world: World::Reads,
        }
    }

    async fn run(&self, context: &ToolContext, input: &Value, _: &Value) -> ToolOutput {
        let wish = match schema::arguments(input).and_then(wish) {
            Ok(wish) => wish,
            Err(refused) => return refused,
        };
        let offers = context.results.offers().await;
        match fulfil(&offers, &wish) {
            Ok(fulfilled) => answer(&fulfilled),
            Err(why) => ToolOutput::error(why),
        }
    }
}

fn wish(arguments: Arguments) -> Result<Wish, ToolOutput> {
    let Arguments {
        tools,
        bundle,
        intent,
    } = arguments;
    match (tools, bundle, intent) {
        (Some(tools), None, None) if !tools.is_empty() => Ok(Wish::Tools(tools)),
        (None, Some(bundle), None) => Ok(Wish::Bundle(bundle)),
        (None, None, Some(intent)) => Ok(Wish::Intent(intent)),
        _ => Err(ToolOutput::error(
            "give exactly one of `tools` (at least one name), `bundle` and `intent`; nothing was \
             loaded",
        )),
    }
}

fn answer(fulfilled: &Fulfilled) -> ToolOutput {
    let names = |names: &[String]| {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        names.join(", ")
    };
    let mut text = format!("Loaded: {}.", names(&fulfilled.loaded));
    if !fulfilled.also.is_empty() {
        text.push_str(&format!(
            " Related, and not loaded: {}.",
            names(&fulfilled.also)
        ));
    }
    ToolOutput::ok(text).with_facts(json!({
        "loaded": fulfilled.loaded, "also": fulfilled.also,
    }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::testing::World;
    use crate::{Offer, ResultStore};

    struct One;

    #[async_trait]
    impl ResultStore for One {
        async fn result(&self, _: &str) -> Option<Arc<str>> {
            None
        }

        async fn offers(&self) -> Vec<Offer> {
            vec![Offer {
                name: "git_log".into(),
                description: "List commits.".into(),
                bundle: Some("git".into()),
            }]
        }
    }

    #[tokio::test]
    async fn one_way_of_asking_is_taken_and_all_else_refused() {
        let mut world = World::new(&[]);
        world.context.results = Arc::new(One);
        for (input, expected) in [
            (json!({"tools": ["git_log"]}), Ok("Loaded: `git_log`.")),
            (json!({"bundle": "git"}), Ok("Loaded: `git_log`.")),
            (json!({"intent": "commits"}), Ok("Loaded: `git_log`.")),
            (json!({}), Err("exactly one")),
            (json!({"tools": []}), Err("exactly one")),
            (
                json!({"bundle": "git", "intent": "commits"}),
                Err("exactly one"),
            ),
            (json!({"tools": ["push"]}), Err("nothing was loaded")),
        ] {
            let output = world.call("request_tools", input.clone()).await;
            match expected {
                Ok(text) => {
                    assert_eq!(output.text, text, "{input}");
                    assert_eq!(output.facts["loaded"], json!(["git_log"]));
                }
                Err(words) => {
                    assert!(
                        output.is_error && output.text.contains(words),
                        "{}",
                        output.text
                    );
                    assert_eq!(output.facts["loaded"], Value::Null);
                }
            }
        }
    }

    #[tokio::test]
    async fn where_nothing_is_on_offer_nothing_is_loaded() {
        let output = World::new(&[])
            .call("request_tools", json!({"tools": ["git_log"]}))
            .await;
        assert!(output.text.contains("there are none"), "{}", output.text);
    }
}

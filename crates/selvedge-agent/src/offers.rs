//! Lazy loading: which tools a run begins with, and which it may ask for.
//!
//! An agent has at hand what its file names outright. What comes by a pattern, or is
//! listed under `more_tools`, is on offer: a line each at the end of the system
//! prompt, which stays as it is for the whole run. What is loaded is appended to the
//! definitions and stays there, so that what a provider has cached of earlier
//! requests holds.

use std::collections::BTreeMap;
use std::fmt::Write;

use selvedge_ledger::Payload;
use selvedge_model::ToolDefinition;
use selvedge_tool::{Offer, ToolSpec, visible};
use serde::{Deserialize, Serialize};

/// When tools are put on offer instead of at hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lazy {
    /// When their schemas are long enough to be worth a turn.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never: every tool is at hand from the beginning.
    Never,
}

/// Schemas of so many tokens in all are sent with every request all the same: the
/// list, and the turn it takes to ask, would cost as much.
const EAGER_TOKENS_MAX: u64 = 600;
/// How long the line of a tool is, and the whole list. A longer list has names only,
/// and one that is still too long has bundles only.
const LINE_CHARS_MAX: usize = 100;
const LIST_CHARS_MAX: usize = 12_000;

/// What a run may ask for. Recorded with it, so that a resumed run has the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Offers {
    /// The tools, by name, and the tokens of their definitions.
    pub tools: BTreeMap<String, u64>,
    /// The same tools as a model sees them, once loaded: a JSON list of [`Offered`].
    pub definitions: Payload,
    /// Tokens of the definitions that the run begins with, but for `request_tools`.
    pub tokens_at_hand: u64,
    /// Tokens of the list, and of the tool by which they are asked for.
    pub tokens_of_list: u64,
}

/// A tool that is on offer, whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Offered {
    /// What a model is told of it once it is loaded.
    #[serde(flatten)]
    pub definition: ToolDefinition,
    /// The group of tools it came with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
}

/// How many tokens of schemas a request carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaTokens {
    /// Those that it has, with what it takes to ask for others.
    pub sent: u64,
    /// Those that it would have, were every tool at hand.
    pub eager: u64,
}

impl std::ops::Add for SchemaTokens {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            eager: self.eager + other.eager,
        }
    }
}

impl From<&Offered> for Offer {
    fn from(offered: &Offered) -> Self {
        Self {
            name: offered.definition.name.clone(),
            description: offered.definition.description.clone(),
            bundle: offered.bundle.clone(),
        }
    }
}

impl Lazy {
    /// Whether tools of so many tokens are put on offer.
    fn applies(self, tokens: u64) -> bool {
        match self {
            Self::Auto => tokens > EAGER_TOKENS_MAX,
            Self::Always => tokens > 0,
            Self::Never => false,
        }
    }
}

impl Offers {
    /// Puts `more` on offer beside `at_hand`, with the list for the prompt; `None` if
    /// they are better at hand. `request` is the tool by which they are asked for.
    pub fn of(
        lazy: Lazy,
        at_hand: &[ToolSpec],
        more: &[(ToolSpec, Option<String>)],
        request: &ToolSpec,
    ) -> Option<(Self, String)> {
        let offered: Vec<Offered> = more
            .iter()
            .map(|(spec, bundle)| Offered {
                definition: definition(spec),
                bundle: bundle.clone(),
            })
            .collect();
        let tools: BTreeMap<String, u64> = offered
            .iter()
            .map(|o| (o.definition.name.clone(), tokens(&o.definition)))
            .collect();
        if !lazy.applies(tools.values().sum()) {
            return None;
        }
        let list = list(&offered);
        let definitions = serde_json::to_string(&offered).expect("definitions are plain data");
        let offers = Self {
            tools,
            definitions: Payload::new(definitions),
            tokens_at_hand: at_hand.iter().map(|spec| tokens(&definition(spec))).sum(),
            tokens_of_list: tokens(&definition(request)) + tokens_of(list.len() as u64),
        };
        Some((offers, list))
    }

    /// Whether a tool is among them.
    pub fn has(&self, name: &str) -> bool {
        self.tools.contains_key(name)
    }

    /// What a request carries when these are loaded.
    pub fn tokens(&self, loaded: &[String]) -> SchemaTokens {
        let of = |name: &String| self.tools.get(name).copied().unwrap_or_default();
        SchemaTokens {
            sent: self.tokens_at_hand + self.tokens_of_list + loaded.iter().map(of).sum::<u64>(),
            eager: self.tokens_at_hand + self.tools.values().sum::<u64>(),
        }
    }
}

/// What a model is told of a tool.
pub fn definition(spec: &ToolSpec) -> ToolDefinition {
    ToolDefinition {
        name: spec.name.clone(),
        description: spec.description.clone(),
        schema: spec.schema.clone(),
    }
}

fn tokens(definition: &ToolDefinition) -> u64 {
    tokens_of(definition.bytes())
}

/// Tokens of so many bytes, estimated as those of a conversation are.
fn tokens_of(bytes: u64) -> u64 {
    bytes * 2 / 7
}

/// The list for the prompt: bundles by name, their tools by name, then the rest.
fn list(offered: &[Offered]) -> String {
    let mut bundles: BTreeMap<(bool, &str), Vec<&Offered>> = BTreeMap::new();
    for tool in offered {
        let bundle = tool.bundle.as_deref().unwrap_or_default();
        bundles
            .entry((bundle.is_empty(), bundle))
            .or_default()
            .push(tool);
    }
    for tools in bundles.values_mut() {
        tools.sort_by(|a, b| a.definition.name.cmp(&b.definition.name));
    }
    let head = "There are more tools than those at hand. Load what you need with `request_tools`: \
                by name, by bundle, or by what you want to do.";
    let forms: [fn(&[&Offered]) -> String; 3] = [lines, names, number];
    let lists = forms.map(|form| {
        let mut text = head.to_owned();
        for ((is_rest, bundle), tools) in &bundles {
            let title = match (is_rest, bundles.len()) {
                (true, 1) => String::new(),
                (true, _) => "\nOthers:".to_owned(),
                (false, _) => format!("\nBundle `{}`:", line(bundle)),
            };
            let _ = write!(text, "\n{title}{}", form(tools));
        }
        text
    });
    let fits = |text: &&String| text.len() <= LIST_CHARS_MAX;
    let fitting = lists.iter().find(fits);
    fitting.unwrap_or(&lists[2]).clone()
}

fn lines(tools: &[&Offered]) -> String {
    let line_of = |tool: &&Offered| {
        let Offered { definition, .. } = tool;
        let text = format!("{}: {}", definition.name, definition.description);
        format!("\n- {}", line(&text))
    };
    tools.iter().map(line_of).collect()
}

fn names(tools: &[&Offered]) -> String {
    let names: Vec<String> = tools
        .iter()
        .map(|tool| line(&tool.definition.name))
        .collect();
    format!(" {}", names.join(", "))
}

fn number(tools: &[&Offered]) -> String {
    format!(" {} tools", tools.len())
}

/// The first line of a text, short, with nothing hidden in it: a server that offers a
/// tool writes its description.
fn line(text: &str) -> String {
    let text = visible(text.lines().next().unwrap_or_default());
    if text.chars().count() <= LINE_CHARS_MAX {
        return text;
    }
    let kept: String = text.chars().take(LINE_CHARS_MAX - 1).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use selvedge_tool::World;
    use serde_json::json;

    use super::*;

    fn tool(name: &str, description: &str) -> ToolSpec {
        ToolSpec {
            name: name.into(),
            description: description.into(),
            schema: json!({"type": "object"}),
            world: World::Reads,
        }
    }

    fn of(lazy: Lazy, more: &[(ToolSpec, Option<String>)]) -> Option<(Offers, String)> {
        Offers::of(lazy, &[tool("a", "At hand.")], more, &tool("r", "Asks."))
    }

    #[test]
    fn little_is_sent_at_once_and_much_is_put_on_offer() {
        let little = [(tool("b", "Small."), None)];
        let much = [(tool("b", &"long ".repeat(500)), None)];
        assert!(of(Lazy::Auto, &little).is_none());
        assert!(of(Lazy::Auto, &much).is_some());
        assert!(of(Lazy::Always, &little).is_some());
        assert!(
            of(Lazy::Always, &[]).is_none(),
            "nothing is nothing to ask for"
        );
        assert!(of(Lazy::Never, &much).is_none());
    }

    #[test]
    fn the_list_has_a_short_line_each_in_a_stable_order() {
        let long = format!("Says {}\nand more", "very ".repeat(30));
        let git = Some("git".to_owned());
        let mut more = vec![
            (tool("zeta", &long), None),
            (tool("log", "List commits.\u{200b}"), git.clone()),
            (tool("blame", "Show who."), git),
        ];
        let list = of(Lazy::Always, &more).unwrap().1;
        let lines: Vec<&str> = list.lines().skip(1).collect();
        assert_eq!(
            lines[..4],
            [
                "",
                "Bundle `git`:",
                "- blame: Show who.",
                "- log: List commits.\\u{200b}",
            ]
        );
        assert_eq!(lines[4..6], ["", "Others:"]);
        assert!(lines[6].starts_with("- zeta: Says very") && lines[6].ends_with('…'));
        assert_eq!(lines.len(), 7);
        more.reverse();
        assert_eq!(of(Lazy::Always, &more).unwrap().1, list);
    }

    #[test]
    fn a_long_list_has_names_and_a_longer_one_bundles() {
        let many = |n: usize| -> Vec<(ToolSpec, Option<String>)> {
            let tool = |n| tool(&format!("mcp__server__tool_{n}"), "Does something useful.");
            (0..n).map(|n| (tool(n), Some("server".into()))).collect()
        };
        let list = of(Lazy::Auto, &many(300)).unwrap().1;
        assert!(
            list.contains("Bundle `server`: mcp__server__tool_0, "),
            "{list}"
        );
        assert!(list.len() < LIST_CHARS_MAX);
        let list = of(Lazy::Auto, &many(3000)).unwrap().1;
        assert!(list.ends_with("Bundle `server`: 3000 tools"), "{list}");
    }

    #[test]
    fn what_is_sent_counts_the_list_and_what_is_loaded() {
        let more = [
            (tool("b", &"long ".repeat(500)), None),
            (tool("c", "Short."), None),
        ];
        let (offers, list) = of(Lazy::Auto, &more).unwrap();
        let none = offers.tokens(&[]);
        assert_eq!(none.sent, offers.tokens_at_hand + offers.tokens_of_list);
        assert!(offers.tokens_of_list > tokens_of(list.len() as u64));
        let all = offers.tokens(&["b".into(), "c".into()]);
        assert_eq!(all.sent, all.eager + offers.tokens_of_list);
        assert_eq!(all.eager, none.eager);
    }
}

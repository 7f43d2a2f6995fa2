//! The agents of a session as a tree: who works under whom, on what, how far, and
//! what it has cost.

use selvedge_crews::{Node, State, Tree};
use selvedge_ledger::StreamId;
use serde_json::Value;

use crate::text::{duration, escape, one_line, plural};

/// A title is what is cut off where a terminal is narrow.
const TITLE_CHARS: usize = 60;
const MOMENT_CHARS: usize = 100;

/// The tree below `session`, a line for each agent.
pub fn draw(tree: &Tree, session: &StreamId) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(root) = tree.node(session) {
        lines.push(describe(root, false));
        below(tree, session, "", &mut lines);
    }
    lines
}

/// What happened when, a line each.
pub fn timeline(tree: &Tree) -> Vec<String> {
    let moments = tree.timeline();
    let begun = moments.first().map_or(0, |moment| moment.time);
    let line = |moment: &&selvedge_crews::Moment| {
        let after = u64::try_from(moment.time - begun).unwrap_or(0);
        let text = one_line(&moment.text, MOMENT_CHARS);
        let text = match text.is_empty() {
            true => String::new(),
            false => format!(": {text}"),
        };
        let what = moment.what.replace('_', " ");
        format!("+{:<8} {} {what}{text}", duration(after), moment.agent)
    };
    moments.iter().map(line).collect()
}

/// What a JSON value is about: what is to be done, or what was found or built. The text
/// itself if it does not say.
pub fn title(text: &str) -> String {
    const TELLING: [&str; 9] = [
        "task",
        "mission",
        "summary",
        "architecture",
        "verdict_reasoning",
        "overall_verdict",
        "reasoning",
        "response",
        "context_explanation",
    ];
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    if let Some(telling) = TELLING.iter().find_map(|key| value[*key].as_str()) {
        return telling.to_owned();
    }
    let list = |name: &str| {
        let items = value[name].as_array().into_iter().flatten();
        let names: Vec<&str> = items.filter_map(Value::as_str).collect();
        (!names.is_empty()).then(|| format!("{} {}", name.replace('_', " "), names.join(", ")))
    };
    let lists: Vec<String> = ["files_created", "files_modified", "insights_captured"]
        .into_iter()
        .filter_map(list)
        .collect();
    match lists.is_empty() {
        true => text.to_owned(),
        false => lists.join("; "),
    }
}

fn below(tree: &Tree, stream: &StreamId, indent: &str, lines: &mut Vec<String>) {
    let nodes = tree.below(stream);
    for (at, node) in nodes.iter().enumerate() {
        let is_last = at + 1 == nodes.len();
        let (branch, more) = match is_last {
            true => ("└─ ", "   "),
            false => ("├─ ", "│  "),
        };
        lines.push(format!("{indent}{branch}{}", describe(node, true)));
        below(tree, &node.stream, &format!("{indent}{more}"), lines);
    }
}

fn describe(node: &Node, is_titled: bool) -> String {
    let mark = match &node.state {
        State::Working => "…".to_owned(),
        State::Paused(reasons) => format!("‖ {}", reasons.join(", ")),
        State::Done => "✓".to_owned(),
        State::Failed => "✗".to_owned(),
        State::Cancelled => "✗ cancelled".to_owned(),
    };
    let cost = match (node.is_unpriced, node.turns) {
        (_, 0) => String::new(),
        (true, _) => " · price unknown".to_owned(),
        (false, _) => format!(" · {}", node.cost),
    };
    let title = match is_titled && !node.title.is_empty() {
        true => format!(" · {}", one_line(&escape(&node.title), TITLE_CHARS)),
        false => String::new(),
    };
    let turns = plural(node.turns, "turn");
    format!("{} {mark} {turns}{cost}{title}", node.label())
}

//! The agents of a session as a tree: who works under whom, on what, how far, and
//! what it has cost.

use std::collections::HashSet;

use selvedge_crews::{Node, State, Tree, gist};
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
        below(tree, session, "", &HashSet::new(), &mut lines);
    }
    lines
}

/// The same in so many lines and columns at most: those who ended first are counted, not
/// shown. What is redrawn all the time must fit on the screen.
pub fn draw_within(
    tree: &Tree,
    session: &StreamId,
    (lines_max, columns_max): (usize, usize),
) -> Vec<String> {
    let lines = fewer(tree, session, lines_max);
    let cut = |line: &String| match line.chars().count() > columns_max {
        true => line.chars().take(columns_max - 1).chain(['…']).collect(),
        false => line.clone(),
    };
    lines.iter().map(cut).collect()
}

fn fewer(tree: &Tree, session: &StreamId, lines_max: usize) -> Vec<String> {
    let lines = draw(tree, session);
    if lines.len() <= lines_max {
        return lines;
    }
    let hidden = hidden(tree.nodes(), lines.len() - lines_max + 1);
    let mut lines = Vec::new();
    if let Some(root) = tree.node(session) {
        lines.push(describe(root, false));
        lines.push(format!("⋮  {} that ended are not shown", hidden.len()));
        below(tree, session, "", &hidden, &mut lines);
    }
    // Nobody else has ended: the rest is cut.
    lines.truncate(lines_max);
    lines
}

/// Those who ended first, `count` of them, without any who has somebody below.
fn hidden(nodes: &[Node], count: usize) -> HashSet<&StreamId> {
    let leads = |node: &Node| {
        let mut others = nodes.iter();
        others.any(|other| other.parent.as_ref() == Some(&node.stream))
    };
    let mut ended: Vec<&Node> = nodes
        .iter()
        .filter(|node| node.ended.is_some() && node.parent.is_some() && !leads(node))
        .collect();
    ended.sort_by_key(|node| node.ended);
    ended.iter().take(count).map(|node| &node.stream).collect()
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
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    gist(&value).unwrap_or_else(|| text.to_owned())
}

fn below(
    tree: &Tree,
    stream: &StreamId,
    indent: &str,
    hidden: &HashSet<&StreamId>,
    lines: &mut Vec<String>,
) {
    let mut nodes = tree.below(stream);
    nodes.retain(|node| !hidden.contains(&node.stream));
    for (at, node) in nodes.iter().enumerate() {
        let is_last = at + 1 == nodes.len();
        let (branch, more) = match is_last {
            true => ("└─ ", "   "),
            false => ("├─ ", "│  "),
        };
        lines.push(format!("{indent}{branch}{}", describe(node, true)));
        let indent = format!("{indent}{more}");
        below(tree, &node.stream, &indent, hidden, lines);
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

#[cfg(test)]
mod tests {
    use selvedge_ledger::Time;
    use selvedge_model::Usd;

    use super::*;

    fn node(stream: &str, ended: Option<i64>) -> Node {
        let parent = stream.rsplit_once('/');
        Node {
            stream: StreamId::new(stream),
            parent: parent.map(|(parent, _)| StreamId::new(parent)),
            agent: "builder".into(),
            task: Some(1),
            title: String::new(),
            model: String::new(),
            turns: 1,
            cost: Usd::ZERO,
            is_unpriced: false,
            state: State::Working,
            started: Time(0),
            ended: ended.map(Time),
            data: None,
        }
    }

    #[test]
    fn those_who_ended_first_make_room_and_nobody_at_work_does() {
        let nodes = [
            node("s_a", Some(9)),
            node("s_a/t0.0", Some(8)),
            node("s_a/t0.0/t1.0", Some(3)),
            node("s_a/t0.0/t2.0", None),
            node("s_a/t0.0/t3.0", Some(2)),
            node("s_a/t0.0/t4.0", Some(4)),
        ];
        let mut hidden: Vec<&str> = hidden(&nodes, 2)
            .into_iter()
            .map(StreamId::as_str)
            .collect();
        hidden.sort_unstable();
        assert_eq!(hidden, ["s_a/t0.0/t1.0", "s_a/t0.0/t3.0"]);
        assert_eq!(super::hidden(&nodes, 9).len(), 3);
    }
}

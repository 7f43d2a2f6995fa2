//! Who worked under whom, on what, for how long, and what it cost: a fold of a
//! session's events.

use std::collections::{BTreeMap, HashMap};

use selvedge_agent::{RunSpec, Spending, UpkeepOutcome};
use selvedge_ledger::{Event, LedgerError, StreamId, Time};
use selvedge_model::Usd;
use selvedge_runtime::{
    Ending, Finished, MessageTaken, RunCancelled, RunFinished, RunPaused, RunResumed, RunStarted,
    Status, Unfinished,
};
use serde::Serialize;
use serde_json::Value;

/// The agents of a session, and what happened to them.
#[derive(Default)]
pub struct Tree {
    nodes: Vec<Node>,
    by_stream: HashMap<StreamId, usize>,
    spending: HashMap<StreamId, Spending>,
    /// Numbers that were given, by agent.
    numbers: BTreeMap<String, Vec<u32>>,
    timeline: Vec<Moment>,
    /// Every agent that the session may use, and whether it leads others.
    pub cast: BTreeMap<String, bool>,
}

/// One agent at one task.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its stream.
    pub stream: StreamId,
    /// Who called it.
    pub parent: Option<StreamId>,
    /// Its name.
    pub agent: String,
    /// Which of its tasks it is in this session; none for one that leads others, which
    /// has one conversation.
    pub task: Option<u32>,
    /// What it is to do, in a line; empty if that is not at hand.
    pub title: String,
    /// Whom it asks.
    pub model: String,
    /// Model calls that were answered.
    pub turns: u64,
    /// What they cost, as far as prices are known.
    pub cost: Usd,
    /// Whether a price is not known.
    pub is_unpriced: bool,
    /// How it stands.
    pub state: State,
    /// When it began.
    pub started: Time,
    /// When it ended.
    pub ended: Option<Time>,
    /// Its result as data, if it has one.
    pub data: Option<Value>,
}

/// How an agent stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It works, or waits for somebody who does.
    Working,
    /// It stands still, for these reasons.
    Paused(Vec<String>),
    /// It did what it was for.
    Done,
    /// It did not.
    Failed,
    /// It was cancelled.
    Cancelled,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Moment {
    /// When, in milliseconds since 1970.
    pub time: i64,
    /// To whom: `builder task-002`.
    pub agent: String,
    /// What: `started`, `finished`, `failed`, `cancelled`, `paused`, `resumed`, `told`,
    /// `in_doubt`, `copied`, `merged`, `left_out`.
    pub what: &'static str,
    /// More about it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
}

impl Node {
    /// Its name, and which task it is at.
    pub fn label(&self) -> String {
        match self.task {
            Some(task) => format!("{} task-{task:03}", self.agent),
            None => self.agent.clone(),
        }
    }
}

impl Tree {
    /// All agents, in the order in which they began.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The session's own agent.
    pub fn root(&self) -> Option<&Node> {
        self.nodes.iter().find(|node| node.parent.is_none())
    }

    /// What happened, in order. A fork has it stream by stream.
    pub fn timeline(&self) -> Vec<&Moment> {
        let mut moments: Vec<&Moment> = self.timeline.iter().collect();
        moments.sort_by_key(|moment| moment.time);
        moments
    }

    /// The agent at work in a stream.
    pub fn node(&self, stream: &StreamId) -> Option<&Node> {
        self.by_stream.get(stream).map(|at| &self.nodes[*at])
    }

    /// Those that an agent called, in order.
    pub fn below(&self, stream: &StreamId) -> Vec<&Node> {
        let is_below = |node: &&Node| node.parent.as_ref() == Some(stream);
        let mut nodes: Vec<&Node> = self.nodes.iter().filter(is_below).collect();
        nodes.sort_by_key(|node| node.started);
        nodes
    }

    /// Folds an event of any of the session's streams in.
    pub fn apply(&mut self, event: &Event) -> Result<(), LedgerError> {
        match &*event.kind {
            "RunStarted" => {
                let spec = event.decode::<RunStarted<RunSpec>>()?.spec;
                self.start(event, &spec);
            }
            "RunPaused" => {
                let paused: RunPaused = event.decode()?;
                let (reason, detail) = (paused.reason, paused.detail);
                let told = format!("{reason}: {detail}");
                self.update(event, "paused", told, |node| match &mut node.state {
                    State::Paused(reasons) if reasons.contains(&reason) => {}
                    State::Paused(reasons) => reasons.push(reason),
                    state => *state = State::Paused(vec![reason]),
                });
            }
            "RunResumed" => {
                let reason = event.decode::<RunResumed>()?.reason;
                let told = reason.clone();
                self.update(event, "resumed", told, |node| {
                    if let State::Paused(reasons) = &mut node.state {
                        reasons.retain(|known| *known != reason);
                        if reasons.is_empty() {
                            node.state = State::Working;
                        }
                    }
                });
            }
            "RunCancelled" => {
                let cancelled: RunCancelled = event.decode()?;
                self.update(event, "cancelled", cancelled.reason, |_| {});
            }
            "RunFinished" => {
                let ending = event.decode::<RunFinished>()?.ending;
                self.end(event, ending);
            }
            "MessageTaken" => {
                let text = event.decode::<MessageTaken>()?.text;
                let text = text.text().map_or(String::new(), |text| line(text));
                self.update(event, "told", text, |_| {});
            }
            "ToolCallInDoubt" => {
                let effect = event.decode::<Unfinished>()?.effect;
                self.update(event, "in_doubt", effect.to_string(), |_| {});
            }
            "CopyFinished" => self.update(event, "copied", String::new(), |_| {}),
            "MergeFinished" => {
                let outcome = event.decode::<Finished<UpkeepOutcome>>()?.outcome;
                if let UpkeepOutcome::Merged { files, left_out } = outcome {
                    self.update(event, "merged", files.join(", "), |_| {});
                    for link in left_out {
                        self.update(event, "left_out", link.to_string(), |_| {});
                    }
                }
            }
            _ => {}
        }
        let spending = self.spending.entry(event.stream.clone()).or_default();
        spending.apply(event)?;
        if &*event.kind != "RunStarted"
            && let Some(at) = self.by_stream.get(&event.stream)
        {
            let total = spending.total();
            let node = &mut self.nodes[*at];
            (node.turns, node.cost) = (total.calls + total.cached, total.cost);
            node.is_unpriced = total.unpriced > 0;
        }
        Ok(())
    }

    fn start(&mut self, event: &Event, spec: &RunSpec) {
        let parent = event.stream.as_str().rsplit_once('/');
        let parent = parent.map(|(parent, _)| StreamId::new(parent));
        if parent.is_none() {
            learn(&mut self.cast, spec);
        }
        let leads = parent.is_none() || !spec.team.is_empty();
        let task = (!leads).then(|| self.number(&spec.agent, spec.terms.task));
        let title = spec
            .request
            .text()
            .map_or(String::new(), |text| title(text));
        self.by_stream
            .insert(event.stream.clone(), self.nodes.len());
        self.nodes.push(Node {
            stream: event.stream.clone(),
            parent,
            agent: spec.agent.clone(),
            task,
            title: title.clone(),
            model: spec.model.clone(),
            turns: 0,
            cost: Usd::ZERO,
            is_unpriced: false,
            state: State::Working,
            started: event.time,
            ended: None,
            data: None,
        });
        self.update(event, "started", title, |_| {});
    }

    /// The number of an agent's task in this session: the one that its caller gave it,
    /// or the next, where another caller gave the same.
    fn number(&mut self, agent: &str, given: u32) -> u32 {
        let numbers = self.numbers.entry(agent.to_owned()).or_default();
        let next = numbers.iter().max().copied().unwrap_or(0) + 1;
        let number = match numbers.contains(&given) || given == 0 {
            true => next,
            false => given,
        };
        numbers.push(number);
        number
    }

    fn end(&mut self, event: &Event, ending: Ending) {
        let (state, what) = match ending.status {
            Status::Done => (State::Done, "finished"),
            Status::Failed => (State::Failed, "failed"),
            Status::Cancelled => (State::Cancelled, "cancelled"),
        };
        let text = match &ending.data {
            Some(data) => title(&data.to_string()),
            None => ending
                .result
                .text()
                .map_or(String::new(), |text| line(text)),
        };
        self.update(event, what, text, |node| {
            node.state = state;
            node.ended = Some(event.time);
            node.data = ending.data;
        });
    }

    fn update(
        &mut self,
        event: &Event,
        what: &'static str,
        text: String,
        change: impl FnOnce(&mut Node),
    ) {
        let Some(at) = self.by_stream.get(&event.stream) else {
            return;
        };
        let node = &mut self.nodes[*at];
        change(node);
        self.timeline.push(Moment {
            time: event.time.0,
            agent: node.label(),
            what,
            text,
        });
    }
}

/// Everybody that a run may call, and whether they lead others.
fn learn(cast: &mut BTreeMap<String, bool>, spec: &RunSpec) {
    cast.insert(spec.agent.clone(), !spec.team.is_empty());
    spec.team.values().for_each(|helper| learn(cast, helper));
}

/// Fields that say what is to be done, or was.
const WORK: [&str; 4] = ["task", "mission", "summary", "architecture"];

/// What a JSON value says of what is to be done, or of what was found or built.
pub fn gist(value: &Value) -> Option<String> {
    const FOUND: [&str; 5] = [
        "verdict_reasoning",
        "overall_verdict",
        "reasoning",
        "response",
        "context_explanation",
    ];
    let mut telling = WORK.iter().chain(&FOUND);
    if let Some(telling) = telling.find_map(|key| value[*key].as_str()) {
        return Some(telling.to_owned());
    }
    let list = |name: &str| {
        let items = value[name].as_array().into_iter().flatten();
        let names: Vec<&str> = items.filter_map(Value::as_str).collect();
        (!names.is_empty()).then(|| format!("{} {}", name.replace('_', " "), names.join(", ")))
    };
    let lists = ["files_created", "files_modified", "insights_captured"].into_iter();
    let lists: Vec<String> = lists.filter_map(list).collect();
    (!lists.is_empty()).then(|| lists.join("; "))
}

/// What a text is about, in a line. Of a JSON object, what says most.
fn title(text: &str) -> String {
    // What is the same for everybody tells nothing.
    const COMMON: [&str; 3] = ["now", "timestamp", "current_global_context"];
    const ASKED: [&str; 4] = ["query", "original_query", "raw_input", "correction"];
    let Ok(value @ Value::Object(_)) = serde_json::from_str::<Value>(text) else {
        return line(text);
    };
    let said = |name: &str| value[name].as_str().map(str::to_owned);
    let asked = || ASKED.into_iter().find_map(said);
    let first = || {
        let fields = value.as_object()?.iter();
        let mut own = fields.filter(|(name, _)| !COMMON.contains(&name.as_str()));
        own.find_map(|(_, value)| value.as_str()).map(str::to_owned)
    };
    let told = WORK.into_iter().find_map(said).or_else(asked);
    let told = told.or_else(|| gist(&value)).or_else(|| said("notes"));
    line(&told.or_else(first).unwrap_or_default())
}

fn line(text: &str) -> String {
    const CHARS_MAX: usize = 200;
    let line = text.trim().lines().next().unwrap_or_default();
    line.chars().take(CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_keeps_its_number_unless_another_caller_gave_the_same() {
        let mut tree = Tree::default();
        let given = [1, 2, 1, 3].map(|given| tree.number("builder", given));
        assert_eq!(given, [1, 2, 3, 4]);
        assert_eq!(tree.number("designer", 1), 1);
    }

    #[test]
    fn a_request_is_told_by_its_task() {
        assert_eq!(
            title(r#"{"work_dir":".","task":"build it\nwell"}"#),
            "build it"
        );
        let built = r#"{"files_created":["a"],"files_modified":["b","c"],"test_output":"ok"}"#;
        assert_eq!(title(built), "files created a; files modified b, c");
        assert_eq!(title(" plain words\nand more"), "plain words");
        assert_eq!(title(r#"{"files":[]}"#), "");
        let asked = r#"{"global_context":"x","now":"2026-11-18","query":"Why am I tired?"}"#;
        assert_eq!(title(asked), "Why am I tired?");
        assert_eq!(title(r#"{"instructions":[],"now":"2026-11-18"}"#), "");
    }
}

//! What every agent was sent and said, as a folder: a projection of the ledger.
//!
//! An agent that leads others has a folder, and so has every task of one that does not:
//! `planner/`, `builder/task-002/`. What is sent is folded from the events by the same
//! machine that decided it, so it is what was sent, and nothing is kept twice: a line of
//! `to_model.jsonl` has the messages and the tools that were new, and says how many
//! messages came before. One that leads others keeps its folder over all its missions,
//! and each line names its stream.
//!
//! The folder may be deleted at any time. Whoever follows the session writes it anew.

mod issues;
mod summary;

use std::collections::{BTreeSet, HashMap};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use selvedge_agent::{AgentCall, AgentMachine, ModelCall, ModelOutcome, RunSpec, tools_sent};
use selvedge_ledger::{Event, Ledger, LedgerError, Payload, StreamId};
use selvedge_model::{Message, Messages, Part, ToolDefinition, Usd};
use selvedge_runtime::{Act, Due, Finished, Machine, RunStarted, Started, Unfinished};
use serde::Serialize;
use serde_json::{Value, json};

use crate::tree::{Node, Tree};

/// What else a session's folder holds: no agent's folder may be called so.
const TAKEN: [&str; 5] = ["work", "temp", "staging", "repository", "checkpoints"];

const TO_MODEL: &str = "to_model.jsonl";
const FROM_MODEL: &str = "from_model.jsonl";
const METADATA: &str = "metadata.json";
const SUMMARY: &str = "summary.json";

/// A folder of what was sent and said in a session.
pub struct Record {
    folder: PathBuf,
    tree: Tree,
    runs: HashMap<StreamId, Run>,
    /// What each was asked to do, where that is data.
    requests: HashMap<StreamId, Value>,
    /// Folders that were begun anew.
    begun: BTreeSet<PathBuf>,
}

/// One agent at one task.
#[derive(Default)]
struct Run {
    machine: AgentMachine,
    /// What was sent last.
    sent: Messages,
    /// How many tools were sent; none before the first request. More are only ever added
    /// at the end of the list.
    tools: Option<usize>,
}

/// Why the folder is not complete. The ledger is, all the same.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// What happened cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The folder cannot be written.
    #[error("`{path}` cannot be written: {source}")]
    Unwritable {
        /// Where.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
}

/// A line of `to_model.jsonl`: a request, without what was sent before.
#[derive(Serialize)]
struct Sent<'a> {
    stream: &'a str,
    effect: &'a str,
    attempt: u32,
    time: i64,
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<Arc<str>>,
    /// Those that were not sent before: all of the first request, then what was loaded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ToolDefinition>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<Value>,
    /// How many messages were sent before this time and are sent again.
    after: usize,
    messages: Vec<Message>,
}

/// A line of `from_model.jsonl`: what came back.
#[derive(Serialize)]
struct Heard<'a> {
    stream: &'a str,
    effect: &'a str,
    attempt: u32,
    time: i64,
    #[serde(flatten)]
    outcome: ModelOutcome,
}

impl Record {
    /// A record of one session in `folder`, begun anew.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            tree: Tree::default(),
            runs: HashMap::new(),
            requests: HashMap::new(),
            begun: BTreeSet::new(),
        }
    }

    /// Whether a session that starts with `spec` has one.
    pub fn is_kept(spec: &RunSpec) -> bool {
        spec.terms.record
    }

    /// Writes down what an event of any of the session's streams adds.
    pub async fn tell(&mut self, ledger: &dyn Ledger, event: &Event) -> Result<(), RecordError> {
        let run = self.runs.entry(event.stream.clone()).or_default();
        // What is due before a call has begun is the call.
        let call = match &*event.kind {
            "ModelCallStarted" => due(&run.machine),
            _ => None,
        };
        run.machine.apply(event)?;
        self.tree.apply(event)?;
        if &*event.kind == "RunStarted" {
            let started: RunStarted<RunSpec> = event.decode()?;
            let request = ledger.text(&started.spec.request).await?;
            if let Ok(request) = serde_json::from_str(&request) {
                self.requests.insert(event.stream.clone(), request);
            }
        }
        let Some(node) = self.tree.node(&event.stream).cloned() else {
            return Ok(());
        };
        let place = self.place(&node)?;
        match (&*event.kind, call) {
            ("ModelCallStarted", Some(call)) => self.sent(ledger, event, &place, &call).await?,
            ("ModelCallFinished" | "ModelCallInterrupted", _) => {
                heard(ledger, event, &place).await?;
            }
            ("RunStarted" | "RunPaused" | "RunResumed" | "RunFinished" | "RunCancelled", _) => {}
            ("MergeFinished" | "ToolCallInDoubt" | "MessageTaken", _) => {}
            _ => return Ok(()),
        }
        replace(&place.join(METADATA), &metadata(&self.tree, &node))?;
        let summary = summary::summary(&self.tree, &self.requests);
        replace(&self.folder.join(SUMMARY), &summary)
    }

    /// The folder of an agent's task; what an earlier record left there is gone.
    fn place(&mut self, node: &Node) -> Result<PathBuf, RecordError> {
        let name = match TAKEN.contains(&node.agent.as_str()) {
            true => format!("{}-agent", node.agent),
            false => node.agent.clone(),
        };
        // What is stored may be older than the rule for names, and what stands there goes.
        let mut parts = Path::new(&name).components();
        let (Some(Component::Normal(_)), None) = (parts.next(), parts.next()) else {
            let wrong = std::io::ErrorKind::InvalidFilename.into();
            return Err(unwritable(Path::new(&name))(wrong));
        };
        let of_agent = self.folder.join(name);
        if self.begun.insert(of_agent.clone()) {
            match std::fs::remove_dir_all(&of_agent) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(unwritable(&of_agent)(error));
                }
                _ => {}
            }
        }
        let place = match node.task {
            Some(task) => of_agent.join(format!("task-{task:03}")),
            None => of_agent,
        };
        std::fs::create_dir_all(&place).map_err(unwritable(&place))?;
        Ok(place)
    }

    async fn sent(
        &mut self,
        ledger: &dyn Ledger,
        event: &Event,
        place: &Path,
        call: &ModelCall,
    ) -> Result<(), RecordError> {
        let started: Started = event.decode()?;
        let run = self.runs.get_mut(&event.stream).expect("it began");
        let before = std::mem::replace(&mut run.sent, call.messages.clone());
        let same = before.iter().zip(&run.sent).take_while(|(a, b)| a == b);
        let after = same.count();
        let mut messages = Vec::new();
        for message in run.sent.iter().skip(after) {
            messages.push(at_hand(ledger, message).await?);
        }
        let mut tools = tools_sent(ledger, &call.spec, &call.loaded).await?;
        let known = run.tools.replace(tools.len());
        tools.drain(..known.unwrap_or(0).min(tools.len()));
        let (mut system, mut output_schema) = (None, None);
        if known.is_none() {
            system = Some(ledger.text(&call.spec.system).await?);
            output_schema.clone_from(&call.spec.output_schema);
        }
        let line = Sent {
            stream: event.stream.as_str(),
            effect: started.effect.as_str(),
            attempt: started.attempt,
            time: event.time.0,
            model: &call.spec.model,
            system,
            tools,
            output_schema,
            after,
            messages,
        };
        append(&place.join(TO_MODEL), &line)
    }
}

/// The model call that is due.
fn due(machine: &AgentMachine) -> Option<ModelCall> {
    let Due::Effects(effects) = machine.due() else {
        return None;
    };
    effects.into_iter().find_map(|effect| match effect.act {
        Act::Call(AgentCall::Model(call)) => Some(call),
        _ => None,
    })
}

async fn heard(ledger: &dyn Ledger, event: &Event, place: &Path) -> Result<(), RecordError> {
    let (effect, attempt, outcome) = match &*event.kind {
        "ModelCallFinished" => {
            let finished: Finished<ModelOutcome> = event.decode()?;
            (finished.effect, finished.attempt, Some(finished.outcome))
        }
        _ => {
            let ended: Unfinished<ModelOutcome> = event.decode()?;
            (ended.effect, ended.attempt, ended.left)
        }
    };
    let Some(mut outcome) = outcome else {
        return Ok(());
    };
    match &mut outcome {
        ModelOutcome::Answered { response, .. } => {
            response.message = at_hand(ledger, &response.message).await?;
        }
        ModelOutcome::BrokenOff(broken) => {
            broken.text = Payload::inline(ledger.text(&broken.text).await?);
        }
        ModelOutcome::Failed { .. } => {}
    }
    let line = Heard {
        stream: event.stream.as_str(),
        effect: effect.as_str(),
        attempt,
        time: event.time.0,
        outcome,
    };
    append(&place.join(FROM_MODEL), &line)
}

/// A message with all its text in it.
async fn at_hand(ledger: &dyn Ledger, message: &Message) -> Result<Message, LedgerError> {
    let mut message = message.clone();
    for payload in message.parts.iter_mut().flat_map(Part::payloads_mut) {
        *payload = Payload::inline(ledger.text(payload).await?);
    }
    Ok(message)
}

/// What is known of an agent; of one that leads others, over all its missions.
fn metadata(tree: &Tree, node: &Node) -> Value {
    let is_of_it = |other: &&Node| match node.task {
        Some(_) => other.stream == node.stream,
        None => other.agent == node.agent && other.task.is_none(),
    };
    let all: Vec<&Node> = tree.nodes().iter().filter(is_of_it).collect();
    json!({
        "agent": node.agent,
        "task": node.task,
        "stream": node.stream.as_str(),
        "parent": node.parent.as_ref().map(StreamId::as_str),
        "about": node.title,
        "model": node.model,
        "state": node.state,
        "runs": all.len(),
        "turns": all.iter().map(|node| node.turns).sum::<u64>(),
        "cost": all.iter().map(|node| node.cost).sum::<Usd>(),
        "cost_is_known": all.iter().all(|node| !node.is_unpriced),
        "started": all.first().unwrap_or(&node).started.0,
        "ended": node.ended.map(|time| time.0),
    })
}

fn append(path: &Path, line: &impl Serialize) -> Result<(), RecordError> {
    let mut text = serde_json::to_string(line).expect("plain data");
    text.push('\n');
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file: File| file.write_all(text.as_bytes()))
        .map_err(unwritable(path))
}

/// Puts a whole file in the place of another: who reads it sees one of them.
fn replace(path: &Path, value: &Value) -> Result<(), RecordError> {
    let text = serde_json::to_string_pretty(value).expect("plain data");
    let unfinished = path.with_extension("tmp");
    std::fs::write(&unfinished, text + "\n")
        .and_then(|()| std::fs::rename(&unfinished, path))
        .map_err(unwritable(path))
}

fn unwritable(path: &Path) -> impl Fn(std::io::Error) -> RecordError {
    let path = path.to_owned();
    move |source| RecordError::Unwritable {
        path: path.clone(),
        source,
    }
}

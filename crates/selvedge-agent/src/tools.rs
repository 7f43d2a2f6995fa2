//! The calls of one answer: what is due for each, in which order, and its result.
//!
//! Calls that only look run side by side. One that changes something waits for
//! those before it, and those after it wait for it: the model wrote them in order.

use std::sync::Arc;

use selvedge_ledger::Payload;
use selvedge_model::{ToolCall, ToolResult};
use selvedge_runtime::{
    Act, Approval, ChildSpec, Effect, EffectId, Ending, Nature, Question, Status,
};
use selvedge_tool::World;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call::{AgentCall, ToolOutcome, ToolUse};
use crate::reply;
use crate::spec::{Approve, RunSpec};

/// The name of the tool by which an agent hands work to another.
pub const DELEGATE: &str = "delegate";
/// The kind of stream that an agent machine folds.
pub const AGENT: &str = "agent";

/// A call of an answer, until the model is told what came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pending {
    /// `t3.0`: the first call of the fourth answer.
    name: String,
    call: ToolCall,
    step: Step,
    #[serde(default)]
    ending: Option<Ending>,
    /// Whether its result is on record by itself, and can be read again.
    #[serde(default)]
    on_record: bool,
}

/// How far a call is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Step {
    /// To be asked about: may this be done?
    Approve,
    /// To be carried out.
    Use(World),
    /// To be asked of a human.
    Ask,
    /// To be handed to another agent.
    Delegate,
    /// Done; the result.
    Resolved(ToolResult),
}

impl Pending {
    /// The `n`-th call of answer `turn`.
    pub fn new(spec: &RunSpec, turn: u32, n: usize, call: ToolCall) -> Self {
        let name = format!("t{turn}.{n}");
        let mut pending = Self {
            name,
            call,
            step: Step::Ask,
            ending: None,
            on_record: false,
        };
        pending.step = pending.first_step(spec);
        pending
    }

    fn first_step(&mut self, spec: &RunSpec) -> Step {
        // A tool that does not exist goes the usual way: the toolbox refuses it.
        let world = spec
            .tools
            .get(&self.call.name)
            .copied()
            .unwrap_or(World::Reads);
        match world {
            World::Reads | World::Writes => Step::Use(world),
            World::Runs => match spec.approve {
                Approve::Auto => Step::Use(world),
                Approve::Ask => Step::Approve,
                Approve::Never => self.refused("commands are not allowed in this run"),
            },
            World::Asks => match self.argument("question") {
                Some(_) => Step::Ask,
                None => self.failed("`question` is missing"),
            },
            World::Ends => self.finish(spec),
            World::Delegates => match (self.argument("agent"), self.argument("task")) {
                (Some(agent), Some(_)) if spec.team.contains_key(&agent) => Step::Delegate,
                (Some(agent), Some(_)) => {
                    let known: Vec<&str> = spec.team.keys().map(String::as_str).collect();
                    self.failed(&format!(
                        "there is no agent `{agent}`; there are: {}",
                        known.join(", ")
                    ))
                }
                _ => self.failed("`agent` and `task` are needed"),
            },
        }
    }

    fn finish(&mut self, spec: &RunSpec) -> Step {
        let text = self.call.arguments.text().map_or("", |t| &**t);
        let arguments: Value = match serde_json::from_str(text) {
            Ok(arguments) => arguments,
            Err(error) => return self.failed(&format!("the arguments are not JSON: {error}")),
        };
        let mut ending = Ending {
            status: Status::Done,
            result: Payload::inline(arguments["summary"].as_str().unwrap_or_default()),
            data: None,
        };
        if let Some(schema) = &spec.output_schema {
            let data = arguments["result"].clone();
            if let Err(why) = reply::fits(schema, &data) {
                return self.failed(&format!("`result` does not fit the required schema: {why}"));
            }
            ending.data = Some(data);
        }
        if arguments["outcome"] == "failed" {
            ending.status = Status::Failed;
        }
        self.ending = Some(ending);
        self.resolved("The run has ended.", false)
    }

    /// Whether `effect` belongs to this call.
    pub fn is_about(&self, effect: &EffectId) -> bool {
        let name = effect.as_str();
        name == self.name || name.strip_suffix('?') == Some(&self.name)
    }

    /// How its result can be read again; empty if it cannot.
    pub fn pointer(&self) -> &str {
        if self.on_record { &self.name } else { "" }
    }

    /// Whether the model can be told.
    pub fn is_resolved(&self) -> bool {
        matches!(self.step, Step::Resolved(_))
    }

    /// What the model is told.
    pub fn into_result(self) -> ToolResult {
        match self.step {
            Step::Resolved(result) => result,
            _ => unreachable!("only resolved calls are turned into results"),
        }
    }

    /// The tool answered.
    pub fn finished(&mut self, outcome: ToolOutcome) {
        let mut content = outcome.text;
        if outcome.interrupted && content.is_empty() {
            content = Payload::new("[interrupted before there was output]");
        }
        self.record(content, outcome.is_error);
    }

    /// Nobody knows whether the tool did it.
    pub fn in_doubt(&mut self) {
        self.step = self.resolved(
            "The process was stopped while this call was under way. It may or may not have \
             happened, or only in part, and it was not repeated. Check before you go on.",
            true,
        );
    }

    /// A human answered: a question, or whether this may be done.
    pub fn answered(&mut self, answer: &Payload) {
        if self.step != Step::Approve {
            return self.record(answer.clone(), false);
        }
        // A long answer is not at hand here; it is no plain yes, and the model
        // can read it.
        let Some(text) = answer.text().map(|t| t.trim()) else {
            return self.record(answer.clone(), true);
        };
        let (word, rest) = text.split_once([' ', ',', ':']).unwrap_or((text, ""));
        self.step = match word.to_ascii_lowercase().as_str() {
            "y" | "yes" | "allow" | "ok" => Step::Use(World::Runs),
            "n" | "no" | "deny" if rest.trim().is_empty() => self.refused("the user said no"),
            "n" | "no" | "deny" => self.refused(&format!("the user said no: {}", rest.trim())),
            _ => self.refused(&format!("the user answered: {text}")),
        };
    }

    /// The other agent ended.
    pub fn delegated(&mut self, ending: Ending) {
        let content = match &ending.data {
            Some(data) => Payload::inline(data.to_string()),
            None => ending.result,
        };
        self.record(content, ending.status != Status::Done);
    }

    /// A result that an event holds.
    fn record(&mut self, content: Payload, is_error: bool) {
        let id = self.call.id.clone();
        self.on_record = true;
        self.step = Step::Resolved(ToolResult {
            id,
            content,
            is_error,
            images: Vec::new(),
        });
    }

    fn argument(&self, name: &str) -> Option<String> {
        let arguments: Value = serde_json::from_str(self.call.arguments.text()?).ok()?;
        Some(arguments.get(name)?.as_str()?.to_owned())
    }

    fn resolved(&self, text: &str, is_error: bool) -> Step {
        let id = self.call.id.clone();
        Step::Resolved(ToolResult {
            id,
            content: Payload::inline(text),
            is_error,
            images: Vec::new(),
        })
    }

    fn refused(&self, why: &str) -> Step {
        self.resolved(
            &format!("Not run: {why}. Do not try the same again; find another way."),
            true,
        )
    }

    fn failed(&self, why: &str) -> Step {
        self.resolved(&format!("Not done: {why}."), true)
    }

    fn effect(&self, spec: &Arc<RunSpec>) -> Option<Effect<AgentCall>> {
        let id = EffectId::new(self.name.as_str());
        match &self.step {
            Step::Resolved(_) => None,
            Step::Use(world) => {
                let used = ToolUse {
                    spec: spec.clone(),
                    call: self.call.clone(),
                    world: *world,
                };
                Some(Effect {
                    id,
                    act: Act::Call(AgentCall::Tool(used)),
                })
            }
            Step::Approve => {
                let id = EffectId::new(format!("{}?", self.name));
                Some(Effect {
                    id,
                    act: Act::Ask(self.approval(spec)),
                })
            }
            Step::Ask => Some(Effect {
                id,
                act: Act::Ask(self.question()),
            }),
            Step::Delegate => {
                let task = self.argument("task")?;
                // Inline: a spec is handed on as data, which leaves blobs behind.
                let child = spec.child(&self.argument("agent")?, Payload::inline(task))?;
                let spec = serde_json::to_value(child).expect("a spec is plain data");
                let child = ChildSpec {
                    kind: AGENT.into(),
                    spec,
                };
                Some(Effect {
                    id,
                    act: Act::Child(child),
                })
            }
        }
    }

    fn approval(&self, spec: &RunSpec) -> Question {
        let act = self.call.arguments.clone();
        let shown = self
            .argument("command")
            .unwrap_or_else(|| format!("{act:?}"));
        Question {
            text: format!("{} wants to run: {shown}", spec.agent),
            options: vec!["yes".into(), "no".into()],
            approval: Some(Approval {
                digest: digest(spec, &self.call),
                act,
            }),
        }
    }

    fn question(&self) -> Question {
        let arguments: Value = self
            .call
            .arguments
            .text()
            .and_then(|t| serde_json::from_str(t).ok())
            .unwrap_or_default();
        let options = arguments["options"].as_array().cloned().unwrap_or_default();
        Question {
            text: arguments["question"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            options: options
                .iter()
                .filter_map(|o| Some(o.as_str()?.to_owned()))
                .collect(),
            approval: None,
        }
    }
}

/// How the run ends by these calls, which all have their results.
///
/// Not if the model decided so without knowing something: that another call of
/// the same answer would fail, or what a person would answer.
pub fn conclude(spec: &RunSpec, pending: &mut [Pending]) -> Option<Ending> {
    let ending = pending.iter().find_map(|p| p.ending.clone())?;
    let is_asked = |p: &Pending| spec.tools.get(&p.call.name) == Some(&World::Asks);
    let is_news = |p: &&Pending| match &p.step {
        Step::Resolved(result) => result.is_error || is_asked(p),
        _ => false,
    };
    let Some(news) = pending.iter().find(is_news) else {
        return Some(ending);
    };
    let why = format!(
        "Not ended: `{}` of the same answer has a result that you did not know. Read it, then \
         decide.",
        news.call.name
    );
    for finish in pending.iter_mut().filter(|p| p.ending.is_some()) {
        finish.ending = None;
        finish.step = finish.resolved(&why, true);
    }
    None
}

/// What an approval is bound to: the tool, its arguments, and where it runs.
fn digest(spec: &RunSpec, call: &ToolCall) -> String {
    let arguments = match (call.arguments.text(), call.arguments.blob()) {
        (Some(text), _) => text.to_string(),
        (None, blob) => blob.map(|b| b.to_string()).unwrap_or_default(),
    };
    let bound = (&call.name, arguments, &spec.workspace);
    let bytes = serde_json::to_vec(&bound).expect("strings serialize");
    selvedge_ledger::BlobId::of(&bytes).to_string()
}

/// What is due for the calls of an answer.
pub fn due(spec: &Arc<RunSpec>, pending: &[Pending]) -> Vec<Effect<AgentCall>> {
    let mut effects = Vec::new();
    for call in pending.iter().filter(|p| !p.is_resolved()) {
        let changes = match &call.step {
            Step::Use(world) => world.nature() == Nature::Changes,
            Step::Approve => true,
            Step::Ask | Step::Delegate | Step::Resolved(_) => false,
        };
        if changes && !effects.is_empty() {
            break;
        }
        effects.extend(call.effect(spec));
        if changes {
            break;
        }
    }
    effects
}

//! The calls of one answer: what is due for each, in which order, and its result.
//!
//! Calls that only look run side by side. One that changes something waits for
//! those before it, and those after it wait for it: the model wrote them in order.

use std::collections::BTreeMap;
use std::sync::Arc;

use selvedge_ledger::Payload;
use selvedge_model::{ToolCall, ToolResult};
use selvedge_runtime::{
    Act, Approval, ChildSpec, Effect, EffectId, Ending, Nature, Question, Status,
};
use selvedge_tool::{Capability, Decision, Todos, Verdict, World, compact};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::approvals::Answer;
use crate::call::{AgentCall, Approved, Judged, ToolOutcome, ToolUse};
use crate::hooks::{Hooked, Instead};
use crate::reply;
use crate::spec::RunSpec;

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
    /// What hooks made of it, once they were called.
    #[serde(default)]
    hooked: Option<Hooked>,
    /// Of work that is handed on: which task of that agent it is, from 1.
    #[serde(default)]
    task: u32,
}

/// What a run lends to its calls.
pub struct OnDesk {
    /// The stretch of work they belong to.
    pub task: u32,
    /// The todos as they are now.
    pub todos: Arc<Todos>,
}

/// How far a call is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Step {
    /// To be judged: may this be done?
    Judge(World),
    /// To be asked about, because the verdict says so.
    Approve {
        world: World,
        verdict: Box<Verdict>,
        /// How often it was asked about before: each time it was another act.
        round: u32,
    },
    /// To be carried out.
    Use {
        world: World,
        approved: Option<Approved>,
        /// How often it was asked about.
        asked: u32,
    },
    /// To be asked of a human.
    Ask,
    /// To be handed to another agent.
    Delegate,
    /// Done; the result.
    Resolved(ToolResult),
}

impl Step {
    /// To be carried out, with nobody asked.
    fn plain(world: World) -> Self {
        Self::Use {
            world,
            approved: None,
            asked: 0,
        }
    }
}

/// Calls of one answer that are carried out. More than a model can have thought about: a
/// loop that fills answers with calls is held by this and by the number of answers.
const CALLS_MAX: usize = 128;

impl Pending {
    /// The `n`-th call of answer `turn`, after `unfit` results that did not fit.
    pub fn new(spec: &RunSpec, turn: u32, n: usize, call: ToolCall, unfit: u32) -> Self {
        let name = format!("t{turn}.{n}");
        let mut pending = Self {
            name,
            call,
            step: Step::Ask,
            ending: None,
            on_record: false,
            hooked: None,
            task: 0,
        };
        pending.step = match n < CALLS_MAX {
            true => pending.first_step(spec, unfit),
            false => pending.failed("too many calls at once"),
        };
        pending
    }

    /// Whether it wants to end the run with a result that does not fit.
    pub fn is_unfit(&self, spec: &RunSpec) -> bool {
        let ends = spec.tools.get(&self.call.name) == Some(&World::Ends);
        let is_held = spec.output_schema.is_some() || spec.terms.ends_schema.is_some();
        ends && is_held && self.ending.is_none()
    }

    fn first_step(&mut self, spec: &RunSpec, unfit: u32) -> Step {
        // A tool that does not exist goes the usual way: the toolbox refuses it.
        let world = spec
            .tools
            .get(&self.call.name)
            .copied()
            .unwrap_or(World::Reads);
        match world {
            World::Reads | World::Writes => Step::plain(world),
            World::Runs => Step::Judge(world),
            // Its denial is on record like any other.
            World::Delegates if !spec.policy.role.may(Capability::Delegate) => Step::Judge(world),
            World::Asks => match self.argument("question") {
                Some(_) => Step::Ask,
                None => self.failed("`question` is missing"),
            },
            World::Ends => self.finish(spec, unfit),
            World::Delegates => self.delegation(spec),
        }
    }

    fn delegation(&self, spec: &RunSpec) -> Step {
        if let Some((_, helper)) = spec.helper(&self.call.name) {
            return self.typed_delegation(helper);
        }
        match (self.argument("agent"), self.argument("task")) {
            (Some(agent), Some(_)) if spec.team.contains_key(&agent) => Step::Delegate,
            (Some(agent), Some(_)) => {
                let known: Vec<&str> = spec.team.keys().map(String::as_str).collect();
                self.failed(&format!(
                    "there is no agent `{agent}`; there are: {}",
                    known.join(", ")
                ))
            }
            _ => self.failed("`agent` and `task` are needed"),
        }
    }

    /// Work for an agent that has a schema for it.
    fn typed_delegation(&self, helper: &RunSpec) -> Step {
        let name = &self.call.name;
        let arguments: Value = match serde_json::from_str(self.arguments().unwrap_or_default()) {
            Ok(arguments) => arguments,
            Err(error) => return self.failed(&format!("the arguments are not JSON: {error}")),
        };
        let schema = helper.terms.input_schema.as_ref();
        match schema.map_or(Ok(()), |schema| reply::fits(schema, &arguments)) {
            Ok(()) => Step::Delegate,
            Err(why) => self.failed(&format!(
                "the arguments of `{name}` do not fit its schema: {why}"
            )),
        }
    }

    /// The agent that the work is for, and the request.
    fn handed_on(&self, spec: &RunSpec) -> Option<(String, String)> {
        match spec.helper(&self.call.name) {
            Some((agent, _)) => Some((agent.to_owned(), self.arguments()?.to_owned())),
            None => Some((self.argument("agent")?, self.argument("task")?)),
        }
    }

    /// Gives work that is handed on its number among those of the same agent.
    pub fn number(&mut self, spec: &RunSpec, given: &mut BTreeMap<String, u32>) {
        let is_handed_on = matches!(self.step, Step::Delegate | Step::Judge(World::Delegates));
        if let (true, Some((agent, _))) = (is_handed_on, self.handed_on(spec)) {
            let last = given.entry(agent).or_default();
            *last += 1;
            self.task = *last;
        }
    }

    /// The command that it runs, if it runs one.
    pub fn command(&self, spec: &RunSpec) -> Option<String> {
        let world = spec.tools.get(&self.call.name);
        (world == Some(&World::Runs)).then(|| self.argument("command"))?
    }

    /// What it is about, in a few words.
    pub fn shown(&self) -> String {
        let what = self.argument("command").or_else(|| self.argument("path"));
        let what = what.map_or(String::new(), |what| format!(" {}", compact(&what)));
        format!("{}{what}", self.call.name)
    }

    fn finish(&mut self, spec: &RunSpec, unfit: u32) -> Step {
        let text = self.call.arguments.text().map_or("", |t| &**t);
        let arguments: Value = match serde_json::from_str(text) {
            Ok(arguments) => arguments,
            Err(error) => return self.failed(&format!("the arguments are not JSON: {error}")),
        };
        let name = &self.call.name;
        let schema = spec.terms.ends_schema.as_ref();
        match schema.map_or(Ok(()), |schema| reply::fits(schema, &arguments)) {
            Ok(()) => {}
            Err(why) if unfit < reply::REMINDERS_MAX => {
                return self.failed(&format!(
                    "the arguments of `{name}` do not fit its schema: {why}"
                ));
            }
            Err(why) => {
                self.ending = Some(reply::unfit(&why));
                return self.resolved("The run has ended.", false);
            }
        }
        let mut ending = Ending {
            status: Status::Done,
            result: Payload::inline(arguments["summary"].as_str().unwrap_or_default()),
            data: None,
        };
        if let Some(schema) = &spec.output_schema {
            let data = arguments["result"].clone();
            match reply::fits(schema, &data) {
                Ok(()) => ending.data = Some(data),
                Err(why) if unfit < reply::REMINDERS_MAX => {
                    let why = format!("`result` does not fit the required schema: {why}");
                    return self.failed(&why);
                }
                Err(why) => ending = reply::last_resort(spec, schema, data, &why),
            }
        }
        if arguments["outcome"] == "failed" {
            ending.status = Status::Failed;
        }
        self.ending = Some(ending);
        self.resolved("The run has ended.", false)
    }

    /// Whether `effect` belongs to this call.
    pub fn is_about(&self, effect: &EffectId) -> bool {
        // `t3.0!` is its judgement, `t3.0?` and `t3.0?2` ask about it.
        let name = effect.as_str();
        name.split(['!', '?']).next() == Some(&self.name)
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

    /// It was judged, and hooks were called before that.
    pub fn judged(&mut self, spec: &RunSpec, judged: Judged) {
        let Step::Judge(world) = self.step else {
            return;
        };
        let Judged { verdict, hooked } = judged;
        let hooked = hooked.unwrap_or_default();
        match &hooked.instead {
            Some(Instead::Stop(why)) => {
                self.step = self.resolved(&Hooked::refusal(why), true);
                return;
            }
            Some(Instead::Answer(answer)) => {
                self.step = self.resolved(answer, false);
                return;
            }
            None => self.hooked = Some(hooked),
        }
        self.step = match verdict.decision() {
            Decision::Allow if world == World::Delegates => self.delegation(spec),
            Decision::Allow => Step::plain(world),
            Decision::Ask => Step::Approve {
                world,
                verdict: Box::new(verdict),
                round: 0,
            },
            Decision::Deny => self.resolved(&verdict.refusal(), true),
        };
    }

    /// The tool answered.
    pub fn finished(&mut self, spec: &RunSpec, outcome: ToolOutcome) {
        if let (Some(verdict), Step::Use { world, asked, .. }) = (&outcome.asks, &self.step) {
            self.step = Step::Approve {
                world: *world,
                verdict: verdict.clone(),
                round: *asked,
            };
            self.hooked = Some(outcome.hooked.unwrap_or_default());
            return;
        }
        let end = outcome.facts.get("end").filter(|_| !outcome.is_error);
        if let Some(end) = end.filter(|_| spec.terms.heeds.contains(&outcome.tool)) {
            self.ending = Some(Ending {
                status: Status::Done,
                result: outcome.text.clone(),
                data: Some(json!({ "end": end })),
            });
        }
        let mut content = outcome.text;
        if outcome.interrupted && content.is_empty() {
            content = Payload::new("[interrupted before there was output]");
        }
        self.record(content, outcome.is_error);
    }

    /// It comes too late: nothing is changed any more.
    pub fn stop(&mut self, why: &str) {
        let world = match &self.step {
            Step::Judge(world) | Step::Approve { world, .. } | Step::Use { world, .. } => *world,
            Step::Ask | Step::Delegate | Step::Resolved(_) => return,
        };
        if world.nature() == Nature::Changes {
            self.step = self.failed(why);
        }
    }

    /// Whether it waits for what a person has to say, other than a yes or a no.
    pub fn asks(&self) -> bool {
        self.step == Step::Ask
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
        let (world, digest, round) = match &self.step {
            Step::Ask => return self.record(answer.clone(), false),
            Step::Approve {
                world,
                verdict,
                round,
            } => (*world, verdict.digest.clone(), *round),
            // It was answered before.
            _ => return,
        };
        // A long answer is not at hand here; it is no plain yes, and the model
        // can read it.
        let Some(text) = answer.text() else {
            return self.record(answer.clone(), true);
        };
        self.step = match Answer::read(text) {
            Answer::Yes(scope) => Step::Use {
                world,
                approved: Some(Approved { digest, scope }),
                asked: round + 1,
            },
            Answer::No(why) if why.is_empty() => self.refused("the user said no"),
            Answer::No(why) => self.refused(&format!("the user said no: {why}")),
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

    /// The arguments it will be carried out with, if they are at hand.
    fn arguments(&self) -> Option<&str> {
        let changed = self.hooked.as_ref().and_then(|h| h.arguments.as_deref());
        changed.or_else(|| self.call.arguments.text().map(|text| &**text))
    }

    fn argument(&self, name: &str) -> Option<String> {
        let arguments: Value = serde_json::from_str(self.arguments()?).ok()?;
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

    fn effect(&self, spec: &Arc<RunSpec>, desk: &OnDesk) -> Option<Effect<AgentCall>> {
        let id = EffectId::new(self.name.as_str());
        match &self.step {
            Step::Resolved(_) => None,
            Step::Use {
                world, approved, ..
            } => {
                let used = self.used(spec, desk, *world, approved.clone());
                Some(Effect {
                    id,
                    act: Act::Call(AgentCall::Tool(used)),
                })
            }
            Step::Judge(world) => {
                let used = self.used(spec, desk, *world, None);
                Some(Effect {
                    id: EffectId::new(format!("{}!", self.name)),
                    act: Act::Call(AgentCall::Judge(used)),
                })
            }
            Step::Approve { verdict, round, .. } => {
                // An answer to an earlier question is none to this one.
                let again = match round {
                    0 => String::new(),
                    round => (round + 1).to_string(),
                };
                Some(Effect {
                    id: EffectId::new(format!("{}?{again}", self.name)),
                    act: Act::Ask(self.approval(spec, verdict)),
                })
            }
            Step::Ask => Some(Effect {
                id,
                act: Act::Ask(self.question()),
            }),
            Step::Delegate => {
                let (agent, request) = self.handed_on(spec)?;
                // Inline: a spec is handed on as data, which leaves blobs behind.
                let mut child = spec.child(&agent, Payload::inline(request))?;
                child.terms.task = self.task;
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

    fn used(
        &self,
        spec: &Arc<RunSpec>,
        desk: &OnDesk,
        world: World,
        approved: Option<Approved>,
    ) -> ToolUse {
        ToolUse {
            spec: spec.clone(),
            call: self.call.clone(),
            world,
            approved,
            hooked: self.hooked.clone(),
            task: desk.task,
            todos: desk.todos.clone(),
        }
    }

    fn approval(&self, spec: &RunSpec, verdict: &Verdict) -> Question {
        let changed = self.hooked.as_ref().and_then(|h| h.arguments.as_deref());
        let act = changed.map_or_else(|| self.call.arguments.clone(), Payload::inline);
        let wants = match (self.argument("command"), self.argument("path")) {
            (Some(command), _) => format!("run: {}", compact(&command)),
            (None, Some(path)) => format!("use {} on: {}", self.call.name, compact(&path)),
            (None, None) => format!("use {}", self.call.name),
        };
        let finding = &verdict.finding;
        Question {
            text: format!("{} wants to {wants}", spec.agent),
            options: Answer::OPTIONS.map(str::to_owned).into(),
            approval: Some(Approval {
                act,
                digest: verdict.digest.clone(),
                lasting: verdict.lasting.clone(),
                because: format!("{} ({})", finding.reason, finding.rule),
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

/// What is due for the calls of an answer.
pub fn due(spec: &Arc<RunSpec>, desk: &OnDesk, pending: &[Pending]) -> Vec<Effect<AgentCall>> {
    let mut effects = Vec::new();
    for call in pending.iter().filter(|p| !p.is_resolved()) {
        let changes = match &call.step {
            Step::Use { world, .. } | Step::Judge(world) => world.nature() == Nature::Changes,
            Step::Approve { .. } => true,
            Step::Delegate => {
                let helper = spec.helper(&call.call.name);
                helper.is_some_and(|(_, helper)| helper.terms.alone)
            }
            Step::Ask | Step::Resolved(_) => false,
        };
        if changes && !effects.is_empty() {
            break;
        }
        effects.extend(call.effect(spec, desk));
        if changes {
            break;
        }
    }
    effects
}

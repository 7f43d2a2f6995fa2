//! The agent loop as a machine: ask the model, run its tools, repeat.
//!
//! `apply` folds what happened; `due` reads off what must happen next. Everything
//! an agent decides by itself is in this file and in `reply`, `tools` and
//! `context` beside it, and none of it does I/O.

mod headway;
mod keeping;

use std::collections::BTreeMap;
use std::sync::Arc;

use selvedge_ledger::{Event, LedgerError, Payload};
use selvedge_model::{Message, Messages, Part, Role};
use selvedge_runtime::{
    Act, BudgetRaised, ChildFinished, Due, Effect, EffectId, Ending, Finished, Machine,
    MessageTaken, Nature, QuestionAnswered, RunStarted, Status, SteerMode, Unfinished,
};
use selvedge_tool::{REQUEST_TOOLS, TOOL_SEARCH, Todos};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::call::{AgentCall, Judged, ModelCall, ModelOutcome, Purpose, ToolOutcome};
use crate::claims::Deeds;
use crate::context::{Context, Fit};
use crate::hooks::{Restore, RestoreOutcome, Strikes};
use crate::reply::{self, Meaning};
use crate::spec::RunSpec;
use crate::tools::{OnDesk, Pending};
use crate::upkeep::{COPY_REMOVED, UpkeepOutcome};
use headway::Headway;
use keeping::Keeping;

/// What the ending of a run says that had a part of somebody's model calls and needed more.
pub const LACKS_CALLS: &str = "lacks_model_calls";

/// An agent at work.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AgentMachine {
    spec: Option<Arc<RunSpec>>,
    budget_usd: Option<f64>,
    #[serde(default)]
    budget_tokens: Option<u64>,
    phase: Phase,
    context: Context,
    /// Model calls that were answered.
    turn: u32,
    /// Reminders given for the current answer.
    reminders: u32,
    /// Results of the run, one after the other, that did not fit the schema.
    #[serde(default)]
    unfit: u32,
    /// How often work has failed in a row.
    #[serde(default)]
    strikes: Strikes,
    /// How often work was handed to whom.
    #[serde(default)]
    tasks: BTreeMap<String, u32>,
    /// What its tools did, where its result is held against it.
    #[serde(default)]
    deeds: Deeds,
    /// How the last work that it handed on ended.
    #[serde(default)]
    last_child: Option<Status>,
    /// The commit that the copy it works on began with.
    #[serde(default)]
    base: Option<String>,
    /// The tools on offer that it loaded, in their order: it only ever grows.
    #[serde(default)]
    loaded: Arc<Vec<String>>,
    /// The todos, where the run has any.
    #[serde(default)]
    todos: Arc<Todos>,
    /// How it stands with them.
    #[serde(default)]
    headway: Headway,
    /// What people said since the last request, and what waits for the end.
    steering: Vec<Payload>,
    queued: Vec<Payload>,
    /// The next request. Derived: made anew after a snapshot is restored.
    #[serde(skip)]
    request: Option<Messages>,
}

/// What an agent is doing.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
enum Phase {
    /// Nothing yet.
    #[default]
    New,
    /// Waiting for a model's answer.
    Asking(Purpose),
    /// Waiting for tools.
    Acting(Vec<Pending>),
    /// Waiting until files are what they were.
    Restoring,
    /// Waiting for what the work needs, apart from models and tools.
    Keeping(Keeping),
    /// Nothing any more.
    Ended(Ending),
}

impl Machine for AgentMachine {
    type Call = AgentCall;

    fn apply(&mut self, event: &Event) -> Result<(), LedgerError> {
        match &*event.kind {
            "RunStarted" => self.start(event.decode::<RunStarted<RunSpec>>()?.spec),
            "ModelCallFinished" => {
                self.answered(event.decode::<Finished<ModelOutcome>>()?.outcome);
            }
            "ToolCallFinished" => {
                let Finished {
                    effect, outcome, ..
                } = event.decode::<Finished<ToolOutcome>>()?;
                self.heed(&outcome);
                self.witness(&effect, &outcome);
                self.load(requested(&outcome));
                self.note(&outcome);
                let spec = self.spec().clone();
                self.resolve(&effect, |pending| pending.finished(&spec, outcome));
            }
            "JudgementFinished" => {
                let finished: Finished<Judged> = event.decode()?;
                let spec = self.spec().clone();
                self.resolve(&finished.effect, |pending| {
                    pending.judged(&spec, finished.outcome)
                });
            }
            "RestoreFinished" => {
                self.restored(&event.decode::<Finished<RestoreOutcome>>()?.outcome);
            }
            "ToolCallInDoubt" => {
                let effect = event.decode::<Unfinished>()?.effect;
                if let Some(pending) = self.pending(&effect) {
                    self.deeds.doubt(pending.shown());
                }
                self.resolve(&effect, Pending::in_doubt);
            }
            "QuestionAnswered" => {
                let answered: QuestionAnswered = event.decode()?;
                self.helped(&answered.effect);
                self.resolve(&answered.effect, |pending| {
                    pending.answered(&answered.answer)
                });
            }
            "ChildFinished" => {
                let child: ChildFinished = event.decode()?;
                self.last_child = Some(child.ending.status);
                self.resolve(&child.effect, |pending| pending.delegated(child.ending));
            }
            "CopyFinished" | "SurveyFinished" | "MergeFinished" => {
                self.kept(event.decode::<Finished<UpkeepOutcome>>()?.outcome);
            }
            COPY_REMOVED => self.lose_copy(),
            "MessageTaken" => {
                let message: MessageTaken = event.decode()?;
                match message.mode {
                    SteerMode::Steer => self.steering.push(message.text),
                    SteerMode::Queue => self.queued.push(message.text),
                }
                self.listen();
            }
            "BudgetRaised" => {
                let raised: BudgetRaised = event.decode()?;
                self.budget_usd = raised.usd.or(self.budget_usd);
                self.budget_tokens = raised.tokens.or(self.budget_tokens);
                if let (Some(most), Some(spec)) = (raised.model_calls, &mut self.spec) {
                    let spec = Arc::make_mut(spec);
                    // It may be a part of what the limit holds for.
                    let before = spec.terms.todos.as_ref().map_or(0, |t| t.calls_before);
                    spec.limits.model_calls_max = most.saturating_sub(before);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn due(&self) -> Due<AgentCall> {
        match (&self.phase, &self.spec) {
            (Phase::Asking(purpose), Some(spec)) => {
                Due::Effects(vec![self.model_effect(*purpose, spec)])
            }
            (Phase::Acting(pending), Some(spec)) => {
                let desk = OnDesk {
                    task: self.strikes.task(),
                    todos: self.todos.clone(),
                };
                Due::Effects(crate::tools::due(spec, &desk, pending))
            }
            (Phase::Restoring, Some(spec)) => {
                Due::Effects(self.strikes.due(spec).map(restoring).into_iter().collect())
            }
            (Phase::Keeping(keeping), Some(spec)) => {
                Due::Effects(self.upkeep(keeping, spec).into_iter().collect())
            }
            (Phase::Ended(ending), _) => Due::Ended(ending.clone()),
            (Phase::New, _) | (_, None) => Due::Idle,
        }
    }

    fn snapshot(&self) -> Option<Value> {
        serde_json::to_value(self).ok()
    }

    fn restore(&mut self, state: &str) -> bool {
        match serde_json::from_str::<Self>(state) {
            Ok(machine) => {
                *self = machine;
                if let Phase::Asking(purpose) = self.phase {
                    self.request = Some(self.build(purpose));
                }
                true
            }
            Err(_) => false,
        }
    }
}

impl AgentMachine {
    fn start(&mut self, spec: RunSpec) {
        (self.budget_usd, self.budget_tokens) = (spec.budget_usd, spec.budget_tokens);
        self.context.push(Message::user(spec.request.clone()));
        let todos = spec.terms.todos.as_ref();
        self.todos = Arc::new(todos.map_or_else(Todos::default, |todos| todos.list.clone()));
        self.spec = Some(Arc::new(spec));
        self.prepare();
    }

    fn spec(&self) -> &Arc<RunSpec> {
        self.spec
            .as_ref()
            .expect("every other event follows `RunStarted`")
    }

    /// Goes on to the next model call, if bounds allow.
    fn ask(&mut self) {
        for text in std::mem::take(&mut self.steering) {
            self.strikes.begin_anew();
            self.context.push(Message::user(text));
        }
        let limits = self.spec().limits;
        if self.turn >= limits.model_calls_max {
            self.fail(format!(
                "it used all {} of its model calls",
                limits.model_calls_max
            ));
            return self.lack_calls();
        }
        if let Some(why) = self.stalled() {
            return self.fail(why);
        }
        if self.headway.is_to_compact {
            self.headway.is_to_compact = self.context.compact();
        }
        let purpose = match self.context.fit(&limits) {
            _ if self.headway.is_to_compact => Purpose::Summary,
            Fit::Fits => Purpose::Work,
            Fit::NeedsSummary => Purpose::Summary,
            Fit::TooLarge { tokens } => {
                return self.fail(format!(
                    "its conversation of about {tokens} tokens does not fit into {}, and there is \
                     nothing left to summarise",
                    limits.context_tokens_max
                ));
            }
        };
        self.request = Some(self.build(purpose));
        self.phase = Phase::Asking(purpose);
    }

    fn build(&self, purpose: Purpose) -> Messages {
        let (mut messages, last) = match purpose {
            Purpose::Work => {
                // Said once and for this request only: it is over when work succeeds.
                let warning = self.strikes.warning(self.spec().limits.strikes_max);
                // Last, so that what a provider has cached of the conversation holds.
                let todos = self.spec().terms.todos.as_ref();
                let todos = todos.map(|_| Payload::inline(self.todos.render()));
                let last = [todos, warning.map(Payload::from)];
                (self.context.messages().clone(), last)
            }
            Purpose::Summary => {
                let own = self.spec().terms.summary_request.as_deref();
                let request = Payload::inline(own.unwrap_or(reply::SUMMARY_REQUEST));
                (self.context.to_summarise(), [Some(request), None])
            }
        };
        let last = last.into_iter().flatten();
        messages.extend(last.map(|text| Arc::new(Message::user(text))));
        messages
    }

    fn model_effect(&self, purpose: Purpose, spec: &Arc<RunSpec>) -> Effect<AgentCall> {
        let call = ModelCall {
            spec: spec.clone(),
            turn: self.turn,
            purpose,
            messages: self.request.clone().unwrap_or_default(),
            budget_usd: self.budget_usd,
            budget_tokens: self.budget_tokens,
            loaded: self.loaded.clone(),
        };
        let id = EffectId::new(format!("m{}", self.turn));
        Effect {
            id,
            act: Act::Call(AgentCall::Model(call)),
        }
    }

    fn answered(&mut self, outcome: ModelOutcome) {
        let Phase::Asking(purpose) = self.phase else {
            return;
        };
        self.turn += 1;
        // The conversation is about to grow, which is cheaper while it is not shared.
        self.request = None;
        let response = match outcome {
            ModelOutcome::Answered { response, .. } => response,
            ModelOutcome::Failed { error, .. } => return self.fail(error),
            ModelOutcome::BrokenOff(broken) => return self.fail(broken.why),
        };
        if purpose == Purpose::Summary {
            return self.summarised(reply::summary(&response));
        }
        let meaning = reply::judge(self.spec(), &response, self.reminders);
        self.context.push(response.message);
        match meaning {
            Meaning::Act(calls) => {
                self.reminders = 0;
                // Whoever calls a tool on offer knows what it wants. Its arguments are
                // checked and the call is judged like any other, and if they do not
                // fit, the schema is there with the answer.
                self.load(calls.iter().map(|call| call.name.clone()));
                let spec = self.spec().clone();
                let turn = self.turn - 1;
                let mut pending: Vec<Pending> = calls
                    .into_iter()
                    .enumerate()
                    .map(|(n, call)| Pending::new(&spec, turn, n, call, self.unfit))
                    .collect();
                for call in &mut pending {
                    call.number(&spec, &mut self.tasks);
                }
                self.unfit += u32::from(pending.iter().any(|p| p.is_unfit(&spec)));
                self.phase = Phase::Acting(pending);
                self.stop_if_out();
                self.proceed();
            }
            Meaning::Remind(messages) => {
                self.reminders += 1;
                for message in messages {
                    self.context.push(message);
                }
                self.ask();
            }
            Meaning::End(ending, messages) => {
                for message in messages {
                    self.context.push(message);
                }
                self.end(ending);
            }
        }
    }

    fn summarised(&mut self, summary: Option<String>) {
        let Some(summary) = summary else {
            if self.reminders >= reply::REMINDERS_MAX {
                return self.fail("three summaries of its conversation in a row were empty".into());
            }
            self.reminders += 1;
            return self.ask();
        };
        self.reminders = 0;
        // A summary that did not make the conversation smaller would be asked
        // for again and again.
        let before = self.context.tokens();
        let is_wish = std::mem::take(&mut self.headway.is_to_compact);
        let whole = is_wish.then(|| self.context.clone());
        self.context.summarise(&summary);
        if self.context.tokens() >= before {
            if let Some(whole) = whole {
                // It fits all the same; nothing is gained, and nothing is lost.
                self.context = whole.without_summary();
                return self.ask();
            }
            return self.fail("summarising did not make its conversation smaller".into());
        }
        self.ask();
    }

    /// Applies `update` to the pending call that `effect` belongs to.
    fn resolve(&mut self, effect: &EffectId, update: impl FnOnce(&mut Pending)) {
        let Phase::Acting(pending) = &mut self.phase else {
            return;
        };
        if let Some(pending) = pending.iter_mut().find(|p| p.is_about(effect)) {
            update(pending);
        }
        self.stop_if_out();
        self.proceed();
    }

    /// The call that `effect` belongs to.
    fn pending(&self, effect: &EffectId) -> Option<&Pending> {
        match &self.phase {
            Phase::Acting(pending) => pending.iter().find(|p| p.is_about(effect)),
            _ => None,
        }
    }

    /// Loads those of `names` that are on offer, and are not loaded yet.
    fn load(&mut self, names: impl IntoIterator<Item = String>) {
        let spec = self.spec().clone();
        let Some(offers) = &spec.offers else {
            return;
        };
        for name in names {
            if offers.has(&name) && !self.loaded.contains(&name) {
                Arc::make_mut(&mut self.loaded).push(name);
            }
        }
    }

    /// Counts what a tool came to.
    fn heed(&mut self, outcome: &ToolOutcome) {
        let world = self.spec().tools.get(&outcome.tool);
        if world.is_some_and(|world| world.nature() == Nature::Changes) {
            self.strikes.heed(outcome);
        }
    }

    /// After too many failures, nothing else is changed.
    fn stop_if_out(&mut self) {
        if self.strikes.is_out(self.spec().limits.strikes_max)
            && let Phase::Acting(pending) = &mut self.phase
        {
            let why = self.strikes.refusal();
            pending.iter_mut().for_each(|pending| pending.stop(&why));
        }
    }

    /// Files are what they were: the model is told, and goes on to the end.
    fn restored(&mut self, outcome: &RestoreOutcome) {
        if !matches!(self.phase, Phase::Restoring) {
            return;
        }
        self.strikes.restored();
        self.context.push(Message::user(outcome.tell()));
        self.ask();
    }

    /// What a person answers to an agent that is out is the help it asked for.
    fn helped(&mut self, effect: &EffectId) {
        let Phase::Acting(pending) = &self.phase else {
            return;
        };
        let is_answer = |p: &Pending| p.is_about(effect) && p.asks();
        if self.strikes.is_out(self.spec().limits.strikes_max) && pending.iter().any(is_answer) {
            self.strikes.begin_anew();
        }
    }

    /// When all tools have answered, tells the model, or ends.
    fn proceed(&mut self) {
        let Phase::Acting(pending) = &self.phase else {
            return;
        };
        if !pending.iter().all(Pending::is_resolved) {
            return;
        }
        let Phase::Acting(mut pending) = std::mem::take(&mut self.phase) else {
            return;
        };
        let finish = crate::tools::conclude(self.spec(), &mut pending);
        let is_heeded = finish.as_ref().is_some_and(|ending| self.is_heeded(ending));
        self.settle_todos(is_heeded);
        let names = pending.iter().map(|p| p.pointer().to_owned()).collect();
        let results = pending.into_iter().map(Pending::into_result).collect();
        self.context.push_results(results, names);
        match finish {
            _ if self.strikes.due(self.spec()).is_some() => self.phase = Phase::Restoring,
            Some(ending) if is_heeded => self.close(self.reported(ending)),
            Some(ending) => self.end(ending),
            None => self.ask(),
        }
    }

    /// Goes on if it has said its last words and somebody answers them.
    fn listen(&mut self) {
        if let Phase::Ended(_) = self.phase {
            self.steering.append(&mut self.queued);
            (self.reminders, self.unfit) = (0, 0);
            self.prepare();
        }
    }

    /// Ends, unless somebody said something that was not heard yet.
    fn end(&mut self, ending: Ending) {
        if self.is_spoken_to() {
            return self.ask();
        }
        let ending = self.honest(ending);
        match (&self.spec().terms.claims, &ending.data) {
            (Some(_), Some(_)) => self.phase = Phase::Keeping(Keeping::Comparing(ending)),
            _ => self.close(ending),
        }
    }

    /// Whether somebody said something that was not heard yet. What waited for the end
    /// is heard now.
    fn is_spoken_to(&mut self) -> bool {
        if self.steering.is_empty() && !self.queued.is_empty() {
            self.steering.push(self.queued.remove(0));
        }
        if !self.steering.is_empty() {
            (self.reminders, self.unfit) = (0, 0);
        }
        !self.steering.is_empty()
    }

    /// Work that was put back is not done, whatever the model says of it; nor is what
    /// somebody else was to do and did not.
    fn honest(&self, mut ending: Ending) -> Ending {
        let has_failed = self.last_child.is_some_and(|status| status != Status::Done);
        if self.spec().terms.answerable && has_failed {
            ending.status = Status::Failed;
        }
        if !self.strikes.is_out(self.spec().limits.strikes_max) {
            return ending;
        }
        // Long words are at hand only while they are new, and a fold must not differ.
        let words = match (ending.result.blob(), ending.result.text()) {
            (None, Some(text)) => text,
            _ => "Its last words are in its transcript.",
        };
        Ending {
            status: Status::Failed,
            result: Payload::inline(self.strikes.help(words)),
            data: None,
        }
    }

    fn fail(&mut self, why: String) {
        let result = Payload::inline(why);
        self.phase = Phase::Ended(Ending {
            status: Status::Failed,
            result,
            data: None,
        });
    }

    /// Tells whoever gave the run its part of the model calls that it needed more.
    fn lack_calls(&mut self) {
        let has_part = self.spec().terms.todos.is_some();
        if let (Phase::Ended(ending), true) = (&mut self.phase, has_part) {
            ending.data = Some(json!({ LACKS_CALLS: true }));
        }
    }

    /// The last words of the model, for views.
    pub fn last_text(&self) -> Option<Payload> {
        let last = self
            .context
            .messages()
            .iter()
            .rfind(|m| m.role == Role::Assistant)?;
        last.parts.iter().find_map(|p| match p {
            Part::Text { text } => Some(text.clone()),
            _ => None,
        })
    }
}

/// The tools that a call asked for and was given. They are on record, so that a fold
/// does not depend on how an intent is understood later.
fn requested(outcome: &ToolOutcome) -> Vec<String> {
    let loads = [REQUEST_TOOLS, TOOL_SEARCH].contains(&outcome.tool.as_str());
    if !loads || outcome.is_error {
        return Vec::new();
    }
    let loaded = outcome.facts["loaded"].as_array();
    let names = loaded.into_iter().flatten();
    names
        .filter_map(|n| n.as_str().map(str::to_owned))
        .collect()
}

/// The effect that puts files back; one for each stretch of work.
fn restoring(restore: Restore) -> Effect<AgentCall> {
    let id = EffectId::new(format!("r{}", restore.task));
    Effect {
        id,
        act: Act::Call(AgentCall::Restore(restore)),
    }
}

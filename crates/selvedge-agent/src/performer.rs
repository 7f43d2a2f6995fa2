//! Carries an agent's calls out: the one place where models, tools and the
//! ledger meet.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use selvedge_ledger::{Event, Ledger, LedgerError, Payload, Position, StreamId};
use selvedge_model::{
    Ask, Budget, BudgetError, Delta, Gate, Limits, Message, ModelError, Part, Request, Reservation,
    Response, ToolDefinition, Urgency, Usd,
};
use selvedge_runtime::{
    ChildFinished, Clock, EffectId, Ending, Finished, Hold, Performed, Performer, Probe,
    QuestionAnswered, Scene,
};
use selvedge_tool::{
    Checked, Grants, ResultStore, ToolContext, ToolOutput, Toolbox, Workspace, World,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::call::{
    AgentCall, AgentOutcome, ModelCall, ModelOutcome, Purpose, Reserved, ToolOutcome, ToolUse,
};
use crate::hooks::{Hooked, Hooks, Instead, Keeper, answered};
use crate::judging::Judge;
use crate::usage::Spending;

/// Carries an agent's calls out.
pub struct AgentPerformer {
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) clock: Arc<dyn Clock>,
    gate: Arc<Gate>,
    pub(crate) toolbox: Arc<Toolbox>,
    pub(crate) judge: Judge,
    pub(crate) hooks: Hooks,
    pub(crate) keeper: Keeper,
    budgets: tokio::sync::Mutex<HashMap<StreamId, Budget>>,
    workspaces: Mutex<HashMap<PathBuf, Arc<Workspace>>>,
    definitions: Mutex<HashMap<Payload, Arc<[ToolDefinition]>>>,
    /// Model calls that were prepared and have not begun.
    ready: Mutex<HashMap<(StreamId, EffectId), Ready>>,
}

struct Ready {
    request: Request,
    reservation: Reservation,
}

impl AgentPerformer {
    /// Asks models through `gate` and uses tools from `toolbox`.
    pub fn new(
        ledger: Arc<dyn Ledger>,
        clock: Arc<dyn Clock>,
        gate: Arc<Gate>,
        toolbox: Arc<Toolbox>,
    ) -> Self {
        Self {
            ledger,
            clock,
            gate,
            toolbox,
            judge: Judge::default(),
            hooks: Hooks::new(),
            keeper: Keeper::default(),
            budgets: tokio::sync::Mutex::default(),
            workspaces: Mutex::default(),
            definitions: Mutex::default(),
            ready: Mutex::default(),
        }
    }

    /// Remembers in `grants` what a person approves for a project.
    pub fn with_grants(mut self, grants: Grants) -> Self {
        self.judge = self.judge.with_grants(grants);
        self
    }

    /// Calls `hooks` before and after every call.
    pub fn with_hooks(mut self, hooks: Hooks) -> Self {
        self.hooks = hooks;
        self
    }

    /// Keeps what files were before they are changed, in a folder of each session
    /// below `sessions`.
    pub fn with_checkpoints(mut self, sessions: PathBuf) -> Self {
        self.keeper = Keeper::at(sessions);
        self
    }

    /// The session's budget, with what was spent before this process began.
    async fn budget(&self, session: StreamId, usd: Option<f64>) -> Result<Budget, LedgerError> {
        let limits = Limits {
            usd: usd.and_then(Usd::from_dollars),
            ..Limits::default()
        };
        let mut budgets = self.budgets.lock().await;
        if let Some(budget) = budgets.get(&session) {
            budget.raise(limits);
            return Ok(budget.clone());
        }
        let mut spending = Spending::default();
        for event in self
            .ledger
            .session_after(&session, Position::default())
            .await?
            .0
        {
            spending.apply(&event)?;
        }
        let budget = Budget::new(format!("session {session}"), limits);
        let raised = spending.raised_usd.and_then(Usd::from_dollars);
        budget.raise(Limits {
            usd: raised.filter(|_| usd.is_some()),
            ..Limits::default()
        });
        budget.restore(spending.worst());
        budgets.insert(session, budget.clone());
        Ok(budget)
    }

    async fn request(&self, call: &ModelCall) -> Result<Request, LedgerError> {
        let spec = &call.spec;
        let mut messages = Vec::with_capacity(call.messages.len());
        for message in call.messages.iter() {
            messages.push(self.at_hand(message).await?);
        }
        let work = call.purpose == Purpose::Work;
        Ok(Request {
            model: spec.model.clone(),
            agent: spec.agent.clone(),
            turn: call.turn,
            system: self.ledger.text(&spec.system).await?,
            messages,
            tools: self.definitions(&spec.definitions).await?,
            output_schema: spec.output_schema.clone().filter(|_| work).map(Arc::new),
            output_tokens_max: spec.limits.output_tokens_max,
            temperature: None,
        })
    }

    /// The message with every text at hand; nearly always the message itself.
    async fn at_hand(&self, message: &Arc<Message>) -> Result<Arc<Message>, LedgerError> {
        if message.parts.iter().all(is_at_hand) {
            return Ok(message.clone());
        }
        let mut message = (**message).clone();
        for payload in message.parts.iter_mut().flat_map(payloads_mut) {
            *payload = Payload::new(self.ledger.text(payload).await?);
        }
        Ok(Arc::new(message))
    }

    async fn definitions(&self, json: &Payload) -> Result<Arc<[ToolDefinition]>, LedgerError> {
        let known = |d: &HashMap<_, _>| d.get(json).cloned();
        if let Some(known) = known(&self.definitions.lock().expect("no panic under this lock")) {
            return Ok(known);
        }
        let text = self.ledger.text(json).await?;
        let parsed: Vec<ToolDefinition> = serde_json::from_str(&text).unwrap_or_default();
        let parsed: Arc<[ToolDefinition]> = parsed.into();
        let mut definitions = self.definitions.lock().expect("no panic under this lock");
        definitions.insert(json.clone(), parsed.clone());
        Ok(parsed)
    }

    async fn reserve(&self, scene: &Scene, call: &ModelCall) -> Result<Value, Hold> {
        let ledger_hold = |e: LedgerError| Hold {
            reason: "ledger".into(),
            detail: e.to_string(),
            until: None,
        };
        let mut request = self.request(call).await.map_err(ledger_hold)?;
        let hooked = self.pre_model(scene, call, &mut request).await?;
        let session = scene.stream.session();
        let budget = self
            .budget(session, call.budget_usd)
            .await
            .map_err(ledger_hold)?;
        let reservation = self
            .gate
            .reserve(&budget, &request, &call.spec.fallbacks)
            .map_err(|e| self.budget_hold(&e))?;
        let evidence = Reserved {
            reserved: reservation.amount(),
            hooked: hooked.if_any(),
        };
        let key = (scene.stream.clone(), scene.effect.clone());
        let ready = Ready {
            request,
            reservation,
        };
        self.ready
            .lock()
            .expect("no panic under this lock")
            .insert(key, ready);
        Ok(serde_json::to_value(evidence).expect("plain data"))
    }

    fn budget_hold(&self, error: &BudgetError) -> Hold {
        // Calls under way may cost less than was set aside for them.
        let until = error
            .would_fit_later()
            .then(|| self.clock.now().plus_millis(200));
        Hold {
            reason: "budget".into(),
            detail: error.to_string(),
            until,
        }
    }

    async fn ask(&self, scene: Scene, call: ModelCall, evidence: Value) -> Performed<AgentOutcome> {
        let key = (scene.stream.clone(), scene.effect.clone());
        let ready = self
            .ready
            .lock()
            .expect("no panic under this lock")
            .remove(&key);
        let Some(Ready {
            request,
            reservation,
        }) = ready
        else {
            return Performed::Interrupted;
        };
        let hooked = Reserved::deserialize(evidence).ok().and_then(|r| r.hooked);
        let hooked = hooked.unwrap_or_default();
        if let Some(Instead::Answer(text)) = &hooked.instead {
            return Performed::Finished(AgentOutcome::Model(ModelOutcome::Answered {
                response: storable(answered(text), &call),
                cost: Some(Usd::ZERO),
                attempts: 0,
                first_token_ms: 0,
                total_ms: 0,
                hooked: None,
            }));
        }
        let mut deltas = |delta: Delta| {
            if let Delta::Text(text) = delta {
                scene
                    .watcher
                    .model_text(&scene.stream, &scene.effect, &text);
            }
        };
        let ask = Ask {
            request: &request,
            urgency: Urgency {
                awaited: call.spec.awaited,
                ..Urgency::default()
            },
            fallbacks: &call.spec.fallbacks,
        };
        let notice = |text: &str| scene.watcher.notice(&scene.stream, &scene.effect, text);
        match self
            .gate
            .ask(ask, &mut deltas, &notice, &scene.cancel)
            .await
        {
            Ok(mut answered) => {
                reservation.settle(answered.spend());
                let response = &mut answered.response;
                let hooked = match self.post_model(&scene, &call, response).await {
                    Ok(hooked) => hooked.if_any(),
                    Err(hold) => return Performed::Held(hold),
                };
                Performed::Finished(AgentOutcome::Model(ModelOutcome::Answered {
                    response: storable(answered.response, &call),
                    cost: answered.cost,
                    attempts: answered.attempts,
                    first_token_ms: answered.first_token_ms.unwrap_or(answered.total_ms),
                    total_ms: answered.total_ms,
                    hooked,
                }))
            }
            Err(failed) => self.failed(failed.error),
        }
    }

    /// An outage is a pause, not a failure; only a wrong request is one.
    fn failed(&self, error: ModelError) -> Performed<AgentOutcome> {
        let detail = error.to_string();
        let held = |detail, until| {
            Performed::Held(Hold {
                reason: "provider".into(),
                detail,
                until,
            })
        };
        match &error {
            ModelError::Cancelled => Performed::Interrupted,
            ModelError::RateLimited {
                retry_after: Some(wait),
                ..
            } => {
                let millis = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
                held(detail, Some(self.clock.now().plus_millis(millis)))
            }
            ModelError::UserFixable { hint, .. } => held(format!("{detail} ({hint})"), None),
            ModelError::RateLimited { .. }
            | ModelError::Transient { .. }
            | ModelError::Degraded { .. } => held(detail, None),
            ModelError::Permanent { .. } => {
                let tier = error.tier();
                Performed::Finished(AgentOutcome::Model(ModelOutcome::Failed {
                    tier,
                    error: detail,
                }))
            }
        }
    }

    /// Checks a call with the arguments that hooks left it with.
    pub(crate) async fn check(
        &self,
        used: &ToolUse,
        hooked: &Hooked,
    ) -> Result<Checked, ToolOutput> {
        let arguments = match &hooked.arguments {
            Some(changed) => changed.as_str().into(),
            None => self
                .ledger
                .text(&used.call.arguments)
                .await
                .map_err(|e| ToolOutput::error(format!("The arguments cannot be read: {e}")))?,
        };
        if !used.spec.tools.contains_key(&used.call.name) {
            let known: Vec<&str> = used.spec.tools.keys().map(String::as_str).collect();
            return Err(ToolOutput::error(format!(
                "There is no tool `{}` here. Tools: {}.",
                used.call.name,
                known.join(", ")
            )));
        }
        self.toolbox.check(&used.call.name, &arguments)
    }

    pub(crate) fn context(&self, scene: &Scene, used: &ToolUse) -> Result<ToolContext, ToolOutput> {
        let root = &used.spec.workspace;
        let mut workspaces = self.workspaces.lock().expect("no panic under this lock");
        let workspace = match workspaces.get(root) {
            Some(workspace) => workspace.clone(),
            None => {
                let opened = Workspace::open(root).map_err(|e| {
                    ToolOutput::error(format!("The workspace `{}` is gone: {e}", root.display()))
                })?;
                let opened = Arc::new(opened);
                workspaces.insert(root.clone(), opened.clone());
                opened
            }
        };
        let shown = scene.clone();
        Ok(ToolContext {
            workspace,
            policy: Arc::new(used.spec.policy.clone()),
            cancel: scene.cancel.clone(),
            output: Arc::new(move |text| {
                shown
                    .watcher
                    .tool_output(&shown.stream, &shown.effect, text);
            }),
            timeout: Duration::from_secs(used.spec.limits.tool_seconds_max),
            results: Arc::new(Results {
                ledger: self.ledger.clone(),
                stream: scene.stream.clone(),
            }),
        })
    }
}

#[async_trait]
impl Performer<AgentCall> for AgentPerformer {
    async fn prepare(&self, scene: &Scene, call: &AgentCall) -> Result<Value, Hold> {
        match call {
            AgentCall::Model(call) => self.reserve(scene, call).await,
            AgentCall::Tool(used) => Ok(self
                .tool_evidence(scene, used)
                .await
                .unwrap_or_else(|refused| json!(refused))),
            AgentCall::Judge(_) | AgentCall::Restore(_) => Ok(Value::Null),
        }
    }

    async fn perform(
        &self,
        scene: Scene,
        call: AgentCall,
        evidence: Value,
    ) -> Performed<AgentOutcome> {
        match call {
            AgentCall::Model(call) => self.ask(scene, call, evidence).await,
            AgentCall::Tool(used) => self.use_tool(scene, used, evidence).await,
            AgentCall::Judge(used) => self.judge(scene, used).await,
            AgentCall::Restore(restore) => {
                let outcome = self.restore(scene, restore).await;
                Performed::Finished(AgentOutcome::Restored(outcome))
            }
        }
    }

    async fn probe(
        &self,
        scene: &Scene,
        call: &AgentCall,
        evidence: &Value,
    ) -> Probe<AgentOutcome> {
        let AgentCall::Tool(used) = call else {
            return Probe::DidNotHappen;
        };
        self.find_out(scene, used, evidence).await
    }
}

/// The answer with everything that the machine itself must read kept inline.
fn storable(mut response: Response, call: &ModelCall) -> Response {
    let is_text = |p: &&Part| matches!(p, Part::Text { .. });
    let texts = response.message.parts.iter().filter(is_text).count();
    let whole_text =
        call.purpose == Purpose::Summary || call.spec.output_schema.is_some() || texts > 1;
    for part in &mut response.message.parts {
        let payload = match part {
            Part::Text { text } if whole_text => text,
            Part::ToolCall(tool_call) => {
                let world = call.spec.tools.get(&tool_call.name);
                match world {
                    Some(World::Runs | World::Asks | World::Ends | World::Delegates) => {
                        &mut tool_call.arguments
                    }
                    _ => continue,
                }
            }
            _ => continue,
        };
        if let Some(text) = payload.text() {
            *payload = Payload::inline(text.clone());
        }
    }
    response
}

fn is_at_hand(part: &Part) -> bool {
    let at_hand = |payload: &Payload| payload.text().is_some();
    match part {
        Part::Text { text } => at_hand(text),
        Part::Reasoning { text, signature } => at_hand(text) && signature.iter().all(at_hand),
        Part::ToolCall(call) => at_hand(&call.arguments),
        Part::ToolResult(result) => at_hand(&result.content),
    }
}

fn payloads_mut(part: &mut Part) -> Vec<&mut Payload> {
    match part {
        Part::Text { text } => vec![text],
        Part::Reasoning { text, signature } => [text].into_iter().chain(signature).collect(),
        Part::ToolCall(call) => vec![&mut call.arguments],
        Part::ToolResult(result) => vec![&mut result.content],
    }
}

/// Earlier results of a stream, from the ledger.
struct Results {
    ledger: Arc<dyn Ledger>,
    stream: StreamId,
}

#[async_trait]
impl ResultStore for Results {
    async fn result(&self, name: &str) -> Option<Arc<str>> {
        let events = self.ledger.read(&self.stream, 0).await.ok()?;
        let text = events.iter().rev().find_map(|e| result_of(e, name))?;
        self.ledger.text(&text).await.ok()
    }
}

/// The whole result of the call `name`, if `event` is its end.
fn result_of(event: &Event, name: &str) -> Option<Payload> {
    let (effect, text) = match &*event.kind {
        "ToolCallFinished" => {
            let finished: Finished<ToolOutcome> = event.decode().ok()?;
            let outcome = finished.outcome;
            (finished.effect, outcome.whole.unwrap_or(outcome.text))
        }
        "ChildFinished" => {
            let finished: ChildFinished = event.decode().ok()?;
            let Ending { result, data, .. } = finished.ending;
            let data = data.map(|data| Payload::new(data.to_string()));
            (finished.effect, data.unwrap_or(result))
        }
        "QuestionAnswered" => {
            let answered: QuestionAnswered = event.decode().ok()?;
            (answered.effect, answered.answer)
        }
        _ => return None,
    };
    let effect = effect.as_str();
    // `t3.0?` is the approval of call `t3.0`.
    (effect.split('?').next() == Some(name)).then_some(text)
}

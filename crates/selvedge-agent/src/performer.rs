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
    ChildFinished, Clock, EffectId, Ending, Finished, Hold, Nature, Performed, Performer, Probe,
    QuestionAnswered, Scene,
};
use selvedge_tool::{
    Caller, Checked, Lent, ResultStore, ToolContext, ToolOutput, ToolProbe, Toolbox, Workspace,
    World,
};
use serde_json::{Value, json};

use crate::call::{
    AgentCall, AgentOutcome, ModelCall, ModelOutcome, Purpose, Reserved, ToolOutcome, ToolUse,
};
use crate::discretion;
use crate::usage::Spending;

/// Carries an agent's calls out.
pub struct AgentPerformer {
    ledger: Arc<dyn Ledger>,
    clock: Arc<dyn Clock>,
    gate: Arc<Gate>,
    toolbox: Arc<Toolbox>,
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
            budgets: tokio::sync::Mutex::default(),
            workspaces: Mutex::default(),
            definitions: Mutex::default(),
            ready: Mutex::default(),
        }
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
        let mut request = Request {
            model: spec.model.clone(),
            agent: spec.agent.clone(),
            turn: call.turn,
            system: self.ledger.text(&spec.system).await?,
            messages,
            tools: self.definitions(&spec.definitions).await?,
            output_schema: spec.output_schema.clone().filter(|_| work).map(Arc::new),
            output_tokens_max: spec.limits.output_tokens_max,
            temperature: None,
        };
        discretion::request(self.toolbox.secrets(), &mut request);
        Ok(request)
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
        let request = self.request(call).await.map_err(ledger_hold)?;
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

    async fn ask(&self, scene: Scene, call: ModelCall) -> Performed<AgentOutcome> {
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
        let secrets = self.toolbox.secrets();
        let show = |text: &str| {
            if !text.is_empty() {
                scene.watcher.model_text(&scene.stream, &scene.effect, text);
            }
        };
        let mut words = secrets.redactor();
        let mut deltas = |delta: Delta| {
            if let Delta::Text(text) = delta {
                show(&words.push(&text));
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
        let notice = |text: &str| {
            let text = secrets.redact(text);
            scene.watcher.notice(&scene.stream, &scene.effect, &text);
        };
        let asked = self
            .gate
            .ask(ask, &mut deltas, &notice, &scene.cancel)
            .await;
        show(&words.finish());
        match asked {
            Ok(mut answered) => {
                discretion::response(&self.toolbox, &mut answered.response);
                reservation.settle(answered.spend());
                Performed::Finished(AgentOutcome::Model(ModelOutcome::Answered {
                    response: storable(answered.response, &call),
                    cost: answered.cost,
                    attempts: answered.attempts,
                    first_token_ms: answered.first_token_ms.unwrap_or(answered.total_ms),
                    total_ms: answered.total_ms,
                }))
            }
            Err(failed) => self.failed(failed.error),
        }
    }

    /// An outage is a pause, not a failure; only a wrong request is one.
    fn failed(&self, error: ModelError) -> Performed<AgentOutcome> {
        let detail = self
            .toolbox
            .secrets()
            .redact(&error.to_string())
            .into_owned();
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

    async fn check(&self, used: &ToolUse) -> Result<Checked, ToolOutput> {
        let arguments = self
            .ledger
            .text(&used.call.arguments)
            .await
            .map_err(|e| ToolOutput::error(format!("The arguments cannot be read: {e}")))?;
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

    fn context(&self, scene: &Scene, used: &ToolUse) -> Result<ToolContext, ToolOutput> {
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
            caller: Caller {
                agent: used.spec.agent.clone(),
                session: scene.stream.session().to_string(),
            },
            secrets: self.toolbox.secrets().clone(),
            credentials: Lent::default(),
        })
    }

    /// What the tool needs on record, or why it was not begun.
    async fn tool_evidence(&self, scene: &Scene, used: &ToolUse) -> Result<Value, ToolOutput> {
        let checked = self.check(used).await?;
        let context = self.context(scene, used)?;
        self.toolbox.prepare(&context, &checked).await
    }

    async fn use_tool(
        &self,
        scene: Scene,
        used: ToolUse,
        evidence: Value,
    ) -> Performed<AgentOutcome> {
        if let Some(why) = evidence.get(REFUSED).and_then(Value::as_str) {
            return Performed::Finished(outcome(&scene, &used, ToolOutput::error(why)));
        }
        let ready = self
            .check(&used)
            .await
            .and_then(|c| Ok((c, self.context(&scene, &used)?)));
        let output = match ready {
            Ok((checked, context)) => self.toolbox.run(&context, &checked, &evidence).await,
            Err(refusal) => refusal,
        };
        if output.interrupted && used.world.nature() != Nature::Changes {
            return Performed::Interrupted;
        }
        Performed::Finished(outcome(&scene, &used, output))
    }
}

/// The key in the evidence of a call that was refused before it began.
const REFUSED: &str = "refused";

#[async_trait]
impl Performer<AgentCall> for AgentPerformer {
    async fn prepare(&self, scene: &Scene, call: &AgentCall) -> Result<Value, Hold> {
        match call {
            AgentCall::Model(call) => self.reserve(scene, call).await,
            AgentCall::Tool(used) => Ok(self
                .tool_evidence(scene, used)
                .await
                .unwrap_or_else(|refusal| json!({ REFUSED: refusal.text }))),
        }
    }

    async fn perform(
        &self,
        scene: Scene,
        call: AgentCall,
        evidence: Value,
    ) -> Performed<AgentOutcome> {
        match call {
            AgentCall::Model(call) => self.ask(scene, call).await,
            AgentCall::Tool(used) => self.use_tool(scene, used, evidence).await,
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
        if evidence.get(REFUSED).is_some() {
            return Probe::DidNotHappen;
        }
        let (Ok(checked), Ok(context)) = (self.check(used).await, self.context(scene, used)) else {
            return Probe::Unknown;
        };
        match self.toolbox.probe(&context, &checked, evidence).await {
            ToolProbe::Happened(output) => Probe::Happened(outcome(scene, used, output)),
            ToolProbe::DidNotHappen => Probe::DidNotHappen,
            ToolProbe::Unknown => Probe::Unknown,
        }
    }
}

fn outcome(scene: &Scene, used: &ToolUse, output: ToolOutput) -> AgentOutcome {
    let mut text = output.text;
    if output.whole.is_some() {
        text.push_str(&format!(
            "\n[the whole: read_file path=@result/{}]",
            scene.effect
        ));
    }
    AgentOutcome::Tool(ToolOutcome {
        tool: used.call.name.clone(),
        text: Payload::new(text),
        whole: output.whole.map(Payload::new),
        facts: output.facts,
        is_error: output.is_error,
        interrupted: output.interrupted,
    })
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
    (effect == name || effect.strip_suffix('?') == Some(name)).then_some(text)
}

//! Carries an agent's calls out: the one place where models, tools and the
//! ledger meet.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use selvedge_ledger::{Event, Ledger, Payload, StreamId};
use selvedge_model::{Ceilings, Gate, Spend};
use selvedge_runtime::{
    ChildFinished, Clock, Ending, Finished, Hold, Performed, Performer, Probe, QuestionAnswered,
    Scene,
};
use selvedge_tool::{
    Caller, Checked, Desk, Grants, Lent, Offer, ResultStore, Skill, ToolContext, ToolOutput,
    Toolbox, Workspace,
};
use serde_json::{Value, json};

use crate::asking::Asking;
use crate::call::{AgentCall, AgentOutcome, ToolOutcome, ToolUse};
use crate::definitions;
use crate::hooks::{Hooked, Hooks, Keeper};
use crate::judging::Judge;
use crate::spec::RunSpec;

/// Carries an agent's calls out.
pub struct AgentPerformer {
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) clock: Arc<dyn Clock>,
    asking: Asking,
    pub(crate) toolbox: Arc<Toolbox>,
    pub(crate) judge: Judge,
    pub(crate) hooks: Hooks,
    pub(crate) keeper: Keeper,
    workspaces: Mutex<HashMap<PathBuf, Arc<Workspace>>>,
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
            asking: Asking::new(ledger.clone(), clock.clone(), gate, toolbox.clone()),
            ledger,
            clock,
            toolbox,
            judge: Judge::default(),
            hooks: Hooks::new(),
            keeper: Keeper::default(),
            workspaces: Mutex::default(),
        }
    }

    /// Remembers in `grants` what a person approves for a project.
    pub fn with_grants(mut self, grants: Grants) -> Self {
        self.judge = self.judge.with_grants(grants);
        self
    }

    /// Calls `hooks` before and after every call.
    pub fn with_hooks(self, hooks: Hooks) -> Self {
        Self {
            asking: self.asking.with_hooks(hooks.clone()),
            hooks,
            ..self
        }
    }

    /// Keeps what files were before they are changed, in a folder of each session
    /// below `sessions`.
    pub fn with_checkpoints(mut self, sessions: PathBuf) -> Self {
        self.keeper = Keeper::at(sessions);
        self
    }

    /// The same within ceilings that all sessions share.
    pub fn with_ceilings(self, ceilings: Option<Ceilings>) -> Self {
        Self {
            asking: self.asking.with_ceilings(ceilings),
            ..self
        }
    }

    /// What counts against the budget of `session` now, if it has asked a model in
    /// this process: what was spent, and what calls under way may come to.
    pub async fn counted(&self, session: &StreamId) -> Option<(Spend, Spend)> {
        self.asking.counted(session).await
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
        if let Some(why) = used.spec.terms.refused.get(&used.call.name) {
            return Err(ToolOutput::error(why.clone()));
        }
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
            awaited: used.spec.awaited,
            sandbox: Arc::new(used.spec.sandbox.clone()),
            results: Arc::new(Results {
                ledger: self.ledger.clone(),
                stream: scene.stream.clone(),
                spec: used.spec.clone(),
            }),
            caller: Caller {
                agent: used.spec.agent.clone(),
                session: scene.stream.session().to_string(),
            },
            desk: Desk {
                todos: used.todos.clone(),
                settings: Arc::new(used.spec.terms.settings.clone()),
            },
            secrets: self.toolbox.secrets().clone(),
            credentials: Lent::default(),
        })
    }
}

#[async_trait]
impl Performer<AgentCall> for AgentPerformer {
    async fn prepare(&self, scene: &Scene, call: &AgentCall) -> Result<Value, Hold> {
        match call {
            AgentCall::Model(call) => self.asking.reserve(scene, call).await,
            AgentCall::Tool(used) => Ok(self
                .tool_evidence(scene, used)
                .await
                .unwrap_or_else(|refused| json!(refused))),
            AgentCall::Judge(_) | AgentCall::Restore(_) | AgentCall::Upkeep(_) => Ok(Value::Null),
        }
    }

    async fn perform(
        &self,
        scene: Scene,
        call: AgentCall,
        evidence: Value,
    ) -> Performed<AgentOutcome> {
        match call {
            AgentCall::Model(call) => self.asking.ask(scene, call, evidence).await,
            AgentCall::Tool(used) => self.use_tool(scene, used, evidence).await,
            AgentCall::Judge(used) => self.judge(scene, used).await,
            AgentCall::Restore(restore) => {
                let outcome = self.restore(scene, restore).await;
                Performed::Finished(AgentOutcome::Restored(outcome))
            }
            AgentCall::Upkeep(upkeep) => self.keep_up(scene, upkeep).await,
        }
    }

    async fn probe(
        &self,
        scene: &Scene,
        call: &AgentCall,
        evidence: &Value,
    ) -> Probe<AgentOutcome> {
        let used = match call {
            AgentCall::Tool(used) => used,
            AgentCall::Upkeep(upkeep) => return self.upkeep_happened(upkeep),
            _ => return Probe::DidNotHappen,
        };
        self.find_out(scene, used, evidence).await
    }
}

/// What is on record of a run: earlier results, and what it started with.
struct Results {
    ledger: Arc<dyn Ledger>,
    stream: StreamId,
    spec: Arc<RunSpec>,
}

#[async_trait]
impl ResultStore for Results {
    async fn result(&self, name: &str) -> Option<Arc<str>> {
        let events = self.ledger.read(&self.stream, 0).await.ok()?;
        let text = events.iter().rev().find_map(|e| result_of(e, name))?;
        self.ledger.text(&text).await.ok()
    }

    async fn offers(&self) -> Vec<Offer> {
        definitions::offers(&*self.ledger, &self.spec).await
    }

    async fn skills(&self) -> Vec<Skill> {
        self.spec.skills(&*self.ledger).await
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

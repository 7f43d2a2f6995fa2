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
    ChildFinished, Clock, Ending, Finished, Hold, Nature, Performed, Performer, Probe,
    QuestionAnswered, Scene,
};
use selvedge_tool::{
    Caller, Checked, Lent, ResultStore, ToolContext, ToolOutput, ToolProbe, Toolbox, Workspace,
};
use serde_json::{Value, json};

use crate::asking::Asking;
use crate::call::{AgentCall, AgentOutcome, ToolOutcome, ToolUse};

/// Carries an agent's calls out.
pub struct AgentPerformer {
    ledger: Arc<dyn Ledger>,
    asking: Asking,
    toolbox: Arc<Toolbox>,
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
            asking: Asking::new(ledger.clone(), clock, gate, toolbox.clone()),
            ledger,
            toolbox,
            workspaces: Mutex::default(),
        }
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
            awaited: used.spec.awaited,
            sandbox: Arc::new(used.spec.sandbox.clone()),
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
            return Performed::Interrupted(None);
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
            AgentCall::Model(call) => self.asking.reserve(scene, call).await,
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
            AgentCall::Model(call) => self.asking.ask(scene, call).await,
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

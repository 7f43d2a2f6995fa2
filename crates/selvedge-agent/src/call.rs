//! What an agent can call, and what comes of it: the stored shapes.

use std::sync::Arc;

use selvedge_ledger::Payload;
use selvedge_model::{Broken, ErrorTier, Messages, Response, Spend, ToolCall, Usd};
use selvedge_runtime::{Call, Nature};
use selvedge_tool::{Finding, Todos, Verdict, World};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::approvals::Scope;
use crate::hooks::{Failure, Hooked, Restore, RestoreOutcome};
use crate::spec::RunSpec;
use crate::upkeep::{Upkeep, UpkeepOutcome};

/// A call of an agent.
#[derive(Clone, Debug)]
pub enum AgentCall {
    /// Asks a model.
    Model(ModelCall),
    /// Uses a tool.
    Tool(ToolUse),
    /// Judges whether a tool may be used.
    Judge(ToolUse),
    /// Puts files back to what they were.
    Restore(Restore),
    /// Does what the work needs, and no model asks for.
    Upkeep(Upkeep),
}

/// A request to a model; its payloads may have to be fetched.
#[derive(Clone, Debug)]
pub struct ModelCall {
    /// What the run started with.
    pub spec: Arc<RunSpec>,
    /// Ordinal of the call, from 0.
    pub turn: u32,
    /// What the answer is for.
    pub purpose: Purpose,
    /// The conversation.
    pub messages: Messages,
    /// The limit in dollars that holds now.
    pub budget_usd: Option<f64>,
    /// The limit in tokens that holds now.
    pub budget_tokens: Option<u64>,
    /// The tools that were loaded, in their order.
    pub loaded: Arc<Vec<String>>,
}

/// What a model is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The next step of the work.
    Work,
    /// A summary that takes the place of older conversation.
    Summary,
}

/// A tool call to carry out.
#[derive(Clone, Debug)]
pub struct ToolUse {
    /// What the run started with.
    pub spec: Arc<RunSpec>,
    /// As the model wrote it.
    pub call: ToolCall,
    /// What it does to the world; `Reads` for a tool that does not exist.
    pub world: World,
    /// That a person allowed it.
    pub approved: Option<Approved>,
    /// What hooks made of it, if they were called already.
    pub hooked: Option<Hooked>,
    /// The stretch of work it belongs to: what it changes is kept once for each.
    pub task: u32,
    /// The todos of the run, as they are now.
    pub todos: Arc<Todos>,
}

impl ToolUse {
    /// A machine's own use of a tool, which no model asked for: by the way of any other.
    pub fn own(spec: &Arc<RunSpec>, id: &str, tool: &str, arguments: &Value) -> Self {
        Self {
            spec: spec.clone(),
            call: ToolCall {
                id: id.to_owned(),
                name: tool.to_owned(),
                arguments: Payload::inline(arguments.to_string()),
            },
            world: spec.tools.get(tool).copied().unwrap_or(World::Reads),
            approved: None,
            hooked: None,
            task: 0,
            todos: Arc::default(),
        }
    }
}

/// That a person allowed a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approved {
    /// What exactly was allowed.
    pub digest: String,
    /// For how long.
    pub scope: Scope,
}

/// What came of a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AgentOutcome {
    /// Of a model call.
    Model(ModelOutcome),
    /// Of a tool call.
    Tool(ToolOutcome),
    /// Of a judgement.
    Judged(Box<Judged>),
    /// Of putting files back.
    Restored(RestoreOutcome),
    /// Of what the work needed.
    Upkeep(UpkeepOutcome),
}

/// What came of a model call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum ModelOutcome {
    /// A complete answer.
    Answered {
        /// The answer.
        response: Response,
        /// What it cost; absent if the price is unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Usd>,
        /// How often the provider was asked.
        attempts: u32,
        /// Milliseconds from asking to the first piece.
        first_token_ms: u64,
        /// Milliseconds from asking to the end.
        total_ms: u64,
        /// What hooks did to it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hooked: Option<Hooked>,
        /// Whether it is an earlier answer to the same request, given again.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cached: bool,
        /// Why the model that was asked first did not answer, if another did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        because: Option<String>,
    },
    /// No answer, and asking again would not help.
    Failed {
        /// What kind of failure.
        tier: ErrorTier,
        /// What happened.
        error: String,
        /// What was said before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        broken: Option<Broken>,
    },
    /// What an attempt left behind that broke off. It stands in
    /// `ModelCallInterrupted` and is never acted upon.
    BrokenOff(Broken),
}

/// What came of a tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolOutcome {
    /// Which tool.
    pub tool: String,
    /// What the model is told.
    pub text: Payload,
    /// The whole of it, where `text` was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<Payload>,
    /// What a program can rely on.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub facts: Value,
    /// Whether it failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Whether it was stopped before its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// By which rule it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied: Option<Finding>,
    /// That it was not begun, because a person must be asked first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<Box<Verdict>>,
    /// What hooks did to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hooked: Option<Hooked>,
    /// Whether it was a command that only looks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub looks: bool,
    /// How it failed, where that counts against the agent's work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// What came of a judgement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    /// What was decided.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// What hooks made of the call before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hooked: Option<Hooked>,
}

/// The evidence of a model call: what was reserved for it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Reserved {
    /// The worst case.
    pub reserved: Spend,
    /// What hooks did to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hooked: Option<Hooked>,
}

impl Call for AgentCall {
    type Outcome = AgentOutcome;

    fn noun(&self) -> &'static str {
        match self {
            Self::Model(_) => "ModelCall",
            Self::Tool(_) => "ToolCall",
            Self::Judge(_) => "Judgement",
            Self::Restore(_) => "Restore",
            Self::Upkeep(upkeep) => upkeep.chore.noun(),
        }
    }

    fn describe(&self) -> Value {
        match self {
            Self::Model(call) => {
                let mut what = json!({
                    "agent": call.spec.agent,
                    "model": call.spec.model,
                    "purpose": call.purpose,
                    "messages": call.messages.len(),
                });
                if let Some(offers) = &call.spec.offers {
                    what["schema_tokens"] = json!(offers.tokens(&call.loaded));
                }
                what
            }
            Self::Tool(used) | Self::Judge(used) => {
                json!({ "agent": used.spec.agent, "tool": used.call.name })
            }
            Self::Restore(restore) => json!({
                "agent": restore.spec.agent,
                "task": restore.task,
                "failures": restore.failures,
            }),
            Self::Upkeep(upkeep) => json!({ "agent": upkeep.spec.agent }),
        }
    }

    fn nature(&self) -> Nature {
        match self {
            Self::Model(_) => Nature::Costs,
            Self::Tool(used) => used.world.nature(),
            Self::Judge(_) => Nature::Reads,
            // Its probe lets it be begun again: putting back twice is putting back.
            Self::Restore(_) => Nature::Changes,
            Self::Upkeep(upkeep) => upkeep.chore.nature(),
        }
    }

    fn is_brief(&self) -> bool {
        matches!(self, Self::Judge(_))
    }
}

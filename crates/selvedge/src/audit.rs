//! What agents did and were allowed to do: events folded into one list of acts.
//!
//! A projection like all others: it can be made anew from the ledger at any time,
//! and adds nothing to it.

use std::collections::{HashMap, HashSet};

use clap::ValueEnum;
use selvedge_agent::{
    Answer, Hooked, Judged, ModelOutcome, RestoreOutcome, RunSpec, ToolOutcome, UpkeepOutcome,
};
use selvedge_ledger::{Event, Hash, Ledger, LedgerError, Seq, StreamId, Time};
use selvedge_model::Part;
use selvedge_runtime::{
    ChildStarted, EffectId, Finished, MessageTaken, QuestionAnswered, QuestionAsked, RunCancelled,
    RunFinished, RunPaused, RunStarted, Started, Status, Unfinished,
};
use selvedge_tool::{Decision, Finding, World};
use serde::Serialize;
use serde_json::Value;

use crate::sessions::{FORKED, SessionForked};

/// What an act is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// What was allowed, asked and denied.
    Permission,
    /// Files read and changed.
    File,
    /// Commands.
    Process,
    /// Models asked.
    Llm,
    /// Sessions and agents begun, paused, ended.
    Session,
}

/// How an act ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was done, or may be.
    Allowed,
    /// A person was asked.
    Asked,
    /// It was not done, because a rule or a person said so.
    Denied,
    /// It failed, or nobody knows whether it happened.
    Error,
}

/// One act.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// When.
    pub time: Time,
    /// In which session.
    pub session: StreamId,
    /// In which stream of it.
    pub stream: StreamId,
    /// Which event of the stream.
    pub seq: Seq,
    /// Whose act.
    pub agent: String,
    /// What it is about.
    pub category: Category,
    /// What was done.
    pub action: String,
    /// To what.
    pub target: String,
    /// How it ended.
    pub outcome: Outcome,
    /// What else there is to say: a rule, an exit code, a cost.
    pub detail: String,
    /// The event's place in the chain of hashes.
    pub hash: Hash,
}

/// What an act is, apart from where and when.
struct Act {
    category: Category,
    action: String,
    target: String,
    outcome: Outcome,
    detail: String,
}

/// The fold, over the events of one session.
#[derive(Default)]
pub struct Auditor {
    agents: HashMap<StreamId, Agent>,
}

#[derive(Default)]
struct Agent {
    name: String,
    model: String,
    worlds: HashMap<String, World>,
    targets: HashMap<EffectId, (String, String)>,
    approvals: HashSet<EffectId>,
}

impl Auditor {
    /// Folds an event in: what was done, if it is an act.
    pub async fn audit(
        &mut self,
        ledger: &dyn Ledger,
        event: &Event,
    ) -> Result<Option<Entry>, LedgerError> {
        let agent = self.agents.entry(event.stream.clone()).or_default();
        let Some(act) = agent.fold(ledger, event).await? else {
            return Ok(None);
        };
        Ok(Some(Entry {
            time: event.time,
            session: event.stream.session(),
            stream: event.stream.clone(),
            seq: event.seq,
            agent: agent.name.clone(),
            category: act.category,
            action: act.action,
            target: act.target,
            outcome: act.outcome,
            detail: act.detail,
            hash: event.hash,
        }))
    }
}

impl Agent {
    async fn fold(
        &mut self,
        ledger: &dyn Ledger,
        event: &Event,
    ) -> Result<Option<Act>, LedgerError> {
        let done = |action: &str, target: String, detail: String| Act {
            category: Category::Session,
            action: action.to_owned(),
            target,
            outcome: Outcome::Allowed,
            detail,
        };
        Ok(Some(match &*event.kind {
            "RunStarted" => {
                let spec = event.decode::<RunStarted<RunSpec>>()?.spec;
                let directory = spec.directory().display().to_string();
                self.name = spec.agent;
                self.model = spec.model;
                self.worlds = spec.tools.into_iter().collect();
                let detail = format!("crew {}, approve {:?}", spec.crew, spec.approve);
                done("started", directory, detail.to_lowercase())
            }
            FORKED => {
                let forked: SessionForked = event.decode()?;
                let detail = format!("as it was at event {}", forked.at);
                done("forked", forked.from.to_string(), detail)
            }
            "ModelCallFinished" => self.model_call(ledger, event).await?,
            "JudgementFinished" => {
                let finished: Finished<Judged> = event.decode()?;
                let Judged { verdict, hooked } = &finished.outcome;
                self.changed(&finished.effect, hooked.as_ref());
                let finding = &verdict.finding;
                Act {
                    category: Category::Permission,
                    action: "judged".into(),
                    target: self.target(&finished.effect).1,
                    outcome: outcome_of(finding.decision),
                    detail: with_hooks(rule(finding), hooked.as_ref()),
                }
            }
            "ToolCallStarted" => {
                let started: Started = event.decode()?;
                let hooked = Hooked::in_evidence(&started.evidence);
                self.changed(&started.effect, hooked.as_ref());
                return Ok(None);
            }
            "RestoreFinished" => {
                let outcome = event.decode::<Finished<RestoreOutcome>>()?.outcome;
                self.restored(&outcome)
            }
            "CopyFinished" | "MergeFinished" => {
                match event.decode::<Finished<UpkeepOutcome>>()?.outcome {
                    UpkeepOutcome::Copied { base } => Act {
                        category: Category::File,
                        ..done("copied", base, "the directory, to be worked on".into())
                    },
                    UpkeepOutcome::Merged { files, left_out } => {
                        let links: Vec<String> = left_out.iter().map(ToString::to_string).collect();
                        let detail = match links.is_empty() {
                            true => "into the directory".into(),
                            false => format!(
                                "into the directory, without links that lead out: {}",
                                links.join(", ")
                            ),
                        };
                        Act {
                            category: Category::File,
                            ..done("merged", files.join(" "), detail)
                        }
                    }
                    _ => return Ok(None),
                }
            }
            "QuestionAsked" => {
                let asked: QuestionAsked = event.decode()?;
                let Some(approval) = asked.question.approval else {
                    return Ok(None);
                };
                self.approvals.insert(asked.effect.clone());
                Act {
                    category: Category::Permission,
                    action: "approval_asked".into(),
                    target: self.target(&asked.effect).1,
                    outcome: Outcome::Asked,
                    detail: format!("{} [{}]", approval.because, approval.digest),
                }
            }
            "QuestionAnswered" => {
                let answered: QuestionAnswered = event.decode()?;
                if !self.approvals.remove(&answered.effect) {
                    return Ok(None);
                }
                let text = ledger.text(&answered.answer).await?;
                let outcome = match Answer::read(&text) {
                    Answer::Yes(_) => Outcome::Allowed,
                    Answer::No(_) => Outcome::Denied,
                };
                Act {
                    category: Category::Permission,
                    action: "approval_answered".into(),
                    target: self.target(&answered.effect).1,
                    outcome,
                    detail: format!("{}: {text}", answered.by),
                }
            }
            "ToolCallFinished" => {
                let finished: Finished<ToolOutcome> = event.decode()?;
                self.tool_call(&finished.effect, &finished.outcome)
            }
            "ToolCallInDoubt" => {
                let effect = event.decode::<Unfinished>()?.effect;
                let (tool, target) = self.target(&effect);
                Act {
                    category: self.category(&tool),
                    action: tool,
                    target,
                    outcome: Outcome::Error,
                    detail: "in doubt: it may or may not have happened".into(),
                }
            }
            "ChildStarted" => {
                let child: ChildStarted = event.decode()?;
                done("handed_on", child.stream.to_string(), String::new())
            }
            "MessageTaken" => {
                let message: MessageTaken = event.decode()?;
                done(
                    "told",
                    ledger.text(&message.text).await?.to_string(),
                    String::new(),
                )
            }
            "RunPaused" => {
                let paused: RunPaused = event.decode()?;
                done("paused", paused.reason, paused.detail)
            }
            "RunCancelled" => {
                let cancelled: RunCancelled = event.decode()?;
                done("cancelled", cancelled.by, cancelled.reason)
            }
            "RunFinished" => {
                let ending = event.decode::<RunFinished>()?.ending;
                let mut act = done(
                    "ended",
                    format!("{:?}", ending.status).to_lowercase(),
                    String::new(),
                );
                if ending.status != Status::Done {
                    act.outcome = Outcome::Error;
                }
                act
            }
            _ => return Ok(None),
        }))
    }

    async fn model_call(&mut self, ledger: &dyn Ledger, event: &Event) -> Result<Act, LedgerError> {
        let finished: Finished<ModelOutcome> = event.decode()?;
        let (outcome, detail) = match finished.outcome {
            ModelOutcome::Failed { error, .. } => (Outcome::Error, error),
            ModelOutcome::BrokenOff(broken) => (Outcome::Error, broken.why),
            ModelOutcome::Answered { response, cost, .. } => {
                let turn = finished.effect.as_str().trim_start_matches('m');
                let calls = response.message.parts.iter().filter_map(|part| match part {
                    Part::ToolCall(call) => Some(call),
                    _ => None,
                });
                for (n, call) in calls.enumerate() {
                    let arguments = ledger.text(&call.arguments).await?;
                    let target = (call.name.clone(), telling(&arguments));
                    self.targets
                        .insert(EffectId::new(format!("t{turn}.{n}")), target);
                }
                let cost = cost.map_or("price unknown".to_owned(), |cost| cost.to_string());
                let tokens = response.usage.total();
                (Outcome::Allowed, format!("{tokens} tokens, {cost}"))
            }
        };
        Ok(Act {
            category: Category::Llm,
            action: "model_call".into(),
            target: self.model.clone(),
            outcome,
            detail,
        })
    }

    fn tool_call(&self, effect: &EffectId, outcome: &ToolOutcome) -> Act {
        let (denied, asks) = (&outcome.denied, &outcome.asks);
        let (how, detail) = match (denied, asks) {
            (Some(finding), _) => (Outcome::Denied, rule(finding)),
            (None, Some(verdict)) => (Outcome::Asked, rule(&verdict.finding)),
            (None, None) if outcome.is_error => (Outcome::Error, facts(&outcome.facts)),
            (None, None) => (Outcome::Allowed, facts(&outcome.facts)),
        };
        Act {
            category: self.category(&outcome.tool),
            action: outcome.tool.clone(),
            target: self.target(effect).1,
            outcome: how,
            detail: with_hooks(detail, outcome.hooked.as_ref()),
        }
    }

    fn restored(&self, outcome: &RestoreOutcome) -> Act {
        let files = outcome.files.restored.iter();
        let files: Vec<String> = files.map(|file| file.display().to_string()).collect();
        let (left, error) = (outcome.files.left.len(), &outcome.error);
        let mut detail = format!("after {} failures in a row", outcome.failures.len());
        if left > 0 {
            detail.push_str(&format!(", {left} left as they are"));
        }
        if let Some(error) = error {
            detail.push_str(&format!(", {error}"));
        }
        Act {
            category: Category::File,
            action: "restored".into(),
            target: files.join(" "),
            outcome: match left > 0 || error.is_some() {
                true => Outcome::Error,
                false => Outcome::Allowed,
            },
            detail,
        }
    }

    /// Takes note of what a call will really be done with.
    fn changed(&mut self, effect: &EffectId, hooked: Option<&Hooked>) {
        if let Some(arguments) = hooked.and_then(|hooked| hooked.arguments.as_deref()) {
            let (tool, _) = self.target(effect);
            let call = effect.as_str().trim_end_matches('!');
            let target = (tool, telling(arguments));
            self.targets.insert(EffectId::new(call), target);
        }
    }

    /// The tool and the target of the call that an effect belongs to.
    fn target(&self, effect: &EffectId) -> (String, String) {
        let call = effect.as_str().split(['!', '?']).next().unwrap_or_default();
        let known = self.targets.get(&EffectId::new(call));
        known.cloned().unwrap_or_default()
    }

    fn category(&self, tool: &str) -> Category {
        match self.worlds.get(tool) {
            Some(World::Runs) => Category::Process,
            Some(World::Reads | World::Writes) => Category::File,
            _ => Category::Session,
        }
    }
}

fn outcome_of(decision: Decision) -> Outcome {
    match decision {
        Decision::Allow => Outcome::Allowed,
        Decision::Ask => Outcome::Asked,
        Decision::Deny => Outcome::Denied,
    }
}

fn rule(finding: &Finding) -> String {
    format!("{} ({})", finding.reason, finding.rule)
}

fn with_hooks(detail: String, hooked: Option<&Hooked>) -> String {
    let did = hooked.iter().flat_map(|hooked| &hooked.did);
    let said = Some(detail).filter(|detail| !detail.is_empty()).into_iter();
    let parts: Vec<String> = said.chain(did.map(ToString::to_string)).collect();
    parts.join("; ")
}

fn facts(facts: &Value) -> String {
    match facts {
        Value::Null => String::new(),
        facts => facts.to_string(),
    }
}

/// The argument that says most of what is acted upon.
fn telling(arguments: &str) -> String {
    const TELLING: [&str; 7] = [
        "command", "path", "paths", "edits", "pattern", "agent", "question",
    ];
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => {
            let items = items
                .iter()
                .map(|item| item["path"].as_str().or(item.as_str()));
            Some(items.flatten().collect::<Vec<_>>().join(" "))
        }
        _ => None,
    };
    let found = TELLING.iter().find_map(|key| text(&arguments[*key]));
    found.unwrap_or_default()
}

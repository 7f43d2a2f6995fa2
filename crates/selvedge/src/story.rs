//! A session as a person follows it: events folded into beats.
//!
//! The live progress, the plain lines and the transcript all tell the same
//! beats, so that what was seen is what can be read later.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use selvedge_agent::{
    Answer, Hooked, Judged, ModelOutcome, RestoreOutcome, RunSpec, Spending, ToolOutcome,
    UpkeepOutcome,
};
use selvedge_crews::{Node, Tree};
use selvedge_ledger::{Event, Ledger, LedgerError, StreamId, Time};
use selvedge_model::Part;
use selvedge_runtime::{
    Approval, ChildFinished, ChildStarted, EffectId, Ending, Finished, LetterIgnored, MessageTaken,
    Question, QuestionAnswered, QuestionAsked, RunCancelled, RunFinished, RunPaused, RunResumed,
    RunStarted, Started, Unfinished,
};
use selvedge_tool::{Decision, Finding, Risk, StrayLink, risks};
use serde_json::Value;

/// Something worth telling.
#[derive(Clone, Debug)]
pub struct Beat {
    /// Where it happened.
    pub stream: StreamId,
    /// Whose beat it is: an agent's name.
    pub agent: String,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum What {
    /// An agent begins.
    Began {
        /// Its model.
        model: String,
        /// What it is to do.
        request: Arc<str>,
        /// Whether that is a JSON value.
        is_typed: bool,
    },
    /// The copy that is worked on is there, or its work is merged.
    Kept {
        /// What happened, in a sentence.
        text: String,
        /// What of the merged files is more than code.
        risks: Vec<Risk>,
    },
    /// A model is being asked.
    Asking,
    /// A model answered, possibly without words.
    Said {
        /// The words.
        text: String,
        /// If another model answered than was asked: which, and why.
        instead: Option<Instead>,
        /// How long it took: to the first words, and to the end.
        took_ms: (u64, u64),
    },
    /// An answer broke off; what was said does not count.
    BrokeOff {
        /// What was said until then.
        text: Arc<str>,
        /// Who said it.
        model: String,
        /// Why it broke off.
        why: String,
    },
    /// A model call ended without a word, and may be made again.
    Unheard,
    /// No answer, for good.
    Unanswered {
        /// Why.
        error: String,
    },
    /// A tool is at work.
    Using {
        /// Which, and on what.
        tool: Tool,
    },
    /// A tool is done.
    Used {
        /// Which, and on what.
        tool: Tool,
        /// What the model is told.
        text: Arc<str>,
        /// Whether it failed.
        is_error: bool,
        /// Whether this was found out by a probe after a crash.
        is_probed: bool,
        /// How long it took.
        millis: u64,
    },
    /// Nobody knows whether a tool did its work.
    InDoubt {
        /// Which, and on what.
        tool: Tool,
    },
    /// Files were put back, after work on them had failed too often.
    Restored {
        /// How often.
        failures: usize,
        /// Which files.
        files: Vec<String>,
        /// What could not be put back, and why.
        left: Vec<String>,
    },
    /// Something was refused by a rule.
    Denied {
        /// Which tool, and on what.
        tool: Tool,
        /// Why, and by which rule.
        why: String,
    },
    /// A human is asked.
    Asked {
        /// The question.
        question: Question,
    },
    /// A human answered.
    Answered {
        /// The answer.
        text: Arc<str>,
        /// Of an approval: whether the answer allows it.
        allows: Option<bool>,
    },
    /// Another agent takes over a part.
    Delegated {
        /// Where it works.
        to: StreamId,
    },
    /// The other agent is done.
    Returned {
        /// How it ended.
        ending: Ending,
    },
    /// The run stands still.
    Paused {
        /// Why, in a word.
        reason: String,
        /// Why, in a sentence.
        detail: String,
        /// When it goes on by itself.
        until: Option<Time>,
    },
    /// A reason to stand still is gone.
    Resumed {
        /// Which.
        reason: String,
    },
    /// Somebody said something to the agent.
    Steered {
        /// What.
        text: Arc<str>,
    },
    /// A letter that fits nothing.
    Ignored {
        /// Why.
        why: String,
    },
    /// Somebody cancelled the run.
    Cancelled {
        /// Who.
        by: String,
        /// Why.
        reason: String,
    },
    /// An agent is done.
    Ended {
        /// How.
        ending: Ending,
    },
}

/// Which model answered, and why not the one that was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instead {
    /// Who answered.
    pub model: String,
    /// Why not the other.
    pub because: String,
}

/// A tool and what it is used on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// The argument that says most.
    pub argument: String,
}

/// The fold.
#[derive(Default)]
pub struct Story {
    agents: HashMap<StreamId, Agent>,
    /// What was spent. What a fork has copied was paid for in the session it comes from.
    pub spending: Spending,
    /// Whether something was denied: by policy, or by a person.
    pub is_denied: bool,
    /// The last words of the session's own agent.
    pub last_words: String,
    /// Who works under whom.
    pub tree: Tree,
}

/// One agent of the session.
#[derive(Default)]
struct Agent {
    name: String,
    tools: HashMap<EffectId, (Tool, Time)>,
    approvals: HashMap<EffectId, Option<Approval>>,
}

impl Story {
    /// Folds an event of any of the session's streams in.
    pub async fn tell(
        &mut self,
        ledger: &dyn Ledger,
        event: &Event,
    ) -> Result<Vec<Beat>, LedgerError> {
        self.spending.apply(event)?;
        self.recall(ledger, event).await
    }

    /// Folds in what happened elsewhere, before the session was forked from there.
    pub async fn recall(
        &mut self,
        ledger: &dyn Ledger,
        event: &Event,
    ) -> Result<Vec<Beat>, LedgerError> {
        self.tree.apply(event)?;
        let what = self.fold(ledger, event).await?;
        let agent = self.agents.entry(event.stream.clone()).or_default();
        let label = self.tree.node(&event.stream).map(Node::label);
        let beat = |what| Beat {
            stream: event.stream.clone(),
            agent: label.clone().unwrap_or_else(|| agent.name.clone()),
            what,
        };
        Ok(what.into_iter().map(beat).collect())
    }

    async fn fold(
        &mut self,
        ledger: &dyn Ledger,
        event: &Event,
    ) -> Result<Option<What>, LedgerError> {
        let agent = self.agents.entry(event.stream.clone()).or_default();
        Ok(Some(match &*event.kind {
            "RunStarted" => {
                let spec = event.decode::<RunStarted<RunSpec>>()?.spec;
                agent.name = spec.agent;
                What::Began {
                    model: spec.model,
                    request: ledger.text(&spec.request).await?,
                    is_typed: spec.terms.input_schema.is_some(),
                }
            }
            "ModelCallStarted" => What::Asking,
            "ModelCallFinished" => {
                let finished: Finished<ModelOutcome> = event.decode()?;
                match finished.outcome {
                    ModelOutcome::Failed { error, .. } => What::Unanswered { error },
                    ModelOutcome::BrokenOff(broken) => What::Unanswered { error: broken.why },
                    ModelOutcome::Answered {
                        response,
                        because,
                        first_token_ms,
                        total_ms,
                        ..
                    } => {
                        let mut text = String::new();
                        let turn = finished.effect.as_str().trim_start_matches('m').to_owned();
                        let mut calls = 0;
                        for part in &response.message.parts {
                            match part {
                                Part::Text { text: said } => {
                                    text.push_str(&ledger.text(said).await?)
                                }
                                Part::ToolCall(call) => {
                                    let effect = EffectId::new(format!("t{turn}.{calls}"));
                                    calls += 1;
                                    let arguments = ledger.text(&call.arguments).await?;
                                    let tool = Tool::new(&call.name, &arguments);
                                    agent.tools.insert(effect, (tool, event.time));
                                }
                                _ => {}
                            }
                        }
                        if event.stream == event.stream.session() {
                            self.last_words.clone_from(&text);
                        }
                        let model = response.model;
                        let instead = because.map(|because| Instead { model, because });
                        What::Said {
                            text,
                            instead,
                            took_ms: (first_token_ms, total_ms),
                        }
                    }
                }
            }
            "ModelCallInterrupted" => {
                let ended: Unfinished<ModelOutcome> = event.decode()?;
                let Some(ModelOutcome::BrokenOff(broken)) = ended.left else {
                    return Ok(Some(What::Unheard));
                };
                What::BrokeOff {
                    text: ledger.text(&broken.text).await?,
                    model: broken.model,
                    why: broken.why,
                }
            }
            "ToolCallStarted" => {
                let started: Started = event.decode()?;
                let name = started.what["tool"].as_str().unwrap_or_default();
                let entry = agent.tools.entry(started.effect).or_insert_with(|| {
                    let tool = Tool::new(name, "");
                    (tool, event.time)
                });
                entry.1 = event.time;
                let hooked = Hooked::in_evidence(&started.evidence);
                if let Some(arguments) = hooked.and_then(|hooked| hooked.arguments) {
                    entry.0 = Tool::new(&entry.0.name, &arguments);
                }
                What::Using {
                    tool: entry.0.clone(),
                }
            }
            "ToolCallFinished" => {
                let finished: Finished<ToolOutcome> = event.decode()?;
                let (tool, since) = agent.tool(&finished.effect, event.time);
                if finished.outcome.asks.is_some() {
                    return Ok(None);
                }
                if let Some(finding) = &finished.outcome.denied {
                    self.is_denied = true;
                    let why = denial(finding);
                    return Ok(Some(What::Denied { tool, why }));
                }
                What::Used {
                    tool,
                    text: ledger.text(&finished.outcome.text).await?,
                    is_error: finished.outcome.is_error,
                    is_probed: finished.probed,
                    millis: u64::try_from(event.time.millis_since(since)).unwrap_or(0),
                }
            }
            "JudgementFinished" => {
                let Finished {
                    effect, outcome, ..
                } = event.decode::<Finished<Judged>>()?;
                let outcome = outcome.verdict;
                if outcome.decision() != Decision::Deny {
                    return Ok(None);
                }
                self.is_denied = true;
                let call = EffectId::new(effect.as_str().trim_end_matches('!'));
                let (tool, _) = agent.tool(&call, event.time);
                let why = denial(&outcome.finding);
                What::Denied { tool, why }
            }
            "RestoreFinished" => {
                let outcome = event.decode::<Finished<RestoreOutcome>>()?.outcome;
                let shown = |path: &PathBuf| path.display().to_string();
                let left = |(path, why): &(PathBuf, String)| format!("{} ({why})", shown(path));
                let left = outcome.files.left.iter().map(left).chain(outcome.error);
                What::Restored {
                    failures: outcome.failures.len(),
                    files: outcome.files.restored.iter().map(shown).collect(),
                    left: left.collect(),
                }
            }
            "CopyFinished" | "MergeFinished" => {
                match event.decode::<Finished<UpkeepOutcome>>()?.outcome {
                    UpkeepOutcome::Copied { .. } => What::Kept {
                        text: "works on a copy of the directory".into(),
                        risks: Vec::new(),
                    },
                    UpkeepOutcome::Merged { files, left_out } => What::Kept {
                        text: merged(&files, &left_out),
                        risks: risks(files.iter().map(String::as_str)),
                    },
                    _ => return Ok(None),
                }
            }
            "ToolCallInDoubt" => {
                let effect = event.decode::<Unfinished>()?.effect;
                let (tool, _) = agent.tool(&effect, event.time);
                What::InDoubt { tool }
            }
            "QuestionAsked" => {
                let QuestionAsked { effect, question } = event.decode()?;
                agent.approvals.insert(effect, question.approval.clone());
                What::Asked { question }
            }
            "QuestionAnswered" => {
                let answered: QuestionAnswered = event.decode()?;
                let text = ledger.text(&answered.answer).await?;
                let approval = agent.approvals.remove(&answered.effect).flatten();
                let allows = approval.map(|_| matches!(Answer::read(&text), Answer::Yes(_)));
                self.is_denied |= allows == Some(false);
                What::Answered { text, allows }
            }
            "ChildStarted" => {
                let child: ChildStarted = event.decode()?;
                What::Delegated { to: child.stream }
            }
            "ChildFinished" => {
                let child: ChildFinished = event.decode()?;
                What::Returned {
                    ending: child.ending,
                }
            }
            "RunPaused" => {
                let RunPaused {
                    reason,
                    detail,
                    until,
                    ..
                } = event.decode()?;
                What::Paused {
                    reason,
                    detail,
                    until,
                }
            }
            "RunResumed" => {
                let reason = event.decode::<RunResumed>()?.reason;
                What::Resumed { reason }
            }
            "MessageTaken" => {
                let message: MessageTaken = event.decode()?;
                let text = ledger.text(&message.text).await?;
                What::Steered { text }
            }
            "LetterIgnored" => {
                let why = event.decode::<LetterIgnored>()?.why;
                What::Ignored { why }
            }
            "RunCancelled" => {
                let RunCancelled { by, reason, .. } = event.decode()?;
                What::Cancelled { by, reason }
            }
            "RunFinished" => {
                let ending = event.decode::<RunFinished>()?.ending;
                What::Ended { ending }
            }
            _ => return Ok(None),
        }))
    }
}

impl Agent {
    fn tool(&self, effect: &EffectId, now: Time) -> (Tool, Time) {
        let known = self.tools.get(effect).cloned();
        known.unwrap_or_else(|| (Tool::default(), now))
    }
}

impl Tool {
    /// The argument that says most: what is run, where, or the first words.
    fn new(name: &str, arguments: &str) -> Self {
        const TELLING: [&str; 9] = [
            "command", "path", "pattern", "query", "question", "agent", "message", "task",
            "mission",
        ];
        let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
        let telling = TELLING.iter().find_map(|key| arguments[*key].as_str());
        let first = || arguments.as_object()?.values().find_map(Value::as_str);
        Self {
            name: name.to_owned(),
            argument: telling.or_else(first).unwrap_or_default().to_owned(),
        }
    }
}

/// What came of a merge, in a sentence. It may be cut where a list is long, so what is
/// missing comes first.
fn merged(files: &[String], left_out: &[StrayLink]) -> String {
    let without = match left_out {
        [] => String::new(),
        links => {
            let links: Vec<String> = links.iter().map(ToString::to_string).collect();
            format!(" without what leads out of it ({})", links.join(", "))
        }
    };
    match files {
        [] => format!("nothing to merge{without}"),
        files => format!("merged into the directory{without}: {}", files.join(", ")),
    }
}

/// Why something was refused, and by which rule.
fn denial(finding: &Finding) -> String {
    format!("{} ({})", finding.reason, finding.rule)
}

/// What was put back, and what was not, in words.
pub fn restored(failures: usize, files: &[String], left: &[String]) -> String {
    let files = match files {
        [] => "no file had to be".to_owned(),
        files => files.join(", "),
    };
    let left = match left {
        [] => String::new(),
        left => format!("; not put back: {}", left.join(", ")),
    };
    format!("{files}, after {failures} failures in a row{left}")
}

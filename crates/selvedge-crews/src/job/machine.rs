//! The phases of a job: read what lasts, run the phase, put its list away, go on.
//!
//! It decides nothing that an agent decides. A phase is a child run; how it ends says
//! what comes next.

use std::sync::Arc;

use selvedge_agent::{AGENT, AgentCall, LACKS_CALLS, RunSpec, TodoTerms, ToolOutcome, ToolUse};
use selvedge_ledger::{Event, LedgerError, Payload};
use selvedge_runtime::{
    Act, BudgetRaised, ChildFinished, ChildSpec, Due, Effect, EffectId, Ending, Finished, Machine,
    MessageTaken, RunStarted, Status,
};
use selvedge_tool::{TodoFile, Todos};
use serde::Deserialize;
use serde_json::{Value, json};

use super::desk::{PHASE_CLOSE, PHASE_OPEN};
use super::setup::offered_bytes;
use super::terms::{JobPart, JobTerms, PhaseKind};

/// The kind of stream that a job machine folds.
pub const JOB: &str = "job";

/// Transitions in a row that may be rejected: a planner that misses the form three times
/// will not hit it.
const REJECTIONS_MAX: u32 = 3;
/// The least that a conversation needs beside its prompt.
const CONVERSATION_TOKENS_MIN: u64 = 2_000;

/// The todos of the first phase.
const FIRST_TODOS: [&str; 4] = [
    "Explore the workspace and fill workspace.md with an overview of the environment, the tools \
     and what is there.",
    "Read instructions.md and write a plan to main_plan.md: the phases that the task needs.",
    "Divide the plan into phases of concrete todos.",
    "Write the todos of the first phase with todo_write.",
];

/// The todos of every later strategic phase.
const TRANSITION_TODOS: [&str; 4] = [
    "Summarise what the last phase did: what was decided, found, and left open.",
    "Update workspace.md with what later phases need to know.",
    "Update main_plan.md: mark what is done, and adjust what comes.",
    "Write the todos of the next phase with todo_write, or call job_complete if the plan is \
     carried out.",
];

/// A job.
#[derive(Default)]
pub struct JobMachine {
    begun: Option<Begun>,
    stage: Stage,
}

struct Begun {
    spec: Arc<RunSpec>,
    terms: JobTerms,
    /// The phase, from 1, and what it is for.
    number: u32,
    kind: PhaseKind,
    todos: Todos,
    /// What the phase is about, in the planner's words.
    purpose: String,
    /// Model calls of the phases before.
    iterations: u32,
    /// What people said that no phase has heard yet.
    said: Vec<String>,
}

#[derive(Default)]
enum Stage {
    #[default]
    New,
    /// What lasts is being read.
    Opening,
    /// The phase is under way, with this for its memory, and what people said before it.
    Working {
        memory: String,
        said: Vec<String>,
    },
    /// The todos are being put away.
    Closing,
    Ended(Ending),
}

/// What a phase reports in the end.
#[derive(Deserialize)]
struct Report {
    end: Value,
    todos: Todos,
    turns: u32,
    #[serde(default)]
    unheard: Vec<Payload>,
}

impl Machine for JobMachine {
    type Call = AgentCall;

    fn apply(&mut self, event: &Event) -> Result<(), LedgerError> {
        match &*event.kind {
            "RunStarted" => {
                let spec = event.decode::<RunStarted<RunSpec>>()?.spec;
                let terms = event.decode::<RunStarted<JobPart>>()?.spec.job;
                self.start(spec, terms);
            }
            "ToolCallFinished" => {
                let finished: Finished<ToolOutcome> = event.decode()?;
                self.prepared(&finished.outcome);
            }
            "ChildFinished" => self.phase_ended(event.decode::<ChildFinished>()?.ending),
            "MessageTaken" => {
                let text = event.decode::<MessageTaken>()?.text;
                if let Some(begun) = &mut self.begun {
                    begun.said.push(said(&text));
                }
            }
            "BudgetRaised" => {
                let raised: BudgetRaised = event.decode()?;
                if let Some(begun) = &mut self.begun {
                    let spec = Arc::make_mut(&mut begun.spec);
                    spec.budget_usd = raised.usd.or(spec.budget_usd);
                    spec.budget_tokens = raised.tokens.or(spec.budget_tokens);
                    let most = &mut begun.terms.iterations_max;
                    *most = raised.model_calls.unwrap_or(*most);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn due(&self) -> Due<AgentCall> {
        let Some(begun) = &self.begun else {
            return Due::Idle;
        };
        let effect = match &self.stage {
            Stage::New => return Due::Idle,
            Stage::Ended(ending) => return Due::Ended(ending.clone()),
            Stage::Opening => begun.using(PHASE_OPEN, "o", json!({})),
            Stage::Working { memory, said } => match begun.phase(memory, said) {
                Ok(effect) => effect,
                Err(ending) => return Due::Ended(ending),
            },
            Stage::Closing => begun.using(PHASE_CLOSE, "a", begun.archive()),
        };
        Due::Effects(vec![effect])
    }
}

impl JobMachine {
    fn start(&mut self, spec: RunSpec, terms: JobTerms) {
        let kind = terms.first;
        let mut begun = Begun {
            spec: Arc::new(spec),
            terms,
            number: 1,
            kind,
            todos: Todos::default(),
            purpose: String::new(),
            iterations: 0,
            said: Vec::new(),
        };
        begun.load(match kind {
            PhaseKind::Free => Vec::new(),
            _ => Todos::numbered("", FIRST_TODOS).items,
        });
        self.begun = Some(begun);
        self.stage = Stage::Opening;
    }

    /// What the machine itself wanted was done.
    fn prepared(&mut self, outcome: &ToolOutcome) {
        let Some(begun) = &mut self.begun else {
            return;
        };
        if outcome.is_error {
            let why = outcome.text.text().map_or("no reason is at hand", |t| &**t);
            self.stage = Stage::Ended(failure(format!(
                "the folder of the job cannot be used: {why}"
            )));
            return;
        }
        match self.stage {
            Stage::Opening => {
                let memory = outcome.facts["workspace_md"].as_str().unwrap_or_default();
                self.stage = Stage::Working {
                    memory: memory.to_owned(),
                    said: std::mem::take(&mut begun.said),
                };
            }
            Stage::Closing => {
                begun.next(PhaseKind::Strategic);
                begun.purpose.clear();
                begun.load(Todos::numbered("", TRANSITION_TODOS).items);
                self.stage = Stage::Opening;
            }
            _ => {}
        }
    }

    fn phase_ended(&mut self, ending: Ending) {
        let (Some(begun), Stage::Working { .. }) = (&mut self.begun, &self.stage) else {
            return;
        };
        let report = ending.data.clone().map(Report::deserialize);
        let lacks_calls = |data: &Value| data[LACKS_CALLS] == true;
        if ending.data.as_ref().is_some_and(lacks_calls) {
            self.stage = Stage::Ended(begun.used_up());
            return;
        }
        let (Status::Done, Some(Ok(report))) = (ending.status, report) else {
            let words = ending.result.text().map_or("", |text| &**text);
            let (number, word) = (begun.number, begun.kind.word());
            let why = format!("phase {number} ({word}) failed: {words}");
            self.stage = Stage::Ended(failure(why));
            return;
        };
        begun.iterations += report.turns;
        begun.todos = report.todos;
        // What the phase did not hear was said to it before what waits for the next.
        let unheard = report.unheard.iter().map(said);
        begun.said = unheard.chain(std::mem::take(&mut begun.said)).collect();
        if report.end["job"] == "completed" {
            let summary = report.end["summary"].as_str().unwrap_or_default();
            self.stage = Stage::Ended(Ending {
                status: Status::Done,
                result: Payload::inline(summary),
                data: None,
            });
            return;
        }
        self.stage = match begun.kind {
            PhaseKind::Tactical => Stage::Closing,
            PhaseKind::Strategic | PhaseKind::Free => {
                let next = TodoFile::deserialize(&report.end).unwrap_or_default();
                begun.next(PhaseKind::Tactical);
                begun.purpose = match (&*next.phase, &*next.description) {
                    ("", "") => String::new(),
                    (phase, "") => phase.to_owned(),
                    ("", words) => words.to_owned(),
                    (phase, words) => format!("{phase}: {words}"),
                };
                begun.load(next.todos);
                Stage::Opening
            }
        };
    }
}

impl Begun {
    fn next(&mut self, kind: PhaseKind) {
        self.number += 1;
        self.kind = kind;
    }

    fn load(&mut self, items: Vec<selvedge_tool::Todo>) {
        let title = match self.kind {
            PhaseKind::Free => "work".to_owned(),
            kind => format!("phase {}, {}", self.number, kind.word()),
        };
        self.todos = Todos { title, items };
    }

    /// Uses one of the machine's own tools, by the same way as any other.
    fn using(&self, tool: &str, prefix: &str, arguments: Value) -> Effect<AgentCall> {
        let name = format!("{prefix}{}", self.number);
        let used = ToolUse::own(&self.spec, &name, tool, &arguments);
        Effect {
            id: EffectId::new(name),
            act: Act::Call(AgentCall::Tool(used)),
        }
    }

    /// The todos as they are put away.
    fn archive(&self) -> Value {
        let file = TodoFile {
            phase: match self.purpose.is_empty() {
                true => self.todos.title.clone(),
                false => format!("{} · {}", self.todos.title, self.purpose),
            },
            description: String::new(),
            todos: self.todos.items.clone(),
        };
        json!({
            "number": self.number,
            "archives": self.terms.archives,
            "content": file.yaml(),
        })
    }

    /// The ending of a job that needs more model calls than it has.
    fn used_up(&self) -> Ending {
        let most = self.terms.iterations_max;
        let why = format!(
            "it used all {most} of its iterations (`limits.max_iterations`), {} of them before \
             phase {} ({})",
            self.iterations,
            self.number,
            self.kind.word()
        );
        Ending {
            data: Some(json!({ LACKS_CALLS: true })),
            ..failure(why)
        }
    }

    /// The child run that a phase is, or the ending of the job if there cannot be one.
    fn phase(&self, memory: &str, said: &[String]) -> Result<Effect<AgentCall>, Ending> {
        let left = self.terms.iterations_max.saturating_sub(self.iterations);
        if left == 0 {
            return Err(self.used_up());
        }
        let agent = self.kind.agent();
        let child = self.spec.child(agent, Payload::inline(self.request(said)));
        let mut child =
            child.ok_or_else(|| failure(format!("there is no agent `{agent}` in it")))?;
        let prompt = self.terms.prompts.get(agent).map_or("", String::as_str);
        let system = format!(
            "{}\n\n## Phase\n\nThis is phase {} ({}).\n\n## Workspace memory (workspace.md)\n\n{}\n",
            prompt.trim_end(),
            self.number,
            self.kind.word(),
            memory.trim_end()
        );
        // Prompt, tools and todos are sent with every request: what is left of the
        // threshold is the conversation's. The same estimate as for messages.
        let todos: usize = self.todos.render().len() + 2_048;
        let tools = child.definitions.len() + offered_bytes(&child);
        let beside = system.len() as u64 + tools + todos as u64;
        let beside = beside * 2 / 7;
        let most = self.terms.context_tokens_max;
        child.limits.context_tokens_max = most
            .checked_sub(beside)
            .filter(|left| *left >= CONVERSATION_TOKENS_MIN)
            .ok_or_else(|| {
                failure(format!(
                    "prompt, tools and todos of phase {} are about {beside} tokens, and leave too \
                     little of `limits.context_threshold_tokens` ({most}) to work with",
                    self.number
                ))
            })?;
        child.system = Payload::inline(system);
        child.limits.model_calls_max = left;
        child.terms.task = self.number;
        child.terms.todos = Some(TodoTerms {
            list: self.todos.clone(),
            stall_calls_max: self.terms.stall_calls_max,
            rejections_max: REJECTIONS_MAX,
            calls_before: self.iterations,
        });
        let spec = serde_json::to_value(child).expect("a spec is plain data");
        Ok(Effect {
            id: EffectId::new(format!("p{}", self.number)),
            act: Act::Child(ChildSpec {
                kind: AGENT.into(),
                spec,
            }),
        })
    }

    /// The first message of the phase: what is to be done, and nothing of before.
    fn request(&self, said: &[String]) -> String {
        let mut text = match self.kind {
            PhaseKind::Free => "Do the job that instructions.md describes.".to_owned(),
            PhaseKind::Strategic => "Work through the todos of this strategic phase.".to_owned(),
            PhaseKind::Tactical => "Work through the todos of this tactical phase.".to_owned(),
        };
        if !self.purpose.is_empty() {
            text.push_str(&format!("\n\nThe phase: {}", self.purpose));
        }
        if !self.terms.documents.is_empty() {
            text.push_str(&format!("\n\nInputs: {}", self.terms.documents.join(", ")));
        }
        let request = self.spec.request.text().map_or("", |text| &**text);
        if !request.trim().is_empty() {
            text.push_str(&format!("\n\nThe user's words: {request}"));
        }
        for said in said {
            text.push_str(&format!("\n\nThe user said meanwhile: {said}"));
        }
        text
    }
}

/// What somebody said, where it is at hand.
fn said(text: &Payload) -> String {
    // A fold must not differ from when the words were new, so long ones are left out of
    // both.
    match (text.blob(), text.text()) {
        (None, Some(text)) => text.to_string(),
        _ => format!(
            "[a message of {} bytes, too long to be passed on]",
            text.len()
        ),
    }
}

fn failure(why: String) -> Ending {
    Ending {
        status: Status::Failed,
        result: Payload::inline(why),
        data: None,
    }
}

//! The conversation as a flow: typed state, and what each state of the graph does with it.
//!
//! `table` says what may follow what; `steps` what is done in a state; `fold` what came of
//! it; `without` what is done in the place of an agent that cannot be asked; `answer` what
//! the user reads in the end. All of it is pure.

mod answer;
mod fold;
mod guards;
mod steps;
mod table;
mod without;

pub use table::{JournalState, REPLANS_MAX, RETRIES_MAX, TABLE};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::civil::{Date, Time};
use selvedge_agent::RunSpec;
use selvedge_flow::{Came, Flow, Step, Table, Visit};
use selvedge_ledger::{LedgerError, Payload, StreamId};
use selvedge_runtime::{Ending, RunStarted};
use serde::{Deserialize, Serialize};

use super::correction::Meant;
use super::notes::EntryId;
use super::protocol::{
    ActiveDomainContext, AnalyzerOutput, ClarificationQuestion, ClarifierOutput, DomainInfo,
    EntryShown, EvaluationFeedback, Gap, InputType, ObserverOutput, ParserOutput, PlannerOutput,
    RetrieverChoice, RetrieverOutput, RouterOutput, Style, SynthesizerOutput,
};
use super::rows::Units;
use super::tools::Stored;

/// The word that a session is told by when its models do not answer, and it should do
/// without them.
pub const WITHOUT_MODELS: &str = "go on without models";

/// What a session of the journal starts with.
#[derive(Clone, Debug, Serialize)]
pub struct JournalSpec {
    /// As any session does. Its team is the nine agents.
    #[serde(flatten)]
    pub run: RunSpec,
    /// What is particular to the journal.
    pub journal: Brief,
}

/// What is particular to a session of the journal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Brief {
    /// What the user wrote, word for word.
    pub input: String,
    /// What the user wants of it.
    pub intent: Intent,
    /// The user's day.
    pub date: Date,
    /// The user's time.
    pub time: Time,
    /// The user's time zone.
    pub zone: String,
    /// Every domain there is.
    pub domains: Vec<DomainInfo>,
    /// Which units the user counts in.
    pub units: Units,
    /// How long answers should be.
    #[serde(default)]
    pub style: Style,
    /// What was said just before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_context: Option<String>,
    /// Why no model can be asked; none if one can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_model: Option<String>,
    /// The entry that is parsed again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<EntryId>,
    /// How long what is known of the user may be.
    pub context_tokens_max: usize,
}

/// What the user wants of an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Intent {
    /// That it is seen what it is.
    #[default]
    Any,
    /// That it is recorded.
    Log,
    /// That it is answered.
    Ask,
}

/// A conversation.
#[derive(Default)]
pub struct JournalFlow {
    spec: Option<Arc<RunSpec>>,
    brief: Brief,
    session: String,
    /// Why agents are not asked.
    without: Option<String>,
    /// What the user should know of how it went.
    notes: Vec<String>,
    /// What went wrong for good.
    error: Option<String>,
    /// How often each agent answered.
    asked: BTreeMap<&'static str, u32>,

    route: Option<RouterOutput>,
    kind: Option<InputType>,
    log_text: String,
    query: String,
    target_hint: Option<String>,

    wanted: Vec<String>,
    loaded: BTreeSet<String>,
    context: ActiveDomainContext,
    global: String,
    recent: Vec<EntryShown>,

    plan: Option<PlannerOutput>,
    /// Whether what was loaded for a retry has not been searched with.
    must_retrieve: bool,
    choice: Option<RetrieverChoice>,
    retrievals: u32,
    found: RetrieverOutput,
    analyses: BTreeMap<u32, AnalyzerOutput>,
    pieces: BTreeMap<(u32, usize), AnalyzerOutput>,
    /// Whether an analyzer could not be asked, so that there is only what was found.
    is_unanalysed: bool,
    sufficient: bool,
    gaps: Vec<Gap>,
    /// After how many searches a gap was named first.
    gap_seen: BTreeMap<String, u32>,

    clarifier: Option<ClarifierOutput>,
    asked_before: Vec<ClarificationQuestion>,
    responses: BTreeMap<String, String>,
    declined: bool,

    draft: Option<SynthesizerOutput>,
    is_partial: bool,
    attempts: u32,
    passed: bool,
    feedback: Vec<EvaluationFeedback>,
    evaluated: Option<super::protocol::EvaluatorOutput>,

    parsed: Option<ParserOutput>,
    meant: Option<Meant>,
    stored: Option<Stored>,
    observed: Option<ObserverOutput>,
}

/// The journal's own part of what a session starts with.
#[derive(Deserialize)]
struct Started {
    spec: OwnPart,
}

#[derive(Deserialize)]
struct OwnPart {
    journal: Brief,
}

impl Flow for JournalFlow {
    type State = JournalState;

    fn table() -> &'static Table<Self> {
        &TABLE
    }

    fn begin(&mut self, stream: &StreamId, started: &str) -> Result<(), LedgerError> {
        let damaged = |error: serde_json::Error| LedgerError::Damaged {
            stream: stream.clone(),
            seq: None,
            what: format!("`RunStarted` does not decode: {error}"),
        };
        let run: RunStarted<RunSpec> = serde_json::from_str(started).map_err(damaged)?;
        let own: Started = serde_json::from_str(started).map_err(damaged)?;
        self.spec = Some(Arc::new(run.spec));
        self.brief = own.spec.journal;
        self.session = stream.as_str().to_owned();
        self.without.clone_from(&self.brief.no_model);
        Ok(())
    }

    fn enter(&mut self, visit: Visit<JournalState>) {
        self.entered(visit.state);
    }

    fn steps(&self, visit: Visit<JournalState>) -> Vec<Step> {
        self.to_do(visit)
    }

    fn came(&mut self, visit: Visit<JournalState>, step: &str, came: Came) {
        self.fold(visit.state, step, came);
    }

    fn leave(&mut self, visit: Visit<JournalState>) {
        self.conclude(visit.state);
    }

    fn told(&mut self, text: &Payload) {
        if text.text().is_some_and(|text| &**text == WITHOUT_MODELS) {
            self.without = Some("the models do not answer".to_owned());
        }
    }

    fn ending(&self) -> Ending {
        self.last_words()
    }
}

impl JournalFlow {
    /// How often the answer was evaluated.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Whether the answer says that something is missing.
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }
}

//! What agents are told: the placeholders of their prompts.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::outputs::{AnalyzerOutput, ClarificationQuestion};
use super::shared::{
    ActiveDomainContext, DomainInfo, EntryShown, EvaluationFeedback, Gap, QueryType, Retrieval,
    RetrievalAttempt, Style, Trigger,
};
use crate::journal::rows::Computed;

/// What the Router is told.
#[derive(Clone, Debug, Serialize)]
pub struct RouterInput<'a> {
    /// What the user wrote.
    pub raw_input: &'a str,
    /// What was said just before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_context: Option<&'a str>,
    /// Every domain there is.
    pub available_domains: &'a [DomainInfo],
}

/// What the Planner is told.
#[derive(Clone, Debug, Serialize)]
pub struct PlannerInput<'a> {
    /// The question.
    pub query: &'a str,
    /// What it is after, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query_type: Option<QueryType>,
    /// The user's time and day of the week.
    pub now: &'a str,
    /// What the loaded domains know.
    pub domain_context: Known<'a>,
    /// What was searched.
    pub retrieval_history: &'a [RetrievalAttempt],
    /// What is missing.
    pub gaps_from_analyzer: &'a [Gap],
    /// What was wrong with the last answer.
    pub evaluation_feedback: &'a [EvaluationFeedback],
    /// What the user was asked, and said.
    pub user_responses: &'a BTreeMap<String, String>,
    /// What is known of the user.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub global_context_summary: &'a str,
}

/// What the loaded domains know, as far as a planner or an analyzer needs it.
#[derive(Clone, Debug, Serialize)]
pub struct Known<'a> {
    domains_loaded: &'a [String],
    vocabulary: &'a BTreeMap<String, String>,
    expertise: &'a str,
    available_domains: &'a [DomainInfo],
}

impl<'a> From<&'a ActiveDomainContext> for Known<'a> {
    fn from(context: &'a ActiveDomainContext) -> Self {
        Self {
            domains_loaded: &context.domains_loaded,
            vocabulary: &context.vocabulary,
            expertise: &context.expertise,
            available_domains: &context.available_domains,
        }
    }
}

/// What the Retriever is told.
#[derive(Clone, Debug, Serialize)]
pub struct RetrieverInput<'a> {
    /// What the Planner wants.
    pub instructions: &'a [Retrieval],
    /// Words and what they stand for.
    pub vocabulary: &'a BTreeMap<String, String>,
    /// The user's time and day of the week.
    pub now: &'a str,
    /// How many entries are returned at most.
    pub max_entries: usize,
}

/// What the Analyzer is told.
#[derive(Clone, Debug, Serialize)]
pub struct AnalyzerInput<'a> {
    /// The question.
    pub query: &'a str,
    /// What it is after.
    pub query_type: QueryType,
    /// The part of it, if it has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub_query_id: Option<u32>,
    /// The user's time and day of the week.
    pub now: &'a str,
    /// What was found.
    pub entries: &'a [EntryShown],
    /// Which piece of what was found it is, if that was too much at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries_summary: Option<String>,
    /// What code has computed: numbers to be taken as they are.
    pub computed: &'a [Computed],
    /// What analyses of the pieces found, when they are put together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub partial_analyses: Vec<&'a AnalyzerOutput>,
    /// The answers of parts that this one depends on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub earlier_answers: Vec<&'a AnalyzerOutput>,
    /// What the loaded domains know.
    pub domain_context: Known<'a>,
    /// What is known of the user.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub global_context: &'a str,
    /// What was searched.
    pub retrieval_history: &'a [RetrievalAttempt],
    /// What the user was asked, and said.
    pub user_responses: &'a BTreeMap<String, String>,
}

/// What the Synthesizer is told.
#[derive(Clone, Debug, Serialize)]
pub struct SynthesizerInput<'a> {
    /// The question.
    pub query: &'a str,
    /// What it is after.
    pub query_type: QueryType,
    /// What was found out, for each part of the question.
    pub analysis: Vec<&'a AnalyzerOutput>,
    /// What code has computed: numbers to be taken as they are.
    pub computed: &'a [Computed],
    /// The entries that may be cited: ids and their first words.
    pub entries: Vec<String>,
    /// Words and what they stand for.
    pub vocabulary: &'a BTreeMap<String, String>,
    /// Whether something stays unanswered.
    pub is_partial: bool,
    /// What stays unanswered.
    pub unanswered_gaps: &'a [Gap],
    /// What the user was asked, and said.
    pub user_responses: &'a BTreeMap<String, String>,
    /// What was wrong with the last answer.
    pub evaluation_feedback: &'a [EvaluationFeedback],
    /// How long the answer should be.
    pub response_style: Style,
}

/// What the Evaluator is told.
#[derive(Clone, Debug, Serialize)]
pub struct EvaluatorInput<'a> {
    /// The question.
    pub query: &'a str,
    /// The answer.
    pub response: &'a str,
    /// What it rests on.
    pub analysis: Vec<&'a AnalyzerOutput>,
    /// What code has computed.
    pub computed: &'a [Computed],
    /// What was found: ids and their first words.
    pub entries_summary: Vec<String>,
    /// What an answer must keep to.
    pub evaluation_rules: &'a [String],
    /// The how many-th answer it is, from 1.
    pub attempt_number: u32,
    /// What was wrong with those before.
    pub previous_feedback: &'a [EvaluationFeedback],
}

/// What the Clarifier is told.
#[derive(Clone, Debug, Serialize)]
pub struct ClarifierInput<'a> {
    /// The question.
    pub original_query: &'a str,
    /// What is missing, and notes do not say.
    pub gaps: Vec<&'a Gap>,
    /// What the Planner would ask.
    pub suggested_questions: &'a [String],
    /// Words and what they stand for.
    pub vocabulary: &'a BTreeMap<String, String>,
    /// What was searched.
    pub retrieval_history: &'a [RetrievalAttempt],
    /// What was asked before.
    pub previous_clarifications: &'a [ClarificationQuestion],
}

/// What the Parser is told.
#[derive(Clone, Debug, Serialize)]
pub struct ParserInput<'a> {
    /// What the user wrote.
    pub raw_input: &'a str,
    /// When.
    pub timestamp: &'a str,
    /// The day that its words speak of, as far as code can tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved_date: Option<String>,
    /// What is wanted, by domain.
    pub domain_schemas: &'a BTreeMap<String, Value>,
    /// Words and what they stand for.
    pub vocabulary: &'a BTreeMap<String, String>,
    /// What is known of the user.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub global_context: &'a str,
    /// What was recorded last.
    pub recent_entries: &'a [EntryShown],
    /// Whether an earlier entry is corrected.
    pub correction_mode: bool,
    /// Which, in the Router's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correction_target: Option<&'a str>,
}

/// What the Observer is told.
#[derive(Clone, Debug, Serialize)]
pub struct ObserverInput<'a> {
    /// Why it is called.
    pub trigger: Trigger,
    /// The question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<&'a str>,
    /// What was found out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub analysis: Vec<&'a AnalyzerOutput>,
    /// What was answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<&'a str>,
    /// The correction, in the user's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correction: Option<&'a str>,
    /// What it changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what_was_corrected: Option<String>,
    /// What was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_entry: Option<Value>,
    /// What the user said when asked.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub user_responses: &'a BTreeMap<String, String>,
    /// What is known of the user.
    pub current_global_context: &'a str,
    /// What is worth remembering.
    pub context_management_guidance: &'a str,
}

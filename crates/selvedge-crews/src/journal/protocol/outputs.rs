//! What agents answer.
//!
//! A model writes fields in the order in which they are declared here. Where a verdict is
//! asked for, everything that it rests on comes before it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::shared::{
    Category, Certainty, Confidence, DependencyType, EvaluationFeedback, Gap, InputType,
    NextAction, Passing, QueryType, Recommendation, Retrieval, Sufficiency,
};

/// What the Router answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouterOutput {
    /// Why the input is of its kind, briefly.
    pub reasoning: String,
    /// What kind of input it is.
    pub input_type: InputType,
    /// How sure that is, from 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: f64,
    /// Why these domains.
    pub domain_selection_reasoning: String,
    /// Every domain that fits, by name.
    pub selected_domains: Vec<String>,
    /// Of input that does both: what records something, word for word.
    #[serde(default)]
    pub log_portion: Option<String>,
    /// Of input that does both: what asks something, word for word.
    #[serde(default)]
    pub query_portion: Option<String>,
    /// Of a correction: what it is about.
    #[serde(default)]
    pub correction_target: Option<String>,
}

/// What the Planner answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlannerOutput {
    /// The question, word for word.
    pub original_query: String,
    /// What it is after.
    pub query_type: QueryType,
    /// Its parts; one if it is one question.
    pub sub_queries: Vec<SubQuery>,
    /// Which part needs which.
    #[serde(default)]
    pub dependencies: Vec<Dependency>,
    /// How the parts depend on one another.
    pub execution_strategy: DependencyType,
    /// The parts in their order, by id.
    #[serde(default)]
    pub execution_order: Vec<u32>,
    /// What to search for.
    pub retrieval_instructions: Vec<Retrieval>,
    /// What was searched and found of what is missing.
    #[serde(default)]
    pub gaps_status: Vec<GapStatus>,
    /// Why another domain is needed.
    #[serde(default)]
    pub expansion_reasoning: Option<String>,
    /// The domains that are needed beside the loaded ones, by name.
    #[serde(default)]
    pub domain_expansion_request: Vec<String>,
    /// What only the user can say.
    #[serde(default)]
    pub clarify_questions: Vec<String>,
    /// Why the next action is the right one.
    pub reasoning: String,
    /// What to do next.
    pub next_action: NextAction,
}

/// A part of a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubQuery {
    /// Its number.
    pub id: u32,
    /// What it asks.
    pub question: String,
    /// `date_range`, `keyword`, `topical` or `compute`.
    pub retrieval_strategy: String,
    /// How notes are searched for it.
    #[serde(default)]
    pub retrieval_params: Retrieval,
}

/// That one part of a question needs another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dependency {
    /// The part that is needed.
    pub from: u32,
    /// The part that needs it.
    pub to: u32,
    /// Why.
    pub reason: String,
}

/// How it stands with something that is missing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GapStatus {
    /// What is missing.
    pub topic: String,
    /// Whether it was searched for.
    pub searched: bool,
    /// Whether it was found.
    pub found: bool,
}

/// What the Retriever answers: the searches to make. They are made by code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetrieverChoice {
    /// The searches, one or more for each instruction.
    pub searches: Vec<Retrieval>,
    /// What an instruction asks for and no search can give.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// What the Analyzer answers. The verdict is the last field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnalyzerOutput {
    /// What the user wants to know.
    pub query_intent: String,
    /// What the entries say, with evidence.
    pub findings: Vec<Finding>,
    /// What recurs.
    pub patterns_identified: Vec<String>,
    /// What is missing.
    pub gaps_identified: Vec<Gap>,
    /// Why the verdict is what it is.
    pub verdict_reasoning: String,
    /// Whether every claim has evidence among the entries.
    pub verdict: Sufficiency,
}

/// Something that the entries say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// What.
    pub claim: String,
    /// The entries that say so, by id or date.
    pub evidence: Vec<String>,
    /// How sure it is.
    pub confidence: Confidence,
}

/// What the Synthesizer answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SynthesizerOutput {
    /// The answer, in Markdown, with dates.
    pub response: String,
    /// The answer in a few lines.
    pub key_points: Vec<String>,
    /// The entries that it rests on, by id or date.
    pub evidence_cited: Vec<String>,
    /// What it says is missing.
    #[serde(default)]
    pub gaps_disclosed: Vec<String>,
    /// How sure it is.
    pub confidence: Confidence,
}

/// What the Evaluator answers. The verdict is the last field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvaluatorOutput {
    /// Accuracy, relevance, safety and completeness, each on its own.
    pub dimensions: Vec<EvaluationDimension>,
    /// What is wrong, for whoever tries again.
    #[serde(default)]
    pub feedback: Vec<EvaluationFeedback>,
    /// What to do with the answer.
    pub recommendation: Recommendation,
    /// `fail` if any dimension fails.
    pub overall_verdict: Passing,
}

/// One side of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvaluationDimension {
    /// Which side.
    pub dimension: Side,
    /// What is wrong there.
    #[serde(default)]
    pub issues: Vec<String>,
    /// Why.
    pub reasoning: String,
    /// Whether it is good enough.
    pub verdict: Passing,
}

/// The sides of an answer that are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Is every claim supported?
    Accuracy,
    /// Does it answer what was asked?
    Relevance,
    /// Does it keep to the domains' rules?
    Safety,
    /// Does it answer all that was asked?
    Completeness,
}

/// What the Clarifier answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClarifierOutput {
    /// Why the user is asked.
    pub context_explanation: String,
    /// The questions.
    pub questions: Vec<ClarificationQuestion>,
    /// What can be done if the user does not answer.
    pub fallback_action: String,
}

/// A question to the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClarificationQuestion {
    /// The question.
    pub question: String,
    /// What is missing that it would give.
    pub gap_addressed: String,
    /// Answers to choose from, if there are such.
    #[serde(default)]
    pub options: Option<Vec<String>>,
    /// Whether there is no good answer without it.
    #[serde(default = "yes")]
    pub required: bool,
}

fn yes() -> bool {
    true
}

/// What the Parser answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParserOutput {
    /// What was unclear, and what was assumed.
    #[serde(default)]
    pub extraction_notes: Vec<String>,
    /// The day that the entry is about, such as `2026-01-04`.
    pub date: String,
    /// The moment that it is about, such as `2026-01-04T10:30`.
    pub timestamp: String,
    /// Words to find it by.
    #[serde(default)]
    pub tags: Vec<String>,
    /// What it says, by domain, each as its domain's schema wants it.
    pub domain_data: Map<String, Value>,
    /// The input, word for word.
    pub raw_content: String,
    /// What the user should confirm.
    #[serde(default)]
    pub uncertain_fields: Vec<String>,
    /// Whether it is a record, a milestone, or another event worth remembering.
    #[serde(default)]
    pub is_significant: bool,
    /// Whether it corrects an earlier entry.
    #[serde(default)]
    pub is_correction: bool,
    /// The entry that is corrected, by id.
    #[serde(default)]
    pub target_entry_id: Option<String>,
    /// What changes in it.
    #[serde(default)]
    pub correction_delta: Vec<Change>,
    /// How sure all this is, from 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: f64,
}

/// One value that a correction changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The domain.
    pub domain: String,
    /// The field, as a path such as `/exercises/0/weight`.
    pub field: String,
    /// What was recorded.
    pub from: Value,
    /// What is right.
    pub to: Value,
}

/// What the Observer answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObserverOutput {
    /// What was learned, in a line each.
    pub insights_captured: Vec<String>,
    /// What to remember, or to remember otherwise.
    pub updates: Vec<ContextUpdate>,
    /// Whether anything is to be remembered.
    pub should_update: bool,
}

/// One line of the global context.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContextUpdate {
    /// Its section.
    pub category: Category,
    /// What it is about, such as `unit_preference`. The same key is the same line.
    pub key: String,
    /// What it says.
    pub value: String,
    /// How sure it is.
    pub confidence: Certainty,
    /// What it comes from.
    pub source: String,
}

//! Types that more than one agent uses.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::outputs::Change;
use crate::journal::rows::{Computed, Question};

/// What kind of input it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InputType {
    /// Records something.
    Log,
    /// Asks something.
    Query,
    /// Does both.
    Both,
    /// Corrects something that was recorded.
    Correction,
}

/// What a question is after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QueryType {
    /// Something to be looked up.
    Simple,
    /// Why, or what pattern.
    Insight,
    /// What should be done.
    Recommendation,
    /// One thing beside another.
    Comparison,
    /// Something recorded is wrong.
    Correction,
}

/// How the parts of a question depend on one another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DependencyType {
    /// Not at all: they are looked into side by side.
    Independent,
    /// A later one needs the answer of an earlier one.
    Dependent,
    /// They are really one question.
    #[default]
    Coupled,
}

/// What kind of thing is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GapType {
    /// Another time.
    Temporal,
    /// Another subject.
    Topical,
    /// Related circumstances.
    Contextual,
    /// Only the user knows: how it is or feels now.
    Subjective,
    /// The question itself is unclear.
    Clarification,
}

impl GapType {
    /// Whether notes could say it.
    pub fn is_retrievable(self) -> bool {
        matches!(self, Self::Temporal | Self::Topical | Self::Contextual)
    }
}

/// How badly something is missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GapSeverity {
    /// No good answer without it.
    Critical,
    /// The answer would be better with it.
    NiceToHave,
}

/// Something that is missing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gap {
    /// What is missing.
    pub description: String,
    /// What kind of thing it is.
    pub gap_type: GapType,
    /// How badly it is missed.
    pub severity: GapSeverity,
    /// Whether it was searched for.
    #[serde(default)]
    pub searched: bool,
    /// Whether it was found.
    #[serde(default)]
    pub found: bool,
    /// Whether it takes knowledge that no loaded domain has.
    #[serde(default)]
    pub outside_current_expertise: bool,
    /// The domain that may have it.
    #[serde(default)]
    pub suspected_domain: Option<String>,
}

/// Whether there is enough to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sufficiency {
    /// Every claim has evidence among the entries.
    Sufficient,
    /// Something critical is missing.
    Insufficient,
}

/// Whether an answer may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Passing {
    /// It may.
    Pass,
    /// It may not.
    Fail,
}

/// How sure something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// Hardly any doubt.
    High,
    /// Some doubt.
    Medium,
    /// Much doubt.
    Low,
}

/// How sure a line of the global context is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// Said once, or seen once.
    Tentative,
    /// Several things speak for it.
    Likely,
    /// The user said so, or it was measured.
    Certain,
}

/// A section of the global context.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// How the user wants things.
    Preference,
    /// What the user tends to do.
    Pattern,
    /// What is so: records, routines, milestones.
    Fact,
    /// What seems to go together.
    Insight,
}

/// How long an answer should be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// Short.
    #[default]
    Concise,
    /// With everything that matters.
    Detailed,
}

/// What a planner wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NextAction {
    /// Search the notes.
    Retrieve,
    /// Load another domain.
    ExpandDomain,
    /// Ask the user.
    Clarify,
    /// Answer with what there is.
    Synthesize,
}

/// What an evaluator recommends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Recommendation {
    /// Give it.
    Accept,
    /// Write it again.
    RetryWithFeedback,
    /// Search more, then write it again.
    RetryWithMoreContext,
    /// Give what there is, and say what is missing.
    GivePartial,
}

/// Why an observer is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// A question was answered.
    PostQuery,
    /// The user corrected something.
    UserCorrection,
    /// Something notable was recorded.
    SignificantLog,
}

/// A domain, as it is chosen by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DomainInfo {
    /// Its name.
    pub name: String,
    /// What it covers.
    pub description: String,
}

/// The base domain and the selected ones, combined.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ActiveDomainContext {
    /// Those that are loaded, the base first.
    pub domains_loaded: Vec<String>,
    /// Words and what they stand for.
    pub vocabulary: BTreeMap<String, String>,
    /// What the domains know, under their names.
    pub expertise: String,
    /// What an answer must keep to.
    pub evaluation_rules: Vec<String>,
    /// What is worth remembering, under the domains' names.
    pub context_guidance: String,
    /// Those that are not loaded.
    pub available_domains: Vec<DomainInfo>,
    /// What a parsed entry looks like, for each domain.
    pub schemas: BTreeMap<String, Value>,
    /// What became of the domains that were asked for and do not exist or are broken.
    pub notes: Vec<String>,
}

/// A stretch of days, both included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DateRange {
    /// The first day, such as `2026-01-04`.
    pub start: String,
    /// The last day.
    pub end: String,
    /// In words, such as `last week`.
    #[serde(default)]
    pub description: Option<String>,
}

/// An entry as agents see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EntryShown {
    /// Its id, which begins with its date.
    pub id: String,
    /// Its day.
    pub date: String,
    /// Its time.
    pub timestamp: String,
    /// What the user wrote.
    pub raw_content: String,
    /// What was read out of it, by domain.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub domain_data: BTreeMap<String, Value>,
    /// The file it stands in.
    pub source_file: String,
    /// The entry that it corrects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrects: Option<String>,
    /// What was corrected in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub corrections: Vec<Change>,
}

/// How notes are searched: by day, by pattern of their files' names, or by words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Retrieval {
    /// What is looked for, in a few words.
    pub purpose: String,
    /// The question of several that it belongs to.
    pub sub_query_id: Option<u32>,
    /// The days: `last week`, `since March`, `2026-01-01..2026-01-31`. All if none.
    pub range: Option<String>,
    /// A pattern of files, such as `2026/01/**/*.md`.
    pub pattern: Option<String>,
    /// Words to look for; none is every entry of those days.
    pub keywords: Vec<String>,
    /// Whether an entry must have all of the words.
    pub match_all: bool,
    /// A number to be computed from what was recorded, instead of entries.
    pub compute: Option<Question>,
}

/// A search that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RetrievalAttempt {
    /// The how many-th, from 1.
    pub attempt_number: u32,
    /// `date_range`, `pattern`, `keyword` or `compute`.
    pub strategy: String,
    /// What exactly.
    pub params: Retrieval,
    /// How much was found.
    pub entries_found: usize,
    /// What was found, in a sentence.
    pub summary: String,
}

/// What a search gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RetrieverOutput {
    /// The entries, oldest first.
    pub entries: Vec<EntryShown>,
    /// What was done.
    pub retrieval_summary: Vec<RetrievalAttempt>,
    /// How many there are, those that were cut off included.
    pub total_entries_found: usize,
    /// From the first entry to the last.
    pub date_range_covered: Option<DateRange>,
    /// What is odd.
    pub warnings: Vec<String>,
    /// Whether there are more than were returned.
    pub truncated: bool,
    /// What was computed.
    pub computed: Vec<Computed>,
    /// What each search found, by id, and the part of the question that it was for.
    pub found_by: Vec<(Option<u32>, Vec<String>)>,
}

/// What is wrong with an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvaluationFeedback {
    /// What is wrong.
    pub issue: String,
    /// What to do about it.
    pub suggestion: String,
    /// The claim that it is about.
    #[serde(default)]
    pub affected_claim: Option<String>,
}

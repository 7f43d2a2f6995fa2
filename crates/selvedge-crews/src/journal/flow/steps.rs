//! What is done in each state: an agent asked, a tool used, a person asked.

use std::sync::Arc;

use selvedge_agent::{AGENT, AgentCall, RunSpec, ToolUse};
use selvedge_flow::{Step, Visit};
use selvedge_ledger::Payload;
use selvedge_runtime::{Act, ChildSpec, Question};
use serde::Serialize;
use serde_json::json;

use super::{JournalFlow, JournalState};
use crate::journal::correction::Meant;
use crate::journal::dates;
use crate::journal::notes::{EntryId, ParseState, Parsed};
use crate::journal::protocol::{
    AnalyzerInput, AnalyzerOutput, ClarifierInput, DependencyType, EntryShown, EvaluatorInput,
    InputType, ObserverInput, ParserInput, PlannerInput, QueryType, RetrieverInput, RouterInput,
    SynthesizerInput, Trigger,
};
use crate::journal::tools::{
    LOAD, LoadArguments, REMEMBER, RememberArguments, SEARCH, STORE, SearchArguments,
    StoreArguments,
};

/// So many entries are returned by a search at most.
const ENTRIES_MAX: usize = 500;
/// So many characters of entries are analysed at once.
const CHUNK_CHARS: usize = 40_000;
/// So many of the last entries are looked at when one is corrected, or parsed beside.
const RECENT: usize = 30;
const RECENT_SHOWN: usize = 5;

/// A part of the question, which is analysed on its own.
pub(super) struct Part {
    pub(super) id: u32,
    pub(super) question: String,
}

impl JournalFlow {
    pub(super) fn to_do(&self, visit: Visit<JournalState>) -> Vec<Step> {
        let Some(spec) = &self.spec else {
            return Vec::new();
        };
        let step = match visit.state {
            JournalState::Route => self.agent(
                spec,
                "router",
                &RouterInput {
                    raw_input: &self.brief.input,
                    session_context: self.brief.session_context.as_deref(),
                    available_domains: &self.brief.domains,
                },
            ),
            JournalState::BuildContext => {
                let mut domains: Vec<String> = self.loaded.iter().cloned().collect();
                domains.extend(self.wanted.iter().cloned());
                Some(tool(
                    spec,
                    LOAD,
                    &LoadArguments {
                        domains,
                        recent: RECENT,
                    },
                ))
            }
            JournalState::Plan => self.agent(
                spec,
                "planner",
                &PlannerInput {
                    query: &self.query,
                    query_type: self.plan.as_ref().map(|plan| plan.query_type),
                    now: &self.now(),
                    domain_context: (&self.context).into(),
                    retrieval_history: &self.found.retrieval_summary,
                    gaps_from_analyzer: &self.gaps,
                    evaluation_feedback: &self.feedback,
                    user_responses: &self.responses,
                    global_context_summary: &self.global,
                },
            ),
            JournalState::Retrieve => return self.retrieval(spec),
            JournalState::Analyze => return self.analysis(spec),
            JournalState::Clarify => self.agent(
                spec,
                "clarifier",
                &ClarifierInput {
                    original_query: &self.query,
                    gaps: self.askable(),
                    suggested_questions: self
                        .plan
                        .as_ref()
                        .map_or(&[], |p| &p.clarify_questions[..]),
                    vocabulary: &self.context.vocabulary,
                    retrieval_history: &self.found.retrieval_summary,
                    previous_clarifications: &self.asked_before,
                },
            ),
            JournalState::WaitUser => Some(Act::Ask(self.question())),
            JournalState::Synthesize if self.is_unanalysed => None,
            JournalState::Synthesize => self.agent(
                spec,
                "synthesizer",
                &SynthesizerInput {
                    query: &self.query,
                    query_type: self.query_type(),
                    analysis: self.analyses.values().collect(),
                    computed: &self.found.computed,
                    entries: self.citable(),
                    vocabulary: &self.context.vocabulary,
                    is_partial: self.is_partial,
                    unanswered_gaps: &self.gaps,
                    user_responses: &self.responses,
                    evaluation_feedback: &self.feedback,
                    response_style: self.brief.style,
                },
            ),
            // What code finds wrong needs no model's judgement.
            JournalState::Evaluate if self.is_unanalysed || self.uncited().is_some() => None,
            JournalState::Evaluate => self.draft.as_ref().and_then(|draft| {
                self.agent(
                    spec,
                    "evaluator",
                    &EvaluatorInput {
                        query: &self.query,
                        response: &draft.response,
                        analysis: self.analyses.values().collect(),
                        computed: &self.found.computed,
                        entries_summary: self.citable(),
                        evaluation_rules: &self.context.evaluation_rules,
                        attempt_number: self.attempts + 1,
                        previous_feedback: &self.feedback,
                    },
                )
            }),
            JournalState::Parse => self.parsing(spec),
            JournalState::Store => self.storing(spec),
            JournalState::Observe => return self.observing(spec),
            JournalState::ExpandDomain | JournalState::Complete => None,
        };
        let plain = |act| Step {
            name: String::new(),
            act,
        };
        step.map(plain).into_iter().collect()
    }

    /// An agent asked once, for an answer that fits its schema; none if nobody can be.
    fn agent(
        &self,
        spec: &RunSpec,
        agent: &'static str,
        input: &impl Serialize,
    ) -> Option<Act<AgentCall>> {
        self.agent_at(spec, agent, input, 0)
    }

    /// The same, for one of several that are asked side by side.
    fn agent_at(
        &self,
        spec: &RunSpec,
        agent: &'static str,
        input: &impl Serialize,
        at: u32,
    ) -> Option<Act<AgentCall>> {
        if self.without.is_some() || self.error.is_some() {
            return None;
        }
        let input = serde_json::to_string(input).expect("it is plain data");
        let mut child = spec.child(agent, Payload::inline(input))?;
        child.terms.called_by = Some(agent.to_owned());
        child.terms.task = self.asked.get(agent).copied().unwrap_or(0) + at + 1;
        if let ("parser", Some(schema)) = (agent, &mut child.output_schema) {
            let data = &mut schema["properties"]["domain_data"];
            *data = json!({
                "type": "object",
                "description": "What it says, by domain, each as its domain's schema wants it.",
                "properties": self.context.schemas,
                "additionalProperties": false,
            });
        }
        Some(Act::Child(ChildSpec {
            kind: AGENT.to_owned(),
            spec: serde_json::to_value(child).expect("a spec is plain data"),
        }))
    }

    fn retrieval(&self, spec: &Arc<RunSpec>) -> Vec<Step> {
        let Some(choice) = &self.choice else {
            let instructions = self.instructions();
            let asked = self.agent(
                spec,
                "retriever",
                &RetrieverInput {
                    instructions: &instructions,
                    vocabulary: &self.context.vocabulary,
                    now: &self.now(),
                    max_entries: ENTRIES_MAX,
                },
            );
            if let Some(act) = asked {
                return vec![Step {
                    name: "choose".to_owned(),
                    act,
                }];
            }
            return vec![self.searching(spec, instructions)];
        };
        let searches = match choice.searches.is_empty() {
            true => self.instructions(),
            false => choice.searches.clone(),
        };
        vec![self.searching(spec, searches)]
    }

    fn searching(
        &self,
        spec: &Arc<RunSpec>,
        searches: Vec<crate::journal::protocol::Retrieval>,
    ) -> Step {
        let arguments = SearchArguments {
            searches,
            domains: self.context.domains_loaded.clone(),
            today: self.brief.date,
            entries_max: ENTRIES_MAX,
            units: self.brief.units,
            before: u32::try_from(self.found.retrieval_summary.len()).unwrap_or(u32::MAX),
        };
        Step {
            name: "search".to_owned(),
            act: tool(spec, SEARCH, &arguments),
        }
    }

    /// The parts that are analysed each on its own: one, unless the plan has several.
    pub(super) fn parts(&self) -> Vec<Part> {
        let whole = || {
            vec![Part {
                id: 0,
                question: self.query.clone(),
            }]
        };
        let Some(plan) = &self.plan else {
            return whole();
        };
        let mut parts: Vec<Part> = Vec::new();
        let ordered = plan
            .execution_order
            .iter()
            .filter_map(|id| plan.sub_queries.iter().find(|sub| sub.id == *id));
        for sub in ordered.chain(&plan.sub_queries) {
            if parts.iter().all(|part| part.id != sub.id) {
                parts.push(Part {
                    id: sub.id,
                    question: sub.question.clone(),
                });
            }
        }
        match plan.execution_strategy == DependencyType::Coupled || parts.len() < 2 {
            true => whole(),
            false => parts,
        }
    }

    /// Whether later parts need the answers of earlier ones.
    fn is_sequential(&self) -> bool {
        let plan = self.plan.as_ref();
        plan.is_some_and(|plan| plan.execution_strategy == DependencyType::Dependent)
    }

    /// The entries for a part, in pieces that can be analysed at once.
    pub(super) fn chunks(&self, part: u32) -> Vec<Vec<EntryShown>> {
        let by = &self.found.found_by;
        let is_for = |id: &str| {
            by.iter().any(|(sub, ids)| {
                (sub.is_none() || *sub == Some(part)) && ids.iter().any(|known| known == id)
            })
        };
        let mine = |entry: &&EntryShown| part == 0 || is_for(&entry.id);
        let mut mine: Vec<&EntryShown> = self.found.entries.iter().filter(mine).collect();
        if mine.is_empty() {
            mine = self.found.entries.iter().collect();
        }
        let mut chunks: Vec<Vec<EntryShown>> = vec![Vec::new()];
        let mut chars = 0;
        for entry in mine {
            let own = entry.raw_content.len() + 200;
            if chars + own > CHUNK_CHARS && chars > 0 {
                chunks.push(Vec::new());
                chars = 0;
            }
            chars += own;
            chunks.last_mut().expect("there is one").push(entry.clone());
        }
        chunks
    }

    fn analysis(&self, spec: &Arc<RunSpec>) -> Vec<Step> {
        let parts = self.parts();
        let is_one = parts.len() == 1;
        let mut steps: Vec<Step> = Vec::new();
        let mut earlier: Vec<&AnalyzerOutput> = Vec::new();
        for part in &parts {
            if let Some(analysis) = self.analyses.get(&part.id) {
                earlier.push(analysis);
                continue;
            }
            let chunks = self.chunks(part.id);
            let missing: Vec<usize> = (0..chunks.len())
                .filter(|n| !self.pieces.contains_key(&(part.id, *n)))
                .collect();
            let name = |rest: String| match is_one && rest.is_empty() {
                true => String::new(),
                false => format!("q{}{rest}", part.id),
            };
            let mut ask = |name: String,
                           entries: &[EntryShown],
                           piece: Option<String>,
                           merged: Vec<&AnalyzerOutput>| {
                let at = u32::try_from(steps.len()).unwrap_or(0);
                let input = AnalyzerInput {
                    query: &part.question,
                    query_type: self.query_type(),
                    sub_query_id: (!is_one).then_some(part.id),
                    now: &self.now(),
                    entries,
                    entries_summary: piece,
                    computed: &self.found.computed,
                    partial_analyses: merged,
                    earlier_answers: match self.is_sequential() {
                        true => earlier.clone(),
                        false => Vec::new(),
                    },
                    domain_context: (&self.context).into(),
                    global_context: &self.global,
                    retrieval_history: &self.found.retrieval_summary,
                    user_responses: &self.responses,
                };
                if let Some(act) = self.agent_at(spec, "analyzer", &input, at) {
                    steps.push(Step { name, act });
                }
            };
            match chunks.len() {
                1 => ask(name(String::new()), &chunks[0], None, Vec::new()),
                count if !missing.is_empty() => {
                    for n in missing {
                        let piece = format!("piece {} of {count}", n + 1);
                        ask(
                            format!("q{}c{n}", part.id),
                            &chunks[n],
                            Some(piece),
                            Vec::new(),
                        );
                    }
                }
                _ => {
                    let pieces = (0..chunks.len()).filter_map(|n| self.pieces.get(&(part.id, n)));
                    let piece = "all pieces put together".to_owned();
                    ask(format!("q{}m", part.id), &[], Some(piece), pieces.collect());
                }
            }
            if self.is_sequential() {
                break;
            }
        }
        steps
    }

    fn question(&self) -> Question {
        if let Some(Meant::OneOf(ids)) = &self.meant {
            let option = |id: &String| {
                let entry = self.recent.iter().find(|entry| entry.id == *id);
                let words =
                    entry.map_or("", |entry| entry.raw_content.lines().next().unwrap_or(""));
                format!("{id} {words}").trim().to_owned()
            };
            return Question {
                text: "Which entry is to be corrected? (`skip` changes nothing)".to_owned(),
                options: ids.iter().map(option).collect(),
                approval: None,
            };
        }
        let Some(clarifier) = &self.clarifier else {
            return Question {
                text: "Is there anything else that I should know?".to_owned(),
                options: Vec::new(),
                approval: None,
            };
        };
        let questions = &clarifier.questions;
        let mut lines = vec![clarifier.context_explanation.trim().to_owned()];
        lines.retain(|line| !line.is_empty());
        for (n, question) in questions.iter().enumerate() {
            lines.push(match questions.len() {
                1 => question.question.clone(),
                _ => format!("{}. {}", n + 1, question.question),
            });
        }
        lines.push("(`skip` goes on without an answer)".to_owned());
        let options = match &questions[..] {
            [one] => one.options.clone().unwrap_or_default(),
            _ => Vec::new(),
        };
        Question {
            text: lines.join("\n"),
            options,
            approval: None,
        }
    }

    fn parsing(&self, spec: &RunSpec) -> Option<Act<AgentCall>> {
        let is_correction = self.corrects();
        let shown = if is_correction { RECENT } else { RECENT_SHOWN };
        let resolved = dates::day_mentioned(&self.log_text, self.brief.date);
        self.agent(
            spec,
            "parser",
            &ParserInput {
                raw_input: &self.log_text,
                timestamp: &self.now(),
                resolved_date: resolved.map(|date| date.to_string()),
                domain_schemas: &self.context.schemas,
                vocabulary: &self.context.vocabulary,
                global_context: &self.global,
                recent_entries: &self.recent[..shown.min(self.recent.len())],
                correction_mode: is_correction,
                correction_target: self.target_hint.as_deref(),
            },
        )
    }

    fn storing(&self, spec: &Arc<RunSpec>) -> Option<Act<AgentCall>> {
        if self.error.is_some() || matches!(self.meant, Some(Meant::Already(_))) {
            return None;
        }
        let (date, time) = (self.brief.date, self.brief.time);
        let seed = format!("{}\n{}", self.session, self.log_text);
        let id = self
            .brief
            .entry
            .clone()
            .unwrap_or_else(|| EntryId::new(date, time, &seed));
        let target = match &self.meant {
            Some(Meant::One(target)) => EntryId::parse(target),
            _ => None,
        };
        let changes = self.parsed.as_ref().filter(|_| target.is_some());
        Some(tool(
            spec,
            STORE,
            &StoreArguments {
                id,
                date,
                time,
                text: self.log_text.clone(),
                parsed: self.to_store(),
                units: self.brief.units,
                changes: changes
                    .map(|parsed| parsed.correction_delta.clone())
                    .unwrap_or_default(),
                target,
            },
        ))
    }

    /// What was read out of the note, as far as it fits the domains.
    pub(super) fn to_store(&self) -> Parsed {
        let Some(parsed) = self.parsed.as_ref().filter(|_| !self.corrects()) else {
            return Parsed::default();
        };
        let mut stored = Parsed {
            state: ParseState::Done,
            tags: parsed.tags.clone(),
            uncertain_fields: parsed.uncertain_fields.clone(),
            extraction_notes: parsed.extraction_notes.clone(),
            confidence: parsed.confidence.clamp(0.0, 1.0),
            ..Parsed::default()
        };
        for (name, data) in &parsed.domain_data {
            let Some(schema) = self.context.schemas.get(name) else {
                stored.uncertain_fields.push(name.clone());
                continue;
            };
            let (kept, unfit) = crate::journal::domains::fitting(schema, data);
            let unfit = unfit.into_iter().map(|field| match field.is_empty() {
                true => name.clone(),
                false => format!("{name}.{field}"),
            });
            stored.uncertain_fields.extend(unfit);
            stored
                .domain_data
                .extend(kept.map(|kept| (name.clone(), kept)));
        }
        // Code knows what `yesterday` is; what a model makes of other words is doubtful.
        let today = self.brief.date;
        let said = dates::day_mentioned(&self.log_text, today);
        let read = || {
            parsed
                .date
                .trim()
                .parse()
                .ok()
                .filter(|date| *date != today)
        };
        if said.is_none() && read().is_some() {
            stored.uncertain_fields.push("date".to_owned());
        }
        stored.about = said.or_else(read).filter(|date| *date != today);
        stored.uncertain_fields.sort();
        stored.uncertain_fields.dedup();
        stored
    }

    fn observing(&self, spec: &Arc<RunSpec>) -> Vec<Step> {
        if let Some(observed) = &self.observed {
            let is_new = observed.should_update && !observed.updates.is_empty();
            let remember = || Step {
                name: "remember".to_owned(),
                act: tool(
                    spec,
                    REMEMBER,
                    &RememberArguments {
                        updates: observed.updates.clone(),
                        today: self.brief.date,
                        tokens_max: self.brief.context_tokens_max,
                    },
                ),
            };
            return is_new.then(remember).into_iter().collect();
        }
        let Some(trigger) = self.trigger() else {
            return Vec::new();
        };
        let is_query = trigger == Trigger::PostQuery;
        let draft = self.draft.as_ref().filter(|_| is_query);
        let stored = self.stored.as_ref();
        let is_correction = trigger == Trigger::UserCorrection;
        let asked = self.agent(spec, "observer", &ObserverInput {
            trigger,
            query: is_query.then_some(self.query.as_str()),
            analysis: match is_query {
                true => self.analyses.values().collect(),
                false => Vec::new(),
            },
            response: draft.map(|draft| draft.response.as_str()),
            correction: is_correction.then_some(self.log_text.as_str()),
            what_was_corrected: stored.filter(|_| is_correction).map(|stored| stored.note.clone()),
            new_entry: (trigger == Trigger::SignificantLog).then(|| {
                json!({ "raw_content": self.log_text, "parsed": self.to_store().domain_data })
            }),
            user_responses: &self.responses,
            current_global_context: &self.global,
            context_management_guidance: &self.context.context_guidance,
        });
        let learn = |act| Step {
            name: "learn".to_owned(),
            act,
        };
        asked.map(learn).into_iter().collect()
    }

    /// Why something may be worth remembering; none if nothing is.
    fn trigger(&self) -> Option<Trigger> {
        let is_significant = self
            .parsed
            .as_ref()
            .is_some_and(|parsed| parsed.is_significant);
        let how = self.stored.as_ref().map(|stored| stored.how.as_str());
        match self.kind? {
            _ if self.error.is_some() || self.brief.entry.is_some() => None,
            InputType::Query | InputType::Both if self.is_unanalysed => None,
            InputType::Query | InputType::Both => Some(Trigger::PostQuery),
            InputType::Correction => (how == Some("corrected")).then_some(Trigger::UserCorrection),
            InputType::Log => is_significant.then_some(Trigger::SignificantLog),
        }
    }

    pub(super) fn query_type(&self) -> QueryType {
        let plan = self.plan.as_ref();
        plan.map_or(QueryType::Simple, |plan| plan.query_type)
    }

    /// The user's moment, as agents are told it.
    pub(super) fn now(&self) -> String {
        let (date, time) = (self.brief.date, self.brief.time);
        let day = format!("{:?}", date.weekday());
        format!(
            "{date}T{:02}:{:02} {day} {}",
            time.hour(),
            time.minute(),
            self.brief.zone
        )
    }

    /// What may be cited: ids and first words.
    fn citable(&self) -> Vec<String> {
        const WORDS_CHARS: usize = 160;
        let line = |entry: &EntryShown| {
            let words: String = entry.raw_content.chars().take(WORDS_CHARS).collect();
            format!("{}: {}", entry.id, words.replace('\n', " "))
        };
        self.found.entries.iter().map(line).collect()
    }
}

fn tool(spec: &Arc<RunSpec>, name: &str, arguments: &impl Serialize) -> Act<AgentCall> {
    let used = ToolUse::own(spec, name, name, &json!(arguments));
    Act::Call(AgentCall::Tool(used))
}

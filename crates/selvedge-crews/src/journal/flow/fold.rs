//! What came of a step, and what a state comes to when everything in it is done.

use jiff::civil::Date;
use selvedge_agent::ToolOutcome;
use selvedge_flow::Came;
use selvedge_ledger::Payload;
use selvedge_runtime::Status;
use serde::de::DeserializeOwned;

use super::guards::key;
use super::{Intent, JournalFlow, JournalState};
use crate::journal::correction::{self, Meant};
use crate::journal::notes::EntryId;
use crate::journal::protocol::{
    AnalyzerOutput, EvaluationFeedback, Gap, InputType, Passing, RetrieverChoice, RetrieverOutput,
    Sufficiency,
};
use crate::journal::tools::Loaded;

impl JournalFlow {
    pub(super) fn entered(&mut self, state: JournalState) {
        match state {
            JournalState::Retrieve => self.choice = None,
            JournalState::Analyze => {
                self.analyses.clear();
                self.pieces.clear();
            }
            JournalState::Clarify => self.clarifier = None,
            JournalState::Synthesize => {
                self.draft = None;
                // Whoever comes here without enough has tried what there is to try.
                self.is_partial = !self.sufficient;
            }
            JournalState::Evaluate => self.evaluated = None,
            _ => {}
        }
    }

    pub(super) fn fold(&mut self, state: JournalState, step: &str, came: Came) {
        match (state, came) {
            (JournalState::WaitUser, Came::Answered(answer)) => self.answered(&answer),
            (_, Came::Tool(outcome)) => self.used(state, *outcome),
            (JournalState::Store, Came::InDoubt) => {
                self.note("it is not certain that the note was written: look for it");
            }
            (_, Came::Ended(ending)) => {
                let is_done = ending.status == Status::Done;
                let data = ending.data.filter(|_| is_done);
                self.agent_ended(state, step, data);
            }
            _ => {}
        }
    }

    fn agent_ended(&mut self, state: JournalState, step: &str, data: Option<serde_json::Value>) {
        let agent = agent_of(state, step);
        *self.asked.entry(agent).or_default() += 1;
        let Some(data) = data else {
            return self.missed(state, step, agent);
        };
        fn read<T: DeserializeOwned>(data: serde_json::Value) -> Option<T> {
            serde_json::from_value(data).ok()
        }
        let is_read = match state {
            JournalState::Route => set(&mut self.route, read(data)),
            JournalState::Plan => set(&mut self.plan, read(data)),
            JournalState::Retrieve => set(&mut self.choice, read(data)),
            JournalState::Analyze => match read(data) {
                Some(analysis) => {
                    self.analysed(step, analysis);
                    true
                }
                None => false,
            },
            JournalState::Clarify => set(&mut self.clarifier, read(data)),
            JournalState::Synthesize => set(&mut self.draft, read(data)),
            JournalState::Evaluate => set(&mut self.evaluated, read(data)),
            JournalState::Parse => set(&mut self.parsed, read(data)),
            JournalState::Observe => set(&mut self.observed, read(data)),
            _ => true,
        };
        if !is_read {
            self.missed(state, step, agent);
        }
    }

    /// An agent gave nothing that can be used: what is done without it is done.
    fn missed(&mut self, state: JournalState, step: &str, agent: &str) {
        self.note(&format!("the {agent} gave no answer that can be used"));
        match state {
            JournalState::Retrieve => {
                self.choice = Some(RetrieverChoice {
                    searches: Vec::new(),
                    warnings: Vec::new(),
                });
            }
            JournalState::Analyze if step.contains('c') => {
                let part = place(step);
                self.pieces
                    .insert((part.0, part.1.unwrap_or(0)), nothing_found(&self.query));
            }
            JournalState::Analyze => {
                self.is_unanalysed = true;
                self.analyses
                    .insert(place(step).0, nothing_found(&self.query));
            }
            JournalState::Observe => self.observed = Some(nothing_learned()),
            _ => {}
        }
    }

    fn analysed(&mut self, step: &str, analysis: AnalyzerOutput) {
        match place(step) {
            (part, Some(piece)) => drop(self.pieces.insert((part, piece), analysis)),
            (part, None) => drop(self.analyses.insert(part, analysis)),
        }
    }

    fn used(&mut self, state: JournalState, outcome: ToolOutcome) {
        let text = outcome.text.text().map(ToString::to_string);
        let failed = || text.clone().unwrap_or_else(|| "a tool failed".to_owned());
        match state {
            _ if outcome.is_error => match state {
                // What was not written down is the one thing that cannot be passed over.
                JournalState::Store => self.error = Some(failed()),
                _ => self.note(&failed()),
            },
            JournalState::BuildContext => {
                let loaded: Loaded = serde_json::from_value(outcome.facts).unwrap_or_default();
                self.loaded
                    .extend(loaded.context.domains_loaded.iter().cloned());
                for note in loaded.context.notes.iter().chain(&loaded.warnings) {
                    self.note(note);
                }
                self.context = loaded.context;
                self.global = loaded.global_context;
                self.recent = loaded.recent;
            }
            JournalState::Retrieve => {
                let found: RetrieverOutput =
                    serde_json::from_value(outcome.facts).unwrap_or_default();
                self.took_in(found);
            }
            JournalState::Store => {
                self.stored = serde_json::from_value(outcome.facts).ok();
            }
            _ => {}
        }
    }

    /// Adds what a search found to what was found before.
    fn took_in(&mut self, found: RetrieverOutput) {
        self.retrievals += 1;
        for entry in found.entries {
            if self.found.entries.iter().all(|known| known.id != entry.id) {
                self.found.entries.push(entry);
            }
        }
        self.found.entries.sort_by(|a, b| a.id.cmp(&b.id));
        self.found.retrieval_summary.extend(found.retrieval_summary);
        self.found.total_entries_found = self.found.entries.len();
        self.found.truncated |= found.truncated;
        for warning in found.warnings {
            // That nothing was found is for the agents, that something is odd for the user.
            if !warning.starts_with("nothing was found") {
                self.note(&warning);
            }
        }
        for computed in found.computed {
            self.found
                .computed
                .retain(|known| known.question != computed.question);
            self.found.computed.push(computed);
        }
        self.found.found_by.extend(found.found_by);
    }

    fn answered(&mut self, answer: &Payload) {
        // A long answer is kept apart from its event, and a fold does not see it.
        let long = "(a long answer, which is in the record of the session)";
        let text = match (answer.blob(), answer.text()) {
            (None, Some(text)) => text.trim().to_owned(),
            _ => long.to_owned(),
        };
        let is_no = ["skip", "decline", "-", "pass"].contains(&text.to_lowercase().as_str());
        if let Some(Meant::OneOf(ids)) = &self.meant {
            let chosen = ids.iter().find(|id| text.starts_with(id.as_str()));
            let fitting = ids
                .iter()
                .filter(|id| id.starts_with(&text) && text.len() >= 10);
            let fitting: Vec<&String> = fitting.collect();
            let only = match fitting[..] {
                [only] => Some(only),
                _ => None,
            };
            self.meant = Some(match chosen.or(only).filter(|_| !is_no) {
                Some(id) => Meant::One(id.clone()),
                None => Meant::None,
            });
            return;
        }
        self.declined = is_no;
        let asked = self
            .clarifier
            .take()
            .map(|c| c.questions)
            .unwrap_or_default();
        let questions: Vec<&str> = asked.iter().map(|q| q.question.as_str()).collect();
        if !is_no {
            self.responses.insert(questions.join(" "), text);
        }
        self.asked_before.extend(asked);
    }

    pub(super) fn conclude(&mut self, state: JournalState) {
        match state {
            JournalState::Route => self.routed(),
            JournalState::Plan => self.planned(),
            JournalState::ExpandDomain => {
                self.must_retrieve = true;
                self.wanted = self.plan_domains();
                self.wanted.extend(self.gap_domains());
            }
            JournalState::BuildContext => {
                // A domain that could not be loaded is not asked for again.
                self.loaded.extend(self.wanted.drain(..));
            }
            JournalState::Retrieve => self.must_retrieve = false,
            JournalState::Analyze => self.weigh(),
            JournalState::Clarify => self.clarified(),
            JournalState::Synthesize if self.draft.is_none() => {
                self.draft = Some(self.found_notes())
            }
            JournalState::Evaluate => self.judged(),
            JournalState::Parse => self.understood(),
            JournalState::Observe if self.observed.is_none() => {
                self.observed = Some(nothing_learned());
            }
            _ => {}
        }
    }

    fn routed(&mut self) {
        let route = self.route.take().unwrap_or_else(|| self.route_by_rules());
        for name in &route.selected_domains {
            match self.brief.domains.iter().any(|domain| domain.name == *name) {
                true => self.wanted.push(name.clone()),
                false => self.note(&format!("there is no domain `{name}`: ignored")),
            }
        }
        let input = self.brief.input.clone();
        let has = |part: &Option<String>| {
            part.as_ref()
                .is_some_and(|part| !part.trim().is_empty() && input.contains(part.trim()))
        };
        let is_split = has(&route.log_portion) && has(&route.query_portion);
        let kind = match (self.brief.intent, route.input_type) {
            // Who says `log` wants it recorded, a question in it included.
            (Intent::Log, InputType::Correction) => InputType::Correction,
            (Intent::Log, _) => InputType::Log,
            (Intent::Ask, InputType::Both) if is_split => InputType::Both,
            (Intent::Ask, _) => InputType::Query,
            // A split that is not the user's own words would lose some of them.
            (Intent::Any, InputType::Both) if !is_split => InputType::Log,
            (Intent::Any, kind) => kind,
        };
        let part = |part: &Option<String>| match (kind, part) {
            (InputType::Both, Some(part)) => part.trim().to_owned(),
            _ => input.clone(),
        };
        self.log_text = part(&route.log_portion);
        self.query = part(&route.query_portion);
        self.target_hint.clone_from(&route.correction_target);
        self.kind = Some(kind);
        self.route = Some(route);
    }

    fn planned(&mut self) {
        if self.plan.is_none() || self.without.is_some() {
            self.plan = Some(self.plan_by_rules());
        }
        let wanted = self
            .plan
            .iter()
            .flat_map(|plan| &plan.domain_expansion_request);
        self.note_unknown(wanted.cloned().collect());
    }

    fn note_unknown(&mut self, names: Vec<String>) {
        for name in names {
            if self.brief.domains.iter().all(|domain| domain.name != name) {
                self.note(&format!("there is no domain `{name}`: ignored"));
            }
        }
    }

    /// Puts the analyses together: what counts is what has evidence.
    fn weigh(&mut self) {
        if self
            .parts()
            .iter()
            .any(|part| !self.analyses.contains_key(&part.id))
        {
            self.is_unanalysed = true;
        }
        let mut analyses = std::mem::take(&mut self.analyses);
        let mut sufficient = true;
        let mut gaps: Vec<Gap> = Vec::new();
        for analysis in analyses.values_mut() {
            let claims = analysis.findings.len();
            analysis
                .findings
                .retain(|f| f.evidence.iter().any(|e| self.is_evidence(e)));
            let is_bare = claims > 0 && analysis.findings.is_empty();
            sufficient &= analysis.verdict == Sufficiency::Sufficient && !is_bare;
            gaps.append(&mut analysis.gaps_identified.clone());
        }
        self.analyses = analyses;
        // Without an analysis there is nothing to be missing: what was found is shown.
        self.sufficient = sufficient || self.is_unanalysed;
        let names = gaps.iter().filter(|gap| gap.outside_current_expertise);
        let names = names
            .filter_map(|gap| gap.suspected_domain.clone())
            .collect();
        self.note_unknown(names);
        for gap in &mut gaps {
            let first = self
                .gap_seen
                .entry(key(&gap.description))
                .or_insert(self.retrievals);
            // Whether it was searched for is known here, and not believed.
            gap.searched = *first < self.retrievals;
        }
        self.gaps = gaps;
    }

    /// Whether a reference means something that was found, computed or said.
    pub(super) fn is_evidence(&self, reference: &str) -> bool {
        let reference = reference.trim();
        let is_user = reference.to_lowercase().starts_with("user");
        if is_user {
            return !self.responses.is_empty();
        }
        // Ids or dates, possibly among other words. One that nobody found spoils the rest.
        let mut named = dated_words(reference).peekable();
        named.peek().is_some() && named.all(|word| self.is_found(word))
    }

    fn is_found(&self, word: &str) -> bool {
        let mut entries = self.found.entries.iter();
        entries.any(|entry| entry.id.starts_with(word))
    }

    fn clarified(&mut self) {
        let Some(clarifier) = &mut self.clarifier else {
            return;
        };
        let before = &self.asked_before;
        clarifier.questions.retain(|question| {
            let is_new = before
                .iter()
                .all(|old| key(&old.question) != key(&question.question));
            is_new && !question.question.trim().is_empty()
        });
    }

    /// What the draft cites and nobody found.
    pub(super) fn uncited(&self) -> Option<String> {
        let cited = self.draft.iter().flat_map(|draft| &draft.evidence_cited);
        let mut wrong = cited.filter(|reference| !self.is_evidence(reference));
        // A date in the text may be one of a plan; an id can only be an entry's.
        let said = self.draft.iter().flat_map(|d| dated_words(&d.response));
        let mut ids = said.filter(|word| EntryId::parse(word).is_some());
        let invented = ids.find(|id| !self.is_found(id)).map(str::to_owned);
        wrong.next().cloned().or(invented)
    }

    fn judged(&mut self) {
        self.attempts += 1;
        if self.is_unanalysed {
            self.passed = true;
            return;
        }
        if let Some(reference) = self.uncited() {
            self.passed = false;
            self.feedback.push(EvaluationFeedback {
                issue: format!("accuracy: `{reference}` is cited and is none of the entries found"),
                suggestion: "cite only entries that were found, by their ids".to_owned(),
                affected_claim: None,
            });
            return;
        }
        let Some(evaluation) = self.evaluated.take() else {
            self.note("the answer was not checked");
            self.passed = true;
            return;
        };
        let fails = evaluation
            .dimensions
            .iter()
            .any(|d| d.verdict == Passing::Fail);
        self.passed = evaluation.overall_verdict == Passing::Pass && !fails;
        if !self.passed {
            self.feedback.extend(evaluation.feedback);
            self.is_partial |= self.attempts > super::RETRIES_MAX;
        }
    }

    fn understood(&mut self) {
        if self.parsed.is_none() {
            self.note("the note is not parsed yet: `selvedge journal reparse` does it");
        }
        if !self.corrects() {
            return;
        }
        let (changes, named) = match &self.parsed {
            Some(parsed) => (
                &parsed.correction_delta[..],
                parsed.target_entry_id.as_deref(),
            ),
            None => (&[][..], None),
        };
        let meant = correction::meant(changes, named, &self.recent);
        if meant == Meant::None {
            self.note("no entry was found that this corrects: it is kept as a note");
        }
        self.meant = Some(meant);
    }

    pub(super) fn note(&mut self, text: &str) {
        if !self.notes.iter().any(|known| known == text) {
            self.notes.push(text.to_owned());
        }
    }
}

/// The words of a text that begin with a date: dates, and ids of entries.
pub(super) fn dated_words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| c.is_whitespace() || "(),;".contains(c));
    let words = words.map(|word| word.trim_matches(['.', '[', ']', '`', '*', '_', ':', '"']));
    words.filter(|word| {
        word.get(..10)
            .is_some_and(|day| day.parse::<Date>().is_ok())
    })
}

fn set<T>(place: &mut Option<T>, value: Option<T>) -> bool {
    if value.is_some() {
        *place = value;
        return true;
    }
    false
}

fn agent_of(state: JournalState, _step: &str) -> &'static str {
    match state {
        JournalState::Route => "router",
        JournalState::Plan => "planner",
        JournalState::Retrieve => "retriever",
        JournalState::Analyze => "analyzer",
        JournalState::Clarify => "clarifier",
        JournalState::Synthesize => "synthesizer",
        JournalState::Evaluate => "evaluator",
        JournalState::Parse => "parser",
        _ => "observer",
    }
}

/// Which part of the question a step is for, and which piece of its entries: `q2c1`.
fn place(step: &str) -> (u32, Option<usize>) {
    let step = step.trim_start_matches('q').trim_end_matches('m');
    let (part, piece) = match step.split_once('c') {
        Some((part, piece)) => (part, piece.parse().ok()),
        None => (step, None),
    };
    (part.parse().unwrap_or(0), piece)
}

fn nothing_found(query: &str) -> AnalyzerOutput {
    AnalyzerOutput {
        query_intent: query.to_owned(),
        findings: Vec::new(),
        patterns_identified: Vec::new(),
        gaps_identified: Vec::new(),
        verdict_reasoning: String::new(),
        verdict: Sufficiency::Insufficient,
    }
}

fn nothing_learned() -> crate::journal::protocol::ObserverOutput {
    crate::journal::protocol::ObserverOutput {
        insights_captured: Vec::new(),
        updates: Vec::new(),
        should_update: false,
    }
}

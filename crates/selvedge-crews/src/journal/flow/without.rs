//! What is done in the place of an agent that cannot be asked: rules, and no guesses.

use super::JournalFlow;
use crate::journal::dates;
use crate::journal::notes::keywords;
use crate::journal::protocol::{
    Confidence, DependencyType, InputType, NextAction, PlannerOutput, QueryType, Retrieval,
    RouterOutput, SynthesizerOutput,
};

/// Words that a question begins with.
const ASKING: [&str; 17] = [
    "why", "how", "what", "when", "which", "who", "where", "did", "do", "does", "is", "are", "was",
    "should", "can", "show", "compare",
];
/// Words that a correction begins with.
const CORRECTING: [&str; 5] = [
    "actually",
    "correction",
    "i meant",
    "sorry,",
    "that was wrong",
];

impl JournalFlow {
    /// What an input is by its words; a note if they do not tell.
    pub(super) fn route_by_rules(&self) -> RouterOutput {
        let input = self.brief.input.trim();
        let sentences = sentences(input);
        let is_question = |sentence: &&String| {
            let lower = sentence.trim().to_lowercase();
            let first = lower
                .split(|c: char| !c.is_alphanumeric())
                .next()
                .unwrap_or_default();
            lower.ends_with('?') || (sentences.len() == 1 && ASKING.contains(&first))
        };
        let lower = input.to_lowercase();
        let asked: Vec<&String> = sentences.iter().filter(is_question).collect();
        let is_correction = CORRECTING.iter().any(|word| lower.starts_with(word));
        let (kind, log, query) = match asked.len() {
            _ if is_correction => (InputType::Correction, None, None),
            0 => (InputType::Log, None, None),
            count if count == sentences.len() => (InputType::Query, None, None),
            _ => {
                // Both parts must be the user's own words, in one piece each.
                let at = sentences
                    .iter()
                    .position(|s| s.trim().ends_with('?'))
                    .unwrap_or(0);
                let (log, query) = (sentences[..at].concat(), sentences[at..].concat());
                match log.trim().is_empty() {
                    true => (InputType::Log, None, None),
                    false => (
                        InputType::Both,
                        Some(log.trim().to_owned()),
                        Some(query.trim().to_owned()),
                    ),
                }
            }
        };
        let words = keywords(input);
        let fits = |description: &str| {
            let description = description.to_lowercase();
            words
                .iter()
                .any(|word| word.len() > 3 && description.contains(word.as_str()))
        };
        let domains = self
            .brief
            .domains
            .iter()
            .filter(|domain| fits(&domain.description));
        RouterOutput {
            reasoning: "by its words".to_owned(),
            input_type: kind,
            confidence: 0.5,
            domain_selection_reasoning: "by their descriptions".to_owned(),
            selected_domains: domains.map(|domain| domain.name.clone()).collect(),
            log_portion: log,
            query_portion: query,
            correction_target: None,
        }
    }

    /// A plan with one search: the words of the question, in the time that it names.
    pub(super) fn plan_by_rules(&self) -> PlannerOutput {
        let is_first = self.retrievals == 0;
        PlannerOutput {
            original_query: self.query.clone(),
            query_type: QueryType::Simple,
            sub_queries: Vec::new(),
            dependencies: Vec::new(),
            execution_strategy: DependencyType::Coupled,
            execution_order: Vec::new(),
            retrieval_instructions: self.search_by_words(),
            gaps_status: Vec::new(),
            expansion_reasoning: None,
            domain_expansion_request: Vec::new(),
            clarify_questions: Vec::new(),
            reasoning: "by its words".to_owned(),
            next_action: match is_first {
                true => NextAction::Retrieve,
                false => NextAction::Synthesize,
            },
        }
    }

    /// What the plan wants searched; what the question itself says if it wants nothing.
    pub(super) fn instructions(&self) -> Vec<Retrieval> {
        let Some(plan) = &self.plan else {
            return self.search_by_words();
        };
        let mut wanted = plan.retrieval_instructions.clone();
        let is_covered = |id: u32, wanted: &[Retrieval]| {
            wanted
                .iter()
                .any(|search| search.sub_query_id.is_none_or(|of| of == id))
        };
        for sub in &plan.sub_queries {
            if !is_covered(sub.id, &wanted) {
                wanted.push(Retrieval {
                    sub_query_id: Some(sub.id),
                    ..sub.retrieval_params.clone()
                });
            }
        }
        match wanted.is_empty() {
            true => self.search_by_words(),
            false => wanted,
        }
    }

    fn search_by_words(&self) -> Vec<Retrieval> {
        let today = self.brief.date;
        let days = dates::mentioned(&self.query, today);
        vec![Retrieval {
            purpose: "the words of the question".to_owned(),
            range: days.map(|(start, end)| format!("{start}..{end}")),
            keywords: keywords(&self.query),
            ..Retrieval::default()
        }]
    }

    /// What was found, clearly labelled: found notes, and not an answer.
    pub(super) fn found_notes(&self) -> SynthesizerOutput {
        let why = match &self.without {
            Some(why) => why.clone(),
            None => "no model gave an answer that can be used".to_owned(),
        };
        let mut lines = vec![format!("**Found notes, not an answer** ({why}).")];
        lines.push(String::new());
        for entry in &self.found.entries {
            let moment = entry.id.get(..16).unwrap_or(&entry.id).replace('T', " ");
            let text = entry.raw_content.trim().replace('\n', "\n  ");
            lines.push(format!("- {moment} {text}"));
        }
        if self.found.entries.is_empty() {
            lines.push("Nothing in your notes matches.".to_owned());
        }
        SynthesizerOutput {
            response: lines.join("\n"),
            key_points: Vec::new(),
            evidence_cited: self
                .found
                .entries
                .iter()
                .map(|entry| entry.id.clone())
                .collect(),
            gaps_disclosed: Vec::new(),
            confidence: Confidence::Low,
        }
    }
}

/// A text in sentences, with everything between them.
fn sentences(text: &str) -> Vec<String> {
    let mut sentences = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        sentences.last_mut().expect("there is one").push(c);
        let ends = ".!?\n".contains(c) && chars.peek().is_none_or(|next| next.is_whitespace());
        if ends && chars.peek().is_some() {
            sentences.push(String::new());
        }
    }
    sentences.retain(|sentence| !sentence.trim().is_empty());
    sentences
}

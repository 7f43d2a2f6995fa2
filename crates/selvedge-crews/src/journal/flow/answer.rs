//! What the user reads in the end.

use selvedge_ledger::Payload;
use selvedge_runtime::{Ending, Status};

use super::JournalFlow;
use super::guards::key;
use crate::journal::correction::Meant;
use crate::journal::protocol::{Gap, GapSeverity};

impl JournalFlow {
    pub(super) fn last_words(&self) -> Ending {
        let mut text: Vec<String> = Vec::new();
        if let Some(error) = &self.error {
            text.push(error.clone());
        }
        text.extend(self.recorded());
        if self.asks() && self.error.is_none() {
            text.push(self.answer());
        }
        if !self.notes.is_empty() {
            let notes: Vec<String> = self.notes.iter().map(|n| format!("_note: {n}_")).collect();
            text.push(notes.join("\n"));
        }
        Ending {
            status: match self.error {
                Some(_) => Status::Failed,
                None => Status::Done,
            },
            result: Payload::inline(text.join("\n\n")),
            data: None,
        }
    }

    /// What was written down.
    fn recorded(&self) -> Option<String> {
        if let Some(Meant::Already(id)) = &self.meant {
            return Some(format!("Unchanged: `{id}` says so already."));
        }
        let stored = self.stored.as_ref();
        let Some(stored) = stored else {
            let is_open = self.corrects() && self.error.is_none();
            return is_open.then(|| "Nothing was changed.".to_owned());
        };
        let id = &stored.id;
        let uncertain = self.to_store().uncertain_fields;
        let mut text = match stored.how.as_str() {
            "corrected" => format!("Corrected `{id}`: {}", stored.note),
            "unchanged" => format!("Unchanged: `{id}`, {}.", stored.note),
            "noted" => format!("Kept as a note, `{id}`: {}", stored.note),
            "updated" => format!("Parsed `{id}`."),
            _ => format!("Logged `{id}`."),
        };
        let domains: Vec<String> = self.to_store().domain_data.into_keys().collect();
        if !domains.is_empty() {
            text.push_str(&format!(" Read as: {}.", domains.join(", ")));
        }
        if !uncertain.is_empty() {
            text.push_str(&format!(" Uncertain: {}.", uncertain.join(", ")));
        }
        Some(text)
    }

    fn answer(&self) -> String {
        let Some(draft) = &self.draft else {
            return "There is no answer.".to_owned();
        };
        let mut text = draft.response.trim().to_owned();
        let gaps = self.missing();
        if self.is_partial && !gaps.is_empty() {
            let lines: Vec<String> = gaps.iter().map(|gap| format!("- {gap}")).collect();
            text.push_str(&format!(
                "\n\nThis answer is partial. To say more, I would need:\n{}",
                lines.join("\n")
            ));
        }
        let sources = self.sources();
        if !sources.is_empty() && !self.is_unanalysed {
            text.push_str(&format!("\n\nSources: {}", sources.join(", ")));
        }
        text
    }

    /// What is missing: critical gaps, what was wrong to the end, what was disclosed.
    fn missing(&self) -> Vec<String> {
        let mut missing: Vec<String> = Vec::new();
        let mut add = |text: &str| {
            let is_new = missing.iter().all(|known| key(known) != key(text));
            if is_new && !text.trim().is_empty() {
                missing.push(text.trim().to_owned());
            }
        };
        let is_critical = |gap: &&Gap| gap.severity == GapSeverity::Critical;
        self.gaps
            .iter()
            .filter(is_critical)
            .for_each(|gap| add(&gap.description));
        if !self.passed {
            let wrong = self.feedback.iter().rev().take(3);
            wrong.for_each(|feedback| add(&feedback.issue));
        }
        let disclosed = self.draft.iter().flat_map(|draft| &draft.gaps_disclosed);
        disclosed.for_each(|gap| add(gap));
        if missing.is_empty() {
            missing.push("notes that say more about it".to_owned());
        }
        missing
    }

    /// The entries that the answer cites, by id.
    fn sources(&self) -> Vec<String> {
        let cited = self.draft.iter().flat_map(|draft| &draft.evidence_cited);
        let mut sources: Vec<String> = Vec::new();
        for reference in cited.filter(|reference| self.is_evidence(reference)) {
            let entries = self.found.entries.iter();
            let meant = entries.filter(|entry| {
                super::fold::dated_words(reference).any(|word| entry.id.starts_with(word))
            });
            for entry in meant {
                if !sources.contains(&entry.id) {
                    sources.push(entry.id.clone());
                }
            }
        }
        sources
    }
}

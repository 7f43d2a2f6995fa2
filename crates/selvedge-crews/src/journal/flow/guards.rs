//! When a transition holds: what the guards of the table mean.

use super::JournalFlow;
use super::table::RETRIES_MAX;
use crate::journal::correction::Meant;
use crate::journal::protocol::{Gap, GapSeverity, InputType, NextAction};

impl JournalFlow {
    pub(super) fn asks(&self) -> bool {
        matches!(self.kind, Some(InputType::Query | InputType::Both))
    }

    pub(super) fn records(&self) -> bool {
        !self.asks_only() && self.parsed.is_none() && self.stored.is_none() && self.plan.is_none()
    }

    fn asks_only(&self) -> bool {
        self.kind == Some(InputType::Query)
    }

    pub(super) fn corrects(&self) -> bool {
        self.kind == Some(InputType::Correction)
    }

    pub(super) fn plan_expands(&self) -> bool {
        !self.must_retrieve && !self.plan_domains().is_empty()
    }

    /// The domains that the plan wants, and that exist and are not loaded.
    pub(super) fn plan_domains(&self) -> Vec<String> {
        let plan = self.plan.iter();
        self.loadable(plan.flat_map(|plan| plan.domain_expansion_request.iter()))
    }

    pub(super) fn gaps_expand(&self) -> bool {
        !self.gap_domains().is_empty()
    }

    /// The domains that gaps name, and that exist and are not loaded.
    pub(super) fn gap_domains(&self) -> Vec<String> {
        let outside = self.gaps.iter().filter(|gap| gap.outside_current_expertise);
        self.loadable(outside.filter_map(|gap| gap.suspected_domain.as_ref()))
    }

    fn loadable<'a>(&self, names: impl Iterator<Item = &'a String>) -> Vec<String> {
        let is_known = |name: &&String| self.brief.domains.iter().any(|d| d.name == **name);
        let is_new = |name: &&String| !self.loaded.contains(*name);
        let mut names: Vec<String> = names.filter(is_known).filter(is_new).cloned().collect();
        names.sort();
        names.dedup();
        names
    }

    /// Search before asking: enforced here, whatever a plan says.
    pub(super) fn may_clarify(&self) -> bool {
        let wants = self.plan.as_ref().map(|plan| plan.next_action) == Some(NextAction::Clarify);
        wants && !self.must_retrieve && !self.askable().is_empty()
    }

    /// What may be asked about: what notes cannot say, and what they were searched for
    /// and do not say. What was asked before is not asked again.
    pub(super) fn askable(&self) -> Vec<&Gap> {
        if self.retrievals == 0 || self.declined {
            return Vec::new();
        }
        let is_asked = |gap: &Gap| {
            let mut before = self.asked_before.iter();
            before.any(|question| key(&question.gap_addressed) == key(&gap.description))
        };
        let may_ask = |gap: &&Gap| {
            let is_searched = gap.searched && !gap.found;
            gap.severity == GapSeverity::Critical
                && (!gap.gap_type.is_retrievable() || is_searched)
                && !is_asked(gap)
        };
        self.gaps.iter().filter(may_ask).collect()
    }

    pub(super) fn plan_is_enough(&self) -> bool {
        let wants = self.plan.as_ref().map(|plan| plan.next_action) == Some(NextAction::Synthesize);
        wants && self.retrievals > 0 && !self.must_retrieve
    }

    pub(super) fn is_sufficient(&self) -> bool {
        self.sufficient
    }

    pub(super) fn has_questions(&self) -> bool {
        self.clarifier
            .as_ref()
            .is_some_and(|c| !c.questions.is_empty())
    }

    pub(super) fn is_declined(&self) -> bool {
        self.declined
    }

    pub(super) fn passes(&self) -> bool {
        self.passed
    }

    pub(super) fn may_retry(&self) -> bool {
        self.attempts <= RETRIES_MAX
    }

    pub(super) fn retry_expands(&self) -> bool {
        self.may_retry() && self.gaps_expand()
    }

    pub(super) fn is_target_unclear(&self) -> bool {
        matches!(self.meant, Some(Meant::OneOf(_)))
    }

    pub(super) fn is_target_named(&self) -> bool {
        self.corrects() && matches!(self.meant, Some(Meant::One(_)))
    }
}

/// What a gap is known again by.
pub(super) fn key(description: &str) -> String {
    let words = description.split(|c: char| !c.is_alphanumeric());
    let words: Vec<String> = words
        .filter(|w| !w.is_empty())
        .map(str::to_lowercase)
        .collect();
    words.join(" ")
}

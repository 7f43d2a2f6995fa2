//! What a run starts with: everything a machine needs, recorded once.
//!
//! A run is folded from its own stream. A prompt, a tool list or a limit that
//! changes on disk later does not change a run that has begun.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use selvedge_ledger::{Ledger, Payload};
use selvedge_tool::{Policy, Sandbox, Skill, World};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::definition::Limits;
use crate::offers::Offers;
use crate::terms::Terms;

/// The data of an agent's `RunStarted`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// The crew it belongs to.
    pub crew: String,
    /// The agent.
    pub agent: String,
    /// The request, word for word.
    pub request: Payload,
    /// The model, `provider/model`.
    pub model: String,
    /// Models to ask instead, when it cannot answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<String>,
    /// Whether somebody is waiting for the run: its calls go before others.
    #[serde(default)]
    pub awaited: bool,
    /// Among runs that are waited for alike, or not: more is sooner.
    #[serde(default = "usual_priority")]
    pub priority: u8,
    /// The system prompt, complete.
    pub system: Payload,
    /// The tools, by name, and what they do to the world.
    pub tools: BTreeMap<String, World>,
    /// Those that it begins with, as the model sees them: a JSON list of definitions.
    pub definitions: Payload,
    /// The others, which it may ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offers: Option<Offers>,
    /// The skills it knows of, if it can use any: a JSON list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skills: Option<Payload>,
    /// Bounds.
    pub limits: Limits,
    /// The schema its result must fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// What happens when something must be approved.
    pub approve: Approve,
    /// What its commands may reach.
    #[serde(default)]
    pub sandbox: Sandbox,
    /// What it may do.
    #[serde(default)]
    pub policy: Policy,
    /// What the session may cost in dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<f64>,
    /// How many tokens the session may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_tokens: Option<u64>,
    /// The directory it works in.
    pub workspace: PathBuf,
    /// What binds it beyond the loop.
    #[serde(default, skip_serializing_if = "Terms::is_none")]
    pub terms: Terms,
    /// Agents it may hand work to, by name. Theirs are empty of requests.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub team: BTreeMap<String, RunSpec>,
}

/// The priority of an agent whose file names none.
pub(crate) fn usual_priority() -> u8 {
    selvedge_model::Urgency::default().priority
}

/// What happens when something must be approved. What is forbidden stays so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approve {
    /// A human is asked.
    #[default]
    Ask,
    /// It is done.
    Auto,
    /// It is refused.
    Never,
}

impl RunSpec {
    /// The skills it knows of.
    pub async fn skills(&self, ledger: &dyn Ledger) -> Vec<Skill> {
        let Some(skills) = &self.skills else {
            return Vec::new();
        };
        let text = ledger.text(skills).await.unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// What the child that carries out `request` starts with.
    pub fn child(&self, agent: &str, request: Payload) -> Option<Self> {
        let mut child = self.team.get(agent)?.clone();
        child.request = request;
        (child.budget_usd, child.budget_tokens) = (self.budget_usd, self.budget_tokens);
        // Whoever is waited for lends its place to whom it waits for.
        child.awaited = self.awaited;
        child.priority = child.priority.max(self.priority);
        child.sandbox = child.sandbox.within(&self.sandbox);
        child.policy = child.policy.within(&self.policy);
        Some(child)
    }

    /// The agent that is called by a tool of its own, and what it starts with.
    pub fn helper(&self, tool: &str) -> Option<(&str, &Self)> {
        let mut team = self.team.iter();
        team.find(|(_, helper)| helper.terms.called_by.as_deref() == Some(tool))
            .map(|(name, helper)| (name.as_str(), helper))
    }

    /// Who asks: the agent, and which of its tasks it is at.
    pub fn caller(&self) -> String {
        match (&self.terms.called_by, self.terms.task_name()) {
            (Some(_), Some(task)) => format!("{}/{task}", self.agent),
            _ => self.agent.clone(),
        }
    }

    /// The user's own directory: the one it works in, or on a copy of which it works.
    pub fn directory(&self) -> &Path {
        let copy = self.terms.copy.as_ref();
        copy.map_or(&self.workspace, |copy| &copy.origin)
    }

    /// The same run, and all it may call, at work in a copy of its workspace.
    pub fn in_copy(mut self, copy: selvedge_tool::WorkCopy) -> Self {
        let place = copy.place();
        self.move_to(&place);
        self.terms.copy = Some(copy);
        self
    }

    fn move_to(&mut self, place: &Path) {
        self.workspace = place.to_owned();
        let team = self.team.values_mut();
        team.for_each(|helper| helper.move_to(place));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(priority: u8) -> RunSpec {
        RunSpec {
            crew: "test".into(),
            agent: "agent".into(),
            request: Payload::new(""),
            model: "test/one".into(),
            fallbacks: Vec::new(),
            awaited: false,
            priority,
            system: Payload::new(""),
            tools: BTreeMap::new(),
            definitions: Payload::new("[]"),
            offers: None,
            skills: None,
            limits: Limits::default(),
            output_schema: None,
            approve: Approve::Auto,
            policy: Policy::default(),
            budget_usd: None,
            budget_tokens: None,
            workspace: ".".into(),
            sandbox: Sandbox::off(),
            terms: Terms::default(),
            team: BTreeMap::new(),
        }
    }

    #[test]
    fn a_helper_goes_before_others_when_its_caller_does() {
        let team = [("librarian", 20), ("architect", 80)];
        let team = team.map(|(name, priority)| (name.to_owned(), spec(priority)));
        let engineer = RunSpec {
            awaited: true,
            team: team.into(),
            ..spec(60)
        };
        let helper = |name| engineer.child(name, Payload::new("look")).unwrap();
        let (librarian, architect) = (helper("librarian"), helper("architect"));
        assert!(librarian.awaited && architect.awaited);
        assert_eq!((librarian.priority, architect.priority), (60, 80));
    }
}

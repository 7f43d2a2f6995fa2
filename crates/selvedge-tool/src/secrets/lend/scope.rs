//! Which agent may use whose credentials.

use std::collections::{BTreeMap, BTreeSet};

/// The table: agents by the name of their role, and the providers each may use.
/// Who is not in it may use none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scopes(BTreeMap<String, BTreeSet<String>>);

const MODELS: [&str; 3] = ["openai", "anthropic", "google"];

const TABLE: [(&str, &[&str]); 11] = [
    ("librarian", &["openai", "anthropic", "voyage"]),
    ("academic", &["openai", "anthropic", "google", "serpapi"]),
    ("archivalist", &["openai", "anthropic"]),
    ("guide", &["openai", "anthropic"]),
    ("architect", &["openai", "anthropic"]),
    ("inspector", &["openai", "anthropic"]),
    ("tester", &["openai", "anthropic"]),
    ("engineer", &["openai", "anthropic", "github"]),
    ("builder", &["openai", "anthropic", "github"]),
    ("designer", &["openai", "anthropic", "figma"]),
    ("orchestrator", &[]),
];

impl Default for Scopes {
    fn default() -> Self {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        Self(
            TABLE
                .iter()
                .map(|(agent, all)| (agent.to_string(), names(all)))
                .collect(),
        )
    }
}

impl Scopes {
    /// Whether an agent may use a provider's credentials.
    pub fn allow(&self, agent: &str, provider: &str) -> bool {
        self.0.get(agent).is_some_and(|all| all.contains(provider))
    }

    /// Lets an agent use a provider: only the user's own configuration may.
    pub fn widen(mut self, agent: &str, provider: &str) -> Self {
        let all = self.0.entry(agent.to_owned()).or_default();
        all.insert(provider.to_owned());
        self
    }

    /// Takes a provider from an agent: anybody's configuration may.
    pub fn narrow(mut self, agent: &str, provider: &str) -> Self {
        if let Some(all) = self.0.get_mut(agent) {
            all.remove(provider);
        }
        self
    }

    /// Whether the user is asked first: for everything but the models themselves,
    /// which the user has set up to be asked.
    pub(super) fn needs_consent(provider: &str) -> bool {
        !MODELS.contains(&provider) && provider != "voyage"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_is_as_the_table_says_and_the_unknown_have_nothing() {
        let scopes = Scopes::default();
        let providers: BTreeSet<&str> = TABLE.iter().flat_map(|(_, all)| *all).copied().collect();
        for (agent, allowed) in TABLE {
            for provider in providers.iter().chain(&["aws", "*"]) {
                assert_eq!(
                    scopes.allow(agent, provider),
                    allowed.contains(provider),
                    "{agent} {provider}"
                );
            }
        }
        assert!(!scopes.allow("stranger", "openai"));
    }

    #[test]
    fn a_scope_is_widened_and_narrowed_for_one_agent_alone() {
        let scopes = Scopes::default()
            .widen("tester", "github")
            .narrow("engineer", "github");
        assert!(scopes.allow("tester", "github"));
        assert!(!scopes.allow("engineer", "github"));
        assert!(scopes.allow("builder", "github"));
    }
}

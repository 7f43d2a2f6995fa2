//! What is looked for, apart from its meaning.

use rusqlite::types::Value;

use crate::kind::{Domain, NodeType};
use crate::time::Time;

/// Which nodes are wanted. The empty filter lets everything pass that is still current.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Only of these domains; all of them if none is named.
    pub in_domains: Vec<Domain>,
    /// Only of these types.
    pub types: Vec<NodeType>,
    /// Only of this session.
    pub session: Option<String>,
    /// As this session sees it: of other sessions' history only what was promoted, and
    /// what failed.
    pub reader: Option<String>,
    /// Only from then on.
    pub since: Option<Time>,
    /// Only in files that match this pattern, such as `src/**/*.rs`, or lie below this
    /// folder.
    pub path: Option<String>,
    /// Only of this category.
    pub category: Option<String>,
    /// Also what was superseded.
    pub with_superseded: bool,
}

impl Filter {
    /// Only of one domain.
    pub fn of(domain: Domain) -> Self {
        Self {
            in_domains: vec![domain],
            ..Self::default()
        }
    }

    /// Only of these types.
    pub fn with_types(mut self, types: &[NodeType]) -> Self {
        self.types = types.to_vec();
        self
    }

    /// The domains that can hold what is wanted.
    pub(crate) fn domains(&self) -> Vec<Domain> {
        let wanted = |domain: &Domain| {
            (self.in_domains.is_empty() || self.in_domains.contains(domain))
                && (self.types.is_empty() || self.types.iter().any(|t| t.domain() == *domain))
        };
        Domain::ALL.iter().copied().filter(wanted).collect()
    }

    /// Whether more than the domain must be looked at.
    pub(crate) fn is_beyond_domains(&self) -> bool {
        !self.types.is_empty()
            || self.session.is_some()
            || self.reader.is_some()
            || self.since.is_some()
            || self.path.is_some()
            || self.category.is_some()
    }

    /// Whether it lets less than everything pass.
    pub(crate) fn is_narrow(&self) -> bool {
        !self.in_domains.is_empty() || self.is_beyond_domains()
    }

    /// The same as a condition on a node `n`, with the values it names.
    pub(crate) fn sql(&self) -> (String, Vec<Value>) {
        let mut conditions = Vec::new();
        let mut values = Vec::new();
        let codes = |codes: Vec<i64>| {
            let codes: Vec<String> = codes.iter().map(i64::to_string).collect();
            codes.join(",")
        };
        if !self.in_domains.is_empty() {
            let wanted = codes(self.in_domains.iter().map(|d| d.code()).collect());
            conditions.push(format!("n.domain IN ({wanted})"));
        }
        if !self.types.is_empty() {
            let wanted = codes(self.types.iter().map(|t| t.code()).collect());
            conditions.push(format!("n.type IN ({wanted})"));
        }
        if let Some(session) = &self.session {
            conditions.push("n.session = ?".into());
            values.push(Value::from(session.clone()));
        }
        if let Some(reader) = &self.reader {
            let failure = NodeType::Failure.code();
            conditions.push(format!(
                "(n.domain <> 1 OR n.session IS NULL OR n.session = ? OR n.promoted \
                 OR n.type = {failure})"
            ));
            values.push(Value::from(reader.clone()));
        }
        if let Some(since) = self.since {
            conditions.push("coalesce(n.time, n.created) >= ?".into());
            values.push(Value::from(since.0));
        }
        if let Some(path) = &self.path {
            conditions.push("(n.path GLOB ? OR n.path = ? OR n.path GLOB ?)".into());
            let below = path.trim_end_matches('/').replace(['[', ']'], "?");
            // `**/` stands for no folder, too, and GLOB's star crosses folders by itself.
            values.push(Value::from(path.replace("**/", "*").replace("**", "*")));
            values.push(Value::from(path.clone()));
            values.push(Value::from(format!("{below}/*")));
        }
        if let Some(category) = &self.category {
            conditions.push("n.category = ?".into());
            values.push(Value::from(category.clone()));
        }
        if !self.with_superseded {
            conditions.push("n.superseded_by IS NULL".into());
        }
        match conditions.is_empty() {
            true => ("1".into(), values),
            false => (conditions.join(" AND "), values),
        }
    }
}

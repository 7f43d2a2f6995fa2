//! How current a node is. Old knowledge ranks lower, says so, and names its successor.

use serde::Serialize;

use crate::kind::Domain;
use crate::node::Node;
use crate::time::Time;

/// How current a node is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Freshness {
    /// From 0 to 1.
    pub score: f64,
    /// What to keep in mind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// What took its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
}

/// What is left of something that was superseded.
const SUPERSEDED: f64 = 0.1;

/// By how much a domain ages: what it loses, in how many days, down to what, and from
/// which age on that is said.
struct Ageing {
    loss: f64,
    days: f64,
    least: f64,
    warn_days: f64,
}

const HISTORY: Ageing = Ageing {
    loss: 0.8,
    days: 180.0,
    least: 0.2,
    warn_days: 30.0,
};
const DOCUMENTS: Ageing = Ageing {
    loss: 0.7,
    days: 365.0,
    least: 0.3,
    warn_days: 180.0,
};

/// How current a node is now. Code is as current as its index.
pub fn freshness(node: &Node, now: Time) -> Freshness {
    if let Some(by) = &node.superseded_by {
        return Freshness {
            score: SUPERSEDED,
            warning: Some(format!("superseded by `{by}`")),
            current: Some(by.clone()),
        };
    }
    let days = now.days_since(node.dated());
    let (mut score, mut warning) = match node.domain() {
        Domain::Code => (1.0, None),
        Domain::History => HISTORY.at(days),
        Domain::Academic => DOCUMENTS.at(days),
    };
    if node.expires.is_some_and(|expires| expires < now) {
        score *= 0.5;
        warning = Some("it has expired".into());
    }
    Freshness {
        score,
        warning,
        current: None,
    }
}

impl Ageing {
    fn at(&self, days: f64) -> (f64, Option<String>) {
        let score = (1.0 - self.loss * days / self.days).max(self.least);
        let is_old = days > self.warn_days;
        (score, is_old.then(|| format!("{} days old", days.floor())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::NodeType;
    use crate::time::DAY;

    const NOW: Time = Time(1_000 * DAY);

    fn fresh(node_type: NodeType, days: i64) -> Freshness {
        freshness(
            &Node::new("n", node_type, "n").at(NOW.days_before(days)),
            NOW,
        )
    }

    #[test]
    fn history_fades_and_says_so_after_a_month() {
        let month = fresh(NodeType::Entry, 30);
        assert!((month.score - 0.867).abs() < 0.001, "{}", month.score);
        assert_eq!(month.warning, None);
        assert!(fresh(NodeType::Entry, 31).warning.is_some());
        assert!((fresh(NodeType::Entry, 400).score - 0.2).abs() < 1e-9);
        assert!((fresh(NodeType::Paper, 365).score - 0.3).abs() < 1e-9);
        assert!((fresh(NodeType::Function, 365).score - 1.0).abs() < 1e-9);
    }

    #[test]
    fn what_was_superseded_names_its_successor() {
        let mut node = Node::new("a", NodeType::Decision, "a").at(NOW);
        node.superseded_by = Some("b".into());
        let fresh = freshness(&node, NOW);
        assert!((fresh.score - 0.1).abs() < 1e-9);
        assert_eq!(fresh.current.as_deref(), Some("b"));
        assert!(fresh.warning.is_some());
    }

    #[test]
    fn what_has_expired_counts_half() {
        let mut node = Node::new("a", NodeType::Decision, "a").at(NOW);
        node.expires = Some(NOW.days_before(1));
        let fresh = freshness(&node, NOW);
        assert!((fresh.score - 0.5).abs() < 1e-9);
        assert_eq!(fresh.warning.as_deref(), Some("it has expired"));
    }
}

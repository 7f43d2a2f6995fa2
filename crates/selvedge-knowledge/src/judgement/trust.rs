//! Which source to believe, and why.
//!
//! Trust follows from what a node is, whether it was checked, and how old it is. What is
//! stored counts only where a person has said otherwise.

use serde::Serialize;

use crate::kind::{Domain, NodeType, Verification};
use crate::node::Node;
use crate::time::Time;

/// How far a node can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Trust {
    /// From 0 to 100.
    pub level: u8,
    /// What that means, in words.
    pub label: &'static str,
    /// What to keep in mind when relying on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<&'static str>,
}

/// Days until verified history is no longer recent, and until it is old.
const RECENT_DAYS: f64 = 7.0;
const OLD_DAYS: f64 = 30.0;

/// The trust that a node deserves now.
pub fn trust(node: &Node, now: Time) -> Trust {
    if let (Some(level), Verification::ByUser) = (node.trust, node.verification) {
        let label = "Vouched For";
        return Trust {
            level,
            label,
            warning: None,
        };
    }
    if node.domain() == Domain::Code {
        return Trust {
            level: 100,
            label: "Ground Truth",
            warning: None,
        };
    }
    if !node.verified {
        return Trust {
            level: 20,
            label: "Unverified",
            warning: Some("unverified: check it before relying on it"),
        };
    }
    match node.domain() {
        Domain::History => of_history(now.days_since(node.dated())),
        _ => of_document(node.node_type),
    }
}

fn of_history(days: f64) -> Trust {
    let (level, label, warning) = match days {
        days if days < RECENT_DAYS => (80, "Recent History", None),
        days if days < OLD_DAYS => (60, "History", Some("code may have changed since")),
        _ => (
            40,
            "Old History",
            Some("old: the code has likely changed since"),
        ),
    };
    Trust {
        level,
        label,
        warning,
    }
}

fn of_document(node_type: NodeType) -> Trust {
    let (level, label, warning) = match node_type {
        NodeType::Rfc | NodeType::Documentation => (70, "Authoritative", None),
        NodeType::Stackoverflow | NodeType::BlogPost => (
            30,
            "Informal",
            Some("somebody's opinion: confirm it elsewhere"),
        ),
        _ => (60, "Academic", Some("what should be, not what is")),
    };
    Trust {
        level,
        label,
        warning,
    }
}

/// Which of two nodes is right, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Winner {
    /// The id of the one that is right.
    pub winner: String,
    /// Why.
    pub reason: String,
}

/// Decides between two nodes that disagree.
pub fn which_wins(a: &Node, b: &Node, now: Time) -> Winner {
    let (of_a, of_b) = (trust(a, now).level, trust(b, now).level);
    let won = |node: &Node, reason: String| Winner {
        winner: node.id.clone(),
        reason,
    };
    match (a.domain(), b.domain()) {
        (Domain::Code, Domain::Code) => {}
        (Domain::Code, other) | (other, Domain::Code) => {
            let code = if a.domain() == Domain::Code { a } else { b };
            return won(
                code,
                format!("code is what exists; {} only tells of it", other.name()),
            );
        }
        _ => {}
    }
    match of_a.cmp(&of_b) {
        std::cmp::Ordering::Greater => won(a, format!("trust {of_a} against {of_b}")),
        std::cmp::Ordering::Less => won(b, format!("trust {of_b} against {of_a}")),
        std::cmp::Ordering::Equal => {
            let newer = if a.dated() >= b.dated() { a } else { b };
            won(newer, format!("both have trust {of_a}, and it is newer"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::DAY;

    const NOW: Time = Time(1_000 * DAY);

    fn old(node_type: NodeType, days: i64, verified: bool) -> Node {
        let mut node = Node::new("n", node_type, "n").at(NOW.days_before(days));
        node.verified = verified;
        node
    }

    #[test]
    fn trust_follows_from_kind_check_and_age() {
        let level = |node: Node| trust(&node, NOW).level;
        assert_eq!(level(old(NodeType::Entry, 3, true)), 80);
        assert_eq!(level(old(NodeType::Entry, 15, true)), 60);
        assert_eq!(level(old(NodeType::Entry, 60, true)), 40);
        assert_eq!(level(old(NodeType::Function, 900, true)), 100);
        assert_eq!(level(old(NodeType::Rfc, 900, true)), 70);
        assert_eq!(level(old(NodeType::BlogPost, 1, true)), 30);
        assert_eq!(level(old(NodeType::Entry, 1, false)), 20);
        assert_eq!(level(old(NodeType::Rfc, 1, false)), 20);
    }

    #[test]
    fn middling_history_is_not_called_academic() {
        assert_eq!(trust(&old(NodeType::Entry, 15, true), NOW).label, "History");
    }

    #[test]
    fn a_persons_word_stands_above_the_table() {
        let mut node = old(NodeType::BlogPost, 1, true);
        node.trust = Some(95);
        assert_eq!(
            trust(&node, NOW).level,
            30,
            "stored, and nobody vouched for it"
        );
        node.verification = Verification::ByUser;
        assert_eq!(trust(&node, NOW).level, 95);
    }

    #[test]
    fn code_beats_history_and_the_newer_beats_its_equal() {
        let mut code = old(NodeType::Function, 300, true);
        code.id = "code".into();
        let mut history = old(NodeType::Decision, 1, true);
        history.id = "history".into();
        let won = which_wins(&history, &code, NOW);
        assert_eq!(won.winner, "code");
        assert!(won.reason.contains("code is what exists"), "{}", won.reason);
        let mut older = old(NodeType::Decision, 3, true);
        older.id = "older".into();
        assert_eq!(which_wins(&older, &history, NOW).winner, "history");
    }
}

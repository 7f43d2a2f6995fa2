//! Why something was found, in a line.

use super::question::Question;
use crate::node::Node;
use crate::words::stem;

/// Words that are listed.
const WORDS_MAX: usize = 5;

/// The reason, such as `defines retry_after; name: retry; text: request; likeness 0.41`.
pub(super) fn why(
    question: &Question,
    node: &Node,
    exact: bool,
    similarity: Option<f32>,
) -> String {
    let mut reasons = Vec::new();
    if exact {
        reasons.push(format!("defines `{}`", node.name));
    }
    let path = node.path.as_deref().unwrap_or_default();
    let fields = [
        ("name", node.name.to_lowercase()),
        ("doc", node.doc.to_lowercase()),
        (
            "text",
            format!("{} {}", node.signature, node.content).to_lowercase(),
        ),
        ("path", path.to_lowercase()),
        ("turns before", node.context.to_lowercase()),
    ];
    let mut rest: Vec<&String> = question.words.iter().collect();
    for (field, text) in &fields {
        // Each word is credited to the first field it stands in.
        let (there, others) = rest.into_iter().partition(|word| text.contains(stem(word)));
        rest = others;
        let there: Vec<&String> = there;
        let words: Vec<&str> = there.iter().take(WORDS_MAX).map(|w| w.as_str()).collect();
        if !words.is_empty() {
            reasons.push(format!("{field}: {}", words.join(", ")));
        }
    }
    if let Some(similarity) = similarity {
        reasons.push(format!("likeness {similarity:.2}"));
    }
    match reasons.is_empty() {
        true => "related words".into(),
        false => reasons.join("; "),
    }
}

//! A node: one thing that is known, with where it comes from.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::kind::{Domain, NodeType, Verification};
use crate::time::Time;

/// One thing that is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Its name within the index, such as `code:src/lib.rs#Parser.parse`.
    pub id: String,
    /// What it is.
    #[serde(rename = "kind")]
    pub node_type: NodeType,
    /// What it is called.
    pub name: String,
    /// The file it is in, from the project's root.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<String>,
    /// Its first and last line, counted from one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lines: Option<(u32, u32)>,
    /// What comes before its body.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub signature: String,
    /// What its author says of it.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub doc: String,
    /// Its text.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub content: String,
    /// What was said before it, a line for each turn: it is found by that, too.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub context: String,
    /// The session it comes from.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session: Option<String>,
    /// A finer distinction than its type.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub category: Option<String>,
    /// When it happened.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub time: Option<Time>,
    /// Where a document was fetched.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub url: Option<String>,
    /// Words to find it by.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub tags: Vec<String>,
    /// Whatever else is known of it.
    #[serde(skip_serializing_if = "Map::is_empty", default)]
    pub metadata: Map<String, Value>,
    /// Whether it was checked, and held.
    #[serde(default)]
    pub verified: bool,
    /// What it was checked against.
    pub verification: Verification,
    /// How sure its source was, from 0 to 1.
    pub confidence: f64,
    /// The trust that a person gave it, above what would be computed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub trust: Option<u8>,
    /// When it was stored first.
    pub created: Time,
    /// When it stops being true.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub expires: Option<Time>,
    /// What took its place.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub superseded_by: Option<String>,
    /// Whether other sessions may read it.
    #[serde(default)]
    pub promoted: bool,
}

impl Node {
    /// A node with nothing but a name.
    pub fn new(id: impl Into<String>, node_type: NodeType, name: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            node_type,
            name: name.into(),
            path: None,
            lines: None,
            signature: String::new(),
            doc: String::new(),
            content: String::new(),
            context: String::new(),
            session: None,
            category: None,
            time: None,
            url: None,
            tags: Vec::new(),
            metadata: Map::new(),
            verified: false,
            verification: Verification::Unchecked,
            confidence: 1.0,
            trust: None,
            created: Time::default(),
            expires: None,
            superseded_by: None,
            promoted: false,
        }
    }

    /// The domain it belongs to.
    pub fn domain(&self) -> Domain {
        self.node_type.domain()
    }

    /// When it happened, or else when it was stored.
    pub fn dated(&self) -> Time {
        self.time.unwrap_or(self.created)
    }

    /// The same with a text.
    pub fn with_content(mut self, content: impl Into<String>) -> Self {
        self.content = content.into();
        self
    }

    /// The same at a time.
    pub fn at(mut self, time: Time) -> Self {
        self.time = Some(time);
        self
    }

    /// The same, checked against the code, as what is read in a source is.
    pub fn verified(mut self) -> Self {
        self.verified = true;
        self.verification = Verification::AgainstCode;
        self
    }

    /// The names of what a symbol is within, by its id: `Parser` of
    /// `code:a.rs#Parser.parse`.
    pub(crate) fn owner(&self) -> &str {
        let whole = self.id.split_once('#').map_or("", |(_, name)| name);
        whole.rsplit_once('.').map_or("", |(owner, _)| owner)
    }

    /// Whether its warnings say that nobody should rely on it yet.
    pub fn needs_review(&self) -> bool {
        self.metadata.get("needs_review") == Some(&Value::Bool(true))
    }

    /// A hash of everything it is found by, to tell whether it has changed.
    pub(crate) fn fingerprint(&self) -> [u8; 16] {
        let mut hasher = blake3::Hasher::new();
        let code = self.node_type.code().to_le_bytes();
        let texts = [
            self.name.as_str(),
            self.path.as_deref().unwrap_or_default(),
            &self.signature,
            &self.doc,
            &self.content,
            &self.context,
        ];
        hasher.update(&code);
        for text in texts {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        let mut short = [0; 16];
        short.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        short
    }
}

/// The beginning of a text, at most `max` characters long, never within one of them.
pub fn cut(text: &str, max: usize) -> &str {
    match text.char_indices().nth(max) {
        Some((at, _)) => &text[..at],
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(cut("größer", 3), "grö");
        assert_eq!(cut("日本語", 2), "日本");
        assert_eq!(cut("short", 99), "short");
    }

    #[test]
    fn a_change_of_content_changes_the_fingerprint() {
        let node = Node::new("a", NodeType::Function, "f").with_content("one");
        let other = node.clone().with_content("two");
        assert_ne!(node.fingerprint(), other.fingerprint());
        assert_eq!(node.fingerprint(), node.clone().fingerprint());
    }
}

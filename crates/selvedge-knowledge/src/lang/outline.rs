//! What was found in a file.

use crate::kind::{EdgeType, NodeType};

/// The contents of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outline {
    /// Its symbols or sections, those that contain others before those they contain.
    pub symbols: Vec<Symbol>,
    /// What it says of itself at its beginning.
    pub doc: String,
    /// What is outside of every symbol.
    pub rest: String,
    /// What it refers to as a whole: imports.
    pub mentions: Vec<Mention>,
    /// How many lines it has.
    pub line_count: u32,
}

/// Something that a file defines.
#[derive(Clone, Debug, PartialEq)]
pub struct Symbol {
    /// What it is.
    pub node_type: NodeType,
    /// What it is called.
    pub name: String,
    /// The same with what it belongs to: `Parser.parse`.
    pub qualified: String,
    /// Its first and last line, counted from one.
    pub lines: (u32, u32),
    /// What comes before its body.
    pub signature: String,
    /// What its author says of it.
    pub doc: String,
    /// Its text, without the symbols in it.
    pub content: String,
    /// What it refers to.
    pub mentions: Vec<Mention>,
    /// The symbol it belongs to, by position.
    pub parent: Option<usize>,
}

/// Something that is referred to by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mention {
    /// How.
    pub edge: EdgeType,
    /// The name, or for a file or module its path without an extension.
    pub name: String,
}

impl Mention {
    /// A mention.
    pub fn new(edge: EdgeType, name: impl Into<String>) -> Self {
        let name = name.into();
        Self { edge, name }
    }
}

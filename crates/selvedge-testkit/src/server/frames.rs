//! The events of a stream, in the four parts that faults tell apart.

use serde_json::Value;

/// The events of a stream, as bytes.
#[derive(Default)]
pub(super) struct Frames {
    /// Before anything is said.
    pub(super) open: Vec<Vec<u8>>,
    /// What is said.
    pub(super) content: Vec<Vec<u8>>,
    /// Why it stops and what it used.
    pub(super) stop: Vec<Vec<u8>>,
    /// That it is over.
    pub(super) done: Vec<Vec<u8>>,
}

impl Frames {
    /// All of them in order.
    pub(super) fn into_events(self) -> Vec<Vec<u8>> {
        [self.open, self.content, self.stop, self.done].concat()
    }
}

/// An event of data alone.
pub(super) fn data(value: &Value) -> Vec<u8> {
    format!("data: {value}\n\n").into_bytes()
}

/// An event with its type as a name.
pub(super) fn named(value: &Value) -> Vec<u8> {
    let name = value["type"].as_str().unwrap_or("message");
    format!("event: {name}\ndata: {value}\n\n").into_bytes()
}

/// A text in pieces of a few characters.
pub(super) fn pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters
        .chunks(9)
        .map(|piece| piece.iter().collect())
        .collect()
}

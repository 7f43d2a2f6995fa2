//! The two channels: data goes to stdout, everything else to stderr.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

/// Writes a line of data. A reader that went away is no error of ours: the
/// work goes on, and what it did is in the ledger.
pub fn line(text: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{text}");
    let _ = out.flush();
}

/// Writes a value as a line of JSON.
pub fn json<T: Serialize>(value: &T) {
    line(&serde_json::to_string(value).expect("what is shown has string keys"));
}

/// Says something to the person who is watching.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Warns of something that is probably not meant.
pub fn warn(text: &str) {
    say(&format!("warning: {text}"));
}

/// Whether somebody can be asked: a terminal to show it on and one to answer at.
pub fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Whether the person who is watching has a terminal.
pub fn is_live() -> bool {
    io::stderr().is_terminal()
}

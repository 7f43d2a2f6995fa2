//! The two channels: data goes to stdout, everything else to stderr.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;

use serde::Serialize;

/// Why data did not reach stdout, the first time that it did not.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Writes a line of data. The work goes on if that fails: what it does is in the
/// ledger. [`lost`] tells at the end.
pub fn line(text: &str) {
    let mut out = io::stdout().lock();
    if let Err(error) = writeln!(out, "{text}").and_then(|()| out.flush()) {
        // The first error says why; the others follow from it.
        let _ = LOST.set(error);
    }
}

/// Why data was lost on its way to stdout. A reader that went away has all it
/// wanted, so that is no loss.
pub fn lost() -> Option<&'static io::Error> {
    LOST.get()
        .filter(|error| error.kind() != ErrorKind::BrokenPipe)
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

//! The two channels: data goes to stdout, everything else to stderr, and a secret that
//! this process knows to neither.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;

use indicatif::ProgressDrawTarget;
use rustix::termios::tcgetwinsize;
use serde::Serialize;

use crate::secrets;

/// Why data did not reach stdout, the first time that it did not.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Writes a line of data. The work goes on if that fails: what it does is in the
/// ledger. [`lost`] tells at the end.
pub fn line(text: &str) {
    let text = secrets::of_this_process().redact_known(text);
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
    let text = secrets::of_this_process().redact_known(text);
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

/// Whether the person who is watching has a terminal on which a line can be
/// drawn anew. One that calls itself dumb gets plain lines.
pub fn is_live() -> bool {
    !ProgressDrawTarget::stderr().is_hidden()
}

/// Whether data and words end up on one screen.
pub fn is_one_screen() -> bool {
    io::stdout().is_terminal() && io::stderr().is_terminal()
}

/// How many columns data may fill; `None` where no terminal limits them.
pub fn columns() -> Option<usize> {
    let stdout = io::stdout();
    let size = stdout.is_terminal().then(|| tcgetwinsize(stdout).ok());
    size.flatten()
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns > 0)
}

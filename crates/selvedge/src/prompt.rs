//! Asks for a secret at the terminal, without showing it.
//!
//! Keys are read one by one, so that Ctrl-C gives the terminal back as it was.

use std::io::{Read, Write};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use secrecy::SecretString;
use zeroize::Zeroizing;

use crate::error::{Error, Exit, Result};
use crate::out;

// More than any passphrase or key; the buffer must not move and leave copies.
const BYTES_MAX: usize = 16 * 1024;

/// What is typed after `question`, unseen.
pub fn unseen(question: &str) -> Result<SecretString> {
    // Hidden before it is asked: what is typed as soon as the question is seen is neither
    // shown nor thrown away.
    let hidden = Hidden::new().map_err(|error| {
        Error::failed("the terminal cannot hide what is typed")
            .cause(error)
            .hint("pipe it instead")
    })?;
    let _ = write!(std::io::stderr(), "{question}");
    let typed = read();
    drop(hidden);
    out::say("");
    typed
}

fn read() -> Result<SecretString> {
    let mut typed = Zeroizing::new(Vec::with_capacity(BYTES_MAX));
    let mut stdin = std::io::stdin().lock();
    let mut byte = [0];
    while stdin.read(&mut byte).is_ok_and(|n| n == 1) {
        match byte[0] {
            b'\r' | b'\n' | 4 => break,
            3 => return Err(Error::new(Exit::Interrupted, "interrupted")),
            8 | 127 => {
                // A character may be several bytes; those after the first say so.
                while typed.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {}
            }
            // Ctrl-U: begin again.
            21 => typed.clear(),
            byte if typed.len() < BYTES_MAX => typed.push(byte),
            _ => {}
        }
    }
    let text = std::str::from_utf8(&typed);
    let text = text.map_err(|_| Error::usage("what was typed is not text"))?;
    Ok(text.into())
}

/// The terminal as it was, to be put back.
struct Hidden(Termios);

impl Hidden {
    fn new() -> rustix::io::Result<Self> {
        let before = tcgetattr(std::io::stdin())?;
        let mut hidden = before.clone();
        hidden.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        tcsetattr(std::io::stdin(), OptionalActions::Flush, &hidden)?;
        Ok(Self(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, &self.0);
    }
}

//! What a server complains of: the end of it, for whoever asks why it failed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt};

const LOG_BYTES_MAX: usize = 64 * 1024;
const SHOWN_LINES: usize = 12;
const SHOWN_LINE_CHARS: usize = 400;

/// The end of what a server complained of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    bytes: Arc<Mutex<VecDeque<u8>>>,
}

impl Log {
    pub(crate) fn push(&self, piece: &[u8]) {
        let mut bytes = self.bytes.lock().expect("no panic under this lock");
        bytes.extend(piece);
        let excess = bytes.len().saturating_sub(LOG_BYTES_MAX);
        bytes.drain(..excess);
    }

    /// Reads until the end, however much there is.
    pub(crate) async fn follow(self, mut from: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; 8 * 1024];
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            self.push(&buffer[..count]);
        }
    }

    /// The last lines.
    pub(crate) fn end(&self) -> String {
        let bytes = self.bytes.lock().expect("no panic under this lock");
        let bytes: Vec<u8> = bytes.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
        let last = &lines[lines.len().saturating_sub(SHOWN_LINES)..];
        let short = |line: &&str| line.chars().take(SHOWN_LINE_CHARS).collect::<String>();
        last.iter().map(short).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn however_much_is_said_only_the_end_is_kept() {
        let log = Log::default();
        let mut said = "x".repeat(1_000_000);
        said.push_str("\nfirst\n\nlast\n");
        log.clone().follow(said.as_bytes()).await;
        assert!(log.end().ends_with("first\nlast"));
        assert!(log.bytes.lock().unwrap().len() <= LOG_BYTES_MAX);
        assert!(log.end().len() < 1_000);
    }
}

//! How long a command may run: longer while it has something to say.
//!
//! A long build that prints what it is doing is not stopped; a silent hang is. Dots,
//! spinners and percentages say nothing: a hung download draws them for ever.

use std::time::Duration;

use crate::cut::end_of;

/// How long a command may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience {
    /// This long in any case.
    pub(crate) base: Duration,
    /// And this long after the last line that said something.
    pub(crate) extension: Duration,
    /// But no longer than this.
    pub(crate) most: Duration,
}

// A line a second would be a lot to ask of a linker; this is what a person waits.
const EXTENSION: Duration = Duration::from_secs(30);
const MOST: Duration = Duration::from_secs(30 * 60);

impl Patience {
    /// This long, whatever it prints.
    pub(crate) fn exactly(time: Duration) -> Self {
        Self {
            base: time,
            extension: Duration::ZERO,
            most: time,
        }
    }

    /// This long, and longer while it has something to say, up to half an hour.
    pub(crate) fn adaptive(base: Duration) -> Self {
        Self {
            base,
            extension: EXTENSION,
            most: base.max(MOST),
        }
    }

    /// When its time is up, counted from its start, if it spoke last at `heard`.
    pub(super) fn ends(&self, heard: Option<Duration>) -> Duration {
        let extended = heard.map_or(Duration::ZERO, |heard| heard + self.extension);
        self.base.max(extended).min(self.most)
    }
}

// What a line is kept of until it is complete. A longer one says something already.
const LINE_BYTES_MAX: usize = 200;

/// Tells whether pieces of output say something.
#[derive(Default)]
pub(super) struct Listener {
    line: String,
}

impl Listener {
    /// Whether a line was completed that says something.
    pub(super) fn hears(&mut self, piece: &str) -> bool {
        let mut rest = piece;
        while let Some(end) = rest.find(['\n', '\r']) {
            self.keep(&rest[..end]);
            let is_heard = !is_noise(&self.line);
            self.line.clear();
            rest = &rest[end + 1..];
            if is_heard {
                // One is enough. What matters of the others is how the last begins.
                self.keep(rest.rsplit(['\n', '\r']).next().unwrap_or_default());
                return true;
            }
        }
        self.keep(rest);
        false
    }

    fn keep(&mut self, part: &str) {
        if self.line.len() < LINE_BYTES_MAX {
            self.line.push_str(&part[..end_of(part, LINE_BYTES_MAX)]);
        }
    }
}

/// Whether a line says nothing: dots, a spinner, a bar, a percentage, or nothing at all.
fn is_noise(line: &str) -> bool {
    let line = line.trim();
    let drawn = |c: char| {
        matches!(
            c,
            '.' | '·' | '•' | '…' | '|' | '/' | '-' | '\\' | '*' | '=' | '#' | '>' | '[' | ']'
        ) || ('\u{2500}'..='\u{25ff}').contains(&c)
            || ('\u{2800}'..='\u{28ff}').contains(&c)
            || c.is_whitespace()
    };
    let rest = line.trim_matches(drawn);
    let number = rest.strip_suffix('%').unwrap_or(rest).trim();
    let is_percentage =
        rest.ends_with('%') && number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    rest.is_empty() || is_percentage
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Patience = Patience {
        base: Duration::from_secs(20),
        extension: Duration::from_secs(30),
        most: Duration::from_secs(100),
    };

    /// When a command is stopped that prints `line` every ten seconds.
    fn stopped(line: &str) -> u64 {
        let mut listener = Listener::default();
        let mut heard = None;
        for second in 0_u64.. {
            let now = Duration::from_secs(second);
            if now >= BASE.ends(heard) {
                return second;
            }
            if second % 10 == 0 && listener.hears(line) {
                heard = Some(now);
            }
        }
        unreachable!("no patience lasts for ever")
    }

    #[test]
    fn a_command_that_speaks_is_not_stopped_and_one_that_hangs_is() {
        assert_eq!(stopped("compiling part 7\n"), 100, "the most there is");
        for noise in [
            ".",
            "...\n",
            "\n",
            "42%\n",
            "⠋\r",
            "[====>    ] 42.5 %\r",
            "|\r/\r",
            "██░░\n",
        ] {
            assert_eq!(stopped(noise), 20, "{noise:?}");
        }
        assert_eq!(stopped("half a line, and no end"), 20);
    }

    #[test]
    fn who_speaks_once_gets_a_moment_more() {
        assert_eq!(BASE.ends(Some(Duration::from_secs(15))).as_secs(), 45);
        assert_eq!(BASE.ends(Some(Duration::from_secs(2))).as_secs(), 32);
        assert_eq!(BASE.ends(None).as_secs(), 20);
        let exact = Patience::exactly(Duration::from_secs(5));
        assert_eq!(exact.ends(Some(Duration::from_secs(4))).as_secs(), 5);
    }

    #[test]
    fn a_line_is_judged_when_it_is_whole() {
        let mut listener = Listener::default();
        assert!(!listener.hears("4"));
        assert!(!listener.hears("2%\r"));
        assert!(!listener.hears("buil"));
        assert!(listener.hears("ding\n."));
    }
}

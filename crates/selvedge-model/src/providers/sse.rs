//! Server-sent events, put together from whatever pieces the network delivers.
//!
//! Bytes are cut at line ends before they become text, so a character split
//! between two packets is whole again, and one that is not text at all is an
//! error instead of a replacement mark inside somebody's file.

/// An event larger than this is not an answer but a fault.
const EVENT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Turns bytes into the data of events.
#[derive(Default)]
pub(super) struct Decoder {
    // The line being received.
    line: Vec<u8>,
    // The data lines of the event being received.
    data: String,
    has_data: bool,
    after_return: bool,
}

impl Decoder {
    /// Takes the next bytes; returns the data of each event they complete.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<Vec<String>, String> {
        let mut events = Vec::new();
        for piece in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, end) = match piece.split_last() {
                Some((end @ (b'\n' | b'\r'), line)) => (line, Some(*end)),
                _ => (piece, None),
            };
            // The second half of a line end that came as two bytes.
            let half =
                std::mem::take(&mut self.after_return) && end == Some(b'\n') && line.is_empty();
            self.line.extend_from_slice(line);
            if self.line.len() + self.data.len() > EVENT_BYTES_MAX {
                return Err(format!("an event is longer than {EVENT_BYTES_MAX} bytes"));
            }
            if let Some(end) = end {
                self.after_return = end == b'\r';
                if !half {
                    events.extend(self.end_line()?);
                }
            }
        }
        Ok(events)
    }

    /// Whether the stream may end here: nothing is left half-received.
    pub(super) fn is_between_events(&self) -> bool {
        self.line.is_empty() && !self.has_data
    }

    fn end_line(&mut self) -> Result<Option<String>, String> {
        let bytes = std::mem::take(&mut self.line);
        let line =
            std::str::from_utf8(&bytes).map_err(|_| "the stream is not valid UTF-8".to_owned())?;
        if line.is_empty() {
            let complete = std::mem::take(&mut self.has_data);
            return Ok(complete.then(|| std::mem::take(&mut self.data)));
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        // Comments and event names carry nothing that the data does not.
        if field.trim_start_matches('\u{feff}') == "data" {
            if std::mem::replace(&mut self.has_data, true) {
                self.data.push('\n');
            }
            self.data.push_str(value.strip_prefix(' ').unwrap_or(value));
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str =
        ": hello\r\n\r\nevent: a\ndata: one\ndata: two\n\ndata:größer\r\rid: 3\n\ndata: x\r\n\r\n";

    fn events(bytes: &[u8], piece: usize) -> Vec<String> {
        let mut decoder = Decoder::default();
        let events = bytes
            .chunks(piece)
            .flat_map(|piece| decoder.take(piece).unwrap())
            .collect();
        assert!(decoder.is_between_events());
        events
    }

    #[test]
    fn events_are_the_same_however_the_bytes_are_split() {
        for piece in 1..STREAM.len() {
            assert_eq!(
                events(STREAM.as_bytes(), piece),
                ["one\ntwo", "größer", "x"],
                "{piece}"
            );
        }
    }

    #[test]
    fn bytes_that_are_not_text_are_an_error() {
        assert!(
            Decoder::default()
                .take(b"data: \xff\n\n")
                .unwrap_err()
                .contains("UTF-8")
        );
    }

    #[test]
    fn a_half_received_event_shows() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.take(b"data: half\n").unwrap(), Vec::<String>::new());
        assert!(!decoder.is_between_events());
    }
}

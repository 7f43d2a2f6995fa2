//! What a command has printed: all of it up to a bound, then its two ends.

use std::collections::VecDeque;

/// Output within bounds, however much there was.
pub(super) struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    half_bytes_max: usize,
    bytes: u64,
}

impl Kept {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            head: Vec::new(),
            tail: VecDeque::new(),
            half_bytes_max: bytes_max / 2,
            bytes: 0,
        }
    }

    /// Takes a piece.
    pub(super) fn push(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        let room = self.half_bytes_max - self.head.len();
        let (head, rest) = piece.split_at(room.min(piece.len()));
        self.head.extend_from_slice(head);
        // Of a piece larger than the tail, only its end can stay.
        let rest = &rest[rest.len().saturating_sub(self.half_bytes_max)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(self.half_bytes_max);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// How much there was.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What was kept, with a mark where something is missing.
    pub(super) fn into_text(self) -> String {
        let kept = (self.head.len() + self.tail.len()) as u64;
        let mut bytes = self.head;
        if self.bytes > kept {
            let missing = self.bytes - kept;
            bytes.extend(format!("\n[{missing} bytes were not kept here]\n").bytes());
        }
        bytes.extend(self.tail);
        match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        }
    }
}

/// Turns pieces of bytes into pieces of text. A character that is split between two
/// pieces comes with the second.
#[derive(Default)]
pub(super) struct Decoder {
    rest: Vec<u8>,
}

impl Decoder {
    pub(super) fn decode(&mut self, piece: &[u8]) -> String {
        self.rest.extend_from_slice(piece);
        let complete = match std::str::from_utf8(&self.rest) {
            // No end of an error: the last bytes may be the start of a character.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.rest.len() - incomplete(&self.rest),
        };
        let text = String::from_utf8_lossy(&self.rest[..complete]).into_owned();
        self.rest.drain(..complete);
        text
    }
}

/// How many bytes at the end may be the start of a character. At most three are.
fn incomplete(bytes: &[u8]) -> usize {
    (1..=bytes.len().min(3))
        .find(|count| {
            let end = &bytes[bytes.len() - count..];
            std::str::from_utf8(end)
                .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn little_output_is_kept_whole() {
        let mut kept = Kept::new(100);
        kept.push(b"one\n");
        kept.push(b"two\n");
        assert_eq!((kept.bytes(), kept.into_text().as_str()), (8, "one\ntwo\n"));
    }

    #[test]
    fn much_output_keeps_its_ends_and_a_count() {
        let mut kept = Kept::new(8);
        for piece in ["abc", "defghijkl", "m", "nop"] {
            kept.push(piece.as_bytes());
        }
        assert_eq!(kept.bytes(), 16);
        assert_eq!(kept.into_text(), "abcd\n[8 bytes were not kept here]\nmnop");
    }

    proptest! {
        #[test]
        fn decoded_pieces_are_the_text(text in "[aü€\u{1F980}]{0,20}", size in 1_usize..5) {
            let mut decoder = Decoder::default();
            let decoded: String = text.as_bytes().chunks(size).map(|piece| decoder.decode(piece)).collect();
            prop_assert_eq!(decoded, text);
        }

        #[test]
        fn no_bytes_are_held_back_for_long(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut decoder = Decoder::default();
            for byte in bytes {
                decoder.decode(&[byte]);
                prop_assert!(decoder.rest.len() <= 3);
            }
        }
    }
}

//! Where in a JSON text a key stands, so that a fault can be shown there.

/// The line, from 1, of what a JSON pointer leads to; `None` if it leads nowhere.
pub(super) fn line_of(text: &str, pointer: &str) -> Option<usize> {
    let wanted: Vec<&str> = pointer.split('/').skip(1).collect();
    let mut scan = Scan {
        bytes: text.as_bytes(),
        at: 0,
    };
    let at = scan.find(&wanted)?;
    Some(
        1 + text.as_bytes()[..at]
            .iter()
            .filter(|b| **b == b'\n')
            .count(),
    )
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    fn peek(&mut self) -> Option<u8> {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    /// The place of what `wanted` leads to from the value here.
    fn find(&mut self, wanted: &[&str]) -> Option<usize> {
        let first = self.peek()?;
        let Some((name, rest)) = wanted.split_first() else {
            return Some(self.at);
        };
        match first {
            b'{' => {
                self.at += 1;
                while self.peek()? != b'}' {
                    let begin = self.at;
                    let key = self.string()?;
                    self.peek()?;
                    self.at += 1;
                    if key == *name {
                        return match rest.is_empty() {
                            true => Some(begin),
                            false => self.find(rest),
                        };
                    }
                    self.skip()?;
                    self.comma();
                }
                None
            }
            b'[' => {
                self.at += 1;
                let wanted: usize = name.parse().ok()?;
                for n in 0.. {
                    if self.peek()? == b']' {
                        return None;
                    }
                    if n == wanted {
                        return self.find(rest);
                    }
                    self.skip()?;
                    self.comma();
                }
                None
            }
            _ => None,
        }
    }

    fn comma(&mut self) {
        if self.peek() == Some(b',') {
            self.at += 1;
        }
    }

    /// The string here, without its quotes; escapes stay as they are written.
    fn string(&mut self) -> Option<String> {
        let begin = self.at + 1;
        self.at = begin;
        loop {
            match self.bytes.get(self.at)? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        let text = String::from_utf8_lossy(self.bytes.get(begin..self.at)?).into_owned();
        self.at += 1;
        Some(text)
    }

    /// Passes over the value here.
    fn skip(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => drop(self.string()?),
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                    continue;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.at += 1;
                }
                b',' | b':' => {
                    self.at += 1;
                    continue;
                }
                _ => {
                    let is_part = |b: &u8| !b.is_ascii_whitespace() && !b",:]}[{\"".contains(b);
                    while self.bytes.get(self.at).is_some_and(is_part) {
                        self.at += 1;
                    }
                }
            }
            if depth == 0 {
                return Some(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_in_its_line() {
        let text = "{\n \"a\": {\"x\": [1, {\"b\": \"}\"}], \"y\": 2},\n \"c\": [\n  true,\n  {\"d\": null}\n ]\n}";
        for (pointer, line) in [
            ("/a", Some(2)),
            ("/a/y", Some(2)),
            ("/a/x/1/b", Some(2)),
            ("/c", Some(3)),
            ("/c/1/d", Some(5)),
            ("/c/2", None),
            ("/e", None),
        ] {
            assert_eq!(line_of(text, pointer), line, "{pointer}");
        }
    }
}

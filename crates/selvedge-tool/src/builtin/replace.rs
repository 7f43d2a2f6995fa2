//! Replaces one piece of a text by another, if it is clear which piece is meant.
//!
//! A pure function, shared by the editing tools. Its errors are written for a model
//! that has misremembered a file: they say what is there instead.

use crate::secrets::MARK;

// A hint compares the wanted line to every line; this bounds the work.
const HINT_LINES_MAX: usize = 20_000;
const HINT_LINE_CHARS_MAX: usize = 200;
const NUMBERS_MAX: usize = 20;

/// A text after a replacement, and the lines where it happened.
#[derive(Debug, PartialEq)]
pub(super) struct Replaced {
    pub(super) text: String,
    pub(super) lines: Vec<usize>,
}

/// Replaces `old` by `new`: the only occurrence, or all of them.
pub(super) fn replace(text: &str, old: &str, new: &str, all: bool) -> Result<Replaced, String> {
    if old.is_empty() {
        return Err("`old` is empty: give the text to replace".into());
    }
    if old == new {
        return Err("`old` and `new` are the same: nothing would change".into());
    }
    let (old, new) = match text.contains(old) {
        true => (old.to_owned(), new.to_owned()),
        false => with_line_ends_of(text, old, new),
    };
    let lines = occurrences(text, &old);
    match lines.len() {
        0 if old.contains(MARK) => Err(format!(
            "`old` has `{MARK}`, which stands for a secret that you are not shown: choose an `old` \
             that leaves it out"
        )),
        0 => Err(format!(
            "`old` does not occur in the file{}",
            hint(text, &old)
        )),
        1 => Ok(Replaced {
            text: text.replacen(&old, &new, 1),
            lines,
        }),
        _ if all => Ok(Replaced {
            text: text.replace(&old, &new),
            lines,
        }),
        count => {
            let shown: Vec<_> = lines
                .iter()
                .take(NUMBERS_MAX)
                .map(usize::to_string)
                .collect();
            let more = if count > NUMBERS_MAX { ", …" } else { "" };
            Err(format!(
                "`old` occurs {count} times, at lines {}{more}: include more of the lines around \
                 the one you mean",
                shown.join(", ")
            ))
        }
    }
}

/// A model writes `\n`. In a file that ends its lines with `\r\n`, that is meant.
fn with_line_ends_of(text: &str, old: &str, new: &str) -> (String, String) {
    if !text.contains("\r\n") || old.contains('\r') {
        return (old.into(), new.into());
    }
    let convert = |text: &str| text.replace("\r\n", "\n").replace('\n', "\r\n");
    (convert(old), convert(new))
}

/// The line numbers of all occurrences, overlapping ones too: they are not clear
/// either.
fn occurrences(text: &str, old: &str) -> Vec<usize> {
    let step = old.chars().next().map_or(1, char::len_utf8);
    let (mut lines, mut line, mut from) = (Vec::new(), 1, 0);
    while let Some(at) = text[from..].find(old) {
        line += text[from..from + at].matches('\n').count();
        lines.push(line);
        let next = from + at + step;
        line += text[from + at..next].matches('\n').count();
        from = next;
    }
    lines
}

fn hint(text: &str, old: &str) -> String {
    let Some(wanted) = old.lines().find(|line| !line.trim().is_empty()) else {
        return String::new();
    };
    let wanted = wanted.trim();
    let mut best: Option<(f64, usize, &str)> = None;
    for (index, line) in text.lines().take(HINT_LINES_MAX).enumerate() {
        let nearness = match line.trim() == wanted {
            true => 1.0,
            false => strsim::normalized_levenshtein(start(line.trim()), start(wanted)),
        };
        if best.is_none_or(|(most, _, _)| nearness > most) {
            best = Some((nearness, index + 1, line));
        }
    }
    match best {
        Some((1.0, number, line)) => format!(
            "; its first line is there, at line {number}, as `{}`, but spaces or the lines after \
             it differ: read the file again",
            start(line)
        ),
        Some((nearness, number, line)) if nearness > 0.5 => {
            format!("; the closest is line {number}: `{}`", start(line))
        }
        _ => ": read it again".into(),
    }
}

fn start(line: &str) -> &str {
    &line[..crate::cut::end_of(line, HINT_LINE_CHARS_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, old: &str, new: &str, expected: &str) {
        match replace(text, old, new, false) {
            Ok(replaced) => assert_eq!(replaced.text, expected),
            Err(error) => assert!(error.contains(expected), "{error}"),
        }
    }

    #[test]
    fn the_only_occurrence_is_replaced() {
        check("a\nb\nc\n", "b", "B", "a\nB\nc\n");
        check("a\nb\nc\n", "a\nb", "", "\nc\n");
    }

    #[test]
    fn several_occurrences_are_counted_with_their_lines() {
        check("x\ny\nx\n", "x", "z", "occurs 2 times, at lines 1, 3");
        check("aaa", "aa", "b", "occurs 2 times");
    }

    #[test]
    fn all_occurrences_are_replaced_when_asked() {
        let replaced = replace("x\ny\nx\n", "x", "z", true).unwrap();
        assert_eq!(
            (replaced.text.as_str(), replaced.lines),
            ("z\ny\nz\n", vec![1, 3])
        );
    }

    #[test]
    fn a_near_miss_says_what_is_there() {
        check(
            "fn main() {\n    run();\n}\n",
            "fn mian() {",
            "",
            "line 1: `fn main() {`",
        );
        check(
            "    let x = 1;\n    y\n",
            "let x = 1;\ny",
            "",
            "as `    let x = 1;`",
        );
        check("abc\n", "something quite different", "", "read it again");
    }

    #[test]
    fn a_marker_is_explained_unless_it_is_there() {
        check("key = abc", "key = [REDACTED]", "x", "stands for a secret");
        check("say [REDACTED]", "[REDACTED]", "nothing", "say nothing");
    }

    #[test]
    fn line_ends_of_the_file_are_kept() {
        check("a\r\nb\r\nc\r\n", "a\nb", "x\ny", "x\r\ny\r\nc\r\n");
    }

    #[test]
    fn a_replacement_that_would_do_nothing_is_refused() {
        check("a", "a", "a", "nothing would change");
        check("a", "", "b", "`old` is empty");
    }
}

//! Cuts a long text to what a model should read: its head, its tail, and the lines
//! in between that look important.
//!
//! A build prints its errors anywhere. Head and tail alone would lose the one line
//! that matters, so lines that speak of failure are carried over with their numbers.

use std::sync::LazyLock;

use regex::Regex;

use crate::tool::ToolOutput;

/// How much of a result a model is told, in characters.
pub(crate) const TEXT_CHARS_MAX: usize = 30_000;

// A line longer than this is data; its beginning says enough.
const LINE_CHARS_MAX: usize = 300;

static IMPORTANT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?im)\b(errors?|warnings?|fail(ed|ures?|ing)?|fatal|panic(ked)?|assert(ion)?|exception|traceback|undefined|segmentation fault|timed out|denied|not found|killed)\b|^\s+at \S|\S\.\w+:\d+:\d+",
    )
    .expect("the pattern is valid")
});

/// The lines that look as if they mattered, numbered from 0.
pub(crate) fn important_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    lines_with(&IMPORTANT, text)
}

/// The lines that a pattern is found in, numbered from 0. Megabytes are searched in one
/// go, which is many times as fast as line by line.
pub(crate) fn lines_with<'a>(
    pattern: &'a Regex,
    text: &'a str,
) -> impl Iterator<Item = (usize, &'a str)> {
    let (mut at, mut number) = (0, 0);
    std::iter::from_fn(move || {
        let found = pattern.find_at(text, at)?;
        // What is found may begin with the end of a line before.
        let hit = found.end() - found.as_str().trim_start().len();
        let start = text[..hit].rfind('\n').map_or(0, |newline| newline + 1);
        let end = text[hit..]
            .find('\n')
            .map_or(text.len(), |length| hit + length);
        number += text[at..start.max(at)].matches('\n').count();
        let line = (number, &text[start..end]);
        at = (end + 1).min(text.len());
        number += 1;
        Some(line).filter(|_| start < text.len())
    })
}

/// Cuts an answer's text; the whole is kept where something was left out.
pub(crate) fn cut(mut output: ToolOutput, chars_max: usize) -> ToolOutput {
    if let Some(text) = shorten(&output.text, chars_max) {
        let whole = std::mem::replace(&mut output.text, text);
        // A tool that has kept the whole itself knows better.
        output.whole.get_or_insert(whole);
    }
    output
}

/// The shortened text, if it needs to be shorter.
fn shorten(text: &str, chars_max: usize) -> Option<String> {
    // A character has at least one byte: most texts are not even counted.
    if text.len() <= chars_max || text.chars().count() <= chars_max {
        return None;
    }
    let head = head(text, chars_max * 2 / 5);
    let tail = tail(&text[head.len()..], chars_max * 2 / 5);
    let middle = &text[head.len()..text.len() - tail.len()];
    let first_line = 1 + head.matches('\n').count();
    let important = important(middle, first_line, chars_max / 5);

    let mut short = String::with_capacity(head.len() + important.len() + tail.len() + 200);
    short.push_str(head);
    if !short.ends_with('\n') {
        short.push('\n');
    }
    short.push_str(&format!(
        "[{} bytes left out here; the whole text is kept and can be read again]\n",
        middle.len()
    ));
    if !important.is_empty() {
        short.push_str("[from what was left out, lines that look important:]\n");
        short.push_str(&important);
        short.push_str("[the end of the text:]\n");
    }
    short.push_str(tail);
    Some(short)
}

/// The first characters, up to the end of a line if there is one nearby.
fn head(text: &str, chars_max: usize) -> &str {
    let head = &text[..end_of(text, chars_max)];
    match head.rfind('\n') {
        Some(at) if head.len() - at < head.len() / 4 => &head[..=at],
        _ => head,
    }
}

/// The last characters, from the beginning of a line if there is one nearby.
fn tail(text: &str, chars_max: usize) -> &str {
    let start = text
        .char_indices()
        .rev()
        .nth(chars_max.saturating_sub(1))
        .map_or(0, |(at, _)| at);
    let tail = &text[start..];
    match tail.find('\n') {
        Some(at) if at < tail.len() / 4 => &tail[at + 1..],
        _ => tail,
    }
}

fn important(middle: &str, first_line: usize, chars_max: usize) -> String {
    let mut kept = String::new();
    let mut chars = 0;
    for (index, line) in important_lines(middle) {
        let line = &line[..end_of(line, LINE_CHARS_MAX)];
        let entry = format!("line {}: {}\n", first_line + index, line);
        chars += entry.chars().count();
        if chars > chars_max {
            break;
        }
        kept.push_str(&entry);
    }
    kept
}

/// Where the first `chars` characters end, in bytes.
pub(crate) fn end_of(text: &str, chars: usize) -> usize {
    text.char_indices()
        .nth(chars)
        .map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_short_text_is_left_alone() {
        let output = cut(ToolOutput::ok("ü".repeat(100)), 100);
        assert_eq!((output.text.chars().count(), output.whole), (100, None));
    }

    #[test]
    fn an_error_in_the_middle_is_carried_over_with_its_line() {
        let mut lines: Vec<String> = (1..=9_000).map(|n| format!("compiling part {n}")).collect();
        lines[4_499] = "error[E0308]: mismatched types".into();
        let whole = lines.join("\n");
        let output = cut(ToolOutput::ok(&whole), 5_000);
        for expected in [
            "compiling part 1\n",
            "line 4500: error[E0308]: mismatched types\n",
            "compiling part 9000",
            "bytes left out here",
        ] {
            assert!(
                output.text.contains(expected),
                "{expected} in {}",
                output.text
            );
        }
        assert_eq!(output.whole, Some(whole));
    }

    #[test]
    fn the_number_of_bytes_left_out_is_exact() {
        let text = "z".repeat(1_000_000);
        let short = shorten(&text, 1_000).unwrap();
        let kept = short.matches('z').count();
        assert!(
            short.contains(&format!("[{} bytes left out", 1_000_000 - kept)),
            "{short}"
        );
    }

    #[test]
    fn lines_are_found_with_their_numbers() {
        let pattern = Regex::new(r"(?m)\bx\b|^\s+at").unwrap();
        let lines = |text: &'static str| -> Vec<_> { lines_with(&pattern, text).collect() };
        assert_eq!(lines(""), []);
        assert_eq!(lines("x"), [(0, "x")]);
        assert_eq!(lines("a\nx x\n\nb x\n"), [(1, "x x"), (3, "b x")]);
        assert_eq!(lines("a\n\n  at b\nx"), [(2, "  at b"), (3, "x")]);
    }

    proptest! {
        #[test]
        fn lines_are_the_same_as_one_by_one(text in "[x \n]{0,40}") {
            let pattern = Regex::new(r"\bx\b").unwrap();
            let one_by_one: Vec<_> =
                text.lines().enumerate().filter(|(_, line)| pattern.is_match(line)).collect();
            let lines: Vec<_> = lines_with(&pattern, &text).collect();
            prop_assert_eq!(lines, one_by_one);
        }

        #[test]
        fn a_cut_text_stays_near_its_bound(
            lines in prop::collection::vec("(error )?[aü\u{1F980}]{0,80}", 0..60),
            chars_max in 10_usize..500,
        ) {
            let text = lines.join("\n");
            let output = cut(ToolOutput::ok(&text), chars_max);
            prop_assert!(output.text.chars().count() <= chars_max + 200);
            prop_assert_eq!(output.whole.unwrap_or(output.text), text);
        }
    }
}

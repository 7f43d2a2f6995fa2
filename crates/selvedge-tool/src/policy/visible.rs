//! Text as it really is: what a terminal would hide, reorder or act upon is spelt out.
//!
//! Somebody who approves a command must see the bytes that run. So nothing is cut,
//! and a tail behind a thousand spaces is not out of sight.

use std::fmt::Write as _;

// Longer runs of blanks push what follows out of sight.
const BLANKS_MAX: usize = 40;

/// The text with everything invisible made visible. Line ends and tabs stay.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut before = ' ';
    for c in text.chars() {
        match c {
            '\n' | '\t' => shown.push(c),
            // They join and colour the signs of pictures; after a letter they hide.
            '\u{200d}' | '\u{fe0f}' if !before.is_ascii() => shown.push(c),
            c if c.is_control() => shown.extend(c.escape_default()),
            c if is_hidden(c) => {
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
            }
            c => shown.push(c),
        }
        before = c;
    }
    shown
}

/// The same, with long runs of blanks counted instead of shown.
pub fn compact(text: &str) -> String {
    let text = visible(text);
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(c) = rest.chars().next() {
        let run = match c {
            ' ' | '\t' | '\n' => rest.len() - rest.trim_start_matches(c).len(),
            c => {
                shown.push(c);
                rest = &rest[c.len_utf8()..];
                continue;
            }
        };
        let (blank, run_max) = match c {
            '\n' => ("empty lines", 3),
            '\t' => ("tabs", BLANKS_MAX),
            _ => ("spaces", BLANKS_MAX),
        };
        if run > run_max {
            let _ = write!(shown, "[{run} {blank}]");
        } else {
            shown.push_str(&rest[..run]);
        }
        rest = &rest[run..];
    }
    shown
}

/// Characters without a shape: they reorder, join, or are simply not seen.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_hides_is_spelt_out() {
        for (text, expected) in [
            ("ls\rrm -r x", "ls\\rrm -r x"),
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("a\u{202e}b", "a\\u{202e}b"),
            ("a\u{200b}b\u{feff}", "a\\u{200b}b\\u{feff}"),
            ("hi\u{e0041}", "hi\\u{e0041}"),
            ("a\u{fe0f}", "a\\u{fe0f}"),
            ("\u{8}", "\\u{8}"),
        ] {
            assert_eq!(visible(text), expected);
        }
    }

    #[test]
    fn ordinary_text_stays_as_it_is() {
        for text in ["naïve ✓ 中文 \u{2764}\u{fe0f}", "a\n\tb  c", "👩\u{200d}💻"] {
            assert_eq!(visible(text), text);
            assert_eq!(compact(text), text);
        }
    }

    #[test]
    fn a_tail_behind_blanks_is_in_sight() {
        let text = format!("ls{}&& rm x{}y", " ".repeat(5000), "\n".repeat(300));
        assert_eq!(compact(&text), "ls[5000 spaces]&& rm x[300 empty lines]y");
    }
}

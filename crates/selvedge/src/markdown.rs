//! Markdown as a terminal shows it: headings, emphasis, lists. Nothing else is touched.

use crate::env;

const BOLD: (&str, &str) = ("\x1b[1m", "\x1b[22m");
const ITALIC: (&str, &str) = ("\x1b[3m", "\x1b[23m");
const DIM: (&str, &str) = ("\x1b[2m", "\x1b[22m");

/// The text with its marks made visible, or taken away where colours are unwanted.
pub fn render(text: &str) -> String {
    let is_plain = env::no_color();
    let lines: Vec<String> = text
        .lines()
        .map(|line| render_line(line, is_plain))
        .collect();
    lines.join("\n")
}

fn render_line(line: &str, is_plain: bool) -> String {
    let indent = line.len() - line.trim_start().len();
    let (space, rest) = line.split_at(indent);
    let style = |(on, off): (&str, &str), text: &str| match is_plain {
        true => text.to_owned(),
        false => format!("{on}{text}{off}"),
    };
    let title = rest.trim_start_matches('#');
    if title.len() < rest.len() && title.starts_with(' ') {
        return format!("{space}{}", style(BOLD, title.trim()));
    }
    let (mark, rest) = match rest.strip_prefix("- ").or(rest.strip_prefix("* ")) {
        Some(item) => ("• ", item),
        None => ("", rest),
    };
    let mut text = rest.to_owned();
    for (sign, look) in [("**", BOLD), ("`", DIM), ("_", ITALIC)] {
        text = paired(&text, sign, |inner| style(look, inner));
    }
    format!("{space}{mark}{text}")
}

/// Replaces what stands between two signs, where both stand at the edge of a word.
fn paired(text: &str, sign: &str, style: impl Fn(&str) -> String) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(sign) {
        let opens = before
            .chars()
            .next_back()
            .is_none_or(|c| !c.is_alphanumeric())
            && after.starts_with(|c: char| !c.is_whitespace());
        let inner = after.split_once(sign).filter(|(inner, tail)| {
            let closes = tail.chars().next().is_none_or(|c| !c.is_alphanumeric());
            closes && !inner.is_empty() && !inner.ends_with(char::is_whitespace)
        });
        out.push_str(before);
        match inner.filter(|_| opens) {
            Some((inner, tail)) => {
                out.push_str(&style(inner));
                rest = tail;
            }
            None => {
                out.push_str(sign);
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_become_looks_and_words_stay() {
        let line = |text: &str| render_line(text, false);
        assert_eq!(line("## Sleep"), "\x1b[1mSleep\x1b[22m");
        assert_eq!(
            line("  - **4 h** on `2026-01-04`"),
            "  • \x1b[1m4 h\x1b[22m on \x1b[2m2026-01-04\x1b[22m"
        );
        assert_eq!(
            line("snake_case_name, 2 * 3 * 4"),
            "snake_case_name, 2 * 3 * 4"
        );
        assert_eq!(render_line("**bold** _it_", true), "bold it");
    }
}

//! Documents: Markdown by its headings, pages by their text, the rest in pieces.

use super::outline::{Outline, Symbol};
use crate::kind::NodeType;

/// Characters of a piece: some three hundred tokens, enough for a thought.
const PIECE_CHARS: usize = 1_400;
/// Files whose text is longer are read up to here.
const PIECES_MAX: usize = 2_000;

/// The sections of a Markdown text, a piece each or several.
pub(super) fn markdown(text: &str) -> Outline {
    let mut outline = Outline {
        line_count: text.lines().count() as u32,
        ..Outline::default()
    };
    let mut trail: Vec<(usize, String)> = Vec::new();
    let mut section: Vec<&str> = Vec::new();
    let (mut begin, mut is_fenced) = (1, false);
    for (number, line) in (1u32..).zip(text.lines()) {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            is_fenced = !is_fenced;
        }
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        let is_heading = !is_fenced && (1..=6).contains(&level) && line[level..].starts_with(' ');
        if is_heading {
            add_section(&mut outline, &trail, &section, begin);
            section.clear();
            begin = number;
            let title = line[level..].trim().trim_end_matches('#').trim();
            trail.retain(|(above, _)| *above < level);
            trail.push((level, title.to_owned()));
        }
        section.push(line);
    }
    add_section(&mut outline, &trail, &section, begin);
    outline
}

fn add_section(outline: &mut Outline, trail: &[(usize, String)], lines: &[&str], begin: u32) {
    if lines.iter().all(|line| line.trim().is_empty()) {
        return;
    }
    let title = trail.last().map_or("", |(_, title)| title.as_str());
    let path: Vec<&str> = trail.iter().map(|(_, title)| title.as_str()).collect();
    let above = path[..path.len().saturating_sub(1)].join(" / ");
    for (at, (first, last, text)) in pieces_of(lines, begin).into_iter().enumerate() {
        if outline.symbols.len() == PIECES_MAX {
            return;
        }
        let qualified = match at {
            0 => path.join(" / "),
            _ => format!("{} ({})", path.join(" / "), at + 1),
        };
        outline.symbols.push(Symbol {
            node_type: NodeType::Documentation,
            name: title.to_owned(),
            qualified,
            lines: (first, last),
            signature: above.clone(),
            doc: String::new(),
            content: text,
            mentions: Vec::new(),
            parent: None,
        });
    }
}

/// A page: its headings are kept as such, its tags, scripts and styles are not.
pub(super) fn html(text: &str) -> Outline {
    let outline = markdown(&untagged(text));
    Outline {
        line_count: text.lines().count() as u32,
        ..outline
    }
}

/// A text in pieces.
pub(super) fn plain(text: &str, node_type: NodeType) -> Outline {
    let pieces = pieces(text);
    let symbols = pieces
        .into_iter()
        .enumerate()
        .map(|(at, (first, last, text))| Symbol {
            node_type,
            name: String::new(),
            qualified: format!("piece {}", at + 1),
            lines: (first, last),
            signature: String::new(),
            doc: String::new(),
            content: text,
            mentions: Vec::new(),
            parent: None,
        });
    Outline {
        symbols: symbols.take(PIECES_MAX).collect(),
        line_count: text.lines().count() as u32,
        ..Outline::default()
    }
}

/// A text in pieces of some length, with their first and last lines.
fn pieces(text: &str) -> Vec<(u32, u32, String)> {
    let lines: Vec<&str> = text.lines().collect();
    pieces_of(&lines, 1)
}

fn pieces_of(lines: &[&str], begin: u32) -> Vec<(u32, u32, String)> {
    let mut pieces = Vec::new();
    let mut piece = String::new();
    let mut first = begin;
    for (number, line) in (begin..).zip(lines) {
        // A new piece begins at the end of a paragraph if one is near.
        let is_full = piece.len() + line.len() > PIECE_CHARS;
        let is_good_place = line.trim().is_empty() && piece.len() > PIECE_CHARS / 2;
        if (is_full || is_good_place) && !piece.trim().is_empty() {
            pieces.push((first, number - 1, std::mem::take(&mut piece)));
        }
        if piece.trim().is_empty() {
            piece.clear();
            first = number;
        }
        // A line without end, as data has them, is no reason for a piece without end.
        for part in chunks(line, PIECE_CHARS) {
            if piece.len() + part.len() > PIECE_CHARS && !piece.is_empty() {
                pieces.push((first, number, std::mem::take(&mut piece)));
                first = number;
            }
            piece.push_str(part);
        }
        piece.push('\n');
    }
    if !piece.trim().is_empty() {
        pieces.push((first, begin + lines.len() as u32 - 1, piece));
    }
    for (_, _, text) in &mut pieces {
        text.truncate(text.trim_end().len());
    }
    pieces
}

fn chunks(line: &str, max: usize) -> Vec<&str> {
    if line.len() <= max {
        return vec![line];
    }
    let mut parts = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let cut = (0..=max.min(rest.len()))
            .rev()
            .find(|at| rest.is_char_boundary(*at));
        let cut = cut.unwrap_or(rest.len()).max(1);
        parts.push(&rest[..cut]);
        rest = &rest[cut..];
    }
    parts
}

/// The text of a page, with its headings as Markdown has them.
pub(crate) fn untagged(page: &str) -> String {
    let mut text = String::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(comment) = rest.strip_prefix("<!--") {
            rest = comment.split_once("-->").map_or("", |(_, after)| after);
            continue;
        }
        let Some((tag, after)) = rest[1..].split_once('>') else {
            break;
        };
        rest = after;
        let name: String = tag
            .trim_start_matches('/')
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .collect::<String>()
            .to_ascii_lowercase();
        let is_end = tag.starts_with('/');
        match name.as_str() {
            "script" | "style" | "noscript" | "svg" | "head" if !is_end && !tag.ends_with('/') => {
                rest = after_end(rest, &name);
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" if !is_end => {
                let level = usize::from(name.as_bytes()[1] - b'0');
                text.push('\n');
                text.push_str(&"#".repeat(level));
                text.push(' ');
            }
            "p" | "div" | "section" | "article" | "ul" | "ol" | "table" | "pre" | "blockquote"
            | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "header" | "footer" | "main" => {
                text.push_str("\n\n");
            }
            "br" | "li" | "tr" | "dt" | "dd" => text.push('\n'),
            _ => {}
        }
    }
    if !rest.starts_with('<') {
        text.push_str(rest);
    }
    unescaped(&text)
}

/// What follows the end of an element, whatever is in it.
fn after_end<'a>(rest: &'a str, name: &str) -> &'a str {
    let end = format!("</{name}");
    let lower = rest.to_ascii_lowercase();
    let at = lower.find(&end).unwrap_or(rest.len());
    rest[at..].split_once('>').map_or("", |(_, after)| after)
}

fn unescaped(text: &str) -> String {
    [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&nbsp;", " "),
        ("&amp;", "&"),
    ]
    .iter()
    .fold(text.to_owned(), |text, (mark, plain)| {
        text.replace(mark, plain)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_knows_its_headings_and_its_lines() {
        let outline = markdown("# Top\nintro\n\n## Retry\nwaits\n```\n# no heading\n```\n");
        let names: Vec<&str> = outline
            .symbols
            .iter()
            .map(|s| s.qualified.as_str())
            .collect();
        assert_eq!(names, ["Top", "Top / Retry"]);
        assert_eq!(outline.symbols[1].lines, (4, 8));
        assert!(outline.symbols[1].content.contains("no heading"));
    }

    #[test]
    fn a_long_text_comes_in_pieces_that_together_are_the_whole() {
        let text: String = (0..400).map(|n| format!("line number {n}\n")).collect();
        let pieces = pieces(&text);
        assert!(pieces.len() > 3);
        let joined: Vec<&str> = pieces.iter().map(|(_, _, text)| text.as_str()).collect();
        assert_eq!(joined.join("\n"), text.trim_end());
        assert_eq!(pieces[0].0, 1);
        assert_eq!(pieces.last().unwrap().1, 400);
        for window in pieces.windows(2) {
            assert_eq!(window[0].1 + 1, window[1].0);
        }
    }

    #[test]
    fn one_endless_line_is_cut_between_characters() {
        let pieces = pieces(&"ß".repeat(5_000));
        assert!(pieces.len() > 4);
        assert!(pieces.iter().all(|(_, _, text)| text.len() <= PIECE_CHARS));
    }

    #[test]
    fn a_page_is_left_with_its_text() {
        let page = "<html><head><title>t</title></head><body><h1>Caching</h1><script>let x = \
                    '<p>';</script><p>Keep it &amp; drop it.</p></body></html>";
        let outline = html(page);
        assert_eq!(outline.symbols[0].name, "Caching");
        assert!(outline.symbols[0].content.contains("Keep it & drop it."));
        assert!(!outline.symbols[0].content.contains("let x"));
    }
}

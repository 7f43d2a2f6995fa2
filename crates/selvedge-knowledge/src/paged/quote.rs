//! Whether a quote stands in a document, and on which page.
//!
//! Line breaks, hyphens at their ends and typographic quotes are the printer's; words are
//! the author's. So two texts are compared by their words and signs.

/// The page, from 1, that a quote begins on; `None` if it does not stand there.
pub fn quoted_on(pages: &[String], quote: &str) -> Option<usize> {
    let quote = plain(quote);
    if quote.is_empty() {
        return None;
    }
    let pages: Vec<String> = pages.iter().map(|page| plain(page)).collect();
    if let Some(at) = pages.iter().position(|page| page.contains(&quote)) {
        return Some(at + 1);
    }
    // It may begin at the end of one page and go on at the next.
    let begin = |pair: &[String]| format!("{} {}", pair[0], pair[1]).contains(&quote);
    pages.windows(2).position(begin).map(|at| at + 1)
}

fn plain(text: &str) -> String {
    let text: String = text
        .chars()
        .filter(|c| !matches!(c, '\u{ad}' | '\u{200b}' | '\u{feff}'))
        .map(|c| match c {
            '\u{2018}' | '\u{2019}' | '\u{201b}' => '\'',
            '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{ab}' | '\u{bb}' => '"',
            '\u{2010}'..='\u{2015}' => '-',
            c => c,
        })
        .collect();
    let text = text.replace("-\n", "");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_is_found_whatever_the_printer_did() {
        let pages = [
            "The oper-\nator must keep\n  records".to_owned(),
            "for \u{201c}ten\u{201d} years.".to_owned(),
        ];
        assert_eq!(quoted_on(&pages, "The operator must keep records"), Some(1));
        assert_eq!(quoted_on(&pages, "for \"ten\" years"), Some(2));
        assert_eq!(quoted_on(&pages, "keep records for"), Some(1));
        assert_eq!(quoted_on(&pages, "for eleven years"), None);
        assert_eq!(quoted_on(&pages, "  "), None);
    }
}

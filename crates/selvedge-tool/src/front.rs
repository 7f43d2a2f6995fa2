//! Front matter: the YAML between two lines of `---` at the head of a Markdown file.

/// The front matter of a text and the rest of it; `None` if it does not begin with any.
pub fn front_matter(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let rest = text
        .strip_prefix("---\n")
        .or_else(|| text.strip_prefix("---\r\n"))?;
    if let Some(body) = closing(rest) {
        return Some(("", body));
    }
    let mut from = 0;
    loop {
        let at = from + rest[from..].find("\n---")?;
        if let Some(body) = closing(&rest[at + 1..]) {
            return Some((&rest[..at], body));
        }
        from = at + 1;
    }
}

/// What follows the closing line that `text` begins with.
fn closing(text: &str) -> Option<&str> {
    let after = text.strip_prefix("---")?;
    let (line, body) = after.split_once('\n').unwrap_or((after, ""));
    line.trim().is_empty().then_some(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_ends_at_the_first_line_of_three_dashes() {
        for (text, expected) in [
            ("---\na: b\n---\nbody\n", Some(("a: b", "body\n"))),
            ("---\r\na: b\r\n---\r\nbody", Some(("a: b\r", "body"))),
            ("---\na: |\n ---x\n---\n", Some(("a: |\n ---x", ""))),
            (
                "---\na: b\n---more\n---\nbody",
                Some(("a: b\n---more", "body")),
            ),
            ("---\n---\nbody", Some(("", "body"))),
            ("---\na: b\n---", Some(("a: b", ""))),
            ("---\na: b\n", None),
            ("body", None),
            ("", None),
        ] {
            assert_eq!(front_matter(text), expected, "{text:?}");
        }
    }
}

//! A word of a command as the program will see it: quotes taken away.

use tree_sitter::Node;

/// A word.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::policy) struct Word {
    /// What it says, as far as it is written out.
    text: String,
    /// Whether a shell completes it while it runs: a variable, a substitution.
    is_dynamic: bool,
    /// Whether a shell turns it into names: `*.rs`, `{a,b}`, `~`.
    is_pattern: bool,
}

impl Word {
    /// A word that is written out.
    pub(in crate::policy) fn text(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            is_dynamic: false,
            is_pattern: false,
        }
    }

    /// Takes the quotes away.
    pub(super) fn read(source: &str, node: Node<'_>) -> Self {
        let mut word = Self::text("");
        word.push(source, node);
        word
    }

    /// What it says, if that is known before anything runs.
    pub(in crate::policy) fn plain(&self) -> Option<&str> {
        (!self.is_dynamic && !self.is_pattern).then_some(&self.text)
    }

    /// The same for a script, in which `*` and `[` are quoted or stand for themselves.
    pub(in crate::policy) fn plain_or_quoted(&self) -> Option<&str> {
        (!self.is_dynamic).then_some(&self.text)
    }

    /// What it says, as far as that is known.
    pub(in crate::policy) fn shown(&self) -> &str {
        &self.text
    }

    /// Whether it is known only while it runs.
    pub(in crate::policy) fn is_dynamic(&self) -> bool {
        self.is_dynamic
    }

    fn push(&mut self, source: &str, node: Node<'_>) {
        let text = &source[node.byte_range()];
        match node.kind() {
            "word" | "number" | "variable_name" | "regex" | "extglob_pattern"
            | "brace_expression" | "test_operator" => self.push_bare(text),
            "raw_string" => {
                let inside = text.strip_prefix('\'').and_then(|t| t.strip_suffix('\''));
                self.text.push_str(inside.unwrap_or(text));
            }
            "ansi_c_string" => self.text.push_str(&decode(text)),
            "string" | "translated_string" => self.push_quoted(source, node),
            "concatenation" => {
                let mut cursor = node.walk();
                let mut end = node.start_byte();
                for child in node.children(&mut cursor) {
                    // What lies between two parts belongs to the word as well.
                    self.push_bare(&source[end..child.start_byte()]);
                    end = child.end_byte();
                    self.push(source, child);
                }
            }
            _ => {
                self.text.push_str(text);
                self.is_dynamic = true;
            }
        }
    }

    fn push_bare(&mut self, text: &str) {
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                '\\' => match chars.next() {
                    Some('\n') | None => {}
                    Some(escaped) => self.text.push(escaped),
                },
                '~' if self.text.is_empty() => {
                    self.is_pattern = true;
                    self.text.push(c);
                }
                '*' | '?' | '[' | '{' => {
                    self.is_pattern = true;
                    self.text.push(c);
                }
                c => self.text.push(c),
            }
        }
    }

    /// Between double quotes: text, and what a shell fills in.
    fn push_quoted(&mut self, source: &str, node: Node<'_>) {
        let mut cursor = node.walk();
        let mut end = node.start_byte();
        for child in node.children(&mut cursor) {
            self.push_inside(&source[end..child.start_byte()]);
            end = child.end_byte();
            match child.kind() {
                "string_content" => self.push_inside(&source[child.byte_range()]),
                "\"" | "$\"" => {}
                _ => self.push(source, child),
            }
        }
    }

    fn push_inside(&mut self, text: &str) {
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match (c, chars.peek()) {
                ('\\', Some('\n')) => drop(chars.next()),
                ('\\', Some(escaped @ ('$' | '`' | '"' | '\\'))) => {
                    self.text.push(*escaped);
                    chars.next();
                }
                (c, _) => self.text.push(c),
            }
        }
    }
}

/// What `$'…'` stands for, so that a rule finds the name that it spells.
fn decode(text: &str) -> String {
    let inside = text.strip_prefix("$'").and_then(|t| t.strip_suffix('\''));
    let mut chars = inside.unwrap_or(text).chars().peekable();
    let mut decoded = String::new();
    while let Some(c) = chars.next() {
        if c != '\\' {
            decoded.push(c);
            continue;
        }
        let Some(kind) = chars.next() else { break };
        let (radix, digits_max) = match kind {
            'x' => (16, 2),
            'u' => (16, 4),
            'U' => (16, 8),
            '0'..='7' => (8, 3),
            'n' | 't' | 'r' => {
                decoded.push(' ');
                continue;
            }
            other => {
                decoded.push(other);
                continue;
            }
        };
        let mut number = if radix == 8 { kind.to_digit(8) } else { None };
        let mut digits = usize::from(number.is_some());
        while digits < digits_max
            && let Some(digit) = chars.peek().and_then(|c| c.to_digit(radix))
        {
            number = Some(number.unwrap_or(0).wrapping_mul(radix) + digit);
            digits += 1;
            chars.next();
        }
        decoded.extend(number.and_then(char::from_u32));
    }
    decoded
}

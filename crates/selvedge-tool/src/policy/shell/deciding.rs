//! The parts of a command whose failure is a failure of the whole.
//!
//! `sh test.sh | tail` ends as `tail` does, and `sh test.sh || true` always ends well:
//! such an exit code says nothing of the tests.

use tree_sitter::{Node, Parser};

/// The simple commands that decide how `command` ends, as they are written.
pub(in crate::policy) fn deciding(command: &str) -> Vec<&str> {
    let mut parser = Parser::new();
    let language = tree_sitter_bash::LANGUAGE.into();
    let tree = match parser.set_language(&language) {
        Ok(()) => parser.parse(command, None),
        Err(_) => None,
    };
    let mut walk = Walk {
        source: command,
        all: false,
        pipes: false,
        found: Vec::new(),
    };
    if let Some(tree) = tree {
        walk.visit(tree.root_node(), super::DEPTH_MAX);
    }
    walk.found
}

struct Walk<'a> {
    source: &'a str,
    /// Whether the first failure ends the whole: `set -e`.
    all: bool,
    /// Whether a pipeline fails if any of its parts does: `set -o pipefail`.
    pipes: bool,
    found: Vec<&'a str>,
}

impl<'a> Walk<'a> {
    fn visit(&mut self, node: Node<'_>, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        let mut cursor = node.walk();
        let parts: Vec<Node<'_>> = node
            .named_children(&mut cursor)
            .filter(|part| part.kind() != "comment")
            .collect();
        match node.kind() {
            "program" | "subshell" | "compound_statement" => self.sequence(&parts, depth),
            "list" => self.list(node, &parts, depth),
            "pipeline" => {
                let before = parts.len().saturating_sub(1);
                let from = if self.pipes { 0 } else { before };
                parts[from..]
                    .iter()
                    .for_each(|part| self.visit(*part, depth));
            }
            "redirected_statement" => match node.child_by_field_name("body") {
                Some(body) if body.kind() != "command" => self.visit(body, depth),
                _ => self.found.push(self.text(node)),
            },
            "command" => self.found.push(self.text(node)),
            // Conditions and loops decide by themselves what a failure means.
            _ => {}
        }
    }

    fn sequence(&mut self, parts: &[Node<'_>], depth: usize) {
        for (n, part) in parts.iter().enumerate() {
            let is_apart = part.next_sibling().is_some_and(|next| next.kind() == "&");
            if !is_apart && (self.all || n + 1 == parts.len()) {
                self.visit(*part, depth);
            }
            let mut words = self.text(*part).split_whitespace();
            if words.next() == Some("set") {
                let options: Vec<&str> = words.collect();
                let is_short = |word: &&str| word.starts_with('-') && !word.starts_with("--");
                let has_e = |word: &&str| is_short(word) && word.contains('e');
                self.all |= options.iter().any(has_e) || options.contains(&"errexit");
                self.pipes |= options.contains(&"pipefail");
            }
        }
    }

    fn list(&mut self, node: Node<'_>, parts: &[Node<'_>], depth: usize) {
        let &[left, right] = parts else { return };
        let mut cursor = node.walk();
        let is_or = node.children(&mut cursor).any(|part| part.kind() == "||");
        let ends_badly = |text: &str| {
            let words: Vec<&str> = text.split_whitespace().collect();
            match words[..] {
                ["false"] | ["exit" | "return"] => true,
                ["exit" | "return", code] => code != "0",
                _ => false,
            }
        };
        match is_or {
            true if ends_badly(self.text(right)) => self.visit(left, depth),
            true => self.visit(right, depth),
            false => {
                self.visit(left, depth);
                self.visit(right, depth);
            }
        }
    }

    fn text(&self, node: Node<'_>) -> &'a str {
        &self.source[node.byte_range()]
    }
}

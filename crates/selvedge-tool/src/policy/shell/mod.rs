//! A shell command taken apart: its commands, their words, what they assign and
//! where they redirect to.
//!
//! Every part is found, wherever it hides: in a substitution, a here-document, a
//! function's body, a condition. What a shell would work out only while it runs is
//! a doubt, and so is whatever this reading does not know: a doubt is asked about.

mod deciding;
mod word;

use std::collections::BTreeSet;

use tree_sitter::{Node, Parser};

pub(super) use deciding::deciding;
pub(super) use word::Word;

/// Longer ones are not read at all.
const COMMAND_BYTES_MAX: usize = 64 * 1024;
/// More parts than a person would write, and would read before saying yes.
const SEGMENTS_MAX: usize = 50;
const DEPTH_MAX: usize = 100;

/// A command, taken apart.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// The simple commands, in the order in which they are written.
    pub(super) segments: Vec<Segment>,
    /// Why the whole of it cannot be judged by its parts alone.
    pub(super) doubts: BTreeSet<String>,
}

/// One simple command.
#[derive(Clone, Debug, Default)]
pub(super) struct Segment {
    /// As it is written.
    pub(super) text: String,
    /// The program and its arguments.
    pub(super) words: Vec<Word>,
    /// The variables it sets, for itself or for what follows.
    pub(super) assigns: Vec<String>,
    /// Where its input and output go.
    pub(super) redirects: Vec<Redirect>,
    /// Where the pipeline begins whose output it reads.
    pub(super) fed_by: Option<usize>,
    /// Whether it runs in a shell of its own, so that its `cd` ends with it.
    pub(super) is_apart: bool,
}

/// A redirection.
#[derive(Clone, Debug)]
pub(super) enum Redirect {
    /// To a file.
    To(Word),
    /// From a file.
    From(Word),
    /// From text of the command itself.
    Text,
}

impl Segment {
    /// The program, if its name is written out.
    pub(super) fn program(&self) -> Option<&str> {
        self.words.first()?.plain()
    }

    /// Whether its input is text of the command itself, or of another command.
    pub(super) fn is_fed(&self) -> bool {
        let feeds = |r: &Redirect| !matches!(r, Redirect::To(_));
        self.fed_by.is_some() || self.redirects.iter().any(feeds)
    }
}

/// Takes a command apart.
pub(super) fn read(command: &str) -> Script {
    let mut reader = Reader {
        source: command,
        script: Script::default(),
        is_apart: false,
        depth: 0,
        bodies: Vec::new(),
    };
    if command.len() > COMMAND_BYTES_MAX {
        reader.doubt("it is too long to be judged");
        return reader.script;
    }
    let is_hidden = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if command.contains(is_hidden) {
        reader.doubt("it contains control characters");
    }
    // A shell joins what stands before and after; this grammar sees two words.
    let mut lines = command.split("\\\n").peekable();
    while let (Some(before), Some(after)) = (lines.next(), lines.peek()) {
        let is_blank = |c: Option<char>| c.is_none_or(char::is_whitespace);
        if !is_blank(before.chars().next_back()) && !is_blank(after.chars().next()) {
            reader.doubt("it breaks a word at the end of a line");
        }
    }
    let mut parser = Parser::new();
    let language = tree_sitter_bash::LANGUAGE.into();
    let tree = match parser.set_language(&language) {
        Ok(()) => parser.parse(command, None),
        Err(_) => None,
    };
    let Some(tree) = tree else {
        reader.doubt("it cannot be parsed");
        return reader.script;
    };
    if tree.root_node().has_error() {
        reader.doubt("it cannot be parsed as a shell would");
    }
    reader.visit(tree.root_node());
    for body in std::mem::take(&mut reader.bodies) {
        let Script { segments, doubts } = read(&body);
        reader.script.segments.extend(segments.into_iter().skip(1));
        reader.script.doubts.extend(doubts);
    }
    if reader.script.segments.len() > SEGMENTS_MAX {
        reader.doubt("it has more parts than anybody would read");
    }
    reader.script
}

struct Reader<'a> {
    source: &'a str,
    script: Script,
    is_apart: bool,
    depth: usize,
    /// Here-documents that are filled in, as commands.
    bodies: Vec<String>,
}

impl<'a> Reader<'a> {
    fn text(&self, node: Node<'_>) -> &'a str {
        &self.source[node.byte_range()]
    }

    fn doubt(&mut self, why: &str) {
        self.script.doubts.insert(why.to_owned());
    }

    /// Finds the commands below `node`.
    fn visit(&mut self, node: Node<'_>) {
        if self.depth >= DEPTH_MAX {
            return self.doubt("it is nested too deeply to be judged");
        }
        self.depth += 1;
        match node.kind() {
            "command" => self.command(node, &[]),
            "redirected_statement" => self.redirected(node),
            "pipeline" => self.pipeline(node),
            "subshell" => self.apart(node),
            "declaration_command" | "unset_command" => self.declaration(node),
            "for_statement" => {
                let mut segment = self.segment(node);
                let variable = node.child_by_field_name("variable");
                segment
                    .assigns
                    .extend(variable.map(|v| self.text(v).to_owned()));
                self.script.segments.push(segment);
                self.children(node);
            }
            "test_command" => {
                self.arithmetic(node);
                self.children(node);
            }
            "variable_assignment" | "variable_assignments" => self.declaration(node),
            "function_definition" => {
                self.doubt("it defines a function, which may take the place of a program");
                self.children(node);
            }
            "command_substitution" => {
                self.doubt("it puts the output of a command into another command");
                self.apart(node);
            }
            "process_substitution" => {
                self.doubt("it hands the output of a command to another as a file");
                self.apart(node);
            }
            "expansion" => {
                self.expansion(node);
                self.children(node);
            }
            "ansi_c_string" => self.doubt("it spells out characters by number"),
            // What they contain is looked through; they do nothing by themselves.
            "program"
            | "list"
            | "compound_statement"
            | "negated_command"
            | "if_statement"
            | "elif_clause"
            | "else_clause"
            | "while_statement"
            | "do_group"
            | "case_statement"
            | "case_item"
            | "c_style_for_statement"
            | "unary_expression"
            | "binary_expression"
            | "parenthesized_expression"
            | "ternary_expression"
            | "postfix_expression"
            | "string"
            | "translated_string"
            | "concatenation"
            | "arithmetic_expansion"
            | "heredoc_body"
            | "heredoc_redirect"
            | "herestring_redirect"
            | "file_redirect"
            | "array"
            | "subscript"
            | "ERROR" => self.children(node),
            "word"
            | "number"
            | "raw_string"
            | "string_content"
            | "simple_expansion"
            | "variable_name"
            | "special_variable_name"
            | "test_operator"
            | "regex"
            | "extglob_pattern"
            | "brace_expression"
            | "comment"
            | "file_descriptor"
            | "heredoc_start"
            | "heredoc_end"
            | "heredoc_content"
            | "command_name" => {}
            kind if node.is_named() => {
                self.doubt(&format!("it uses a {kind}, which is not judged"))
            }
            _ => {}
        }
        self.depth -= 1;
    }

    fn children(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            self.visit(child);
        }
    }

    /// What runs in a shell of its own.
    fn apart(&mut self, node: Node<'_>) {
        let outer = std::mem::replace(&mut self.is_apart, true);
        self.children(node);
        self.is_apart = outer;
    }

    fn pipeline(&mut self, node: Node<'_>) {
        let outer = std::mem::replace(&mut self.is_apart, true);
        // What follows a here-document on its line begins with the bar.
        let is_continued = node
            .child(0)
            .is_some_and(|child| child.kind().starts_with('|'));
        let before = self.script.segments.len().checked_sub(1);
        let mut fed_by = before.filter(|_| is_continued);
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            let first = self.script.segments.len();
            self.visit(child);
            if let Some(segment) = self.script.segments.get_mut(first) {
                segment.fed_by = fed_by;
                fed_by = fed_by.or(Some(first));
            }
        }
        self.is_apart = outer;
    }

    fn redirected(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        let redirects: Vec<Node<'_>> = node
            .children_by_field_name("redirect", &mut cursor)
            .collect();
        match node.child_by_field_name("body") {
            Some(body) if body.kind() == "command" => self.command(body, &redirects),
            body => {
                if let Some(body) = body {
                    self.visit(body);
                }
                let (mut segment, mut inner) = (self.segment(node), Vec::new());
                for redirect in redirects {
                    self.redirect(redirect, &mut segment, &mut inner);
                }
                self.push(segment, inner);
            }
        }
    }

    /// Adds a command, and then those that hide in its words.
    fn push(&mut self, segment: Segment, inner: Vec<Node<'_>>) {
        self.script.segments.push(segment);
        inner.into_iter().for_each(|node| self.visit(node));
    }

    fn segment(&self, node: Node<'_>) -> Segment {
        Segment {
            text: self.text(node).to_owned(),
            is_apart: self.is_apart,
            ..Segment::default()
        }
    }

    fn command<'t>(&mut self, node: Node<'t>, redirects: &[Node<'t>]) {
        let mut segment = self.segment(node);
        let mut inner = Vec::new();
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            match child.kind() {
                "command_name" => {
                    let name = child.named_child(0).unwrap_or(child);
                    segment.words.push(Word::read(self.source, name));
                    inner.push(name);
                }
                "variable_assignment" => self.assign(child, &mut segment, &mut inner),
                "file_redirect" | "heredoc_redirect" | "herestring_redirect" => {
                    self.redirect(child, &mut segment, &mut inner);
                }
                "comment" => {}
                _ => {
                    segment.words.push(Word::read(self.source, child));
                    inner.push(child);
                }
            }
        }
        for redirect in redirects {
            self.redirect(*redirect, &mut segment, &mut inner);
        }
        self.push(segment, inner);
    }

    /// `export A=1`, `unset A`, or an assignment by itself.
    fn declaration(&mut self, node: Node<'_>) {
        self.arithmetic(node);
        let (mut segment, mut inner) = (self.segment(node), Vec::new());
        if node.kind() == "variable_assignment" {
            self.assign(node, &mut segment, &mut inner);
            return self.push(segment, inner);
        }
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            match child.kind() {
                "variable_assignment" => self.assign(child, &mut segment, &mut inner),
                "variable_name" => segment.assigns.push(self.text(child).to_owned()),
                _ => {
                    let option = self.text(child);
                    if option.starts_with(['-', '+']) && option.contains('n') {
                        self.doubt("it gives a variable a second name, or takes one away");
                    }
                    inner.push(child);
                }
            }
        }
        self.push(segment, inner);
    }

    /// A shell runs what stands in the index of an array, even between quotes, where
    /// it expects a number or a name.
    fn arithmetic(&mut self, node: Node<'_>) {
        let text = self.text(node);
        if text.contains('[') && (text.contains("$(") || text.contains('`')) {
            self.doubt("it may run what stands in the index of an array");
        }
    }

    fn assign<'t>(&self, node: Node<'t>, segment: &mut Segment, inner: &mut Vec<Node<'t>>) {
        if let Some(name) = node.child_by_field_name("name") {
            let name = self.text(name);
            let name = name.split('[').next().unwrap_or(name);
            segment.assigns.push(name.to_owned());
        }
        let mut cursor = node.walk();
        inner.extend(node.named_children(&mut cursor));
    }

    /// A here-document is filled in like a text between double quotes, unless a part
    /// of its mark is quoted. The grammar does not find all that is filled in.
    fn body(&mut self, redirect: Node<'_>, body: Node<'_>) {
        let mut cursor = redirect.walk();
        let mark = redirect
            .named_children(&mut cursor)
            .find(|child| child.kind() == "heredoc_start");
        let is_quoted = mark.is_some_and(|mark| self.text(mark).contains(['\'', '"', '\\']));
        let text = self.text(body);
        if !is_quoted && text.contains(['$', '`']) {
            self.bodies
                .push(format!(": \"{}\"", text.replace('"', "\\\"")));
        }
    }

    fn redirect<'t>(&mut self, node: Node<'t>, segment: &mut Segment, inner: &mut Vec<Node<'t>>) {
        let operator = |op: &str| {
            let mut cursor = node.walk();
            node.children(&mut cursor).any(|c| c.kind() == op)
        };
        if node.kind() != "file_redirect" {
            // A here-document or here-string: text for its input.
            segment.redirects.push(Redirect::Text);
            let mut cursor = node.walk();
            for child in node.named_children(&mut cursor) {
                match child.kind() {
                    "file_redirect" => self.redirect(child, segment, inner),
                    "heredoc_body" => self.body(node, child),
                    _ => inner.push(child),
                }
            }
            return;
        }
        let Some(target) = node.child_by_field_name("destination") else {
            return;
        };
        let is_number = |c: char| c.is_ascii_digit() || c == '-';
        let is_descriptor = operator(">&") || operator("<&");
        if !is_descriptor || !self.text(target).chars().all(is_number) {
            let reads = operator("<") || operator("<&") || operator("<&-");
            let word = Word::read(self.source, target);
            // The grammar does not know `<>`, which opens for both.
            let head = &self.source[node.start_byte()..target.start_byte()];
            if reads && head.contains('>') {
                segment.redirects.push(Redirect::To(word.clone()));
            }
            segment.redirects.push(match reads {
                true => Redirect::From(word),
                false => Redirect::To(word),
            });
            inner.push(target);
        }
    }

    /// `${x}` is a value; `${x@P}` and `${!x}` run or read something else by it.
    fn expansion(&mut self, node: Node<'_>) {
        let text = self.text(node);
        let inside = text.trim_start_matches("${").trim_end_matches('}');
        if inside.starts_with('!') || inside.contains('@') {
            self.doubt("it expands a variable in a way that can run something");
        }
        let name = inside.split([':', '=']).next().unwrap_or_default();
        if inside[name.len()..]
            .trim_start_matches(':')
            .starts_with('=')
        {
            let mut segment = self.segment(node);
            segment.assigns.push(name.to_owned());
            self.script.segments.push(segment);
        }
    }
}

#[cfg(test)]
mod tests;

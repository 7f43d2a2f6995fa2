//! One walk over a syntax tree, for every language.
//!
//! A symbol's text is its own: what belongs to the symbols in it is left to them, so
//! that a class is found by what it is and a method by what it does. Calls are found by
//! name, without types; edges that come of them are marked as approximate.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use tree_sitter::{Node, Parser, TreeCursor};

use super::outline::{Mention, Outline, Symbol};
use super::tables::Table;
use crate::kind::{EdgeType, NodeType};
use crate::words::identifiers;

/// The most text that is kept of one symbol.
const CONTENT_BYTES_MAX: usize = 16 * 1024;
/// The most that is kept of what comes before a body.
const SIGNATURE_CHARS_MAX: usize = 400;
/// The deepest a tree is followed: beyond it lies data, or an attack on the stack.
const DEPTH_MAX: usize = 400;

thread_local! {
    static PARSERS: RefCell<HashMap<(&'static str, &'static str), Parser>> = RefCell::default();
}

/// The outline of a source file.
pub(super) fn outline(table: &'static Table, text: &str) -> Outline {
    PARSERS.with_borrow_mut(|parsers| {
        let key = (table.name, table.extensions[0]);
        let parser = parsers.entry(key).or_insert_with(|| {
            let mut parser = Parser::new();
            parser
                .set_language(&(table.grammar)())
                .expect("the grammars are of versions that the parser reads");
            parser
        });
        let Some(tree) = parser.parse(text, None) else {
            return super::documents::plain(text, NodeType::Passage);
        };
        let mut walk = Walk {
            table,
            text,
            symbols: Vec::new(),
            ranges: Vec::new(),
            file_mentions: BTreeSet::new(),
            mentions: Vec::new(),
        };
        walk.visit(&mut tree.walk(), None, "", 0);
        walk.finish(tree.root_node())
    })
}

struct Walk<'a> {
    table: &'static Table,
    text: &'a str,
    symbols: Vec<Symbol>,
    /// What each symbol covers, with its comment.
    ranges: Vec<(usize, usize)>,
    mentions: Vec<BTreeSet<Mention>>,
    file_mentions: BTreeSet<Mention>,
}

impl<'a> Walk<'a> {
    fn visit(
        &mut self,
        cursor: &mut TreeCursor<'_>,
        owner: Option<usize>,
        scope: &str,
        depth: usize,
    ) {
        let node = cursor.node();
        let kind = node.kind();
        let (mut owner, mut scope) = (owner, scope.to_owned());
        if self.table.imports.contains(&kind) {
            let names = self.imported(node);
            self.file_mentions.extend(names);
            return;
        }
        if let Some((_, field)) = self.table.calls.iter().find(|(call, _)| *call == kind)
            && let Some(called) = node.child_by_field_name(field)
            && let Some(name) = identifiers(self.of(called)).last()
        {
            self.mention(owner, Mention::new(EdgeType::Calls, name));
        }
        if let Some((_, field)) = self.table.scopes.iter().find(|(s, _)| *s == kind)
            && let Some(named) = node.child_by_field_name(field)
        {
            scope = join(&scope, base_name(self.of(named)));
            self.implemented(node, named);
        } else if let Some((node_type, name)) = self.symbol(node) {
            let (node_type, name) = (self.refined(node, node_type, owner, &scope), name);
            // What is inside of a function is the function's own affair.
            let is_local = owner.is_some_and(|owner| {
                matches!(
                    self.symbols[owner].node_type,
                    NodeType::Function | NodeType::Method
                )
            });
            if !is_local {
                let holder = self.receiver(node).unwrap_or_else(|| scope.clone());
                let qualified = join(&holder, &name);
                owner = Some(self.add(node, node_type, name, qualified.clone(), owner));
                scope = qualified;
            }
        }
        if depth < DEPTH_MAX && cursor.goto_first_child() {
            loop {
                self.visit(cursor, owner, &scope, depth + 1);
                if !cursor.goto_next_sibling() {
                    break;
                }
            }
            cursor.goto_parent();
        }
    }

    fn of(&self, node: Node<'_>) -> &'a str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    fn mention(&mut self, owner: Option<usize>, mention: Mention) {
        match owner {
            Some(owner) => drop(self.mentions[owner].insert(mention)),
            None => drop(self.file_mentions.insert(mention)),
        }
    }

    /// What a node defines, and its name.
    fn symbol(&self, node: Node<'_>) -> Option<(NodeType, String)> {
        let (_, node_type) = self
            .table
            .symbols
            .iter()
            .find(|(kind, _)| *kind == node.kind())?;
        let named = match (self.table.name, node.kind()) {
            ("c", "function_definition") => declared(node.child_by_field_name("declarator")?)?,
            ("c", "type_definition") => declared(node.child_by_field_name("declarator")?)?,
            ("c", "struct_specifier" | "union_specifier" | "enum_specifier") => {
                node.child_by_field_name("body")?;
                node.child_by_field_name("name")?
            }
            ("javascript" | "typescript", "variable_declarator") => {
                let value = node.child_by_field_name("value")?;
                let is_function = matches!(
                    value.kind(),
                    "arrow_function" | "function_expression" | "class"
                );
                let is_top = node
                    .parent()?
                    .parent()
                    .is_some_and(|above| matches!(above.kind(), "program" | "export_statement"));
                if !is_function && !is_top {
                    return None;
                }
                node.child_by_field_name("name")?
            }
            _ => node.child_by_field_name("name")?,
        };
        let name = self.of(named).trim();
        let is_name = !name.is_empty() && name.len() < 200 && !name.contains(char::is_whitespace);
        is_name.then(|| (*node_type, name.to_owned()))
    }

    /// What a symbol is, more closely than its node says.
    fn refined(
        &self,
        node: Node<'_>,
        plain: NodeType,
        owner: Option<usize>,
        scope: &str,
    ) -> NodeType {
        let is_member = !scope.is_empty()
            && owner.is_none_or(|owner| self.symbols[owner].node_type != NodeType::Module);
        match (self.table.name, plain) {
            ("rust" | "python", NodeType::Function) if is_member => NodeType::Method,
            ("go", NodeType::TypeAlias) => match node.child_by_field_name("type").map(|t| t.kind())
            {
                Some("struct_type") => NodeType::Struct,
                Some("interface_type") => NodeType::Interface,
                _ => plain,
            },
            ("javascript" | "typescript", NodeType::Constant) => {
                match node.child_by_field_name("value").map(|value| value.kind()) {
                    Some("arrow_function" | "function_expression") => NodeType::Function,
                    Some("class") => NodeType::Class,
                    _ => plain,
                }
            }
            _ => plain,
        }
    }

    /// The type that a method written outside of it belongs to.
    fn receiver(&self, node: Node<'_>) -> Option<String> {
        let receiver = node.child_by_field_name("receiver")?;
        let name = identifiers(self.of(receiver)).last()?;
        // `(s *Stack[T])`: the parameter of a type is not its name.
        let text = self.of(receiver).split('[').next().unwrap_or_default();
        Some(identifiers(text).last().unwrap_or(name).to_owned())
    }

    /// Notes which trait an `impl` is of.
    fn implemented(&mut self, node: Node<'_>, named: Node<'_>) {
        let Some(of) = node.child_by_field_name("trait") else {
            return;
        };
        let (name, of) = (base_name(self.of(named)), base_name(self.of(of)));
        let mention = Mention::new(EdgeType::Implements, of);
        let owner = self.symbols.iter().position(|symbol| symbol.name == name);
        self.mention(owner, mention);
    }

    fn add(
        &mut self,
        node: Node<'_>,
        node_type: NodeType,
        name: String,
        qualified: String,
        parent: Option<usize>,
    ) -> usize {
        let outer = self.outer(node);
        let (doc, begin) = self.comment_before(outer);
        let doc = match self.docstring(node) {
            Some(docstring) => docstring,
            None => doc,
        };
        let body = node.child_by_field_name("body");
        let signature = match body {
            Some(body) => self.text.get(outer.start_byte()..body.start_byte()),
            None => self.of(outer).lines().next(),
        };
        let signature = signature.unwrap_or_default();
        let signature: Vec<&str> = signature.split_whitespace().collect();
        let signature = signature.join(" ");
        let signature = signature.trim_end_matches(['{', ':', '=']).trim_end();
        self.symbols.push(Symbol {
            node_type,
            name,
            qualified,
            lines: (line(node.start_position()), line(node.end_position())),
            signature: crate::node::cut(signature, SIGNATURE_CHARS_MAX).to_owned(),
            doc,
            content: String::new(),
            mentions: Vec::new(),
            parent,
        });
        self.ranges.push((begin, outer.end_byte()));
        self.mentions.push(self.bases(node));
        self.symbols.len() - 1
    }

    /// The types that a type builds upon.
    fn bases(&self, node: Node<'_>) -> BTreeSet<Mention> {
        let mut found = BTreeSet::new();
        let mut cursor = node.walk();
        let fields = self
            .table
            .bases
            .iter()
            .filter_map(|base| node.child_by_field_name(base));
        let kinds = node
            .children(&mut cursor)
            .filter(|child| self.table.bases.contains(&child.kind()));
        for base in fields.chain(kinds) {
            let words = identifiers(self.of(base))
                .filter(|word| !matches!(*word, "extends" | "implements" | "metaclass"));
            found.extend(words.map(|word| Mention::new(EdgeType::Extends, word)));
        }
        found
    }

    /// What stands in a symbol's place among its neighbours.
    fn outer<'t>(&self, node: Node<'t>) -> Node<'t> {
        let mut outer = node;
        while let Some(parent) = outer.parent()
            && self.table.wrappers.contains(&parent.kind())
        {
            outer = parent;
        }
        outer
    }

    /// The comment right before a node, and where it begins.
    fn comment_before(&self, node: Node<'_>) -> (String, usize) {
        let mut lines: Vec<&str> = Vec::new();
        let mut begin = node.start_byte();
        let mut row = node.start_position().row;
        let mut before = node.prev_sibling();
        while let Some(one) = before {
            let text = self.of(one);
            let is_comment = self.table.comments.contains(&one.kind());
            // The end of a line comment may be the beginning of the next line.
            let end = one.end_position();
            let end_row = end.row - usize::from(end.column == 0 && end.row > 0);
            if end_row + 1 < row || !(is_comment || self.table.between.contains(&one.kind())) {
                break;
            }
            // `//!` speaks of what it is in, not of what follows.
            if text.starts_with("//!") || text.starts_with("/*!") {
                break;
            }
            if is_comment {
                lines.push(text);
            }
            begin = one.start_byte();
            row = one.start_position().row;
            before = one.prev_sibling();
        }
        lines.reverse();
        (plain_comment(&lines.join("\n")), begin)
    }

    /// The string at the beginning of a body that describes it.
    fn docstring(&self, node: Node<'_>) -> Option<String> {
        if self.table.name != "python" {
            return None;
        }
        let body = node.child_by_field_name("body")?;
        let string = first_string(body)?;
        Some(plain_string(self.of(string)))
    }

    /// What an import names: symbols, and the modules or files they come from.
    fn imported(&self, node: Node<'_>) -> Vec<Mention> {
        let text = self.of(node);
        let import = |name: &str| Mention::new(EdgeType::Imports, name);
        let quoted = text.split(['"', '\'']).skip(1).step_by(2);
        let mut found: Vec<Mention> = Vec::new();
        match self.table.name {
            "javascript" | "typescript" => {
                let names = text.split(['"', '\'']).next().unwrap_or_default();
                let names = identifiers(names)
                    .filter(|word| !matches!(*word, "import" | "from" | "as" | "type"));
                found.extend(names.map(import));
                found.extend(quoted.map(|path| import(&module_path(path))));
            }
            "go" => found.extend(quoted.map(|path| import(&module_path(path)))),
            "c" => {
                let name = text.trim_start_matches("#include").trim();
                found.push(import(&module_path(name.trim_matches(['"', '<', '>']))));
            }
            "python" => {
                let modules = text.split_whitespace().nth(1).unwrap_or_default();
                found.push(import(&module_path(
                    &modules.trim_start_matches('.').replace('.', "/"),
                )));
                let names = text.split_once(" import ").map_or("", |(_, names)| names);
                found.extend(identifiers(names).filter(|word| *word != "as").map(import));
            }
            _ => {
                let skipped = [
                    "use", "pub", "crate", "self", "super", "as", "import", "static",
                ];
                let names = identifiers(text).filter(|word| !skipped.contains(word));
                found.extend(names.map(import));
            }
        }
        found.retain(|mention| !mention.name.is_empty());
        found
    }

    fn finish(mut self, root: Node<'_>) -> Outline {
        let mut children: Vec<Vec<(usize, usize)>> = vec![Vec::new(); self.symbols.len()];
        let mut tops = Vec::new();
        for (at, symbol) in self.symbols.iter().enumerate() {
            match symbol.parent {
                Some(parent) => children[parent].push(self.ranges[at]),
                None => tops.push(self.ranges[at]),
            }
        }
        for (at, inner) in children.iter().enumerate() {
            self.symbols[at].content = without(self.text, self.ranges[at], inner);
            self.symbols[at].mentions =
                std::mem::take(&mut self.mentions[at]).into_iter().collect();
        }
        let whole = (0, self.text.len());
        Outline {
            doc: self.file_doc(root),
            rest: without(self.text, whole, &tops),
            symbols: self.symbols,
            mentions: self.file_mentions.into_iter().collect(),
            line_count: self.text.lines().count() as u32,
        }
    }

    /// What a file says of itself before anything else.
    fn file_doc(&self, root: Node<'_>) -> String {
        if self.table.name == "python" {
            return first_string(root)
                .map(|s| plain_string(self.of(s)))
                .unwrap_or_default();
        }
        let mut cursor = root.walk();
        let mut lines = Vec::new();
        let mut last_row = None;
        for child in root.children(&mut cursor) {
            let text = self.of(child).trim_end();
            let row = child.start_position().row;
            let is_apart = last_row.is_some_and(|last| row > last + 1);
            if is_apart || !self.table.comments.contains(&child.kind()) {
                // Right before a symbol, it speaks of the symbol.
                let speaks_of_file = is_apart
                    || child.kind().contains("package")
                    || lines
                        .first()
                        .is_some_and(|first: &&str| first.starts_with("//!"));
                if !speaks_of_file {
                    lines.clear();
                }
                break;
            }
            // A line comment may end where the next line begins.
            last_row = Some(row + text.matches('\n').count());
            lines.push(text);
        }
        plain_comment(&lines.join("\n"))
    }
}

/// The text of a range without some ranges in it.
fn without(text: &str, (begin, end): (usize, usize), inner: &[(usize, usize)]) -> String {
    let mut own = String::new();
    let mut at = begin;
    for (from, to) in inner {
        if *from >= at {
            own.push_str(text.get(at..*from).unwrap_or_default());
        }
        at = at.max(*to);
        if own.len() > CONTENT_BYTES_MAX {
            break;
        }
    }
    if at < end && own.len() <= CONTENT_BYTES_MAX {
        own.push_str(text.get(at..end).unwrap_or_default());
    }
    let cut = (0..=CONTENT_BYTES_MAX.min(own.len()))
        .rev()
        .find(|at| own.is_char_boundary(*at));
    own.truncate(cut.unwrap_or(0));
    own.trim().to_owned()
}

/// The name within a declarator of C: below pointers, arrays and parameters.
fn declared(node: Node<'_>) -> Option<Node<'_>> {
    match node.kind() {
        "identifier" | "type_identifier" | "field_identifier" => Some(node),
        _ => declared(node.child_by_field_name("declarator")?),
    }
}

fn first_string(body: Node<'_>) -> Option<Node<'_>> {
    let mut cursor = body.walk();
    let first = body
        .named_children(&mut cursor)
        .find(|child| child.kind() != "comment")?;
    let string = match first.kind() {
        "expression_statement" => first.named_child(0)?,
        _ => first,
    };
    (string.kind() == "string").then_some(string)
}

fn plain_string(text: &str) -> String {
    let text = text.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    plain_lines(text.trim_matches(['"', '\'']))
}

/// A comment without its marks.
fn plain_comment(text: &str) -> String {
    let line = |line: &str| {
        let line = line.trim().trim_end_matches("*/");
        let line = line.trim_start_matches(['/', '!', '*', '#']);
        line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned()
    };
    let lines: Vec<String> = text.lines().map(line).collect();
    plain_lines(&lines.join("\n"))
}

fn plain_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.join("\n").trim().to_owned()
}

/// A type's name without its path and parameters.
fn base_name(text: &str) -> &str {
    let text = text.split(['<', '[']).next().unwrap_or_default();
    identifiers(text).last().unwrap_or_default()
}

/// A module's path without an extension and without the way to it.
fn module_path(path: &str) -> String {
    let path = path.trim_start_matches(['.', '/', '@']);
    let (folder, name) = path.rsplit_once('/').map_or(("", path), |(f, n)| (f, n));
    let stem = name.split('.').next().unwrap_or_default();
    match folder {
        "" => stem.to_owned(),
        folder => format!("{folder}/{stem}"),
    }
}

fn join(scope: &str, name: &str) -> String {
    match scope {
        "" => name.to_owned(),
        scope => format!("{scope}.{name}"),
    }
}

fn line(point: tree_sitter::Point) -> u32 {
    point.row as u32 + 1
}

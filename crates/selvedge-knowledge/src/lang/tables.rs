//! The languages: for each, which nodes of its syntax tree are what.

use tree_sitter::Language as Grammar;

use crate::kind::NodeType as T;

/// What the walk must know of a language.
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// The extensions of its files.
    pub extensions: &'static [&'static str],
    /// Its grammar.
    pub grammar: fn() -> Grammar,
    /// Nodes that define something, and what. The name is their field `name`, unless the
    /// walk knows better.
    pub symbols: &'static [(&'static str, T)],
    /// Nodes that only lend their name to what is in them: their field with the name.
    pub scopes: &'static [(&'static str, &'static str)],
    /// Nodes that call something, and the field that says what.
    pub calls: &'static [(&'static str, &'static str)],
    /// Nodes that import something.
    pub imports: &'static [&'static str],
    /// Nodes that are comments.
    pub comments: &'static [&'static str],
    /// Nodes that may stand between a symbol and its comment.
    pub between: &'static [&'static str],
    /// Nodes that wrap a symbol and stand in its place among its neighbours.
    pub wrappers: &'static [&'static str],
    /// Fields with what a type builds upon, and nodes that hold them.
    pub bases: &'static [&'static str],
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Table {}

/// All languages.
pub static ALL: &[Table] = &[RUST, PYTHON, JAVASCRIPT, TYPESCRIPT, TSX, GO, JAVA, C];

const RUST: Table = Table {
    name: "rust",
    extensions: &["rs"],
    grammar: || tree_sitter_rust::LANGUAGE.into(),
    symbols: &[
        ("function_item", T::Function),
        ("function_signature_item", T::Function),
        ("struct_item", T::Struct),
        ("union_item", T::Struct),
        ("enum_item", T::Enum),
        ("trait_item", T::Trait),
        ("type_item", T::TypeAlias),
        ("const_item", T::Constant),
        ("static_item", T::Constant),
        ("mod_item", T::Module),
        ("macro_definition", T::Macro),
    ],
    scopes: &[("impl_item", "type")],
    calls: &[
        ("call_expression", "function"),
        ("macro_invocation", "macro"),
        ("struct_expression", "name"),
    ],
    imports: &["use_declaration"],
    comments: &["line_comment", "block_comment"],
    between: &["attribute_item"],
    wrappers: &[],
    bases: &["trait"],
};

const PYTHON: Table = Table {
    name: "python",
    extensions: &["py", "pyi"],
    grammar: || tree_sitter_python::LANGUAGE.into(),
    symbols: &[
        ("function_definition", T::Function),
        ("class_definition", T::Class),
    ],
    scopes: &[],
    calls: &[("call", "function")],
    imports: &["import_statement", "import_from_statement"],
    comments: &["comment"],
    between: &["decorator"],
    wrappers: &["decorated_definition"],
    bases: &["superclasses"],
};

const JAVASCRIPT: Table = Table {
    name: "javascript",
    extensions: &["js", "jsx", "mjs", "cjs"],
    grammar: || tree_sitter_javascript::LANGUAGE.into(),
    symbols: JS_SYMBOLS,
    scopes: &[],
    calls: JS_CALLS,
    imports: &["import_statement"],
    comments: &["comment"],
    between: &["decorator"],
    wrappers: JS_WRAPPERS,
    bases: &["class_heritage"],
};

const TYPESCRIPT: Table = Table {
    name: "typescript",
    extensions: &["ts", "mts", "cts"],
    grammar: || tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
    symbols: JS_SYMBOLS,
    scopes: &[],
    calls: JS_CALLS,
    imports: &["import_statement"],
    comments: &["comment"],
    between: &["decorator"],
    wrappers: JS_WRAPPERS,
    bases: &["class_heritage", "extends_type_clause"],
};

const TSX: Table = Table {
    name: "typescript",
    extensions: &["tsx"],
    grammar: || tree_sitter_typescript::LANGUAGE_TSX.into(),
    ..TYPESCRIPT
};

const JS_SYMBOLS: &[(&str, T)] = &[
    ("function_declaration", T::Function),
    ("generator_function_declaration", T::Function),
    ("function_signature", T::Function),
    ("class_declaration", T::Class),
    ("abstract_class_declaration", T::Class),
    ("method_definition", T::Method),
    ("method_signature", T::Method),
    ("abstract_method_signature", T::Method),
    ("interface_declaration", T::Interface),
    ("type_alias_declaration", T::TypeAlias),
    ("enum_declaration", T::Enum),
    ("internal_module", T::Module),
    ("variable_declarator", T::Constant),
];
const JS_CALLS: &[(&str, &str)] = &[
    ("call_expression", "function"),
    ("new_expression", "constructor"),
];
const JS_WRAPPERS: &[&str] = &[
    "export_statement",
    "lexical_declaration",
    "variable_declaration",
    "ambient_declaration",
];

const GO: Table = Table {
    name: "go",
    extensions: &["go"],
    grammar: || tree_sitter_go::LANGUAGE.into(),
    symbols: &[
        ("function_declaration", T::Function),
        ("method_declaration", T::Method),
        ("type_spec", T::TypeAlias),
        ("type_alias", T::TypeAlias),
        ("const_spec", T::Constant),
        ("method_elem", T::Method),
    ],
    scopes: &[],
    calls: &[
        ("call_expression", "function"),
        ("composite_literal", "type"),
    ],
    imports: &["import_declaration"],
    comments: &["comment"],
    between: &[],
    wrappers: &["type_declaration", "const_declaration"],
    bases: &[],
};

const JAVA: Table = Table {
    name: "java",
    extensions: &["java"],
    grammar: || tree_sitter_java::LANGUAGE.into(),
    symbols: &[
        ("class_declaration", T::Class),
        ("record_declaration", T::Class),
        ("interface_declaration", T::Interface),
        ("annotation_type_declaration", T::Interface),
        ("enum_declaration", T::Enum),
        ("method_declaration", T::Method),
        ("constructor_declaration", T::Method),
    ],
    scopes: &[],
    calls: &[
        ("method_invocation", "name"),
        ("object_creation_expression", "type"),
    ],
    imports: &["import_declaration"],
    comments: &["line_comment", "block_comment"],
    between: &[],
    wrappers: &[],
    bases: &["superclass", "interfaces"],
};

const C: Table = Table {
    name: "c",
    extensions: &["c", "h"],
    grammar: || tree_sitter_c::LANGUAGE.into(),
    symbols: &[
        ("function_definition", T::Function),
        ("struct_specifier", T::Struct),
        ("union_specifier", T::Struct),
        ("enum_specifier", T::Enum),
        ("type_definition", T::TypeAlias),
        ("preproc_function_def", T::Macro),
        ("preproc_def", T::Constant),
    ],
    scopes: &[],
    calls: &[("call_expression", "function")],
    imports: &["preproc_include"],
    comments: &["comment"],
    between: &[],
    wrappers: &["declaration"],
    bases: &[],
};

//! What is found in a file of each language.

use selvedge_knowledge::{EdgeType, Index, NodeType, Towards};

use crate::world::World;

/// The symbols of a file: `type qualified line: doc`.
fn symbols(path: &str, text: &str) -> (Vec<String>, Index, World) {
    let world = World::new();
    world.write(path, text);
    let (index, _) = world.index();
    let found = index.in_file(path, &[], 100).unwrap();
    let line = |node: &selvedge_knowledge::Node| {
        let qualified = node.id.rsplit_once('#').map_or("-", |(_, name)| name);
        let line = node.lines.unwrap().0;
        let doc = node.doc.lines().next().unwrap_or_default();
        format!("{} {qualified} {line}: {doc}", node.node_type.name())
    };
    let found = found.iter().filter(|node| node.node_type != NodeType::File);
    (found.map(line).collect(), index, world)
}

fn check(path: &str, text: &str, expected: &[&str], calls: &[(&str, &str)]) {
    let (found, index, _world) = symbols(path, text);
    assert_eq!(found, expected, "{path}");
    for (caller, called) in calls {
        let id = format!("code:{path}#{caller}");
        let edges = index
            .follow(&id, &[EdgeType::Calls], Towards::Target, 1, 9)
            .unwrap();
        let names: Vec<&str> = edges.iter().map(|edge| edge.node.name.as_str()).collect();
        assert!(names.contains(called), "{caller} calls {names:?}");
    }
}

#[test]
fn rust() {
    check(
        "a.rs",
        "/// A pool.\n#[derive(Debug)]\npub struct Pool<T> {\n    size: T,\n}\n\n\
         impl<T> Pool<T> {\n    /// Grows it.\n    pub fn grow(&mut self) { helper() }\n}\n\n\
         trait Shape { fn area(&self); }\nimpl Shape for Pool<u8> { fn area(&self) {} }\n\
         enum Kind { A }\nconst MAX: u8 = 1;\nfn helper() { fn inner() {} }\n\
         macro_rules! twice { () => {} }\nmod inner { pub fn deep() {} }\n",
        &[
            "struct Pool 3: A pool.",
            "method Pool.grow 9: Grows it.",
            "trait Shape 12: ",
            "method Shape.area 12: ",
            "method Pool.area 13: ",
            "enum Kind 14: ",
            "constant MAX 15: ",
            "function helper 16: ",
            "macro twice 17: ",
            "module inner 18: ",
            "function inner.deep 18: ",
        ],
        &[("Pool.grow", "helper")],
    );
}

#[test]
fn python() {
    check(
        "a.py",
        "\"\"\"About.\"\"\"\n\nclass Dog(Animal):\n    \"\"\"Barks.\"\"\"\n\n    @property\n    \
         def age(self):\n        \"\"\"In years.\"\"\"\n        return now()\n\n\
         # Tells the time.\ndef now():\n    return 1\n",
        &[
            "class Dog 3: Barks.",
            "method Dog.age 7: In years.",
            "function now 12: Tells the time.",
        ],
        &[("Dog.age", "now")],
    );
}

#[test]
fn javascript() {
    check(
        "a.js",
        "/** Adds. */\nexport function add(a, b) { return a + b }\n\
         export const twice = (a) => add(a, a)\nconst LIMIT = 3\n\
         class Cart extends Base {\n  /** Empties it. */\n  clear() { twice(1) }\n}\n",
        &[
            "function add 2: Adds.",
            "function twice 3: ",
            "constant LIMIT 4: ",
            "class Cart 5: ",
            "method Cart.clear 7: Empties it.",
        ],
        &[("twice", "add"), ("Cart.clear", "twice")],
    );
}

#[test]
fn typescript() {
    check(
        "a.ts",
        "// A shape.\ninterface Shape { area(): number }\ntype Name = string\n\
         enum Kind { A }\nabstract class Box implements Shape { area() { return make() } }\n\
         export function make(): number { return 1 }\n",
        &[
            "interface Shape 2: A shape.",
            "method Shape.area 2: ",
            "type_alias Name 3: ",
            "enum Kind 4: ",
            "class Box 5: ",
            "method Box.area 5: ",
            "function make 6: ",
        ],
        &[("Box.area", "make")],
    );
}

#[test]
fn go() {
    check(
        "a.go",
        "package a\n\n// Stack of things.\ntype Stack[T any] struct { items []T }\n\n\
         type Named interface { Name() string }\n\n// Push adds one.\n\
         func (s *Stack[T]) Push(item T) { check() }\n\nfunc check() {}\n",
        &[
            "struct Stack 4: Stack of things.",
            "interface Named 6: ",
            "method Named.Name 6: ",
            "method Stack.Push 9: Push adds one.",
            "function check 11: ",
        ],
        &[("Stack.Push", "check")],
    );
}

#[test]
fn java() {
    check(
        "A.java",
        "package a;\nimport java.util.List;\n/** Counts. */\npublic class Counter extends Base {\n  \
         /** One more. */\n  public int next() { return step(); }\n  int step() { return 1; }\n}\n\
         interface Shape { double area(); }\nenum Kind { A }\n",
        &[
            "class Counter 4: Counts.",
            "method Counter.next 6: One more.",
            "method Counter.step 7: ",
            "interface Shape 9: ",
            "method Shape.area 9: ",
            "enum Kind 10: ",
        ],
        &[("Counter.next", "step")],
    );
}

#[test]
fn c() {
    check(
        "a.c",
        "#include \"list.h\"\n#define LIMIT 10\n/* A point. */\nstruct point { int x; };\n\
         typedef struct point point_t;\n\n/* Moves it. */\nstatic int *move(struct point *p)\n{\n  \
         return check(p);\n}\nint check(struct point *p) { return 0; }\n",
        &[
            "constant LIMIT 2: ",
            "struct point 4: A point.",
            "type_alias point_t 5: ",
            "function move 8: Moves it.",
            "function check 12: ",
        ],
        &[("move", "check")],
    );
}

#[test]
fn documents_and_plain_text_are_found_by_their_parts() {
    let world = World::new();
    world.write(
        "guide.md",
        "# Guide\n\n## Deploying\n\nPush the image to the registry.\n",
    );
    world.write(
        "page.html",
        "<h1>Teapots</h1><p>Rinse them with warm water.</p>",
    );
    world.write("notes.txt", "Remember the milk and the honey.\n");
    world.write("settings.toml", "[server]\nport = 8080\n");
    let (index, _) = world.index();
    let first = |text: &str| crate::world::hits(&index, text).remove(0).node;
    assert_eq!(
        first("deploying an image").id,
        "doc:guide.md#Guide / Deploying"
    );
    assert_eq!(first("rinse teapots").path.as_deref(), Some("page.html"));
    assert_eq!(first("milk and honey").node_type, NodeType::Documentation);
    assert_eq!(first("server port").node_type, NodeType::Passage);
    assert_eq!(first("server port").path.as_deref(), Some("settings.toml"));
}

/// A PDF of one page with one line.
fn pdf(line: &str) -> Vec<u8> {
    let stream = format!("BT /F1 24 Tf 72 720 Td ({line}) Tj ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font \
         << /F1 5 0 R >> >> >>"
            .to_owned(),
        format!(
            "<< /Length {} >>\nstream\n{stream}\nendstream",
            stream.len()
        ),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_owned(),
    ];
    let mut file = "%PDF-1.4\n".to_owned();
    let mut places = Vec::new();
    for (number, object) in (1..).zip(&objects) {
        places.push(file.len());
        file.push_str(&format!("{number} 0 obj\n{object}\nendobj\n"));
    }
    let table = file.len();
    file.push_str("xref\n0 6\n0000000000 65535 f \n");
    for place in places {
        file.push_str(&format!("{place:010} 00000 n \n"));
    }
    file.push_str(&format!(
        "trailer << /Size 6 /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n"
    ));
    file.into_bytes()
}

#[test]
fn a_pdf_is_found_by_its_text_and_a_broken_one_is_left_out() {
    let world = World::new();
    let project = world.project();
    std::fs::write(
        project.join("manual.pdf"),
        pdf("Descale the boiler every spring"),
    )
    .unwrap();
    std::fs::write(project.join("broken.pdf"), "%PDF-1.4 and nothing else").unwrap();
    let (index, report) = world.index();
    let first = crate::world::hits(&index, "descaling a boiler")
        .remove(0)
        .node;
    assert_eq!(first.path.as_deref(), Some("manual.pdf"));
    let left_out: Vec<&str> = report.skipped.iter().map(|s| s.path.as_str()).collect();
    assert_eq!(left_out, ["broken.pdf"]);
}

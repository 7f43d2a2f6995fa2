//! The list that decides whether the index is what it is meant to be, one test each.
//! What is decided without I/O is tested beside its code.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use selvedge_knowledge::{
    Conflict, ConflictKind, Domain, EdgeType, Embedder, Filter, Hashed, Index, KnowledgeError,
    Model, Node, NodeType, Piece, Query, Summary, Time, Towards, Vector, Verification, freshness,
    trust,
};

use crate::world::{DAY, NOW, World, found, hits};

fn node(id: &str, node_type: NodeType, text: &str) -> Node {
    Node::new(id, node_type, id).with_content(text)
}

/// An embedder that fails when told to, and can be another than it was.
struct Fickle {
    name: &'static str,
    dimensions: usize,
    fails: AtomicBool,
}

impl Fickle {
    fn new(name: &'static str, dimensions: usize) -> Arc<Self> {
        Arc::new(Self {
            name,
            dimensions,
            fails: AtomicBool::new(false),
        })
    }
}

impl Embedder for Fickle {
    fn model(&self) -> Model {
        Model {
            name: self.name.into(),
            dimensions: self.dimensions,
        }
    }

    fn embed(&self, pieces: &[Piece<'_>]) -> Result<Vec<Vector>, String> {
        if self.fails.load(Ordering::Relaxed) {
            return Err("the server is away".into());
        }
        let vector = |piece: &Piece<'_>| {
            let mut values = vec![0.1; self.dimensions];
            let text = format!("{} {}", piece.name, piece.text);
            for byte in text.bytes() {
                values[usize::from(byte) % self.dimensions] += 1.0;
            }
            Vector::Dense(values)
        };
        Ok(pieces.iter().map(vector).collect())
    }
}

#[test]
fn a01_a_node_and_its_vector_are_there_together_or_not_at_all() {
    let world = World::new();
    let embedder = Fickle::new("fickle", 8);
    let index = world.open_with(embedder.clone());
    index
        .put(&[node("a", NodeType::Entry, "some text")])
        .unwrap();
    assert_eq!(index.stats().unwrap().vectors, 1);
    embedder.fails.store(true, Ordering::Relaxed);
    let failed = index.put(&[node("b", NodeType::Entry, "other text")]);
    assert!(matches!(failed, Err(KnowledgeError::Embedding { .. })));
    assert!(matches!(
        index.node("b"),
        Err(KnowledgeError::NoNode { .. })
    ));
    assert_eq!(index.stats().unwrap().vectors, 1);
}

#[test]
fn a02_what_is_deleted_leaves_nothing_behind() {
    let world = World::new();
    let index = world.open();
    let mut old = node("old", NodeType::Entry, "the ferret sleeps");
    old.expires = Some(Time(NOW - 31 * DAY));
    index
        .put(&[node("a", NodeType::Function, "weasels"), old])
        .unwrap();
    index.put(&[node("b", NodeType::Entry, "badger")]).unwrap();
    index.link("b", "a", EdgeType::Modified, 1.0).unwrap();
    assert_eq!(index.forget(&["a"]).unwrap(), 1);
    assert_eq!(index.clean_up().unwrap(), 1);
    let check = |index: &Index| {
        let stats = index.stats().unwrap();
        assert_eq!((stats.vectors, stats.edges), (1, 0));
        assert!(found(index, "weasels").is_empty() && found(index, "ferret").is_empty());
    };
    check(&index);
    drop(index);
    check(&world.open());
}

#[test]
fn a03_a_kill_loses_nothing_that_was_committed() {
    let world = World::new();
    let index = world.open();
    let nodes: Vec<Node> = (0..50)
        .map(|n| {
            node(
                &format!("n{n}"),
                NodeType::Entry,
                &format!("report {n} about retries"),
            )
        })
        .collect();
    index.put(&nodes).unwrap();
    let before = found(&index, "retries report");
    // Never closed: what a kill leaves is a copy of the files as they are now.
    let copy = world.project().join("copy.db");
    for (from, to) in [("", ""), ("-wal", "-wal")] {
        let from = format!("{}{from}", world.file().display());
        let to = format!("{}{to}", copy.display());
        if std::path::Path::new(&from).exists() {
            std::fs::copy(from, to).unwrap();
        }
    }
    let after = Index::open(&copy, Arc::new(Hashed), world.clock()).unwrap();
    assert_eq!(found(&after, "retries report"), before);
    assert_eq!(before.len(), 10);
}

#[test]
fn a04_a_rare_domain_is_not_starved() {
    let world = World::new();
    let index = world.open();
    let mut nodes: Vec<Node> = (0..5_000)
        .map(|n| {
            node(
                &format!("h{n}"),
                NodeType::Entry,
                "the retry policy of the client waits",
            )
        })
        .collect();
    let code = [
        "the retry policy waits",
        "retry policy",
        "a policy",
        "waits",
        "unlike all of it",
    ];
    nodes.extend(
        (0..)
            .zip(code)
            .map(|(n, text)| node(&format!("c{n}"), NodeType::Function, text)),
    );
    index.put(&nodes).unwrap();
    let query = Query::new("the retry policy of the client waits");
    let query = query.within(Filter::of(Domain::Code)).at_most(5);
    let vectors = Query {
        mode: selvedge_knowledge::Mode::Vector,
        ..query.clone()
    };
    let vector = Hashed
        .embed(&[Piece {
            text: &query.text,
            ..Piece::default()
        }])
        .unwrap()
        .remove(0);
    let near = index.nearest(&vector, &query.filter, 5).unwrap();
    assert_eq!(near.len(), 5);
    assert!(near.windows(2).all(|w| w[0].similarity >= w[1].similarity));
    for query in [query, vectors] {
        let hits = index.search(&query).unwrap().hits;
        assert!(hits.len() >= 4);
        assert!(hits.iter().all(|hit| hit.node.domain() == Domain::Code));
    }
}

#[test]
fn a05_vectors_of_two_origins_are_never_mixed() {
    let world = World::new();
    let index = world.open_with(Fickle::new("one", 8));
    index.put(&[node("a", NodeType::Entry, "text")]).unwrap();
    let wrong = index.nearest(&Vector::Dense(vec![1.0; 9]), &Filter::default(), 3);
    assert!(matches!(
        wrong,
        Err(KnowledgeError::Dimension {
            expected: 8,
            actual: 9
        })
    ));
    drop(index);
    // Another embedder: everything is embedded anew before anything is compared.
    let index = world.open_with(Fickle::new("two", 5));
    let near = index
        .nearest(&Vector::Dense(vec![1.0; 5]), &Filter::default(), 3)
        .unwrap();
    assert_eq!(near.len(), 1);
    drop(index);
    assert_eq!(found(&world.open(), "text"), ["a -:0"]);
}

#[test]
fn a06_a_node_is_not_like_itself() {
    let world = World::new();
    let index = world.open();
    let nodes: Vec<Node> = (0..30)
        .map(|n| {
            node(
                &format!("n{n}"),
                NodeType::Entry,
                &format!("shared words and number{n}"),
            )
        })
        .collect();
    index.put(&nodes).unwrap();
    let like = index.similar_to("n3", &Filter::default(), 10).unwrap();
    assert_eq!(like.len(), 10);
    assert!(like.iter().all(|(node, _)| node.id != "n3"));
    let unknown = index.similar_to("none", &Filter::default(), 10);
    assert!(matches!(unknown, Err(KnowledgeError::NoNode { .. })));
}

#[test]
fn a07_the_same_edge_twice_is_one() {
    let world = World::new();
    let index = world.open();
    index
        .put(&[
            node("a", NodeType::Entry, "x"),
            node("b", NodeType::Function, "y"),
        ])
        .unwrap();
    for weight in [0.5, 0.9] {
        index.link("a", "b", EdgeType::Modified, weight).unwrap();
    }
    let edges = index
        .follow("a", &[EdgeType::Modified], Towards::Target, 1, 9)
        .unwrap();
    assert_eq!(edges.len(), 1);
    assert!((edges[0].weight - 0.9).abs() < 1e-9);
}

#[test]
fn a08_the_patterns_that_code_follows_are_listed() {
    let world = World::new();
    let index = world.open();
    let pattern = node(
        "circuit breaker",
        NodeType::BestPractice,
        "stop asking for a while",
    );
    index
        .put(&[node("gate", NodeType::Struct, "x"), pattern])
        .unwrap();
    index
        .link("gate", "circuit breaker", EdgeType::ImplementsPattern, 0.85)
        .unwrap();
    let found = index.documents_of_code("gate", 9).unwrap();
    assert_eq!(found[0].id, "circuit breaker");
    assert_eq!(
        index.code_of_document("circuit breaker", 9).unwrap()[0].id,
        "gate"
    );
}

#[test]
fn a09_a_decision_has_its_reasons_and_a_function_its_troubles() {
    let world = World::new();
    let index = world.open();
    let fix =
        |id: &str, days: i64| node(id, NodeType::BugFix, "repaired").at(Time(NOW - days * DAY));
    index
        .put(&[
            node("jwt", NodeType::Decision, "we took JWT"),
            node("rfc 7519", NodeType::Rfc, "JSON Web Token"),
            node("login", NodeType::Function, "code"),
            fix("older fix", 9),
            fix("newer fix", 2),
            node("feature", NodeType::Feature, "new").at(Time(NOW)),
        ])
        .unwrap();
    index
        .link("jwt", "rfc 7519", EdgeType::BasedOn, 1.0)
        .unwrap();
    for id in ["older fix", "newer fix", "feature"] {
        index.link(id, "login", EdgeType::Modified, 1.0).unwrap();
    }
    let ids = |nodes: Vec<Node>| nodes.into_iter().map(|n| n.id).collect::<Vec<_>>();
    assert_eq!(ids(index.reasons_of("jwt", 9).unwrap()), ["rfc 7519"]);
    assert_eq!(
        ids(index.issues_of_code("login", 9).unwrap()),
        ["newer fix", "older fix"]
    );
    assert_eq!(
        ids(index.history_of_document("rfc 7519", 9).unwrap()),
        ["jwt"]
    );
}

fn summary(content: &str, references: &[&str]) -> Summary {
    Summary {
        content: content.into(),
        summary_type: "task_completion".into(),
        session: Some("s1".into()),
        code_references: references.iter().map(|r| (*r).to_owned()).collect(),
        ..Summary::default()
    }
}

#[test]
fn a10_a_summary_and_its_code_find_one_another() {
    let world = World::new();
    world.write("src/retry.rs", "pub fn backoff() {}\n");
    let (index, _) = world.index();
    let stored = index
        .store_summary(&summary("Made waiting gentler.", &["backoff"]))
        .unwrap();
    assert_eq!(stored.edges, 1);
    assert_eq!(
        index.history_of_code("backoff", 9).unwrap()[0].id,
        stored.node_id
    );
    let code = index.code_of_history(&stored.node_id, 9).unwrap();
    assert_eq!(code[0].name, "backoff");
    // The link outlives a change of the file.
    world.write("src/retry.rs", "\npub fn backoff() { wait() }\n");
    world.refresh(&index);
    assert_eq!(index.history_of_code("backoff", 9).unwrap().len(), 1);
}

#[test]
fn a11_a_summary_of_what_does_not_exist_is_stored_and_marked() {
    let world = World::new();
    world.write("src/retry.rs", "pub fn backoff() {}\n");
    let (index, _) = world.index();
    let text = "The Scheduler is in src/scheduler.rs and works.";
    let stored = index
        .store_summary(&summary(text, &["no_such_thing"]))
        .unwrap();
    let node = index.node(&stored.node_id).unwrap();
    assert!(!node.verified && node.needs_review());
    assert_eq!(trust(&node, index.now()).level, 20);
    let warnings = node.metadata["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert!(
        !node.content.contains("UNVERIFIED"),
        "the mark is no word of the text"
    );
    assert_eq!(hits(&index, "scheduler works")[0].node.id, stored.node_id);
}

#[test]
fn a12_a_summary_without_a_checkable_claim_is_not_trusted() {
    let world = World::new();
    let index = world.open();
    let stored = index
        .store_summary(&summary("All went well today.", &[]))
        .unwrap();
    let node = index.node(&stored.node_id).unwrap();
    assert_ne!(trust(&node, index.now()).level, 80);
    assert!(!node.needs_review(), "neither trusted nor suspected");
    assert_eq!(node.verification, Verification::Unchecked);
}

#[test]
fn a15_what_was_superseded_is_left_out_and_a_circle_is_refused() {
    let world = World::new();
    let index = world.open();
    let all =
        ["a", "b", "c"].map(|id| node(id, NodeType::Decision, "cache sessions").at(Time(NOW)));
    index.put(&all).unwrap();
    index.supersede("a", "b").unwrap();
    index.supersede("b", "c").unwrap();
    let circle = index.supersede("c", "a");
    assert!(matches!(circle, Err(KnowledgeError::Circle { .. })));
    let old = index.node("a").unwrap();
    let fresh = freshness(&old, index.now());
    assert!((fresh.score - 0.1).abs() < 1e-9 && fresh.warning.is_some());
    assert_eq!(index.current("a").unwrap().id, "c", "the end of the chain");
    assert_eq!(found(&index, "cache sessions"), ["c -:0"]);
    let filter = Filter {
        with_superseded: true,
        ..Filter::default()
    };
    let all = index
        .search(&Query::new("cache sessions").within(filter.clone()))
        .unwrap();
    assert_eq!(all.hits.len(), 3);
    drop(index);
    // The same where vectors are dense.
    let index = world.open_with(Fickle::new("dense", 8));
    let near = |filter: &Filter| {
        let like = Vector::Dense(vec![1.0; 8]);
        index.nearest(&like, filter, 9).unwrap().len()
    };
    assert_eq!((near(&Filter::default()), near(&filter)), (1, 3));
    assert_eq!(near(&Filter::of(Domain::History)), 1);
}

#[test]
fn a20_a_conflict_is_recorded_once_and_leaves_the_list_when_settled() {
    let world = World::new();
    let index = world.open();
    index
        .put(&[
            node("a", NodeType::Entry, "x"),
            node("b", NodeType::Entry, "y"),
        ])
        .unwrap();
    let conflict = |a: &str, b: &str| Conflict {
        kind: ConflictKind::Semantic,
        subject: "cache".into(),
        node_a: a.into(),
        node_b: b.into(),
        description: "x against y".into(),
        suggestion: "ask".into(),
    };
    for pair in [("a", "b"), ("a", "b"), ("b", "a")] {
        index.record_conflicts(&[conflict(pair.0, pair.1)]).unwrap();
    }
    let open = index.conflicts(false).unwrap();
    assert_eq!(open.len(), 1);
    index.settle(open[0].id, "y is right").unwrap();
    assert!(index.conflicts(false).unwrap().is_empty());
    assert_eq!(
        index.conflicts(true).unwrap()[0].resolution.as_deref(),
        Some("y is right")
    );
    assert!(index.settle(99, "x").is_err());
}

#[test]
fn a22_nothing_is_hidden_and_nothing_is_made_up() {
    let world = World::new();
    world.write(
        "src/retry.rs",
        "/// Waits before sending the request again.\npub fn backoff() {}\n",
    );
    world.write(
        "guide.md",
        "# Deploying\n\nContainers are pushed to the registry.\n",
    );
    let (index, _) = world.index();
    assert!(hits(&index, "zygomorphic quagga").is_empty());
    for paraphrase in [
        "resend requests after waiting",
        "wait and send a request one more time",
        "push a container",
        "deployment of containers",
    ] {
        assert!(!hits(&index, paraphrase).is_empty(), "{paraphrase}");
    }
    let code_only = Query::new("pushing containers to registries").within(Filter::of(Domain::Code));
    let found = index.search(&code_only).unwrap();
    assert!(
        found.hits.is_empty() && found.also_in == [Domain::Academic],
        "{found:?}"
    );
}

#[test]
fn a25_dependencies_are_followed_to_a_depth_each_once_circles_included() {
    let world = World::new();
    world.write(
        "a.rs",
        "fn one() { two() }\nfn two() { three() }\nfn three() { four(); one() }\n\
         fn four() { five() }\nfn five() {}\n",
    );
    let (index, _) = world.index();
    let reach = |depth| {
        let id = "code:a.rs#one";
        let edges = index
            .follow(id, &[EdgeType::Calls], Towards::Target, depth, 99)
            .unwrap();
        edges
            .into_iter()
            .map(|edge| edge.node.name)
            .collect::<Vec<_>>()
    };
    assert_eq!(reach(1), ["two"]);
    assert_eq!(reach(3), ["two", "three", "four"]);
    assert_eq!(reach(9), ["two", "three", "four", "five"]);
    let radius = index.blast_radius("code:a.rs#four", 2, 99).unwrap();
    let names: Vec<&str> = radius.iter().map(|edge| edge.node.name.as_str()).collect();
    assert_eq!(names, ["three", "two"]);
}

#[test]
fn a27_an_exact_identifier_finds_its_definition_first() {
    let world = World::new();
    let users: String = (0..30)
        .map(|n| format!("/// retry_after retry_after retry_after\nfn user{n}() {{ retry_after(); retry_after() }}\n"))
        .collect();
    world.write("a_users.rs", &users);
    world.write("z.rs", "fn retry_after() {}\nstruct Backoff;\n");
    world.write("tests/t.rs", "fn backoff() {}\n");
    let (index, _) = world.index();
    assert_eq!(found(&index, "retry_after")[0], "retry_after z.rs:1");
    assert_eq!(
        found(&index, "where is retry_after defined?")[0],
        "retry_after z.rs:1"
    );
    assert_eq!(
        found(&index, "Backoff")[0],
        "Backoff z.rs:2",
        "as it is written"
    );
}

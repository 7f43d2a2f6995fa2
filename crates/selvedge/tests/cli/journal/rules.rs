//! What code sees to, whatever a model says: searching first, evidence, domains, numbers.

use std::path::PathBuf;

use serde_json::json;

use super::{
    NOW, analyzer, asking_back, gap, good_answer, log_bench, note, notes, parser, path, planner,
    requests, retriever, router, synthesizer, talk,
};
use crate::world::World;

#[test]
fn a_note_with_a_question_is_stored_once_and_its_answer_cites_it() {
    let world = World::new();
    let mut agents = good_answer(&["2026-11-18"]);
    agents["router"] = router("both", &[]);
    agents["router"]["log_portion"] = json!("Tired today, 4 hours sleep.");
    agents["router"]["query_portion"] = json!("Why am I always tired?");
    agents["parser"] = parser(json!({ "general": { "sleep": { "duration": 4, "unit": "h" } } }));
    let text = "Tired today, 4 hours sleep. Why am I always tired?";
    let said = talk(&world, "journal", text, agents);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let notes = notes(&world);
    assert_eq!(notes.len(), 1);
    assert_eq!(notes[0]["text"], "Tired today, 4 hours sleep.");
    assert_eq!(notes[0]["rows"][0]["measure"], "sleep");
    let id = notes[0]["id"].as_str().unwrap();
    assert!(
        said.stdout.contains(&format!("Sources: {id}")),
        "{}",
        said.stdout
    );
    let walked = path(&world);
    let at = |name: &str| walked.iter().position(|state| state == name).unwrap();
    assert!(at("store") < at("analyze"), "{walked:?}");
}

#[test]
fn nothing_is_asked_before_the_notes_were_searched() {
    let world = World::new();
    let mut agents = asking_back();
    agents["planner/task-001"] = planner("clarify", json!([]));
    let asked = talk(&world, "ask", "Why was bench heavy?", agents);
    assert_eq!(asked.code, 3, "{}", asked.stderr);
    let walked = path(&world);
    let at = |name: &str| walked.iter().position(|state| state == name).unwrap();
    assert!(at("retrieve") < at("clarify"), "{walked:?}");
}

#[test]
fn an_answer_that_cites_what_nobody_found_fails_before_a_model_is_asked() {
    let world = World::new();
    note(&world, "Bench 185x5", "2026-11-10 10:30");
    let mut agents = good_answer(&["2026-11-10"]);
    agents["synthesizer/task-001"] = synthesizer("Invented.", &["2020-01-01"]);
    let asked = talk(&world, "ask", "How was bench?", agents);
    assert_eq!(asked.code, 0, "{}", asked.stderr);
    assert!(asked.stdout.contains("The answer."), "{}", asked.stdout);
    let walked = path(&world);
    assert_eq!(
        walked.iter().filter(|state| *state == "evaluate").count(),
        2,
        "{walked:?}"
    );
    assert_eq!(requests(&world, "evaluator").len(), 1);
}

#[test]
fn a_gap_loads_its_domain_whose_rules_reach_the_evaluator_and_unknown_names_are_noted() {
    let world = World::new();
    note(&world, "Swam 1500 m", "2026-11-10 10:30");
    let outside = json!([
        gap("what laps mean", "contextual", Some("swimming")),
        gap("the stars", "contextual", Some("astrology")),
    ]);
    let mut agents = good_answer(&["2026-11-10"]);
    agents["router"] = router("query", &[]);
    agents["analyzer/task-001"] = analyzer("insufficient", &[], outside);
    let asked = talk(&world, "ask", "How do I swim?", agents);
    assert_eq!(asked.code, 0, "{}", asked.stderr);
    assert!(
        asked
            .stdout
            .contains("there is no domain `astrology`: ignored"),
        "{}",
        asked.stdout
    );
    assert!(path(&world).contains(&"expand_domain".to_owned()));
    let told = requests(&world, "evaluator");
    assert!(
        told[0].contains("open water alone"),
        "the rules of swimming: {told:?}"
    );
}

#[test]
fn a_number_is_computed_from_rows_with_what_it_used_and_skipped() {
    let world = World::new();
    log_bench(&world, 85);
    log_bench(&world, 185);
    note(&world, "Bench again, forgot the weight", "2026-11-18 12:00");
    let search = json!([{ "range": "this week",
        "compute": { "measure": "weight", "subject": "bench press", "aggregate": "max" } }]);
    let mut agents = good_answer(&["2026-11-18"]);
    (agents["planner"], agents["retriever"]) =
        (planner("retrieve", search.clone()), retriever(search));
    let asked = talk(&world, "ask", "What is my bench PR?", agents);
    assert_eq!(asked.code, 0, "{}", asked.stderr);
    let shown = world.selvedge(&["sessions", "show", &world.session()]);
    assert!(
        shown.stdout.contains("max weight of bench press"),
        "{}",
        shown.stdout
    );
    assert!(
        shown
            .stdout
            .contains("83.91 kg (2 quantities in 2 entries, 1 entry skipped"),
        "{}",
        shown.stdout
    );
}

#[test]
fn a_domain_of_ones_own_is_a_folder_and_a_broken_one_is_named() {
    let world = World::new();
    let made = world.selvedge(&["journal", "domain", "new", "gardening"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let folder = PathBuf::from(made.stdout.trim());
    let listed = world.selvedge(&["journal", "domain", "list"]);
    assert!(listed.stdout.contains("gardening") && listed.stdout.contains("swimming"));
    std::fs::write(folder.join("schema.json"), "{ broken").unwrap();
    let logged = world.selvedge(&["log", "Planted tomatoes", "--at", NOW]);
    assert_eq!(logged.code, 0, "{}", logged.stderr);
    assert!(
        logged
            .stderr
            .contains("the domain `gardening` is left out: `schema.json`"),
        "{}",
        logged.stderr
    );
}

#[test]
fn what_cannot_be_told_apart_is_stored_as_a_note_word_for_word() {
    let world = World::new();
    let mut agents = json!({ "parser": parser(json!({})) });
    // A split that is not the user's own words would lose some of them.
    agents["router"] = router("both", &[]);
    agents["router"]["log_portion"] = json!("Tired.");
    agents["router"]["query_portion"] = json!("What now?");
    let said = talk(&world, "journal", "tired again, hm, what now", agents);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let notes = notes(&world);
    assert_eq!(
        (notes.len(), &notes[0]["text"]),
        (1, &json!("tired again, hm, what now"))
    );
    // A question of which nobody knows what it is is no reason to lose a note, either.
    let silent = talk(
        &world,
        "log",
        "is it me or is it cold?",
        json!({ "router": { "input_type": "query" } }),
    );
    assert_eq!(silent.code, 0, "{}", silent.stderr);
    assert_eq!(super::notes(&world).len(), 2);
}

#[test]
fn an_id_that_an_answer_invents_in_its_text_fails_it() {
    let world = World::new();
    note(&world, "Bench 185x5", "2026-11-10 10:30");
    let mut agents = good_answer(&["2026-11-10"]);
    let invented = "Heavy since 2026-10-01T08:00-abc123.";
    agents["synthesizer/task-001"] = synthesizer(invented, &["2026-11-10"]);
    agents["synthesizer/task-002"] = synthesizer("Heavy.", &["2026-11-10 and 2020-01-01"]);
    let asked = talk(&world, "ask", "How was bench?", agents);
    assert_eq!(asked.code, 0, "{}", asked.stderr);
    assert!(asked.stdout.contains("The answer."), "{}", asked.stdout);
    assert_eq!(requests(&world, "evaluator").len(), 1);
    assert_eq!(requests(&world, "synthesizer").len(), 3);
}

//! Questions that are too much for one pass: in pieces, and in parts.

use serde_json::{Value, json};

use super::{analyzer, good_answer, note, requests, talk};
use crate::world::World;

/// What each analyzer was told, in the order in which they were asked.
fn told(world: &World) -> Vec<Value> {
    let requests = requests(world, "analyzer");
    let read = |text: &String| {
        let text: String = serde_json::from_str(text).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    requests.iter().map(read).collect()
}

/// The lines of the session's own stream that say when an analyzer began or ended.
fn begun_and_ended(world: &World) -> Vec<String> {
    let session = world.session();
    let events = world
        .selvedge(&["sessions", "events", &session, "--json"])
        .stdout;
    let events = events
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let own = events.filter(|event| event["stream"] == session.as_str());
    let line = |event: Value| {
        let effect = event["data"]["effect"].as_str()?.to_owned();
        let kind = event["kind"]
            .as_str()?
            .strip_prefix("Child")?
            .to_lowercase();
        effect
            .starts_with("analyze")
            .then(|| format!("{effect} {kind}"))
    };
    own.filter_map(line).collect()
}

fn parts(strategy: &str, order: &[u32]) -> Value {
    let mut agents = good_answer(&["2026-11-10"]);
    let planner = &mut agents["planner"];
    planner["execution_strategy"] = json!(strategy);
    planner["execution_order"] = json!(order);
    planner["sub_queries"] = json!([
        { "id": 2, "question": "What should I change?", "retrieval_strategy": "date_range" },
        { "id": 1, "question": "Why was I tired?", "retrieval_strategy": "date_range" },
    ]);
    // So slow that whoever waits for another is seen to.
    let answer = analyzer("sufficient", &["2026-11-10"], json!([]));
    agents["analyzer"] = json!([{ "answer": answer, "delay": "300ms" }]);
    agents
}

#[test]
fn notes_that_do_not_fit_into_one_context_are_analysed_in_pieces_and_put_together() {
    let world = World::new();
    let long = "walked the dog, ".repeat(1500);
    for day in 10..15 {
        note(
            &world,
            &format!("day {day}: {long}"),
            &format!("2026-11-{day} 10:30"),
        );
    }
    let mut agents = good_answer(&["2026-11-10", "2026-11-14"]);
    let piece = |n: u32| {
        analyzer(
            "sufficient",
            &[format!("2026-11-{}", 9 + n).as_str()],
            json!([]),
        )
    };
    for n in 1..=5 {
        agents[format!("analyzer/task-{n:03}")] = json!([{ "answer": piece(n), "delay": "300ms" }]);
    }
    let merged = analyzer("sufficient", &["2026-11-10", "2026-11-14"], json!([]));
    agents["analyzer/task-006"] = merged;
    let asked = talk(&world, "ask", "How often do I walk?", agents);
    assert_eq!(asked.code, 0, "{}", asked.stderr);
    let told = told(&world);
    assert_eq!(told.len(), 6);
    // Every note is in exactly one piece, whole.
    for (n, told) in told[..5].iter().enumerate() {
        assert_eq!(told["entries_summary"], format!("piece {} of 5", n + 1));
        let entries = told["entries"].as_array().unwrap();
        assert_eq!(entries.len(), 1);
        let text = entries[0]["raw_content"].as_str().unwrap();
        assert_eq!(text, format!("day {}: {long}", 10 + n));
    }
    // Who puts them together sees what each found, and no notes.
    assert_eq!(told[5]["entries"], json!([]));
    let found = told[5]["partial_analyses"].as_array().unwrap();
    let evidence: Vec<&Value> = found
        .iter()
        .map(|a| &a["findings"][0]["evidence"][0])
        .collect();
    assert_eq!(
        evidence,
        [
            "2026-11-10",
            "2026-11-11",
            "2026-11-12",
            "2026-11-13",
            "2026-11-14"
        ]
    );
    // The pieces side by side, and then the whole.
    let lines = begun_and_ended(&world);
    let started = lines
        .iter()
        .take_while(|line| line.ends_with("started"))
        .count();
    assert_eq!(started, 5, "{lines:?}");
    assert_eq!(lines.last().unwrap(), "analyze1.q0m finished");
    assert!(
        asked.stdout.contains("2026-11-14T10:30-"),
        "{}",
        asked.stdout
    );
}

#[test]
fn independent_parts_are_looked_into_side_by_side() {
    let world = World::new();
    note(&world, "Slept 4 hours", "2026-11-10 10:30");
    let asked = talk(
        &world,
        "ask",
        "Why, and what now?",
        parts("independent", &[]),
    );
    assert_eq!(asked.code, 0, "{}", asked.stderr);
    let lines = begun_and_ended(&world);
    assert_eq!(
        lines[..2],
        ["analyze1.q2 started", "analyze1.q1 started"],
        "{lines:?}"
    );
    let told = told(&world);
    assert_eq!(told.len(), 2);
    for told in told {
        assert_eq!(told.get("earlier_answers"), None);
        let question = told["query"].as_str().unwrap();
        let expected = if told["sub_query_id"] == 1 {
            "Why was I tired?"
        } else {
            "What should I change?"
        };
        assert_eq!(question, expected);
    }
    let all: Value = serde_json::from_str::<String>(&requests(&world, "synthesizer")[0])
        .and_then(|text| serde_json::from_str(&text))
        .unwrap();
    assert_eq!(all["analysis"].as_array().unwrap().len(), 2);
}

#[test]
fn dependent_parts_follow_one_another_in_their_order() {
    let world = World::new();
    note(&world, "Slept 4 hours", "2026-11-10 10:30");
    let asked = talk(
        &world,
        "ask",
        "Why, and what now?",
        parts("dependent", &[1, 2]),
    );
    assert_eq!(asked.code, 0, "{}", asked.stderr);
    assert_eq!(
        begun_and_ended(&world),
        [
            "analyze1.q1 started",
            "analyze1.q1 finished",
            "analyze1.q2 started",
            "analyze1.q2 finished"
        ]
    );
    let told = told(&world);
    assert_eq!(told[0].get("earlier_answers"), None);
    assert_eq!(
        told[1]["earlier_answers"][0]["findings"][0]["claim"],
        "a claim"
    );
}

#[test]
fn coupled_parts_are_one_question() {
    let world = World::new();
    note(&world, "Slept 4 hours", "2026-11-10 10:30");
    let asked = talk(
        &world,
        "ask",
        "Why, and what now?",
        parts("coupled", &[1, 2]),
    );
    assert_eq!(asked.code, 0, "{}", asked.stderr);
    let told = told(&world);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["query"], "Why, and what now?");
    let now = told[0]["now"].as_str().unwrap();
    assert!(now.starts_with("2026-11-18T09:30 Wednesday "), "{now}");
}

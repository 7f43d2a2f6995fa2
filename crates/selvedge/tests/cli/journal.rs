//! The journal through the real binary: a model that says what it was told to say, and
//! real notes on a real disk.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::world::{Background, Output, World, until};

const NOW: &str = "2026-11-18 09:30";

/// A script: what each agent says, by `agent` or `agent/task-002`.
fn script(world: &World, agents: Value) -> PathBuf {
    let turns = |answer: &Value| match answer {
        Value::Array(turns) => json!(turns),
        answer => json!([{ "answer": answer }]),
    };
    let agents = agents.as_object().unwrap().iter();
    let agents: serde_json::Map<String, Value> = agents
        .map(|(name, answer)| (name.clone(), turns(answer)))
        .collect();
    world.write("script.yaml", &json!({ "agents": agents }).to_string())
}

fn command(world: &World, verb: &str, text: &str, agents: Value) -> Command {
    let script = script(world, agents);
    let mut command = world.command(&[verb, text, "--at", NOW, "--script"]);
    command.arg(script);
    command
}

fn talk(world: &World, verb: &str, text: &str, agents: Value) -> Output {
    world.output(&mut command(world, verb, text, agents))
}

fn router(kind: &str, domains: &[&str]) -> Value {
    json!({ "reasoning": "", "input_type": kind, "confidence": 0.9,
        "domain_selection_reasoning": "", "selected_domains": domains })
}

fn planner(action: &str, searches: Value) -> Value {
    json!({ "original_query": "", "query_type": "insight", "sub_queries": [],
        "execution_strategy": "coupled", "retrieval_instructions": searches,
        "reasoning": "", "next_action": action })
}

fn retriever(searches: Value) -> Value {
    json!({ "searches": searches })
}

fn analyzer(verdict: &str, evidence: &[&str], gaps: Value) -> Value {
    let findings = match evidence {
        [] => json!([]),
        evidence => json!([{ "claim": "a claim", "evidence": evidence, "confidence": "high" }]),
    };
    json!({ "findings": findings, "gaps_identified": gaps, "patterns_identified": [],
        "query_intent": "", "verdict_reasoning": "", "verdict": verdict })
}

fn gap(what: &str, kind: &str, domain: Option<&str>) -> Value {
    json!({ "description": what, "gap_type": kind, "severity": "critical",
        "outside_current_expertise": domain.is_some(), "suspected_domain": domain })
}

fn synthesizer(response: &str, cited: &[&str]) -> Value {
    json!({ "response": response, "key_points": [], "evidence_cited": cited, "confidence": "high" })
}

fn evaluator(verdict: &str) -> Value {
    json!({ "dimensions": [{ "dimension": "accuracy", "reasoning": "", "verdict": verdict }],
        "feedback": [{ "issue": "say more", "suggestion": "do" }],
        "recommendation": "accept", "overall_verdict": verdict })
}

fn parser(data: Value) -> Value {
    json!({ "date": "2026-11-18", "timestamp": NOW, "domain_data": data, "raw_content": "",
        "confidence": 0.9 })
}

fn observer() -> Value {
    json!({ "insights_captured": [], "updates": [], "should_update": false })
}

fn bench(weight: u32) -> Value {
    json!({ "strength": { "exercises": [
        { "name": "bench press", "weight": weight, "weight_unit": "lb", "reps": 5 }] } })
}

fn all_days() -> Value {
    json!([{ "range": "past 2 months" }])
}

/// Notes without a model.
fn note(world: &World, text: &str, at: &str) {
    let noted = world.selvedge(&["log", text, "--at", at, "--no-model"]);
    assert_eq!(noted.code, 0, "{}", noted.stderr);
}

fn notes(world: &World) -> Vec<Value> {
    let listed = world.selvedge(&["journal", "notes", "--json"]);
    assert_eq!(listed.code, 0, "{}", listed.stderr);
    listed
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The states that the newest session was in.
fn path(world: &World) -> Vec<String> {
    let shown = world.selvedge(&["sessions", "show", &world.session()]);
    let arrows = shown
        .stdout
        .lines()
        .filter_map(|line| line.trim().split_once(" → "));
    let is_state = |word: &str| word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    let arrows = arrows.filter(|(from, to)| is_state(from) && to.contains(": "));
    let names = arrows.map(|(_, to)| to.split([':', ' ']).next().unwrap().to_owned());
    names.collect()
}

/// What an agent was asked in the newest session, each time.
fn requests(world: &World, agent: &str) -> Vec<String> {
    let events = world.selvedge(&["sessions", "events", &world.session(), "--json"]);
    let events = events
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let is_its =
        |event: &Value| event["kind"] == "RunStarted" && event["data"]["spec"]["agent"] == agent;
    let asked = events.filter(is_its);
    asked
        .map(|event| event["data"]["spec"]["request"].to_string())
        .collect()
}

fn good_answer(cited: &[&str]) -> Value {
    json!({
        "router": router("query", &["strength"]),
        "planner": planner("retrieve", all_days()),
        "retriever": retriever(all_days()),
        "analyzer": analyzer("sufficient", cited, json!([])),
        "synthesizer": synthesizer("The answer.", cited),
        "evaluator": evaluator("pass"),
        "observer": observer(),
    })
}

const STRAIGHT: [&str; 8] = [
    "build_context",
    "plan",
    "retrieve",
    "analyze",
    "synthesize",
    "evaluate",
    "observe",
    "complete",
];

#[test]
fn scenario_simple_insight_and_recommendation_go_straight_to_a_cited_answer() {
    for question in [
        "Show me last week's workouts",
        "Why did my bench feel heavy?",
        "What should I do today?",
    ] {
        let world = World::new();
        note(&world, "Bench 185x5, felt heavy", "2026-11-10 10:30");
        let asked = talk(&world, "ask", question, good_answer(&["2026-11-10"]));
        assert_eq!(asked.code, 0, "{}", asked.stderr);
        assert!(asked.stdout.contains("The answer."), "{}", asked.stdout);
        assert!(
            asked.stdout.contains("Sources: 2026-11-10T10:30-"),
            "{}",
            asked.stdout
        );
        assert_eq!(path(&world), STRAIGHT);
    }
}

#[test]
fn scenario_multi_part_asks_the_second_part_with_the_answer_of_the_first() {
    let world = World::new();
    note(&world, "Slept 4 hours", "2026-11-10 10:30");
    let mut agents = good_answer(&["2026-11-10"]);
    agents["planner"]["execution_strategy"] = json!("dependent");
    agents["planner"]["execution_order"] = json!([1, 2]);
    agents["planner"]["sub_queries"] = json!([
        { "id": 2, "question": "What should I change?", "retrieval_strategy": "date_range" },
        { "id": 1, "question": "Why was I tired?", "retrieval_strategy": "date_range" },
    ]);
    let asked = talk(
        &world,
        "ask",
        "Why was I tired and what should I change?",
        agents,
    );
    assert_eq!(asked.code, 0, "{}", asked.stderr);
    let requests = requests(&world, "analyzer");
    assert_eq!(requests.len(), 2);
    assert!(requests[0].contains("Why was I tired?") && !requests[0].contains("earlier_answers"));
    assert!(
        requests[1].contains("What should I change?") && requests[1].contains("earlier_answers")
    );
}

#[test]
fn scenario_no_data_is_honest_about_it() {
    let world = World::new();
    let nothing = analyzer(
        "insufficient",
        &[],
        json!([gap("any swimming notes", "topical", None)]),
    );
    let agents = json!({
        "router": router("query", &["swimming"]),
        "planner": planner("retrieve", all_days()),
        "retriever": retriever(json!([{ "keywords": ["swim"] }])),
        "analyzer": nothing,
        "synthesizer": synthesizer("Your notes say nothing about swimming.", &[]),
        "evaluator": evaluator("pass"),
        "observer": observer(),
    });
    let asked = talk(&world, "ask", "How's my swimming progress?", agents);
    assert_eq!(asked.code, 0, "{}", asked.stderr);
    assert!(
        asked.stdout.contains("Your notes say nothing"),
        "{}",
        asked.stdout
    );
    assert!(
        asked.stdout.contains("- any swimming notes"),
        "{}",
        asked.stdout
    );
    let walked = path(&world);
    assert_eq!(
        walked.iter().filter(|state| *state == "plan").count(),
        3,
        "{walked:?}"
    );
}

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

fn correction() -> Value {
    let mut agents =
        json!({ "router": router("correction", &["strength"]), "observer": observer() });
    agents["parser"] = parser(json!({}));
    agents["parser"]["is_correction"] = json!(true);
    agents["parser"]["correction_delta"] = json!([
        { "domain": "strength", "field": "/exercises/0/weight", "from": 85, "to": 185 }]);
    agents
}

fn log_bench(world: &World, weight: u32) {
    let agents = json!({ "router": router("log", &["strength"]), "parser": parser(bench(weight)) });
    let logged = talk(world, "log", &format!("Bench {weight}x5"), agents);
    assert_eq!(logged.code, 0, "{}", logged.stderr);
    assert!(
        logged.stdout.contains("Read as: strength"),
        "{}",
        logged.stdout
    );
}

#[test]
fn scenario_correction_keeps_both_texts_and_counts_the_right_value_once() {
    let world = World::new();
    log_bench(&world, 85);
    let words = "actually that was 185 not 85";
    let corrected = talk(&world, "journal", words, correction());
    assert_eq!(corrected.code, 0, "{}", corrected.stderr);
    assert!(
        corrected
            .stdout
            .contains("recorded as 85 → corrected to 185"),
        "{}",
        corrected.stdout
    );
    assert_eq!(
        path(&world),
        ["build_context", "parse", "store", "observe", "complete"]
    );
    let file = world.home().join("data/journal/2026/11/2026-11-18.md");
    let raw = std::fs::read_to_string(&file).unwrap();
    assert!(raw.contains("Bench 85x5") && raw.contains(words), "{raw}");
    assert!(raw.contains("## 09:30 [correction]"), "{raw}");
    let weight = |world: &World| {
        notes(world)[0]["domain_data"]["strength"]["exercises"][0]["weight"].clone()
    };
    assert_eq!(weight(&world), 185);
    assert_eq!(notes(&world)[0]["rows"][0]["written"], 185.0);
    // Once more, and nothing changes.
    let again = talk(&world, "journal", words, correction());
    assert!(again.stdout.contains("Unchanged"), "{}", again.stdout);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), raw);
    assert_eq!(weight(&world), 185);
}

#[test]
fn if_two_entries_may_be_meant_the_user_is_asked_and_declining_changes_nothing() {
    let world = World::new();
    log_bench(&world, 85);
    log_bench(&world, 85);
    let asked = talk(
        &world,
        "journal",
        "actually that was 185 not 85",
        correction(),
    );
    assert_eq!(asked.code, 3, "{}", asked.stderr);
    let session = world.session();
    let declined = world.selvedge(&["answer", &session, "skip", "--resume"]);
    assert_eq!(declined.code, 0, "{}", declined.stderr);
    assert!(
        declined.stdout.contains("Nothing was changed"),
        "{}",
        declined.stdout
    );
    for note in notes(&world) {
        assert_eq!(
            note["domain_data"]["strength"]["exercises"][0]["weight"],
            85
        );
    }
}

#[test]
fn without_a_model_a_hundred_notes_are_kept_found_and_parsed_later() {
    let world = World::new();
    for n in 0..100 {
        note(&world, &format!("Bench set number {n}"), "2026-11-10 10:30");
    }
    let all = notes(&world);
    assert_eq!(all.len(), 100);
    assert!(all.iter().all(|note| note["parse"] == "pending"));
    let asked = world.selvedge(&["ask", "how was bench number 42?", "--at", NOW]);
    assert_eq!(asked.code, 0, "{}", asked.stderr);
    assert!(
        asked.stdout.contains("Found notes, not an answer"),
        "{}",
        asked.stdout
    );
    assert!(
        asked.stdout.contains("Bench set number 42"),
        "{}",
        asked.stdout
    );
    let agents = json!({ "router": router("log", &["strength"]), "parser": parser(bench(100)) });
    let script = script(&world, agents);
    let mut reparse = world.command(&["journal", "reparse", "--script"]);
    let reparsed = world.output(reparse.arg(script));
    assert_eq!(reparsed.code, 0, "{}", reparsed.stderr);
    assert!(
        reparsed.stderr.contains("100 of 100 notes parsed"),
        "{}",
        reparsed.stderr
    );
    let all = notes(&world);
    assert_eq!(all.len(), 100);
    assert!(
        all.iter()
            .all(|note| note["parse"] == "done" && note["rows"].is_array())
    );
}

/// Agents that find that only the user knows.
fn asking_back() -> Value {
    let missing = json!([gap("how you slept that week", "subjective", None)]);
    json!({
        "router": router("query", &[]),
        "planner/task-001": planner("retrieve", all_days()),
        "planner": planner("clarify", json!([])),
        "retriever": retriever(all_days()),
        "analyzer/task-001": analyzer("insufficient", &[], missing.clone()),
        "analyzer": analyzer("sufficient", &["user"], missing),
        "clarifier": { "context_explanation": "Your notes do not say.", "fallback_action": "",
            "questions": [{ "question": "Did you sleep badly?",
                "gap_addressed": "how you slept that week" }] },
        "synthesizer": synthesizer("You said that you slept badly.", &[]),
        "evaluator": evaluator("pass"),
        "observer": observer(),
    })
}

#[test]
fn a_question_back_survives_kill_nine_and_its_answer_goes_on_days_later() {
    let world = World::new();
    note(&world, "Bench felt heavy", "2026-11-10 10:30");
    // Killed while it works, and again resumed until it asks.
    let mut agents = asking_back();
    agents["clarifier"] = json!([{ "answer": agents["clarifier"], "delay": "2s" }]);
    let running = Background::start(
        &world,
        command(&world, "ask", "Why was bench heavy?", agents),
    );
    running.wait_for("clarifier");
    running.signal(Signal::KILL);
    running.end();
    let session = world.session();
    let resumed = world.selvedge(&["resume", &session]);
    assert_eq!(resumed.code, 3, "{}", resumed.stderr);
    assert!(
        resumed.stderr.contains("Did you sleep badly?"),
        "{}",
        resumed.stderr
    );
    let answered = world.selvedge(&["answer", &session, "yes, four hours", "--resume"]);
    assert_eq!(answered.code, 0, "{}", answered.stderr);
    assert!(
        answered.stdout.contains("You said that you slept badly"),
        "{}",
        answered.stdout
    );
    let walked = path(&world);
    assert!(
        walked.ends_with(&["synthesize", "evaluate", "observe", "complete"].map(str::to_owned))
    );
}

#[test]
fn declining_a_question_gives_a_partial_answer_with_what_is_missing() {
    let world = World::new();
    note(&world, "Bench felt heavy", "2026-11-10 10:30");
    let asked = talk(&world, "ask", "Why was bench heavy?", asking_back());
    assert_eq!(asked.code, 3, "{}", asked.stderr);
    let declined = world.selvedge(&["answer", &world.session(), "skip", "--resume"]);
    assert_eq!(declined.code, 0, "{}", declined.stderr);
    assert!(
        declined.stdout.contains("This answer is partial"),
        "{}",
        declined.stdout
    );
    assert!(
        declined.stdout.contains("- how you slept that week"),
        "{}",
        declined.stdout
    );
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
fn models_that_are_away_do_not_keep_a_note_from_being_stored() {
    let world = World::new();
    let error = json!([{ "error": { "kind": "user_fixable", "what": "no credit", "hint": "pay" } },
        { "answer": router("log", &[]) }]);
    let logged = talk(&world, "log", "Bench 185x5", json!({ "router": error }));
    assert_eq!(logged.code, 0, "{}", logged.stderr);
    let notes = notes(&world);
    assert_eq!((notes.len(), &notes[0]["parse"]), (1, &json!("pending")));
}

#[test]
fn importing_a_thousand_files_twice_leaves_each_entry_once() {
    let world = World::new();
    for n in 0..1000 {
        let (month, day) = (1 + n % 12, 1 + n % 28);
        let name = format!("old/{}/2025-{month:02}-{day:02} note {n}.md", n % 7);
        world.write(&name, &format!("# Note\n\nRan {n} km\n"));
    }
    let folder = world.root().join("old");
    for expected in ["1000 new, 0 known", "0 new, 1000 known"] {
        let imported = world.selvedge(&["journal", "import", folder.to_str().unwrap()]);
        assert_eq!(imported.code, 0, "{}", imported.stderr);
        assert!(imported.stderr.contains(expected), "{}", imported.stderr);
        assert_eq!(notes(&world).len(), 1000);
    }
}

#[test]
fn two_processes_that_log_at_once_lose_nothing() {
    let world = World::new();
    let log = |who: &str| {
        let mut command = world.command(&["journal", "--no-model", "--at", NOW]);
        let lines: String = (0..40).map(|n| format!("note {n} of {who}\n")).collect();
        let file = world.write(&format!("{who}.txt"), &lines);
        command
            .stdin(std::fs::File::open(file).unwrap())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().unwrap()
    };
    let both = [log("one"), log("two")];
    for mut child in both {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(notes(&world).len(), 80);
}

#[test]
fn a_write_that_is_killed_leaves_the_old_file_or_the_new_one() {
    let world = World::new();
    note(&world, "the first", "2026-11-18 09:30");
    let file = world.home().join("data/journal/2026/11/2026-11-18.md");
    for round in 0..8_u64 {
        let before = notes(&world).len();
        let mut command = world.command(&["journal", "--no-model", "--at", NOW]);
        let lines: String = (0..500)
            .map(|n| format!("note {n} of round {round}\n"))
            .collect();
        let lines = world.write("many.txt", &lines);
        command
            .stdin(std::fs::File::open(lines).unwrap())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let written = before + 2 + usize::try_from(round).unwrap();
        until("some are written", || {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            text.matches("<!-- id:").count() >= written
        });
        child.kill().unwrap();
        child.wait().unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("## 09:30\n<!-- id: 2026-11-18T09:30-") && text.ends_with('\n'));
        assert_eq!(
            text.matches("## 09:30\n").count(),
            text.matches("<!-- id:").count()
        );
        assert!(notes(&world).len() >= written);
    }
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
            .contains("83.91 kg (2 quantities in 2 entries, 1 entries skipped"),
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
fn notes_are_listed_by_days_tags_and_words() {
    let world = World::new();
    note(&world, "Ran 5k #race", "2026-11-10 10:30");
    note(&world, "Bench 185x5", "2026-11-11 10:30");
    let list = |arguments: &[&str]| {
        let all: Vec<&str> = ["journal", "notes"]
            .iter()
            .chain(arguments)
            .copied()
            .collect();
        world.selvedge(&all).stdout
    };
    assert!(
        list(&["--tag", "race"]).contains("Ran 5k") && !list(&["--tag", "race"]).contains("Bench")
    );
    assert!(list(&["--days", "2026-11-11"]).contains("Bench"));
    assert!(list(&["bench"]).contains("185") && !list(&["bench"]).contains("Ran"));
    let stats = world.selvedge(&["journal", "stats", "--at", "2026-11-18"]);
    assert!(
        stats.stdout.contains("2 notes · 2 days"),
        "{}",
        stats.stdout
    );
    let day = world.selvedge(&["journal", "on-this-day", "--at", "2027-11-10"]);
    assert!(day.stdout.contains("Ran 5k"), "{}", day.stdout);
}

#[test]
fn the_box_takes_notes_and_questions_says_why_and_honours_edits_by_hand() {
    let world = World::new();
    note(&world, "Slept 4 hours", "2026-11-18 08:00");
    let file = world.home().join("data/journal/2026/11/2026-11-18.md");
    let mut command = world.command(&["journal", "--no-model", "--at", NOW]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, b"Walked the dog\n").unwrap();
    until("the note is there", || {
        std::fs::read_to_string(&file).unwrap().contains("dog")
    });
    // Somebody edits the file while the box is open.
    let edited = std::fs::read_to_string(&file)
        .unwrap()
        .replace("4 hours", "9 hours of sleep");
    std::fs::write(&file, &edited).unwrap();
    std::io::Write::write_all(&mut stdin, b"How much sleep?\n/why\n/help\nFed the cat\n").unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains("Slept 9 hours of sleep"), "{stdout}");
    assert!(
        stdout.contains("build_context → plan: it asks something"),
        "{stdout}"
    );
    assert!(stdout.contains("/why"), "{stdout}");
    let after = std::fs::read_to_string(&file).unwrap();
    assert!(
        after.starts_with(&edited) && after.contains("Fed the cat"),
        "{after}"
    );
}

//! The journal through the real binary: a model that says what it was told to say, and
//! real notes on a real disk.

mod corrections;
mod notes;
mod parts;
mod rules;
mod scenarios;
mod story;
mod terminal;
mod tiers;
mod waiting;

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::world::{Output, World};

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

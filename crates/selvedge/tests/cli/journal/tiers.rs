//! Nine agents over several providers: each asks its own tier's model, and another one
//! where that is away. Real sockets, and what was sent over them.

use std::path::Path;
use std::process::Command;

use selvedge_testkit::{ModelServer, Recorded, Reply, ReplyFault};
use serde_json::{Value, json};

use super::{NOW, good_answer, note, notes};
use crate::world::World;

const AGENTS: [(&str, &str); 7] = [
    ("router", "low"),
    ("planner", "high"),
    ("retriever", "low"),
    ("analyzer", "high"),
    ("synthesizer", "medium"),
    ("evaluator", "high"),
    ("observer", "medium"),
];

/// Fields as they are declared: reasons before what they lead to.
const ORDERS: [(&str, &[&str]); 7] = [
    (
        "router",
        &[
            "reasoning",
            "input_type",
            "confidence",
            "domain_selection_reasoning",
            "selected_domains",
        ],
    ),
    (
        "planner",
        &[
            "original_query",
            "query_type",
            "sub_queries",
            "reasoning",
            "next_action",
        ],
    ),
    ("retriever", &["searches", "warnings"]),
    (
        "analyzer",
        &[
            "query_intent",
            "findings",
            "claim",
            "evidence",
            "patterns_identified",
            "gaps_identified",
            "verdict_reasoning",
            "verdict",
        ],
    ),
    (
        "synthesizer",
        &["response", "key_points", "evidence_cited", "gaps_disclosed"],
    ),
    (
        "evaluator",
        &[
            "dimensions",
            "issues",
            "feedback",
            "recommendation",
            "overall_verdict",
        ],
    ),
    (
        "observer",
        &["insights_captured", "updates", "should_update"],
    ),
];

/// Which agent asks, by a field that only its answer has.
fn agent_of(recorded: &Recorded) -> &'static str {
    let marks = [
        ("router", "\"log_portion\":{"),
        ("planner", "\"next_action\":{"),
        ("retriever", "\"searches\":{"),
        ("analyzer", "\"verdict_reasoning\":{"),
        ("synthesizer", "\"key_points\":{"),
        ("evaluator", "\"overall_verdict\":{"),
        ("parser", "\"raw_content\":{"),
        ("observer", "\"should_update\":{"),
    ];
    let found = marks.iter().find(|(_, mark)| recorded.text.contains(mark));
    found.map_or_else(
        || panic!("nobody known asks: {}", recorded.text),
        |(agent, _)| agent,
    )
}

fn answer(recorded: &Recorded) -> Reply {
    let agents = good_answer(&["2026-11-10"]);
    Reply::text(agents[agent_of(recorded)].to_string())
}

/// The names that stand as properties in a text, in the order of the text.
fn properties_in<'a>(text: &str, names: &[&'a str]) -> Vec<&'a str> {
    let place = |name: &&str| text.find(&format!("\"{name}\":{{"));
    let mut found = names.to_vec();
    found.sort_by_key(place);
    found
}

/// The crew with the models of its agents named otherwise.
fn crew(world: &World, model: impl Fn(&str) -> String) {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../selvedge-crews/crews/journal");
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    let own = "home/config/crews/journal";
    world.write(
        &format!("{own}/crew.toml"),
        &read(&shipped.join("crew.toml")),
    );
    for file in std::fs::read_dir(shipped.join("agents")).unwrap().flatten() {
        let mut text = read(&file.path());
        for tier in ["low", "medium", "high"] {
            text = text.replace(
                &format!("\nmodel: {tier}\n"),
                &format!("\nmodel: {}\n", model(tier)),
            );
        }
        let name = file.file_name().into_string().unwrap();
        world.write(&format!("{own}/agents/{name}"), &text);
    }
}

fn ask(world: &World, openai: &ModelServer, anthropic: &ModelServer) -> Command {
    let mut command = world.command(&["ask", "Why did bench feel heavy?", "--at", NOW]);
    command
        .env("OPENAI_BASE_URL", openai.openai_url())
        .env("OPENAI_API_KEY", "sk-one-of-two")
        .env("ANTHROPIC_BASE_URL", anthropic.url())
        .env("ANTHROPIC_API_KEY", "sk-two-of-two");
    command
}

fn servers(
    runtime: &tokio::runtime::Runtime,
    one: impl Fn(&Recorded) -> Reply + Send + Sync + 'static,
    two: impl Fn(&Recorded) -> Reply + Send + Sync + 'static,
) -> (ModelServer, ModelServer) {
    runtime.block_on(async {
        (
            ModelServer::start_with(one).await,
            ModelServer::start_with(two).await,
        )
    })
}

fn asked(server: &ModelServer) -> Vec<(&'static str, String)> {
    let model = |r: &Recorded| r.body["model"].as_str().unwrap_or_default().to_owned();
    let requests = server.requests();
    requests.iter().map(|r| (agent_of(r), model(r))).collect()
}

#[test]
fn every_agent_asks_the_model_of_its_tier_at_its_own_provider() {
    let world = World::new();
    note(&world, "Bench 185x5, felt heavy", "2026-11-10 10:30");
    crew(&world, |tier| match tier {
        "high" => "anthropic/high".to_owned(),
        tier => format!("openai/{tier}"),
    });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (openai, anthropic) = servers(&runtime, answer, answer);
    let output = world.output(&mut ask(&world, &openai, &anthropic));
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("The answer."), "{}", output.stdout);
    let expected = |wanted: &[&str], models: &[(&str, &str)]| -> Vec<(&str, String)> {
        let model = |tier: &str| {
            models
                .iter()
                .find(|(t, _)| *t == tier)
                .unwrap()
                .1
                .to_owned()
        };
        let mine = AGENTS.iter().filter(|(_, tier)| wanted.contains(tier));
        mine.map(|(agent, tier)| (*agent, model(tier))).collect()
    };
    assert_eq!(
        asked(&openai),
        expected(
            &["low", "medium"],
            &[("low", "gpt-6-luna"), ("medium", "gpt-6.1-sol")]
        )
    );
    assert_eq!(
        asked(&anthropic),
        expected(&["high"], &[("high", "claude-opus-5-5")])
    );
    // What each was sent has the fields of its answer in their order.
    for request in openai.requests().iter().chain(&anthropic.requests()) {
        let agent = agent_of(request);
        let order = ORDERS.iter().find(|(name, _)| *name == agent).unwrap().1;
        assert_eq!(
            properties_in(&request.text, order),
            order,
            "{agent}: {}",
            request.text
        );
    }
}

#[test]
fn one_small_model_is_enough_for_all_of_them() {
    let world = World::new();
    note(&world, "Bench 185x5, felt heavy", "2026-11-10 10:30");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (openai, anthropic) = servers(&runtime, answer, answer);
    let mut command = ask(&world, &openai, &anthropic);
    let output = world.output(command.args(["--model", "openai/gpt-6-luna"]));
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("The answer."), "{}", output.stdout);
    let all = AGENTS.map(|(agent, _)| (agent, "gpt-6-luna".to_owned()));
    assert_eq!(asked(&openai), all);
    assert!(anthropic.requests().is_empty());
}

#[test]
fn a_provider_that_is_away_is_stood_in_for_by_the_fallback() {
    let world = World::new();
    note(&world, "Bench 185x5, felt heavy", "2026-11-10 10:30");
    crew(&world, |tier| format!("anthropic/{tier}"));
    world.write(
        "home/config/config.toml",
        "[fallback]\nanthropic = ['openai/gpt-6-luna']\n",
    );
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let away = |_: &Recorded| Reply::fault(ReplyFault::status(401));
    let (openai, anthropic) = servers(&runtime, answer, away);
    let output = world.output(&mut ask(&world, &openai, &anthropic));
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("The answer."), "{}", output.stdout);
    let agents: Vec<&str> = asked(&openai).into_iter().map(|(agent, _)| agent).collect();
    assert_eq!(agents, AGENTS.map(|(agent, _)| agent));
    assert!(
        output
            .stderr
            .contains("answered by openai/gpt-6-luna, because anthropic: status 401"),
        "{}",
        output.stderr
    );
}

#[test]
fn with_every_provider_away_a_question_gets_the_notes_and_a_note_is_kept() {
    let world = World::new();
    note(&world, "Bench 185x5, felt heavy", "2026-11-10 10:30");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let away = |_: &Recorded| Reply::fault(ReplyFault::status(401));
    let (openai, anthropic) = servers(&runtime, away, away);
    let output = world.output(&mut ask(&world, &openai, &anthropic));
    assert_eq!(output.code, 0, "{}", output.stderr);
    for words in ["Found notes, not an answer", "Bench 185x5, felt heavy"] {
        assert!(output.stdout.contains(words), "{}", output.stdout);
    }
    let mut log = world.command(&["log", "Ran 5k", "--at", NOW]);
    log.env("OPENAI_BASE_URL", openai.openai_url())
        .env("OPENAI_API_KEY", "sk-one-of-two");
    let output = world.output(&mut log);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(notes(&world)[1]["parse"], "pending");
}

#[test]
fn a_malformed_answer_is_reminded_of_twice_and_then_done_without() {
    let world = World::new();
    note(&world, "Bench 185x5, felt heavy", "2026-11-10 10:30");
    crew(&world, |tier| format!("openai/{tier}"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let broken = |recorded: &Recorded| match agent_of(recorded) {
        "analyzer" => Reply::text(json!({ "verdict": "perhaps" }).to_string()),
        _ => answer(recorded),
    };
    let (openai, anthropic) = servers(&runtime, broken, answer);
    let output = world.output(&mut ask(&world, &openai, &anthropic));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let requests = openai.requests();
    let analyzer: Vec<&Recorded> = requests
        .iter()
        .filter(|r| agent_of(r) == "analyzer")
        .collect();
    assert_eq!(analyzer.len(), 3, "once, and two reminders");
    let last = analyzer[2].body["messages"]
        .as_array()
        .or(analyzer[2].body["input"].as_array());
    let last: &Value = last.unwrap().last().unwrap();
    assert!(
        last.to_string().contains("is a required property"),
        "the error is told: {last}"
    );
    for words in [
        "Found notes, not an answer",
        "the analyzer gave no answer that can be used",
    ] {
        assert!(output.stdout.contains(words), "{}", output.stdout);
    }
}

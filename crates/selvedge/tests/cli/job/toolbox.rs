//! The tools that jobs have: which, in which phase, and that each does what its name says.

use serde_json::json;

use super::documents::{STATEMENTS, id, pdf};
use super::*;

const WORKSPACE: [&str; 8] = [
    "read_file",
    "write_file",
    "append_file",
    "list_files",
    "search_files",
    "file_exists",
    "delete_file",
    "get_workspace_summary",
];
const FREE: [&str; 8] = [
    "add_todo",
    "start_todo",
    "complete_todo",
    "list_todos",
    "get_next_todo",
    "get_progress",
    "archive_and_reset",
    "job_complete",
];
const CREATOR: [&str; 11] = [
    "extract_document_text",
    "chunk_document",
    "cite_document",
    "add_requirement",
    "list_requirements",
    "query_similar_requirements",
    "web_search",
    "cite_web",
    "semantic_search",
    "index_file_for_search",
    "get_vector_index_stats",
];
const VALIDATOR: [&str; 11] = [
    "list_requirements",
    "get_database_schema",
    "find_similar_requirements",
    "check_for_duplicates",
    "generate_requirement_id",
    "create_requirement_node",
    "create_fulfillment_relationship",
    "get_entity_relationships",
    "count_graph_statistics",
    "validate_schema_compliance",
    "query_graph",
];
/// A second name of `add_requirement`, for configs that were written with it.
const SECOND_NAME: &str = "write_requirement_to_cache";

/// Every tool for a domain, each once.
fn domain() -> Vec<&'static str> {
    let mut all = [&CREATOR[..], &VALIDATOR, &[SECOND_NAME]].concat();
    all.sort_unstable();
    all.dedup();
    all
}

/// What a submitted job was set up with.
fn set_up(world: &World, config: &str) -> Value {
    let script = script(world, &json!({ "strategic": [], "worker": [] }));
    let mut submit = world.command(&["job", "submit", "--config", config, "--script"]);
    let submitted = world.output(submit.arg(script));
    assert_eq!(submitted.code, 0, "{}", submitted.stderr);
    let id = submitted.stdout.trim().to_owned();
    let events = world.selvedge(&["sessions", "events", &id, "--json"]);
    let events = events.stdout.lines().map(serde_json::from_str::<Value>);
    let mut started = events.filter_map(Result::ok);
    let started = started.find(|event| event["kind"] == "RunStarted");
    started.unwrap()["data"]["spec"]["team"].take()
}

/// The tools in an agent's prompt, without those that are more than the spec's.
fn tools_of(agent: &Value) -> Vec<String> {
    let names = agent["tools"].as_object().unwrap().keys();
    names
        .filter(|name| *name != "tool_search")
        .cloned()
        .collect()
}

fn sorted(lists: &[&[&str]]) -> Vec<String> {
    let mut names: Vec<String> = lists.concat().into_iter().map(str::to_owned).collect();
    names.sort();
    names
}

#[test]
fn every_phase_has_the_tools_that_are_its_own_and_no_others() {
    let free = world(json!({ "loop": "free", "tools": { "domain": domain() } }));
    let planning = sorted(&[&WORKSPACE, &["todo_complete", "todo_write", "job_complete"]]);
    for (config, own) in [("creator", &CREATOR), ("validator", &VALIDATOR)] {
        let team = set_up(&free, config);
        assert_eq!(tools_of(&team["strategic"]), planning, "{config}");
        let tactical = tools_of(&team["tactical"]);
        let offered = team["tactical"]["offers"].to_string();
        for name in WORKSPACE.iter().chain(own).chain(&["todo_complete"]) {
            let is_there = tactical.iter().any(|tool| tool == name);
            assert!(is_there || offered.contains(name), "{config} has no {name}");
        }
        for name in ["todo_write", "job_complete"] {
            assert!(
                !tactical.iter().any(|tool| tool == name),
                "{config}: {name}"
            );
        }
        assert!(!team["strategic"].to_string().contains("\"offers\""));
    }
    let team = set_up(&free, "mine");
    let all = sorted(&[&WORKSPACE, &FREE, &domain()]);
    assert_eq!(tools_of(&team["worker"]), all);
}

/// Calls each tool in a turn of its own, and gives what each answered.
fn answered(world: &World, calls: Vec<Value>) -> Vec<(String, String, bool)> {
    std::fs::write(
        world.work().join("handbook.pdf"),
        pdf(&[&STATEMENTS.map(|(_, text)| text)]),
    )
    .unwrap();
    let mut turns: Vec<Value> = calls.into_iter().map(|call| turn(&[call])).collect();
    turns.push(turn(&[json!({ "job_complete": { "summary": "Done." } })]));
    let arguments = ["--config", "mine", "--document", "handbook.pdf"];
    let mut command = run_command(world, &json!({ "worker": turns }), &arguments);
    let output = world.output(&mut command);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let mut answers = answers(&events(world));
    answers.retain(|(tool, _, _)| !tool.starts_with("phase_") && tool != "job_complete");
    answers
}

#[test]
fn every_domain_tool_does_what_its_name_says() {
    let world = world(json!({ "loop": "free", "tools": { "domain": domain() } }));
    let path = "documents/handbook.pdf";
    let texts = STATEMENTS.map(|(_, text)| text);
    let cited = texts.map(|text| id("cite", &[path, "1", text]));
    let stored = texts.map(|text| id("req", &[text]));
    let like = "invoices are kept for ten years";
    let cite = |n: usize| json!({ "cite_document": { "path": path, "quote": texts[n] } });
    let requirement = |n: usize| json!({ "text": texts[n], "citations": [cited[n]] });
    let node = |from: &str| json!({ "create_requirement_node": { "id": "R-0001", "requirement": from, "status": "accepted" } });
    let relation = json!({ "source": "R-0001", "target": "archive", "kind": "FULFILLED_BY", "notes": "shelf 4" });
    let next = || json!({ "generate_requirement_id": {} });
    // A call, and what stands in the answer, whatever its spaces.
    let steps: Vec<(Value, Vec<&str>)> = vec![
        (
            json!({ "extract_document_text": { "path": path } }),
            texts.to_vec(),
        ),
        (
            json!({ "chunk_document": { "path": path } }),
            vec!["chunks/"],
        ),
        (cite(0), vec![&cited[0], "page 1"]),
        (cite(1), vec![&cited[1], "page 1"]),
        (cite(2), vec![&cited[2], "page 1"]),
        (
            json!({ "cite_web": { "url": "https://example.org/law", "quote": "ten years" } }),
            vec!["citation `cite-", "https://example.org/law"],
        ),
        (
            json!({ "cite_web": { "url": "example.org", "quote": "ten years" } }),
            vec!["is not the address of a web page"],
        ),
        (
            json!({ "add_requirement": requirement(0) }),
            vec![&stored[0]],
        ),
        (
            json!({ "add_requirement": requirement(1) }),
            vec![&stored[1]],
        ),
        (json!({ SECOND_NAME: requirement(2) }), vec![&stored[2]]),
        (
            json!({ "list_requirements": { "status": "pending" } }),
            texts.to_vec(),
        ),
        (
            json!({ "query_similar_requirements": { "text": like, "limit": 2 } }),
            vec![texts[0], texts[2], "\"likeness\":"],
        ),
        (
            json!({ "get_database_schema": {} }),
            vec![
                "\"Requirement\"",
                "\"BusinessObject\"",
                "\"FULFILLED_BY\"",
                "\"citation\":\"required\"",
            ],
        ),
        (
            json!({ "check_for_duplicates": { "id": stored[2] } }),
            vec![&stored[0], texts[0]],
        ),
        (
            json!({ "check_for_duplicates": { "id": stored[1] } }),
            vec!["no duplicates"],
        ),
        (
            json!({ "find_similar_requirements": { "text": like } }),
            vec!["nothing in the graph is like it"],
        ),
        (next(), vec!["R-0001"]),
        (
            node("req-none"),
            vec!["no requirement `req-none` in the cache"],
        ),
        (node(&stored[0]), vec!["`R-0001` is in the graph: accepted"]),
        (next(), vec!["R-0002"]),
        (
            json!({ "find_similar_requirements": { "text": like } }),
            vec!["\"R-0001\"", texts[0]],
        ),
        (
            json!({ "create_fulfillment_relationship": relation }),
            vec!["`R-0001` FULFILLED_BY `archive`"],
        ),
        (
            json!({ "get_entity_relationships": { "id": "archive" } }),
            vec!["\"R-0001\"", "FULFILLED_BY", "shelf 4"],
        ),
        (
            json!({ "count_graph_statistics": {} }),
            vec![
                "\"BusinessObject\":1",
                "\"Requirement\":1",
                "\"FULFILLED_BY\":1",
            ],
        ),
        (
            json!({ "validate_schema_compliance": {} }),
            vec!["everything complies"],
        ),
        (
            json!({ "query_graph": { "label": "Requirement", "having": { "status": "accepted" } } }),
            vec!["\"R-0001\"", &stored[0]],
        ),
        (
            json!({ "query_graph": { "label": "Requirement", "having": { "status": "rejected" } } }),
            vec!["[]"],
        ),
        (
            json!({ "semantic_search": { "query": like } }),
            vec!["invoices"],
        ),
        (
            json!({ "index_file_for_search": { "path": "instructions.md" } }),
            vec!["`instructions.md` is in the index"],
        ),
        (
            json!({ "get_vector_index_stats": {} }),
            vec!["\"files\":", "\"vectors\":"],
        ),
        (
            json!({ "web_search": { "query": like } }),
            vec!["none is configured"],
        ),
    ];
    let (calls, parts): (Vec<Value>, Vec<Vec<&str>>) = steps.into_iter().unzip();
    let called = |call: &Value| call.as_object().unwrap().keys().next().unwrap().clone();
    let names: Vec<String> = calls.iter().map(called).collect();
    let answers = answered(&world, calls);
    let dense = |text: &str| text.split_whitespace().collect::<String>();
    assert_eq!(answers.len(), names.len());
    for ((name, parts), (tool, text, _)) in names.iter().zip(parts).zip(&answers) {
        assert_eq!(tool, name);
        for part in parts {
            assert!(dense(text).contains(&dense(part)), "{tool}: {part}: {text}");
        }
    }
    let similar = answers
        .iter()
        .find(|(tool, _, _)| tool == "query_similar_requirements");
    assert!(
        !similar.unwrap().1.contains(texts[1]),
        "the two most like it"
    );
    for tool in domain() {
        assert!(
            names.iter().any(|name| name == tool),
            "{tool} was not tried"
        );
    }
}

#[test]
fn a_search_for_tools_loads_the_best_by_words_or_by_pattern_and_five_at_most() {
    let world = world(json!({ "loop": "free", "tools": { "deferred": domain() } }));
    let search = |query: &str| json!({ "tool_search": { "query": query } });
    let answers = answered(
        &world,
        vec![
            search("cut a document into chunks"),
            search("count what is in the graph"),
            search("quote of a web page"),
            search("e_w.b"),
            search("requirement"),
            search("zebra"),
            json!({ "chunk_document": { "path": "documents/handbook.pdf" } }),
        ],
    );
    let loaded: Vec<Vec<&str>> = answers
        .iter()
        .map(|(_, text, _)| {
            let lines = text.lines().filter_map(|line| line.strip_prefix("- "));
            lines.filter_map(|line| line.split(':').next()).collect()
        })
        .collect();
    for (found, best) in loaded
        .iter()
        .zip(["chunk_document", "count_graph_statistics", "cite_web"])
    {
        assert_eq!(found.first(), Some(&best), "{found:?}");
        assert!(found.len() <= 5, "{found:?}");
    }
    assert_eq!(loaded[3], ["cite_web"], "no word is like it");
    assert!((2..=5).contains(&loaded[4].len()), "{:?}", loaded[4]);
    let (_, text, is_error) = &answers[5];
    assert!(*is_error && text.contains("no tool fits `zebra`"), "{text}");
    let (tool, text, is_error) = &answers[6];
    assert!(tool == "chunk_document" && !is_error, "{text}");
    let requests = sent(&world, "worker", 1);
    let has = |n: usize| {
        requests[n]["tools"]
            .to_string()
            .contains("\"chunk_document\"")
    };
    assert!(!has(0) && has(1), "it is there from the next turn on");
}

//! Five hundred turns with long results: no request is larger than it may be, and the
//! ledger has every byte.

use serde_json::json;

use super::*;

const TURNS: usize = 500;
const THRESHOLD: u64 = 45_000;
const RESULT_BYTES: usize = 20 * 1024;

/// Bytes of everything that is said in a message: words, calls and results.
fn said(message: &Value) -> usize {
    match message {
        Value::String(text) => text.len(),
        Value::Array(parts) => parts.iter().map(said).sum(),
        Value::Object(fields) => {
            let told = fields
                .iter()
                .filter(|(name, _)| !["type", "role"].contains(&name.as_str()));
            told.map(|(_, value)| said(value)).sum()
        }
        _ => 0,
    }
}

#[test]
fn a_job_of_five_hundred_turns_stays_below_the_threshold_and_loses_nothing() {
    let world = world(json!({
        "limits": { "context_threshold_tokens": THRESHOLD, "max_iterations": 700 },
    }));
    let line = "a line of a long document that is read again and again\n";
    let document = line.repeat(RESULT_BYTES / line.len() + 1);
    let path = world.write("long.txt", &document);
    let todos = 10;
    let mut turns = Vec::new();
    for n in 0..TURNS {
        let mut calls = vec![json!({ "read_file": { "path": "documents/long.txt" } })];
        if n % (TURNS / todos) == TURNS / todos - 1 {
            calls.push(json!({ "todo_complete": {} }));
        }
        turns.push(turn(&calls));
    }
    // Some of the turns are asked for a summary instead, and their calls are not made.
    turns.extend(vec![turn(&completing(1)); 40]);
    let mut agents = two_phases();
    agents["strategic/task-001"] = json!([turn(&[todo_write(todos)]), turn(&completing(4))]);
    agents["tactical/task-002"] = json!(turns);
    agents["strategic/task-003"] =
        json!([turn(&[json!({ "job_complete": { "summary": "Read." } })])]);
    let mut command = run_command(&world, &agents, &["--config", "mine", "--document"]);
    let output = world.output(command.arg(path));
    assert_eq!(output.code, 0, "{}", output.stderr);

    let requests = sent(&world, "tactical", 2);
    assert!(requests.len() >= TURNS - 40, "{}", requests.len());
    let beside =
        requests[0]["system"].as_str().unwrap().len() + requests[0]["tools"].to_string().len();
    let mut messages: Vec<usize> = Vec::new();
    let mut largest = 0;
    for request in &requests {
        messages.truncate(request["after"].as_u64().unwrap() as usize);
        let new = request["messages"].as_array().unwrap();
        messages.extend(new.iter().map(said));
        // Three and a half bytes a token, and a few tokens for each message, as everywhere.
        let bytes = messages.iter().sum::<usize>() + beside;
        let tokens = (bytes * 2 / 7 + 4 * messages.len()) as u64;
        largest = largest.max(tokens);
    }
    // The list is the last thing that a model reads, and no summary touches it.
    let mut lists: Vec<&str> = Vec::new();
    for request in &requests {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        let text = last["parts"][0]["text"].as_str().unwrap();
        match text.starts_with("[todos: phase 2, tactical, ") {
            true => lists.push(text),
            false => assert!(text.contains("Write a summary"), "{text}"),
        }
    }
    lists.dedup();
    assert_eq!(
        lists.len(),
        todos,
        "one list for every count of completed todos: {lists:#?}"
    );
    assert!(largest <= THRESHOLD, "{largest} tokens");
    assert!(
        largest > THRESHOLD / 2,
        "the test is about large requests: {largest}"
    );

    let events = events(&world);
    let asked: usize = events
        .iter()
        .filter(|event| {
            event["kind"] == "ToolCallStarted" && event["data"]["what"]["tool"] == "read_file"
        })
        .count();
    let kept = answers(&events);
    let whole = kept
        .iter()
        .filter(|(tool, text, _)| tool == "read_file" && *text == document);
    assert_eq!(whole.count(), asked);
    assert!(asked >= TURNS - 60, "{asked}");
}

#[test]
fn a_request_that_cannot_be_made_to_fit_fails_with_its_size_and_nothing_is_dropped() {
    let world = world(json!({ "limits": { "context_threshold_tokens": 8_000 } }));
    let long = "fact ".repeat(9_000);
    let mut agents = two_phases();
    agents["strategic/task-001"][0]["calls"][0] = write_file("notes/long.md", &long);
    let output = run(&world, &agents);
    assert_eq!(output.code, 1, "{}", output.stderr);
    let error = read_json(&folder(&world).join("output/error.json"));
    let what = error["what"].as_str().unwrap();
    assert!(
        what.contains("its conversation of about") && what.contains("does not fit into"),
        "{what}"
    );
    assert_eq!(read(&folder(&world).join("notes/long.md")), long);
}

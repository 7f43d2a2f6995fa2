//! Jobs through the real binary, with a model that says what it was told to say.

mod configs;
mod documents;
mod failing;
mod indexing;
mod killing;
mod models;
mod paths;
mod phases;
mod size;
mod toolbox;
mod workers;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::world::{Output, World};

/// A world with a config `mine` that says this beyond the defaults.
fn world(config: Value) -> World {
    let world = World::new();
    let mut all = json!({ "$extends": "defaults" });
    for (key, value) in config.as_object().unwrap() {
        all[key] = value.clone();
    }
    world.write("work/.selvedge/configs/mine/config.json", &all.to_string());
    world.write(
        "work/.selvedge/configs/mine/instructions.md",
        "Count the words.\n",
    );
    world
}

/// A turn that makes these calls.
fn turn(calls: &[Value]) -> Value {
    json!({ "text": "Going on.", "calls": calls, "usage": { "input": 100, "output": 10 } })
}

/// `todo_complete`, so many times.
fn completing(count: usize) -> Vec<Value> {
    vec![json!({ "todo_complete": {} }); count]
}

/// A list of so many todos.
fn todo_write(count: usize) -> Value {
    let todos: Vec<Value> = (1..=count)
        .map(|n| json!({ "content": format!("todo {n}") }))
        .collect();
    json!({ "todo_write": { "phase": "Counting", "todos": todos } })
}

fn write_file(path: &str, content: &str) -> Value {
    json!({ "write_file": { "path": path, "content": content } })
}

/// The turns of a job of two phases, and the third that ends it.
fn two_phases() -> Value {
    json!({
        "strategic/task-001": [
            turn(&[
                write_file("workspace.md", "# Memory\nthe answer is 42\n"),
                write_file("main_plan.md", "one phase\n"),
                todo_write(5),
            ]),
            turn(&completing(4)),
        ],
        "tactical/task-002": [
            turn(&[json!({ "append_file": { "path": "output/count.md", "content": "forty-two\n" } })]),
            turn(&completing(2)),
            turn(&[json!({ "append_file": { "path": "output/count.md", "content": "words\n" } })]),
            turn(&completing(3)),
        ],
        "strategic/task-003": [
            turn(&completing(3)),
            turn(&[json!({ "job_complete": { "summary": "Counted.", "outputs": ["output/count.md"] } })]),
        ],
    })
}

/// Writes a script of turns by agent.
fn script(world: &World, agents: &Value) -> PathBuf {
    let script = json!({ "price": { "input": 2.0, "output": 10.0 }, "agents": agents });
    world.write("script.yaml", &script.to_string())
}

fn run_command(world: &World, agents: &Value, arguments: &[&str]) -> Command {
    let script = script(world, agents);
    let mut command = world.command(&["job", "run", "--script"]);
    command.arg(script).args(arguments);
    command
}

/// Runs a job of the config `mine`.
fn run(world: &World, agents: &Value) -> Output {
    world.output(&mut run_command(world, agents, &["--config", "mine"]))
}

/// The folder of the only job.
fn folder(world: &World) -> PathBuf {
    let jobs = std::fs::read_dir(world.work().join("workspace")).unwrap();
    let jobs: Vec<PathBuf> = jobs.map(|entry| entry.unwrap().path()).collect();
    let [only] = jobs.as_slice() else {
        panic!("{jobs:?}");
    };
    only.clone()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn read_json(path: &Path) -> Value {
    serde_json::from_str(&read(path)).unwrap()
}

/// The events of the only session.
fn events(world: &World) -> Vec<Value> {
    let session = world.session();
    let events = world.selvedge(&["sessions", "events", &session, "--json"]);
    let parse = |line: &str| serde_json::from_str(line).unwrap();
    events.stdout.lines().map(parse).collect()
}

/// What tools answered, in the order of the calls: the tool, the text, and whether it
/// failed. Calls that only look end in any order.
fn answers(events: &[Value]) -> Vec<(String, String, bool)> {
    let finished = events
        .iter()
        .filter(|event| event["kind"] == "ToolCallFinished");
    let mut finished: Vec<&Value> = finished.collect();
    finished.sort_by_cached_key(|event| {
        let effect = event["data"]["effect"]
            .as_str()
            .unwrap()
            .trim_start_matches('t');
        let numbers = effect
            .split('.')
            .map(|part| part.parse::<u32>().unwrap_or(0));
        let stream = event["stream"].as_str().unwrap().to_owned();
        (stream, numbers.collect::<Vec<_>>())
    });
    let answer = |event: &Value| {
        let outcome = &event["data"]["outcome"];
        let word = |name: &str| outcome[name].as_str().unwrap_or_default().to_owned();
        (word("tool"), word("text"), outcome["is_error"] == true)
    };
    finished.into_iter().map(answer).collect()
}

/// What was sent to an agent at a task, request by request.
fn sent(world: &World, agent: &str, task: u32) -> Vec<Value> {
    let session = world.home().join("data/sessions").join(world.session());
    let path = session.join(format!("{agent}/task-{task:03}/to_model.jsonl"));
    let lines = read(&path);
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

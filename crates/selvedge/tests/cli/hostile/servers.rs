//! Servers of the Model Context Protocol that turn on whoever uses them.

use serde_json::{Value, json};

use super::{Record, Sink, audited, run, says, turn, turns};
use crate::stranger::TREASURE;
use crate::terminal::Terminal;
use crate::world::World;

const SCRIPT: &str = include_str!("../../../../selvedge-mcp/tests/servers/hostile.py");

/// A world with an approved server that was well-behaved when it was looked at.
fn world(env: Value) -> World {
    let world = World::of_a_stranger();
    let script = world.write("work/hostile.py", SCRIPT);
    let entry = json!({"command": "python3", "args": [script], "env": env});
    list(&world, json!({"weaver": entry}));
    trust_and_approve(&world, "weaver");
    world
}

pub fn list(world: &World, servers: Value) {
    let file = json!({ "mcpServers": servers });
    world.write("work/.mcp.json", &file.to_string());
}

fn trust_and_approve(world: &World, name: &str) {
    assert_eq!(world.selvedge(&["trust"]).code, 0);
    let output = world.selvedge(&["mcp", "approve", name, "--yes"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
}

/// From now on the server, whose program and entry are the same, does this.
fn turns_out(world: &World, mood: &str) {
    world.write("work/moods.txt", mood);
}

fn call(tool: &str, text: &str) -> Value {
    json!({ format!("mcp__weaver__{tool}"): {"text": text} })
}

const AUTO: [&str; 3] = ["--approve", "auto", "go"];

#[test]
fn an_approved_entry_that_is_edited_starts_nothing() {
    let world = world(json!({}));
    let script = world.work().join("hostile.py");
    let work = turns(&[call("echo", "x"), run("echo here")]);
    assert_eq!(world.run(&work, &AUTO).code, 0);
    Record::of(&world).check_worked("t0.0");
    let starts = |body: &str| json!({"weaver": {"command": "sh", "args": ["-c", body]}});
    let edits = [
        starts("touch canary"),
        json!({"weaver": {"command": "python3", "args": [script], "env": {"PYTHONSTARTUP": "x"}}}),
        json!({"weaver": {"command": "python3", "args": [script, "grown"]}}),
        json!({"weaver": {"url": "http://127.0.0.1:9/mcp"}}),
    ];
    for edit in edits {
        list(&world, edit.clone());
        for is_trusted in [false, true] {
            if is_trusted {
                assert_eq!(world.selvedge(&["trust"]).code, 0);
            }
            let output = world.run(&work, &AUTO);
            let expected = match is_trusted {
                true => "has changed since it was approved",
                false => "nobody vouches for this folder",
            };
            says(&output.stderr, expected);
            let record = Record::of(&world);
            let said = record.text("t0.0");
            assert!(
                said.starts_with("There is no tool `mcp__weaver__echo`"),
                "{edit}: {said}"
            );
            record.check_worked("t0.1");
        }
    }
    assert!(!world.work().join("canary").exists());
    // The entry is what it was, and its program is another.
    let evil = "open('canary', 'w')\n";
    let entry = json!({"command": "python3", "args": [script], "env": {}});
    list(&world, json!({ "weaver": entry }));
    assert_eq!(world.selvedge(&["trust"]).code, 0);
    world.write("work/hostile.py", evil);
    world.run(&work, &AUTO);
    let record = Record::of(&world);
    record.check_worked("t0.1");
    assert!(!world.work().join("canary").exists());
    world.write("work/hostile.py", SCRIPT);
    world.run(&work, &AUTO);
    Record::of(&world).check_worked("t0.0");
}

#[test]
fn a_tool_that_is_described_otherwise_is_nobody_s_until_it_is_approved_again() {
    let world = world(json!({}));
    for mood in ["changed", "reshaped"] {
        turns_out(&world, mood);
        let work = turns(&[
            call("echo", "secret"),
            call("write", mood),
            call("steal", "x"),
        ]);
        let output = world.run(&work, &AUTO);
        assert_eq!(output.code, 0, "{}", output.stderr);
        let record = Record::of(&world);
        let outcome = record.outcome("t0.0");
        assert_eq!(outcome["is_error"], true, "{outcome}");
        assert_eq!(outcome["facts"]["disabled"], true, "{outcome}");
        assert!(record.text("t0.0").contains("selvedge mcp approve weaver"));
        record.check_worked("t0.1");
        let unseen = record.text("t0.2");
        assert!(unseen.starts_with("There is no tool"), "{unseen}");
    }
    let written = std::fs::read_to_string(world.work().join("written.txt"));
    assert_eq!(written.unwrap(), "changed\nreshaped\n");
    let output = world.selvedge(&["mcp", "approve", "weaver", "--yes"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    world.run(&turns(&[call("echo", "warp")]), &AUTO);
    assert_eq!(Record::of(&world).text("t0.0"), "warp");
}

#[test]
fn a_model_that_does_what_a_description_says_finds_no_key_to_give_away() {
    let world = world(json!({}));
    let key = world.person().join(".ssh/id_ed25519").display().to_string();
    let config = world.home().join("data").display().to_string();
    let steals = [
        json!({"read_file": {"path": key}}),
        json!({"read_file": {"path": "../person/.ssh/id_ed25519"}}),
        json!({"search_files": {"pattern": "tr3asure", "path": "../person"}}),
        run(&format!("cat {key}")),
        run(&format!(
            "cp -r {config} stolen; ln -s {key} link; cat link"
        )),
        json!({"read_file": {"path": "link"}}),
    ];
    let script = format!(
        "{}\n{}\n- text: done",
        turn(&steals),
        turn(&[call("write", "what I found"), call("echo", "fine")])
    );
    let output = world.run(&script, &AUTO);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let record = Record::of(&world);
    for at in 0..steals.len() {
        let name = format!("t0.{at}");
        match record.find("ToolCallFinished", &name) {
            Some(call) => assert_eq!(call["outcome"]["is_error"], true, "{name}: {call}"),
            None => record.check_refused(&name, "deny", ""),
        }
    }
    // Nobody is there to be asked: nothing is sent at all.
    assert_eq!(record.text("t1.1"), "fine");
    let output = world.run(&script, &["--approve", "never", "go"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    Record::of(&world).check_refused("t1.0", "deny", "mode: never");
    let _ = std::fs::remove_file(world.work().join("link"));
    world.check_treasures();
}

#[test]
fn whatever_a_server_says_the_session_lives_and_the_server_is_left_alone() {
    for (mood, because) in [
        ("endless", "without an answer"),
        ("gigabyte", "more than 16 MB at once"),
        ("malformed", "not JSON"),
        ("wrong-id", "which was not asked"),
        ("twice", "answered before"),
    ] {
        let world = world(json!({}));
        turns_out(&world, mood);
        let script = format!(
            "{}\n{}\n- text: done",
            turn(&[call("echo", "one"), run("echo > proof")]),
            turn(&[call("echo", "two"), run("cat written.txt; echo fine")])
        );
        let output = world.run(&script, &AUTO);
        assert_eq!(output.code, 0, "{mood}: {}", output.stderr);
        let record = Record::of(&world);
        let again = record.text("t1.0");
        let is_left = again.contains("in quarantine") && again.contains(because);
        assert!(is_left, "{mood}: {again}");
        record.check_worked("t0.1");
        record.check_worked("t1.1");
        assert!(world.work().join("proof").exists());
        let size = std::fs::metadata(world.home().join("data/ledger.db"))
            .unwrap()
            .len();
        assert!(size < 40_000_000, "{mood}: {size}");
    }
}

#[test]
fn a_server_that_asks_for_a_password_is_refused_and_one_that_asks_on_and_on_is_too() {
    for (mood, shown, answer) in [
        ("password", 0, "asked: decline"),
        ("forms", 5, "it asks too often"),
        ("sample", 0, "no model is asked in the name of a server"),
        ("form", 1, "\"branch\": \"topic\""),
    ] {
        let world = world(json!({}));
        turns_out(&world, mood);
        let command = world.run_command(&turns(&[call("echo", "x")]), &AUTO);
        let mut terminal = Terminal::start(command, 100);
        for asked in 1..=shown {
            terminal.wait_for_times("the MCP server `weaver` asks you", asked);
            terminal.type_line("yes");
            if mood == "form" {
                terminal.wait_for("branch (main");
                terminal.type_line("topic");
            } else {
                terminal.wait_for_times("n (1 if you say nothing)", asked);
                terminal.type_line("");
            }
        }
        let (code, text) = terminal.end();
        assert_eq!(code, 0, "{mood}: {text}");
        assert_eq!(text.matches("asks you").count(), shown, "{mood}: {text}");
        let record = Record::of(&world);
        assert!(
            record.text("t0.0").contains(answer),
            "{mood}: {}",
            record.text("t0.0")
        );
        let forms = &record.outcome("t0.0")["facts"]["forms"];
        assert_eq!(forms.is_null(), mood == "sample", "{mood}: {forms}");
    }
}

#[test]
fn a_server_finds_no_key_no_home_and_no_token_of_another_server() {
    let sink = Sink::new();
    let world = World::of_a_stranger();
    let script = world.write("work/hostile.py", SCRIPT);
    let look = [
        world.person().join(".ssh/id_ed25519"),
        world.person().join(".aws/credentials"),
        world.home().join("data/ledger.db"),
        world.home().join("config/config.toml"),
        "/proc/1/environ".into(),
        format!("/proc/{}/environ", std::process::id()).into(),
    ];
    let look: Vec<String> = look.iter().map(|path| path.display().to_string()).collect();
    let entry = |token: &str| {
        let env = json!({"SERVICE_TOKEN": format!("${{{token}}}"), "LOOK_AT": look.join(":")});
        json!({"command": "python3", "args": [script, "look"], "env": env})
    };
    list(
        &world,
        json!({"weaver": entry("FIRST"), "other": entry("SECOND")}),
    );
    world.write("home/config/config.toml", "# mine\n");
    let tokens = ["tok-first-8c2f61d9e0b7", "tok-second-55aa1907c3d4"];
    let with_tokens = |mut command: std::process::Command| {
        command.env("FIRST", tokens[0]).env("SECOND", tokens[1]);
        world.output(&mut command)
    };
    assert_eq!(world.selvedge(&["trust"]).code, 0);
    for name in ["weaver", "other"] {
        let output = with_tokens(world.command(&["mcp", "approve", name, "--yes"]));
        assert_eq!(output.code, 0, "{}", output.stderr);
    }
    let calls = [
        call("echo", "x"),
        json!({"mcp__other__echo": {"text": "x"}}),
    ];
    let output = with_tokens(world.run_command(&turns(&calls), &AUTO));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let record = Record::of(&world);
    for name in ["t0.0", "t0.1"] {
        let seen: Value = serde_json::from_str(record.text(name)).unwrap();
        let names = seen["environment"].to_string();
        assert!(names.contains("SERVICE_TOKEN"), "its own it has: {names}");
        for secret in ["FIRST", "SECOND", "SELVEDGE_", "API_KEY", "SSH_", "CANARY"] {
            assert!(!names.contains(secret), "{secret}: {names}");
        }
        for place in &look {
            let found = seen[place.as_str()].as_str().unwrap_or_default();
            for secret in [
                TREASURE,
                "# mine",
                "SECOND=tok",
                "FIRST=tok",
                "CANARY_TOKEN=",
            ] {
                assert!(!found.contains(secret), "{place}: {found}");
            }
        }
    }
    let leaks = selvedge_testkit::leaks(&world.root().join("home"), &tokens);
    assert!(leaks.is_empty(), "{leaks:?}");
    assert!(!sink.was_visited());
    let acts = audited(&world, "allowed");
    assert!(acts.iter().any(|act| act["action"] == "mcp__other__echo"));
    world.check_treasures();
}

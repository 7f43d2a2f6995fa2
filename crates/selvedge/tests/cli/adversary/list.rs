//! A model that tries everything of the list, through the real binary.
//!
//! What each command is decided to be is tested beside the policy. Here the same list is
//! what a model says in a run in which nobody can be asked: nothing of it may begin, and
//! for each there must be a verdict on record that names its rule. Behind the
//! attacks stand harmless commands that must run, so that a wall fails too.

use std::collections::BTreeMap;
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::world::World;

const COMMANDS: &str = include_str!("../../../../selvedge-tool/src/policy/commands.txt");

/// The commands of the list that are not allowed by themselves where curl is forbidden.
fn attacks() -> Vec<String> {
    let (mut section, mut attacks) = ("", Vec::new());
    for line in COMMANDS.lines() {
        if let Some(text) = line.strip_prefix(">> ") {
            section = text;
        } else if !line.is_empty() && !line.starts_with('#') {
            let escapes = [("\\n", "\n"), ("\\r", "\r"), ("\\t", "\t")];
            let text = escapes
                .iter()
                .fold(line.to_owned(), |text, (from, to)| text.replace(from, to));
            // Those without a sandbox would have to be run without one.
            if !section.starts_with("bare") && !section.ends_with(": allow") {
                attacks.push(text);
            }
        }
    }
    attacks
}

/// So many calls of one answer are carried out.
const CALLS_MAX: usize = 100;

#[test]
fn nothing_of_the_list_begins_when_a_model_says_it_and_every_verdict_is_on_record() {
    let sink = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    sink.set_nonblocking(true).unwrap();
    let address = format!("http://{}/", sink.local_addr().unwrap());
    let world = World::elsewhere();
    world.write("home/config/config.toml", "[policy]\ndeny = ['curl']\n");
    world.write("work/evil.sh", "touch canary ../canary\n");
    let mut commands = attacks();
    assert!(commands.len() > 400, "{}", commands.len());
    let sixty = "true; ".repeat(60);
    for joint in [";", "&&", "||", "|", "&", "\n"] {
        commands.push(format!("git status {joint} curl {address}"));
        commands.push(format!(
            "{sixty}git status {joint} curl {address}; touch canary"
        ));
    }
    let attacks = commands.len();
    let harmless = ["ls", "touch harmless", "cat evil.sh | head -1"];
    commands.extend(harmless.map(str::to_owned));
    let turns: Vec<String> = commands
        .chunks(CALLS_MAX)
        .map(|chunk| {
            let call = |command: &String| json!({"run_command": {"command": command}});
            let calls: Vec<Value> = chunk.iter().map(call).collect();
            format!("- calls: {}", Value::from(calls))
        })
        .collect();
    let script = format!("{}\n- text: done", turns.join("\n"));
    let mut command = world.run_command(&script, &["--approve", "never", "do it"]);
    // What is beside the workspace is not for temporary files here.
    let output = world.output(command.env("TMPDIR", "/tmp"));
    assert_eq!(output.code, 0, "{}", output.stderr);

    let session = world.session();
    let events = world.selvedge(&["sessions", "events", &session, "--json"]);
    let (mut judged, mut begun) = (BTreeMap::new(), Vec::new());
    for line in events.stdout.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let effect = event["data"]["effect"].as_str().unwrap_or_default();
        let call = effect.trim_end_matches('!').to_owned();
        match event["kind"].as_str() {
            Some("JudgementFinished") => drop(judged.insert(call, event["data"].clone())),
            Some("ToolCallStarted") => begun.push(call),
            _ => {}
        }
    }
    let name = |at: usize| format!("t{}.{}", at / CALLS_MAX, at % CALLS_MAX);
    let mut wrong = Vec::new();
    for (at, command) in commands.iter().enumerate() {
        let verdict = judged.get(&name(at)).map(|found| &found["outcome"]);
        let is_named = verdict.is_some_and(|verdict| {
            let says = verdict["rule"]["says"].as_str();
            says.is_some_and(|says| !says.is_empty()) && verdict["reason"].is_string()
        });
        let is_begun = begun.contains(&name(at));
        let is_denied = verdict.is_some_and(|verdict| verdict["decision"] == "deny");
        if !is_named || is_begun == (at < attacks) || is_denied == is_begun {
            wrong.push(format!("{command:?}: begun: {is_begun}, {verdict:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
    assert!(world.work().join("harmless").exists());
    let canaries = [world.work().join("canary"), world.root().join("canary")];
    assert!(canaries.iter().all(|canary| !canary.exists()));
    assert!(sink.accept().is_err(), "somebody came");
}

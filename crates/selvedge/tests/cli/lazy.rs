//! Tools that an agent asks for, and what that saves.

use serde_json::Value;

use crate::world::World;

const TURNS: &str = "\
- calls: [{request_tools: {intent: newest commits}}]
- calls: [{git_log: {limit: 1}}]
- calls: [{finish: {summary: looked}}]";

fn turns_of(world: &World) -> Vec<Value> {
    let session = world.session();
    let events = world.selvedge(&["sessions", "events", &session, "--json"]);
    let lines = events.stdout.lines();
    let events = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    events
        .filter(|event| event["kind"] == "ModelCallStarted")
        .map(|event| event["data"]["what"]["schema_tokens"].clone())
        .collect()
}

#[test]
fn an_engineer_asks_for_tools_and_usage_says_what_that_saved() {
    let world = World::new();
    let output = world.run(TURNS, &["look"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let turns = turns_of(&world);
    let sent: Vec<u64> = turns.iter().map(|t| t["sent"].as_u64().unwrap()).collect();
    assert_eq!(sent.len(), 3);
    assert!(sent[0] < sent[1] && sent[1] == sent[2], "{sent:?}");
    assert!(turns.iter().all(|t| t["eager"] == turns[0]["eager"]));
    let usage = world.selvedge(&["usage"]);
    assert!(
        usage.stderr.contains("tool schemas: about"),
        "{}",
        usage.stderr
    );
    let json = world.selvedge(&["usage", "--json"]);
    let row: Value = serde_json::from_str(json.stdout.trim()).unwrap();
    assert_eq!(row["schema_tokens"]["sent"], sent.iter().sum::<u64>());
}

#[test]
fn a_setting_puts_every_tool_at_hand() {
    let world = World::new();
    world.write("work/.selvedge/config.toml", "[tools]\nlazy = 'never'\n");
    let output = world.run(
        "- calls: [{git_log: {limit: 1}}]\n- text: looked",
        &["look"],
    );
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(turns_of(&world).iter().all(Value::is_null));
    let usage = world.selvedge(&["usage"]);
    assert!(!usage.stderr.contains("tool schemas"), "{}", usage.stderr);
    world.write(
        "work/.selvedge/config.toml",
        "[tools]\nlazy = 'sometimes'\n",
    );
    let output = world.run("- text: looked", &["look"]);
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("sometimes"), "{}", output.stderr);
}

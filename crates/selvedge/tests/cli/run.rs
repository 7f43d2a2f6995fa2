//! `run`: what it prints and how it ends.

use std::io::Write;
use std::process::Stdio;

use expect_test::expect;

use crate::world::World;

#[test]
fn a_run_that_ends_well_prints_its_result_and_what_it_took() {
    let world = World::new();
    world.write("work/notes.txt", "one\ntwo\n");
    let turns = "\
- text: I will read it.
  calls: [{read_file: {path: notes.txt}}]
  usage: {input: 100, output: 10}
- text: It has two lines.
  usage: {input: 200, output: 20}";
    world.run(turns, &["how many lines?"]).check(expect![[r#"
            exit 0
            -- stdout --
            It has two lines.
            -- stderr --
            engineer on scripted/script · session s_ID
              I will read it.
              engineer: read_file notes.txt
              It has two lines.
            done · 2 turns · 330 tokens · $0.0009 · N s · session s_ID
        "#]]);
}

#[test]
fn the_request_may_come_from_a_pipe() {
    for arguments in [&["-"][..], &[]] {
        let world = World::new();
        let mut command = world.run_command("- text: fine", arguments);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(b"from a pipe\n")
            .unwrap();
        assert!(child.wait().unwrap().success());
        let list = world.selvedge(&["sessions", "list"]);
        assert!(list.stdout.contains("from a pipe"), "{}", list.stdout);
    }
}

#[test]
fn a_result_with_a_schema_is_data_on_stdout() {
    let world = World::new();
    let schema = r#"{"type": "object", "required": ["lines"],
        "properties": {"lines": {"type": "integer"}}}"#;
    let schema = world.write("schema.json", schema);
    let schema = schema.to_str().unwrap();
    let turns = "- answer: {lines: two}\n- answer: {lines: 2}";
    let output = world.run(turns, &["--output-schema", schema, "how many lines?"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(output.stdout, "{\n  \"lines\": 2\n}\n");
}

#[test]
fn a_run_that_fails_says_why() {
    let world = World::new();
    let turns = "- calls: [{finish: {summary: the file is empty, outcome: failed}}]";
    world.run(turns, &["do it"]).check(expect![[r#"
        exit 1
        -- stderr --
        engineer on scripted/script · session s_ID
        failed: the file is empty
        failed · 1 turn · Nk tokens · $N · N s · session s_ID
          look: selvedge sessions show s_ID
    "#]]);
}

#[test]
fn a_run_that_was_denied_a_command_and_failed_has_its_own_code() {
    let world = World::new();
    let turns = "\
- calls: [{run_command: {command: sh -c 'touch made'}}]
- calls: [{finish: {summary: commands are not allowed, outcome: failed}}]";
    let output = world.run(turns, &["--approve", "never", "do it"]);
    assert_eq!(output.code, 5, "{}", output.stderr);
    assert!(!world.work().join("made").exists());
}

#[test]
fn an_exhausted_budget_pauses_and_a_higher_one_goes_on() {
    let world = World::new();
    let turns = "\
- calls: [{list_files: {}}]
  usage: {input: 50000, output: 10}
- text: done";
    world
        .run(turns, &["--budget", "0.15", "do it"])
        .check(expect![[r#"
            exit 4
            -- stderr --
            engineer on scripted/script · session s_ID
              engineer: list_files
              paused (budget): budget `session s_ID` allows $0.15: $0.1001 spent, $0.00 held by calls under way, and this call may take $0.0916
            paused: budget · 1 turn · Nk tokens · $N · N s · session s_ID
              go on: selvedge resume s_ID --budget USD
        "#]]);
    let session = world.session();
    world
        .selvedge(&["resume", &session])
        .check(expect![[r#"
            exit 4
            -- stderr --
            going on with session s_ID: do it
              in ROOT/work
              paused (budget): budget `session s_ID` allows $0.15: $0.1001 spent, $0.00 held by calls under way, and this call may take $0.0916
            paused: budget · 1 turn · Nk tokens · $N · N s · session s_ID
              go on: selvedge resume s_ID --budget USD
        "#]]);
    let output = world.selvedge(&["resume", &session, "--budget", "1"]);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (0, "done\n"),
        "{}",
        output.stderr
    );
}

#[test]
fn a_provider_that_stays_away_pauses_the_run() {
    let world = World::new();
    let turns = "\
- error: {kind: user_fixable, what: the key was refused, hint: set another key}
- text: fine";
    let output = world.run(turns, &["do it"]);
    output.check(expect![[r#"
        exit 6
        -- stderr --
        engineer on scripted/script · session s_ID
          paused (provider): scripted: the key was refused (set another key)
        paused: provider · 0 turns · N s · session s_ID
          go on: selvedge resume s_ID
    "#]]);
    // The script gives its error once in each process, as a repaired key would.
    let script = world.script("- text: fine");
    let script = script.to_str().unwrap();
    let output = world.selvedge(&["resume", "--last", "--script", script]);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (0, "fine\n"),
        "{}",
        output.stderr
    );
}

#[test]
fn a_deadline_stops_the_run_and_it_can_go_on() {
    let world = World::new();
    let turns = "- calls: [{run_command: {command: sleep 60}}]\n- text: fine";
    let output = world.run(turns, &["--approve", "auto", "--timeout", "300ms", "do it"]);
    assert_eq!(output.code, 124, "{}", output.stderr);
    assert!(
        output.stderr.contains("go on: selvedge resume"),
        "{}",
        output.stderr
    );
    let output = world.selvedge(&["resume", "--last"]);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (0, "fine\n"),
        "{}",
        output.stderr
    );
}

#[test]
fn nothing_a_model_says_can_steer_the_terminal() {
    let world = World::new();
    let output = world.run("- text: \"red \\e[31m alert\"", &["do it"]);
    assert!(
        output.stderr.contains("red \\u{1b}[31m alert"),
        "{}",
        output.stderr
    );
}

#[test]
fn exec_is_run_and_no_command_is_a_welcome() {
    let world = World::new();
    let script = world.script("- text: fine");
    let output = world.selvedge(&["exec", "--script", script.to_str().unwrap(), "do it"]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "fine\n"));
    let output = world.selvedge(&[]);
    assert_eq!(output.code, 0);
    assert!(output.stdout.contains("selvedge demo"), "{}", output.stdout);
}

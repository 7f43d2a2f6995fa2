//! `--json`: the same lines, now and later.

use std::process::Stdio;

use serde_json::Value;

use crate::world::World;

#[test]
fn a_run_prints_the_lines_that_can_be_read_later() {
    let world = World::new();
    // Long enough to be kept as a blob.
    let long = "words ".repeat(2000);
    world.write("work/long.txt", &long);
    let turns = "\
- text: I will read it.
  calls: [{read_file: {path: long.txt}}, {list_files: {}}]
- text: It is long.";
    let output = world.run(turns, &["--json", "read"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let session = world.session();
    let later = world.selvedge(&["sessions", "events", &session, "--json"]);
    assert_eq!(output.stdout, later.stdout);
    let exported = world.selvedge(&["sessions", "export", &session]);
    assert_eq!(output.stdout, exported.stdout);

    let events: Vec<Value> = output
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(events[0]["kind"], "StreamOpened");
    assert_eq!(events.last().unwrap()["kind"], "RunFinished");
    assert!(!output.stdout.contains("\"blob\":"), "blobs are resolved");
    let read = events
        .iter()
        .find(|e| e["data"]["outcome"]["tool"] == "read_file");
    let text = read.unwrap()["data"]["outcome"]["text"].as_str().unwrap();
    assert!(text.contains("words words"));
}

#[test]
fn the_lines_of_run_and_resume_together_are_the_lines_of_the_session() {
    let world = World::new();
    let turns = "- calls: [{ask_user: {question: which?}}]\n- text: fine";
    let first = world.run(turns, &["--json", "do it"]);
    assert_eq!(first.code, 3, "{}", first.stderr);
    let second = world.selvedge(&["answer", "blue", "--resume", "--json"]);
    assert_eq!(second.code, 0, "{}", second.stderr);
    let session = world.session();
    let later = world.selvedge(&["sessions", "events", &session, "--json"]);
    let letter = |line: &&str| !line.contains("#inbox");
    let both: Vec<&str> = first.stdout.lines().chain(second.stdout.lines()).collect();
    let both: Vec<&str> = both.into_iter().filter(letter).collect();
    let all: Vec<&str> = later.stdout.lines().filter(letter).collect();
    assert_eq!(both, all);
}

#[test]
fn output_that_cannot_be_written_is_no_success() {
    let world = World::new();
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full");
    let Ok(stdout) = full() else { return };
    let mut run = world.run_command("- text: fine", &["--json", "do it"]);
    let run = run.stdout(stdout).stderr(Stdio::piped()).spawn().unwrap();
    let run = run.wait_with_output().unwrap();
    let stderr = String::from_utf8(run.stderr).unwrap();
    assert_eq!(run.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("error: not everything could be written to stdout"),
        "{stderr}"
    );
    // The work itself went on to its end.
    assert!(stderr.contains("done · 1 turn"), "{stderr}");
    assert_eq!(world.kinds().last().unwrap(), "RunFinished");
}

#[test]
fn a_reader_that_has_seen_enough_stops_nothing() {
    let world = World::new();
    let mut run = world.run_command(
        "- calls: [{list_files: {path: .}}]\n- text: fine",
        &["--json", "do it"],
    );
    let mut run = run
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(run.stdout.take());
    assert_eq!(run.wait().unwrap().code(), Some(0));
    assert_eq!(world.kinds().last().unwrap(), "RunFinished");
}

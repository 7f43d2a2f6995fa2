//! `kill -9` of the real binary while a job is done, and what is left when it is resumed.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::json;

use super::*;

/// Kills at every so-manieth event, and at every boundary of a phase.
const EVERY: usize = 6;

/// Runs until so many events were printed, then kills; what was printed.
fn until_killed(mut command: Command, kill_after: usize) -> Vec<Value> {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut seen = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let Ok(event) = line
            .map_err(drop)
            .and_then(|line| serde_json::from_str(&line).map_err(drop))
        else {
            break;
        };
        seen.push(event);
        if seen.len() == kill_after {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    seen
}

#[test]
fn a_killed_job_goes_on_in_the_same_phase_with_the_same_todos_and_repeats_nothing() {
    let whole = world(json!({}));
    let command = run_command(&whole, &two_phases(), &["--config", "mine", "--json"]);
    let all = until_killed(command, usize::MAX);
    let archive = read(&folder(&whole).join("archive/phase_2.yaml"));
    let is_boundary = |event: &Value| {
        let kind = event["kind"].as_str().unwrap();
        kind.starts_with("Child") || kind.starts_with("Run")
    };
    let mut kills = 0;
    for n in 1..all.len() {
        if !is_boundary(&all[n - 1]) && n % EVERY != 0 {
            continue;
        }
        kills += 1;
        let world = world(json!({}));
        let command = run_command(&world, &two_phases(), &["--config", "mine", "--json"]);
        until_killed(command, n);
        let session = world.session();
        let before = world.selvedge(&["job", "status", &session, "--json"]);
        let before: Value = serde_json::from_str(&before.stdout).unwrap();
        let resumed = world.selvedge(&["job", "run", "--resume", &session]);
        assert_eq!(resumed.code, 0, "after event {n}: {}", resumed.stderr);
        let place = folder(&world);
        assert_eq!(
            read(&place.join("output/count.md")),
            "forty-two\nwords\n",
            "after event {n}"
        );
        assert_eq!(
            read(&place.join("archive/phase_2.yaml")),
            archive,
            "after event {n}"
        );
        let events = events(&world);
        let phases = events.iter().filter(|e| e["kind"] == "RunStarted").count();
        assert_eq!(
            phases, 4,
            "after event {n}: the job and its three phases, each once"
        );
        let finished = answers(&events).len();
        let unkilled = answers(&all).len();
        assert_eq!(
            finished, unkilled,
            "after event {n}: no finished call was made again"
        );
        let after = world.selvedge(&["job", "status", &session, "--json"]);
        let after: Value = serde_json::from_str(&after.stdout).unwrap();
        assert_eq!(after["todos_completed_in_all"], 12, "after event {n}");
        assert!(before["todos_completed_in_all"].as_u64() <= Some(12));
        assert!(before["phase"].as_u64() <= after["phase"].as_u64());
    }
    assert!(kills >= 15, "only {kills} kills");
}

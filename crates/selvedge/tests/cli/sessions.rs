//! Looking into sessions, copying them, and finding damage.

use crate::world::World;

#[test]
fn a_fork_goes_on_from_where_the_origin_was() {
    let world = World::new();
    let turns = "\
- calls: [{write_file: {path: a.txt, content: one}}]
- calls: [{read_file: {path: a.txt}}]
- text: fine";
    assert_eq!(world.run(turns, &["do it"]).code, 0);
    let origin = world.session();
    let forked = world.selvedge(&["sessions", "fork", &origin]);
    assert_eq!(forked.code, 0, "{}", forked.stderr);
    let fork = forked.stdout.trim();
    let output = world.selvedge(&["resume", fork]);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (0, "fine\n"),
        "{}",
        output.stderr
    );
    let events = world.selvedge(&["sessions", "events", fork, "--json"]);
    let forked = events
        .stdout
        .lines()
        .find(|line| line.contains("\"kind\":\"SessionForked\""));
    let forked: serde_json::Value = serde_json::from_str(forked.unwrap()).unwrap();
    assert_eq!(forked["data"]["from"], origin.as_str());
    // What was written before the cut is not written again.
    assert_eq!(events.stdout.matches("\"tool\":\"write_file\"").count(), 2);
    assert_eq!(world.selvedge(&["audit", "verify"]).code, 0);

    let early = world.selvedge(&["sessions", "fork", &origin, "--at", "2"]);
    let output = world.selvedge(&["resume", early.stdout.trim()]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(
        world
            .selvedge(&["sessions", "fork", &origin, "--at", "999"])
            .code,
        2
    );
}

#[test]
fn a_fork_of_an_answered_session_can_be_spoken_to() {
    let world = World::new();
    let turns = "\
- calls: [{ask_user: {question: which?}}]
- calls: [{ask_user: {question: and then?}}]
- text: fine";
    assert_eq!(world.run(turns, &["do it"]).code, 3);
    assert_eq!(world.selvedge(&["answer", "blue", "--resume"]).code, 3);
    let origin = world.session();
    let fork = world.selvedge(&["sessions", "fork", &origin]);
    let fork = fork.stdout.trim();
    let output = world.selvedge(&["answer", fork, "green", "--resume"]);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (0, "fine\n"),
        "{}",
        output.stderr
    );
    // The origin still waits.
    assert_eq!(
        world.selvedge(&["answer", &origin, "red", "--resume"]).code,
        0
    );
    assert_eq!(world.selvedge(&["audit", "verify"]).code, 0);
}

#[test]
fn a_backup_is_a_ledger_that_works() {
    let world = World::new();
    world.run("- text: fine", &["do it"]);
    let file = world.root().join("copy.db");
    let file = file.to_str().unwrap();
    assert_eq!(world.selvedge(&["sessions", "backup", file]).code, 0);
    assert_eq!(
        world.selvedge(&["sessions", "backup", file]).code,
        2,
        "never overwritten"
    );
    let other = World::new();
    std::fs::create_dir_all(other.home().join("data")).unwrap();
    std::fs::copy(file, other.home().join("data/ledger.db")).unwrap();
    assert_eq!(other.session(), world.session());
    assert_eq!(other.selvedge(&["audit", "verify"]).code, 0);
}

#[test]
fn an_export_is_never_written_over_another_file() {
    let world = World::new();
    world.run("- text: fine", &["do it"]);
    let session = world.session();
    let file = world.root().join("out.jsonl");
    let arguments = [
        "sessions",
        "export",
        &session,
        "--out",
        file.to_str().unwrap(),
    ];
    assert_eq!(world.selvedge(&arguments).code, 0);
    let events = world.selvedge(&["sessions", "events", &session, "--json"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), events.stdout);
    assert_eq!(world.selvedge(&arguments).code, 1);
}

#[test]
fn a_damaged_session_is_listed_and_does_not_stop_the_others() {
    let world = World::new();
    world.run("- text: the first one", &["first"]);
    let first = world.session();
    world.run("- text: the second one", &["second"]);
    damage(&world, "the first one", "the worst one");
    let list = world.selvedge(&["sessions", "list"]);
    assert_eq!(list.code, 0, "{}", list.stderr);
    assert!(list.stdout.contains("damaged"), "{}", list.stdout);
    assert!(list.stdout.contains("second"), "{}", list.stdout);
    let output = world.selvedge(&["audit", "verify"]);
    assert_eq!(output.code, 7);
    assert!(
        output.stdout.contains(&format!("damaged: `{first}` event")),
        "{}",
        output.stdout
    );
    assert_eq!(world.selvedge(&["sessions", "verify", &first]).code, 7);
    assert_eq!(world.selvedge(&["resume", &first]).code, 7);
    assert_eq!(world.selvedge(&["sessions", "show", &first]).code, 7);
    assert_eq!(world.run("- text: the third one", &["third"]).code, 0);
    assert_eq!(world.selvedge(&["usage"]).code, 0);
}

/// Changes words in the ledger's file, as a failing disk would.
fn damage(world: &World, from: &str, to: &str) {
    assert_eq!(from.len(), to.len());
    // A backup has everything in one file, and no log beside it.
    let copy = world.root().join("damaged.db");
    let backup = world.selvedge(&["sessions", "backup", copy.to_str().unwrap()]);
    assert_eq!(backup.code, 0, "{}", backup.stderr);
    let mut bytes = std::fs::read(&copy).unwrap();
    let find = |bytes: &[u8]| bytes.windows(from.len()).position(|w| w == from.as_bytes());
    let mut found = 0;
    while let Some(at) = find(&bytes) {
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        found += 1;
    }
    assert!(found > 0, "the words are in the ledger");
    let data = world.home().join("data");
    std::fs::write(data.join("ledger.db"), bytes).unwrap();
    for log in ["ledger.db-wal", "ledger.db-shm"] {
        let _ = std::fs::remove_file(data.join(log));
    }
}

#[test]
fn usage_adds_up_and_an_unknown_price_is_not_zero() {
    let world = World::new();
    world.run(
        "- text: fine\n  usage: {input: 1000000, output: 0}",
        &["do it"],
    );
    let free = world.write("free.yaml", "agents:\n  engineer:\n    - text: fine\n");
    world.selvedge(&["run", "--script", free.to_str().unwrap(), "do it"]);
    let output = world.selvedge(&["usage"]);
    assert!(output.stdout.contains("$2.00"), "{}", output.stdout);
    assert!(output.stdout.contains("unknown"), "{}", output.stdout);
    let output = world.selvedge(&["usage", "--json"]);
    assert!(
        output.stdout.contains("\"cost_usd\":null"),
        "{}",
        output.stdout
    );
    assert!(
        output.stdout.contains("\"cost_usd\":2.0"),
        "{}",
        output.stdout
    );
}

#[test]
fn what_a_fork_copied_is_not_paid_for_twice() {
    let world = World::new();
    let turns = "- calls: [{list_files: {path: .}}]\n- text: fine";
    assert_eq!(world.run(turns, &["do it"]).code, 0);
    let origin = world.session();
    let fork = world.selvedge(&["sessions", "fork", &origin]);
    let fork = fork.stdout.trim();
    assert_eq!(world.selvedge(&["resume", fork]).code, 0);
    let usage = world.selvedge(&["usage", "--json"]);
    let mut calls = std::collections::BTreeMap::new();
    for line in usage.stdout.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        calls.insert(
            row["session"].as_str().unwrap().to_owned(),
            row["calls"].clone(),
        );
    }
    assert_eq!(calls[&origin], 2);
    assert_eq!(calls[fork], 1, "the call before the fork was the origin's");
}

#[test]
fn a_fork_is_new_and_has_done_only_what_was_done_in_it() {
    let world = World::new();
    let turns = "- calls: [{list_files: {path: .}}]\n- text: fine\n  delay: 200ms";
    assert_eq!(world.run(turns, &["the first"]).code, 0);
    let origin = world.session();
    let stopped = ["--timeout", "100ms", "the second"];
    assert_eq!(world.run(turns, &stopped).code, 124);
    let second = world.session();
    let fork = world.selvedge(&["sessions", "fork", &origin]);
    let fork = fork.stdout.trim().to_owned();
    assert_eq!(world.session(), fork, "it is the newest of all");
    let shown = world.selvedge(&["sessions", "list"]).stdout;
    let first = shown.lines().nth(1).unwrap();
    assert!(
        first.starts_with(&fork) && first.contains("just now"),
        "{shown}"
    );

    let output = world.selvedge(&["resume", "--last"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(
        output.stderr.contains(&format!("session {fork}")),
        "{}",
        output.stderr
    );
    assert!(
        output.stderr.contains("done · 1 turn ·"),
        "{}",
        output.stderr
    );
    let shown = world.selvedge(&["sessions", "show", &fork]).stdout;
    assert!(
        shown.contains(&format!("forked     from {origin}, as it was at event")),
        "{shown}"
    );
    assert!(shown.contains("spent      1 turn ·"), "{shown}");
    let acts = |session: &str| {
        let acts = world.selvedge(&["audit", "query", "--json", "--session", session]);
        let action = |line: &str| {
            let act: serde_json::Value = serde_json::from_str(line).unwrap();
            act["action"].as_str().unwrap().to_owned()
        };
        acts.stdout.lines().map(action).collect::<Vec<_>>()
    };
    assert_eq!(
        acts(&origin),
        ["started", "model_call", "list_files", "model_call", "ended"]
    );
    assert_eq!(acts(&fork), ["forked", "model_call", "ended"]);
    let output = world.selvedge(&["resume", "--last"]);
    assert!(output.stderr.contains(&second), "{}", output.stderr);
    assert_eq!(world.selvedge(&["audit", "verify"]).code, 0);
}

#[test]
fn a_session_that_was_cancelled_can_be_spoken_to() {
    let world = World::new();
    let turns = "- calls: [{ask_user: {question: which?}}]\n- text: fine";
    assert_eq!(world.run(turns, &["do it"]).code, 3);
    let session = world.session();
    assert_eq!(world.selvedge(&["sessions", "cancel", &session]).code, 0);
    // The question was never answered, so it is asked again.
    let output = world.selvedge(&["resume", &session, "go on after all"]);
    assert_eq!(output.code, 3, "{}", output.stderr);
    assert_ne!(world.session(), session);
    let output = world.selvedge(&["answer", "blue", "--resume"]);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (0, "fine\n"),
        "{}",
        output.stderr
    );
}

#[test]
fn a_list_for_programs_has_the_whole_request() {
    let world = World::new();
    let request = "words ".repeat(40) + "\nand a second line";
    assert_eq!(world.run("- text: fine", &[&request]).code, 0);
    let list = world.selvedge(&["sessions", "list", "--json"]);
    let session: serde_json::Value = serde_json::from_str(list.stdout.trim()).unwrap();
    assert_eq!(session["request"], request);
}

//! The sandbox, as somebody at the command line meets it.

use crate::world::World;

#[test]
fn doctor_tries_to_break_out_and_says_what_held() {
    let world = World::new();
    let output = world.selvedge(&["doctor"]);
    let sandbox: Vec<&str> = output
        .stdout
        .lines()
        .filter(|line| line.contains("  sandbox  "))
        .collect();
    assert!(sandbox.len() >= 35, "{}", output.stdout);
    let is_fine = |line: &&str| line.starts_with("ok  ");
    assert!(sandbox.iter().all(is_fine), "{}", output.stdout);
    for attempt in [
        "held: read a file outside",
        "held: connect to a port of this machine",
        "held: trace the process above",
        "held: mount something",
        "(allowed) write to the workspace: it works",
    ] {
        assert!(
            output.stdout.contains(attempt),
            "{attempt}: {}",
            output.stdout
        );
    }
    let limits = ["control group", "limits of their own"];
    let says = |line: &str| limits.iter().any(|words| line.contains(words));
    let line = output
        .stdout
        .lines()
        .find(|line| line.contains("  limits  "));
    assert!(line.is_some_and(says), "{}", output.stdout);
    let words = "ok    fence     put up by Selvedge itself";
    assert!(output.stdout.contains(words), "{}", output.stdout);
    let mut command = world.command(&["doctor"]);
    let output = world.output(command.env("SELVEDGE_SANDBOX_MODE", "off"));
    assert!(
        output.stdout.contains("warn  sandbox   it is off"),
        "{}",
        output.stdout
    );
}

/// The real binary stands inside of what bubblewrap has made.
#[test]
fn doctor_tries_to_break_out_of_what_bubblewrap_puts_up() {
    if std::env::var("SELVEDGE_BWRAP").is_ok_and(|word| word == "skip") {
        eprintln!("skipped: SELVEDGE_BWRAP=skip");
        return;
    }
    let world = World::new();
    let mut command = world.command(&["doctor"]);
    let output = world.output(command.env("SELVEDGE_SANDBOX_FENCE", "bubblewrap"));
    let about = |what: &str| -> Vec<&str> {
        let lines = output.stdout.lines();
        lines.filter(|line| line.contains(what)).collect()
    };
    let sandbox = about("  sandbox  ");
    assert!(sandbox.len() >= 35, "{}", output.stdout);
    let is_fine = |line: &&str| line.starts_with("ok  ");
    assert!(sandbox.iter().all(is_fine), "{}", output.stdout);
    let fence = about("  fence  ").concat();
    assert!(fence.contains("put up by bubblewrap (`/usr/"), "{fence}");
}

#[test]
fn an_agent_s_command_stays_in_its_workspace_unless_a_person_says_otherwise() {
    let world = World::new();
    world.write("home/config/keys", "canary");
    // Not beside the workspace, where the policy refuses it before the fence is reached.
    let elsewhere = tempfile::tempdir().unwrap();
    let outside = elsewhere.path().join("outside");
    let turns = format!(
        "- calls: [{{run_command: {{command: \"echo x > {}; cat {}/config/keys; echo x > made\"}}}}]\n\
         - text: fine",
        outside.display(),
        world.home().display()
    );
    let arguments = ["--approve", "auto", "do it"];
    let output = world.run(&turns, &arguments);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(world.work().join("made").exists() && !outside.exists());
    let session = world.session();
    let events = world
        .selvedge(&["sessions", "events", &session, "--json"])
        .stdout;
    assert!(!events.contains("canary"), "{events}");
    assert!(
        events.contains("\"sandbox\":{\"mode\":\"on\""),
        "it is on record: {events}"
    );
    let output = world.run(&turns, &["--sandbox", "off", "--approve", "auto", "do it"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(outside.exists());
}

#[test]
fn a_sandbox_that_cannot_be_put_up_is_a_refusal_and_not_a_bare_run() {
    let world = World::new();
    let turns = "- calls: [{run_command: {command: touch made}}]\n- text: fine";
    let mut command = world.run_command(turns, &["--approve", "auto", "do it"]);
    let output = world.output(command.env("SELVEDGE_SANDBOX_WRITABLE", "/nonexistent"));
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(!world.work().join("made").exists());
    let show = world.selvedge(&["sessions", "show", &world.session()]);
    let words = "the sandbox cannot be put up, and without it nothing was run";
    assert!(show.stdout.contains(words), "{}", show.stdout);
}

#[test]
fn temporary_files_last_as_long_as_their_session() {
    let world = World::new();
    let turns = "\
- calls: [{run_command: {command: \"echo kept > /tmp/note\"}}]
- calls: [{run_command: {command: \"cp /tmp/note note\"}}]
- text: fine";
    let output = world.run(turns, &["--approve", "auto", "do it"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let note = std::fs::read_to_string(world.work().join("note"));
    assert_eq!(note.unwrap(), "kept\n");
    let temp = world
        .home()
        .join("data/sessions")
        .join(world.session())
        .join("temp");
    assert!(!temp.exists());
    assert!(!world.work().join(".selvedge").exists());
}

//! The copies that missions work on: whose they are, who may go on in them, and how they go.

use super::*;

/// A mission that leaves something behind and fails; whoever speaks to it has it finished.
const FAILED_FIRST: &str = "
    - calls: [{delegate_to_planner: {mission: once more}}]
      delay: 1s
    - text: Reported again.
  planner/task-001:
    - calls: [{builder: {task: build it, work_dir: .}}]
    - calls: [{mission_complete: {summary: it cannot be done, outcome: failed}}]
  planner/task-002:
    - calls: [{builder: {task: go on, work_dir: .}}]
      delay: 1s
    - calls: [{mission_complete: {summary: built, outcome: done}}]
  builder:
    - calls: [{run_command: {command: echo line >> half.txt}}]
    - answer: {files_created: [], files_modified: [], tests_run: false, tests_passed: false}
";

fn copy_of(world: &World, session: &str) -> PathBuf {
    world
        .home()
        .join("data/sessions")
        .join(session)
        .join("work")
}

fn half(folder: &Path) -> Option<String> {
    std::fs::read_to_string(folder.join("half.txt")).ok()
}

#[test]
fn what_is_said_while_a_merge_is_held_is_heard_after_it() {
    let world = repository();
    let agents = format!(
        "
    - text: Heard.
{ONE_BUILD}
  builder:
    - calls: [{{run_command: {{command: echo theirs > notes.txt}}}}]
      delay: 2s
    - answer: {{files_created: [], files_modified: [notes.txt], tests_run: false, tests_passed: false}}
"
    );
    let running = Background::start(&world, swarm_command(&world, &agents, &[]));
    running.wait_for("builder");
    world.write("work/notes.txt", "mine\n");
    running.wait_for("paused (merge)");
    assert_eq!(running.end(), 3);
    git(&world, &["checkout", "--quiet", "notes.txt"]);
    let session = world.session();
    let output = world.selvedge(&["resume", &session, "and now this, too"]);
    assert_eq!(
        (output.code, output.stdout.trim()),
        (0, "Heard."),
        "{}",
        output.stderr
    );
    let notes = std::fs::read_to_string(world.work().join("notes.txt")).unwrap();
    assert_eq!(notes, "theirs\n", "what was done before is merged");
    let sent = session_folder(&world).join("orchestrator/to_model.jsonl");
    let sent = std::fs::read_to_string(sent).unwrap();
    assert!(sent.contains("and now this, too"), "{sent}");
    assert!(!copy_of(&world, &session).exists());
}

#[test]
fn two_who_speak_to_one_failed_mission_work_on_copies_of_their_own() {
    let world = repository();
    assert_eq!(swarm(&world, FAILED_FIRST, &[]).code, 1);
    let failed = world.session();
    assert_eq!(half(&copy_of(&world, &failed)).as_deref(), Some("line\n"));
    let start = || {
        let mut command = world.command(&["resume", &failed, "go on"]);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    for speaker in [start(), start()] {
        let output = speaker.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
    }
    // Each went on with what the failed one had left, and neither with the other's.
    assert_eq!(half(&world.work()).as_deref(), Some("line\nline\n"));
    assert_eq!(half(&copy_of(&world, &failed)).as_deref(), Some("line\n"));
    let list = world.selvedge(&["sessions", "list", "--json"]).stdout;
    let ids = list.lines().map(|line| {
        let session: Value = serde_json::from_str(line).unwrap();
        assert_eq!(session["workspace"], world.work().to_str().unwrap());
        session["id"].as_str().unwrap().to_owned()
    });
    let ids: Vec<String> = ids.collect();
    assert_eq!(ids.len(), 3);
    for id in ids.iter().filter(|id| **id != failed) {
        let events = world.selvedge(&["sessions", "events", id, "--json"]).stdout;
        assert!(!events.contains(&format!("sessions/{failed}/")), "{events}");
        assert!(!copy_of(&world, id).exists());
    }
}

#[test]
fn a_copy_that_was_left_behind_is_named_and_removed_by_one_command() {
    let world = repository();
    let output = swarm(&world, FAILED_FIRST, &[]);
    let session = world.session();
    let copy = copy_of(&world, &session);
    let remove = format!("selvedge sessions clean {session}");
    assert!(output.stderr.contains(&remove), "{}", output.stderr);
    let shown = world.selvedge(&["sessions", "show", &session]).stdout;
    let directory = format!("workspace  {}\n", world.work().display());
    assert!(shown.contains(&directory), "{shown}");
    assert!(
        shown.contains(&format!("copy       {}", copy.display())),
        "{shown}"
    );
    assert!(shown.contains(&remove), "{shown}");

    let listed = world.selvedge(&["sessions", "clean"]);
    assert_eq!(listed.code, 0, "{}", listed.stderr);
    assert!(
        listed.stdout.contains(copy.to_str().unwrap()),
        "{}",
        listed.stdout
    );
    assert!(copy.exists(), "to look is not to remove");
    let cleaned = world.selvedge(&["sessions", "clean", &session]);
    assert_eq!(cleaned.code, 0, "{}", cleaned.stderr);
    assert!(!copy.exists());
    assert_eq!(git(&world, &["worktree", "list"]).lines().count(), 1);
    assert!(session_folder(&world).join("summary.json").exists());
    let listed = world.selvedge(&["sessions", "clean"]);
    assert_eq!(listed.stdout, "", "{}", listed.stdout);

    // Who speaks to it all the same begins with the directory as it is, and is told so.
    let output = world.selvedge(&["resume", &session, "go on"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(half(&world.work()).as_deref(), Some("line\n"));
    let sent = session_folder(&world).join("orchestrator/to_model.jsonl");
    let sent = std::fs::read_to_string(sent).unwrap();
    assert!(sent.contains("worked on was removed"), "{sent}");
}

#[test]
fn the_copy_of_a_cancelled_mission_is_named_and_that_of_a_resting_one_is_kept() {
    let world = repository();
    let agents = "
  planner:
    - calls: [{designer: {task: one}}]
      usage: {input: 100, output: 10}
  designer:
    - answer: {architecture: plain, files: []}
";
    let output = swarm(&world, agents, &["--budget", "0.001"]);
    assert_eq!(output.code, 4, "{}", output.stderr);
    let session = world.session();
    let copy = copy_of(&world, &session);
    let refused = world.selvedge(&["sessions", "clean", &session]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("sessions cancel"),
        "{}",
        refused.stderr
    );
    assert_eq!(world.selvedge(&["sessions", "clean", "--all"]).code, 0);
    assert!(copy.exists(), "somebody may go on with it");

    let cancelled = world.selvedge(&["sessions", "cancel", &session]);
    assert_eq!(cancelled.code, 0, "{}", cancelled.stderr);
    for named in [copy.to_str().unwrap(), &format!("sessions clean {session}")] {
        assert!(cancelled.stderr.contains(named), "{}", cancelled.stderr);
    }
    let cleaned = world.selvedge(&["sessions", "clean", "--all"]);
    assert_eq!(cleaned.code, 0, "{}", cleaned.stderr);
    assert!(!copy.exists());
    assert_eq!(git(&world, &["worktree", "list"]).lines().count(), 1);
}

//! The swarm: a mission through the real binary, with a model that says what it was
//! told to say, and everything else real.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::world::{Background, Output, World, is_running, until};

mod claims;
mod copies;
mod merges;

/// A repository with a test that fails as long as there is no `done.txt`.
fn repository() -> World {
    let world = World::new();
    world.write("work/test.sh", "test -e done.txt\n");
    world.write("work/notes.txt", "one\ntwo\nthree\n");
    git(&world, &["init", "--quiet"]);
    git(&world, &["add", "."]);
    git(&world, &["commit", "--quiet", "-m", "first"]);
    world
}

fn git(world: &World, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.invalid"])
        .args(arguments)
        .current_dir(world.work())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// What is under way is given five seconds, and is then ended.
const CANCEL_BUDGET: Duration = Duration::from_secs(12);

/// The orchestrator that hands on one mission, and then reports.
const ORCHESTRATOR: &str = "
  orchestrator:
    - calls: [{delegate_to_planner: {mission: do it}}]
      usage: {input: 100, output: 10}
    - text: Reported.
      usage: {input: 100, output: 10}
";

/// A planner that has one thing built, and ends.
const ONE_BUILD: &str = "
  planner:
    - calls: [{builder: {task: build it, work_dir: .}}]
      usage: {input: 100, output: 10}
    - calls: [{mission_complete: {summary: built, outcome: done}}]
      usage: {input: 100, output: 10}
";

/// What a builder says that did nothing.
const NOTHING_BUILT: &str =
    "{files_created: [], files_modified: [], tests_run: false, tests_passed: false}";

fn script(world: &World, agents: &str) -> PathBuf {
    let text = format!("price: {{input: 2.0, output: 10.0}}\nagents:\n{ORCHESTRATOR}{agents}");
    world.write("script.yaml", &text)
}

fn swarm_command(world: &World, agents: &str, arguments: &[&str]) -> Command {
    let script = script(world, agents);
    let mut command = world.command(&["swarm", "--script"]);
    command.arg(script).args(arguments).arg("the mission");
    command
}

fn swarm(world: &World, agents: &str, arguments: &[&str]) -> Output {
    world.output(&mut swarm_command(world, agents, arguments))
}

fn session_folder(world: &World) -> PathBuf {
    world.home().join("data/sessions").join(world.session())
}

fn json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap()
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn summary(world: &World) -> Value {
    json(&session_folder(world).join("summary.json"))
}

fn events(world: &World) -> Vec<Value> {
    let session = world.session();
    let events = world.selvedge(&["sessions", "events", &session, "--json"]);
    let parse = |line: &str| serde_json::from_str(line).unwrap();
    events.stdout.lines().map(parse).collect()
}

/// The streams of agents.
fn streams(events: &[Value]) -> BTreeSet<&str> {
    let started = events.iter().filter(|event| event["kind"] == "RunStarted");
    started
        .map(|event| event["stream"].as_str().unwrap())
        .collect()
}

/// What the planner was told by those it called.
fn told(world: &World) -> String {
    std::fs::read_to_string(session_folder(world).join("planner/to_model.jsonl")).unwrap()
}

#[test]
fn a_simple_question_is_answered_without_a_planner() {
    let world = repository();
    let script = world.write(
        "script.yaml",
        "agents:\n  orchestrator:\n    - text: Forty-two.\n      delay: 2s\n    - text: Because.\n",
    );
    let mut command = world.command(&["swarm", "--script"]);
    command.arg(script).arg("what is six times seven?");
    let running = Background::start(&world, command);
    running.wait_for("session s_");
    // The conversation goes on as long as somebody speaks.
    let session = world.session();
    let steer = ["sessions", "steer", &session, "--queue", "why?"];
    let steered = world.selvedge(&steer);
    assert_eq!(steered.code, 0, "{}", steered.stderr);
    running.wait_for("Because.");
    assert_eq!(running.end(), 0);
    assert_eq!(streams(&events(&world)).len(), 1);
    let summary = summary(&world);
    assert_eq!(summary["outcome"], "success");
    assert_eq!(summary["orchestrator_turns"], 2);
    assert_eq!(
        (&summary["planner_turns"], &summary["builder_tasks"]),
        (&0.into(), &0.into())
    );
}

#[test]
fn a_session_that_has_ended_goes_on_with_everything_that_was_said() {
    let world = repository();
    let agents = "\n    - calls: [{delegate_to_planner: {mission: once more}}]
    - text: Reported again.
  planner:
    - calls: [{builder: {task: build it, work_dir: .}}]
    - calls: [{mission_complete: {summary: built, outcome: done}}]
  builder:
    - calls: [{run_command: {command: echo line >> log.txt}}]
    - answer: {files_created: [log.txt], files_modified: [], tests_run: false, tests_passed: false}
";
    assert_eq!(swarm(&world, agents, &[]).code, 0);
    let first = world.session();
    let output = world.selvedge(&["resume", &first, "and now the same again"]);
    assert_eq!(
        (output.code, output.stdout.trim()),
        (0, "Reported again."),
        "{}",
        output.stderr
    );
    let log = std::fs::read_to_string(world.work().join("log.txt")).unwrap();
    assert_eq!(
        log, "line\nline\n",
        "the second mission worked on what the first left"
    );
    let summary = summary(&world);
    assert_ne!(summary["session_id"], first.as_str());
    assert_eq!(summary["orchestrator_turns"], 4);
    assert_eq!(summary["builder_tasks"], 2);
    let folder = session_folder(&world);
    assert!(folder.join("builder/task-002/to_model.jsonl").exists());
    let said = std::fs::read_to_string(folder.join("orchestrator/to_model.jsonl")).unwrap();
    assert!(said.contains("and now the same again"), "{said}");
}

#[test]
fn the_ten_steps_are_played_with_real_files_and_a_real_test() {
    let world = World::new();
    let output = world.selvedge(&["demo", "swarm"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let said = output
        .stderr
        .lines()
        .find_map(|line| line.trim().strip_prefix("directory: "));
    let directory = Path::new(said.unwrap());
    let test = Command::new("sh")
        .arg("test.sh")
        .current_dir(directory)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&test.stdout).into_owned();
    assert!(test.status.success(), "{printed}");
    assert!(
        printed.contains("ok    an empty name is refused"),
        "{printed}"
    );
    let events = events(&world);
    let codes: Vec<i64> = events
        .iter()
        .filter_map(|event| event["data"]["outcome"]["facts"]["exit_code"].as_i64())
        .collect();
    assert_eq!(codes, [0, 0], "the test ran, twice");
    assert_eq!(streams(&events).len(), 7);
    let summary = summary(&world);
    for (name, count) in [
        ("designer_tasks", 1),
        ("builder_tasks", 2),
        ("reviewer_tasks", 2),
        ("orchestrator_turns", 2),
        ("planner_turns", 7),
    ] {
        assert_eq!(summary[name], count, "{name} of {summary}");
    }
    assert_eq!(summary["outcome"], "success");
    assert_eq!(summary["open_issues"][0]["severity"], "minor");
    assert_eq!(summary["discrepancies"], Value::Array(Vec::new()));
    let costs = summary["agent_costs"].as_object().unwrap().values();
    let sum: f64 = costs.map(|cost| cost.as_f64().unwrap()).sum();
    let total = summary["total_cost"].as_f64().unwrap();
    assert!(total > 0.0 && (sum - total).abs() < 1e-9, "{summary}");
    let session = world.session();
    let shown = world.selvedge(&["sessions", "show", &session]).stdout;
    for line in [
        "└─ planner ✓ 7 turns",
        "├─ builder task-002 ✓ 4 turns",
        "└─ reviewer task-002 ✓ 2 turns",
        "orchestrator merged: hello.sh, tests/hello.sh",
    ] {
        assert!(shown.contains(line), "{line} is not in:\n{shown}");
    }
}

#[test]
fn only_the_planner_ends_a_mission_whatever_is_left_open() {
    let world = repository();
    let agents = "
  planner:
    - calls: [{reviewer: {task: review, files_changed: [notes.txt]}}]
    - text: I think that we are done.
    - calls: [{mission_complete: {summary: good enough, outcome: done}}]
  reviewer:
    - calls: [{mission_complete: {summary: I say so, outcome: failed}}]
    - answer:
        summary: not bad
        issues: [{severity: minor, file: notes.txt, message: a typo}]
";
    let output = swarm(&world, agents, &[]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let issues = &summary(&world)["open_issues"];
    assert_eq!(issues[0]["message"], "a typo", "{issues}");
    let reviewer = session_folder(&world).join("reviewer/task-001/to_model.jsonl");
    let heard = std::fs::read_to_string(reviewer).unwrap();
    assert!(
        heard.contains("There is no tool `mission_complete` here"),
        "{heard}"
    );
    assert!(told(&world).contains("words alone do not end the work"));
}

#[test]
fn a_task_begins_with_nothing_of_an_earlier_one() {
    let world = repository();
    let agents = format!(
        "
  planner:
    - calls: [{{builder: {{task: the first ALPHA, work_dir: .}}}}]
    - calls: [{{builder: {{task: the second, work_dir: .}}}}]
    - calls: [{{mission_complete: {{summary: built, outcome: done}}}}]
  builder/task-001:
    - calls: [{{write_file: {{path: alpha.txt, content: ALPHA}}}}]
    - answer: {{files_created: [alpha.txt], files_modified: [], tests_run: false, tests_passed: false}}
  builder/task-002:
    - answer: {NOTHING_BUILT}
"
    );
    let output = swarm(&world, &agents, &[]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let task = |n: u32| session_folder(&world).join(format!("builder/task-00{n}/to_model.jsonl"));
    let (first, second) = (lines(&task(1)), lines(&task(2)));
    assert!(first[0].to_string().contains("ALPHA"));
    assert_eq!(second[0]["messages"].as_array().unwrap().len(), 1);
    assert_eq!(second[0]["after"], 0);
    assert!(!second[0].to_string().contains("ALPHA"), "{}", second[0]);
}

#[test]
fn a_mission_killed_in_its_second_build_goes_on_without_repeating_the_first() {
    let world = repository();
    let name = format!("second-build-{}", std::process::id());
    let agents = format!(
        "
  planner:
    - calls: [{{builder: {{task: first, work_dir: .}}}}]
      usage: {{input: 1000, output: 100}}
    - calls: [{{builder: {{task: second, work_dir: .}}}}]
      usage: {{input: 1000, output: 100}}
    - calls: [{{mission_complete: {{summary: built, outcome: done}}}}]
      usage: {{input: 1000, output: 100}}
  builder/task-001:
    - calls: [{{run_command: {{command: echo once >> done.txt}}}}]
      usage: {{input: 1000, output: 100}}
    - answer: {{files_created: [done.txt], files_modified: [], tests_run: false, tests_passed: false}}
      usage: {{input: 1000, output: 100}}
  builder/task-002:
    - calls: [{{run_command: {{command: 'sleep 600; echo {name}'}}}}]
      usage: {{input: 1000, output: 100}}
    - answer: {NOTHING_BUILT}
      usage: {{input: 1000, output: 100}}
"
    );
    let running = Background::start(&world, swarm_command(&world, &agents, &[]));
    until("the second build is at work", || {
        is_running(&format!("echo {name}"))
    });
    running.signal(Signal::KILL);
    assert_eq!(running.end(), -1);
    until("its command is gone", || {
        !is_running(&format!("echo {name}"))
    });
    let session = world.session();
    let output = world.selvedge(&["resume", &session]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let done = std::fs::read_to_string(world.work().join("done.txt")).unwrap();
    assert_eq!(done, "once\n", "the first build happened once");
    let events = events(&world);
    let count = |kind: &str| events.iter().filter(|event| event["kind"] == kind).count();
    assert_eq!(count("RunStarted"), 4);
    assert_eq!(count("ToolCallInDoubt"), 1);
    assert!(told(&world).contains("it may or may not have happened"));
    let summary = summary(&world);
    assert_eq!(summary["outcome"], "success");
    assert_eq!(summary["builder_tasks"], 2);
    // Seven answers at 0.003, and two of the orchestrator at 0.0003.
    let total = summary["total_cost"].as_f64().unwrap();
    assert!((total - 0.0216).abs() < 1e-9, "{total}");
}

#[test]
fn a_builder_that_claims_what_it_did_not_do_is_contradicted() {
    let world = repository();
    let agents = format!(
        "{ONE_BUILD}
  builder:
    - calls:
        - write_file: {{path: real.txt, content: real}}
        - run_command: {{command: sh test.sh}}
    - answer: {{files_created: [ghost.txt], files_modified: [notes.txt], tests_run: true, tests_passed: true}}
"
    );
    let output = swarm(&world, &agents, &[]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let found = summary(&world)["discrepancies"][0]["found"].clone();
    let expected = [
        "it says that it created `ghost.txt`, and no such file was created",
        "it says that it modified `notes.txt`, and the file is unchanged",
        "it does not say that it created `real.txt`",
        "it says that tests passed, and `sh test.sh` ended with exit code 1",
    ];
    assert_eq!(found, serde_json::json!(expected));
    assert!(told(&world).contains("and no such file was created"));
}

#[test]
fn two_designers_at_the_edge_of_the_budget_stay_below_it() {
    let world = repository();
    let agents = "
  planner:
    - calls:
        - designer: {task: one}
        - designer: {task: two}
      usage: {input: 100, output: 10}
  designer:
    - answer: {architecture: plain, files: []}
      usage: {input: 1000, output: 8000}
";
    let output = swarm(&world, agents, &["--budget", "0.15"]);
    assert_eq!(output.code, 4, "{}", output.stderr);
    let summary = summary(&world);
    assert_eq!(summary["outcome"], "budget_exhausted");
    assert_eq!(summary["designer_tasks"], 2);
    let total = summary["total_cost"].as_f64().unwrap();
    assert!(total > 0.08 && total <= 0.15, "{total}");
    let work = session_folder(&world).join("work/notes.txt");
    assert!(work.exists(), "the work so far is kept");
}

#[test]
fn what_leads_out_of_the_work_directory_is_refused_and_the_mission_goes_on() {
    let world = repository();
    let outside = world.root().join("outside");
    std::fs::create_dir(&outside).unwrap();
    let agents = format!(
        "{ONE_BUILD}
  builder:
    - calls:
        - write_file: {{path: ../outside.txt, content: x}}
        - write_file: {{path: /etc/selvedge-x, content: x}}
        - run_command: {{command: ln -s {} link}}
        - write_file: {{path: link/x, content: x}}
        - run_command: {{command: touch {}/y}}
    - answer: {NOTHING_BUILT}
",
        outside.display(),
        outside.display()
    );
    let output = swarm(&world, &agents, &[]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    assert!(!world.work().join("../outside.txt").exists());
    let link = world.work().join("link").symlink_metadata();
    assert!(link.is_err(), "nor is the link merged");
    assert!(!session_folder(&world).join("outside.txt").exists());
    assert!(!Path::new("/etc/selvedge-x").exists());
    let audit = world.selvedge(&["audit", "query", "--json"]).stdout;
    for target in ["../outside.txt", "/etc/selvedge-x", "link/x"] {
        let is_listed = |line: &str| {
            let act: Value = serde_json::from_str(line).unwrap();
            act["target"] == target && act["outcome"] != "allowed"
        };
        assert!(audit.lines().any(is_listed), "{target} is not in:\n{audit}");
    }
}

#[test]
fn the_folder_can_be_deleted_and_is_made_anew() {
    let world = repository();
    let agents = format!("{ONE_BUILD}  builder:\n    - answer: {NOTHING_BUILT}\n");
    assert_eq!(swarm(&world, &agents, &[]).code, 0);
    let folder = session_folder(&world);
    let files = [
        "summary.json",
        "orchestrator/to_model.jsonl",
        "orchestrator/from_model.jsonl",
        "orchestrator/metadata.json",
        "planner/to_model.jsonl",
        "planner/from_model.jsonl",
        "builder/task-001/to_model.jsonl",
        "builder/task-001/from_model.jsonl",
        "builder/task-001/metadata.json",
    ];
    let read = || files.map(|file| std::fs::read_to_string(folder.join(file)).unwrap());
    let before = read();
    assert!(before.iter().all(|text| !text.is_empty()));
    std::fs::remove_dir_all(&folder).unwrap();
    let session = world.session();
    let output = world.selvedge(&["sessions", "export", &session]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(read(), before);
}

/// Stops a mission by one Ctrl-C while its builder runs `command`, of which everything has
/// `name` in its line. It is at work as soon as there is a process with `sign` in its own.
fn stopped_by_ctrl_c(world: &World, command: &str, sign: &str, name: &str) {
    let agents = format!(
        "{ONE_BUILD}
  builder:
    - calls: [{{run_command: {{command: '{command}'}}}}]
    - answer: {NOTHING_BUILT}
"
    );
    let running = Background::start(world, swarm_command(world, &agents, &[]));
    until("the build is at work", || is_running(sign));
    let told = std::time::Instant::now();
    running.signal(Signal::INT);
    running.wait_for("go on: selvedge resume");
    assert_eq!(running.end(), 130);
    assert!(told.elapsed() < CANCEL_BUDGET, "{:?}", told.elapsed());
    assert!(!is_running(name), "it outlived the mission");
    assert_eq!(summary(world)["outcome"], "interrupted");
    let session = world.session();
    let output = world.selvedge(&["resume", &session]);
    assert_eq!(
        (output.code, output.stdout.trim()),
        (0, "Reported."),
        "{}",
        output.stderr
    );
}

#[test]
fn ctrl_c_stops_every_level_and_the_mission_can_go_on() {
    let name = format!("swarm-ctrl-c-{}", std::process::id());
    let command = format!("sleep 600; echo {name}");
    stopped_by_ctrl_c(&repository(), &command, &command, &name);
}

#[test]
fn ctrl_c_ends_what_heeds_no_signal_and_what_it_left_in_the_background() {
    let world = repository();
    // In files: a policy that nobody can be asked about refuses a `trap` that it reads.
    world.write(
        "work/stubborn.sh",
        "trap '' INT TERM\nsetsid sh away.sh $1 &\nwhile :; do sleep 1; done\n",
    );
    world.write("work/away.sh", "while :; do sleep 1; done\n");
    let name = format!("swarm-stubborn-{}", std::process::id());
    // The second shell is there only after the first one has begun to heed nothing.
    let sign = format!("away.sh\0{name}");
    stopped_by_ctrl_c(&world, &format!("sh stubborn.sh {name}"), &sign, &name);
}

#[test]
fn a_reply_that_never_fits_fails_the_call_and_not_the_mission() {
    let world = repository();
    let agents = "
  planner:
    - calls: [{designer: {task: design}}]
    - calls: [{designer: {tusk: design}}]
    - calls: [{mission_complete: {summary: without a design, outcome: done}}]
  designer:
    - text: I would rather talk.
    - answer: {files: []}
    - answer: {architecture: plain, files: [], risks: 7}
";
    let output = swarm(&world, agents, &[]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let told = told(&world);
    assert!(
        told.contains("three answers in a row did not fit the schema"),
        "what is left of a part of it would pass for the whole: {told}"
    );
    assert!(
        told.contains("the arguments of `designer` do not fit its schema"),
        "{told}"
    );
    assert_eq!(summary(&world)["designer_tasks"], 1);
}

#[test]
fn nothing_of_the_users_changes_before_the_end_and_a_conflict_changes_nothing() {
    let world = repository();
    let name = format!("conflict-{}", std::process::id());
    let agents = format!(
        "{ONE_BUILD}
  builder:
    - calls:
        - write_file: {{path: notes.txt, content: theirs}}
        - write_file: {{path: new.txt, content: new}}
        - run_command: {{command: 'cat wait; sleep 600; echo {name}', timeout_seconds: 1}}
    - answer: {{files_created: [new.txt], files_modified: [notes.txt], tests_run: false, tests_passed: false}}
"
    );
    world.write("work/mine.txt", "not committed\n");
    let running = Background::start(&world, swarm_command(&world, &agents, &[]));
    until("the build is at work", || {
        is_running(&format!("echo {name}"))
    });
    assert!(!world.work().join("new.txt").exists());
    let copy = session_folder(&world).join("work");
    let mine = std::fs::read_to_string(copy.join("mine.txt")).unwrap();
    assert_eq!(mine, "not committed\n", "the swarm sees what the user sees");
    world.write("work/notes.txt", "mine\n");
    running.wait_for("paused (merge)");
    running.wait_for("go on: selvedge resume");
    let said = running.stderr();
    assert_eq!(running.end(), 3, "{said}");
    let session = world.session();
    for words in [
        "you and the agents changed the same in notes.txt. None of your files was changed",
        &format!("the work is in {}", copy.display()),
        "Undo or move your own change, then go on, and it is merged",
        &format!("go on: selvedge resume {session}"),
    ] {
        assert!(said.contains(words), "{words} is not in:\n{said}");
    }
    assert_eq!(
        std::fs::read_to_string(world.work().join("notes.txt")).unwrap(),
        "mine\n"
    );
    assert!(!world.work().join("new.txt").exists(), "all or nothing");
    assert_eq!(
        std::fs::read_to_string(copy.join("notes.txt")).unwrap(),
        "theirs"
    );
    assert_eq!(summary(&world)["outcome"], "not_merged");
    git(&world, &["checkout", "--quiet", "notes.txt"]);
    let output = world.selvedge(&["resume", &session]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(
        std::fs::read_to_string(world.work().join("notes.txt")).unwrap(),
        "theirs"
    );
    assert_eq!(
        std::fs::read_to_string(world.work().join("new.txt")).unwrap(),
        "new"
    );
    assert!(!copy.exists());
}

#[test]
fn a_merge_that_was_killed_is_settled_and_a_mission_killed_anywhere_ends_the_same() {
    let agents = format!(
        "{ONE_BUILD}
  builder:
    - calls: [{{write_file: {{path: done.txt, content: done}}}}, {{run_command: {{command: sh test.sh}}}}]
    - answer: {{files_created: [done.txt], files_modified: [], tests_run: true, tests_passed: true}}
"
    );
    for kind in [
        "CopyStarted",
        "CopyFinished",
        "ChildStarted",
        "MergeStarted",
        "MergeFinished",
    ] {
        let world = repository();
        let mut command = swarm_command(&world, &agents, &["--json"]);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let is_it = |line: &String| line.contains(&format!("\"kind\":\"{kind}\""));
        assert!(
            lines.map_while(Result::ok).any(|line| is_it(&line)),
            "{kind}"
        );
        child.kill().unwrap();
        child.wait().unwrap();
        let session = world.session();
        let output = world.selvedge(&["resume", &session]);
        assert_eq!(output.code, 0, "{kind}: {}", output.stderr);
        let done = std::fs::read_to_string(world.work().join("done.txt")).unwrap();
        assert_eq!(done, "done", "{kind}");
        assert!(!session_folder(&world).join("work").exists(), "{kind}");
        assert_eq!(
            git(&world, &["worktree", "list"]).lines().count(),
            1,
            "{kind}"
        );
        assert_eq!(summary(&world)["outcome"], "success", "{kind}");
        assert_eq!(summary(&world)["builder_tasks"], 1, "{kind}");
    }
}

#[test]
fn a_failed_mission_fails_and_its_work_is_kept_apart() {
    let world = repository();
    let agents = "
  planner:
    - calls: [{mission_complete: {summary: it cannot be done, outcome: failed}}]
";
    let output = swarm(&world, agents, &[]);
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(
        output.stderr.contains("the work is kept, and not merged"),
        "{}",
        output.stderr
    );
    assert_eq!(summary(&world)["outcome"], "failed");
}

#[test]
fn a_plain_directory_is_copied_or_worked_in_directly() {
    for (arguments, has_copy) in [(&[][..], true), (&["--in-place"], false)] {
        let world = World::new();
        world.write("work/notes.txt", "one\n");
        let agents = format!(
            "{ONE_BUILD}
  builder:
    - calls: [{{write_file: {{path: sub/new.txt, content: new}}}}]
    - answer: {{files_created: [sub/new.txt], files_modified: [], tests_run: false, tests_passed: false}}
"
        );
        let output = swarm(&world, &agents, arguments);
        assert_eq!(output.code, 0, "{}", output.stderr);
        let text = std::fs::read_to_string(world.work().join("sub/new.txt")).unwrap();
        assert_eq!(text, "new");
        assert!(!world.work().join(".git").exists());
        let kinds = world.kinds();
        assert_eq!(kinds.iter().any(|kind| kind == "MergeFinished"), has_copy);
        assert_eq!(summary(&world)["discrepancies"], Value::Array(Vec::new()));
    }
}

#[test]
fn what_would_be_asked_about_is_refused_and_nobody_waits() {
    let world = repository();
    let agents = format!(
        "{ONE_BUILD}
  builder:
    - calls: [{{run_command: {{command: \"sh -c 'touch made'\"}}}}]
    - answer: {NOTHING_BUILT}
"
    );
    let output = swarm(&world, &agents, &["--approve", "ask"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(!world.work().join("made").exists());
    assert!(output.stderr.contains("denied:"), "{}", output.stderr);
    assert!(!world.kinds().iter().any(|kind| kind == "QuestionAsked"));
}

#[test]
fn a_merge_names_what_it_changes_besides_code() {
    let world = repository();
    let agents = format!(
        "{ONE_BUILD}
  builder:
    - calls: [{{write_file: {{path: Makefile, content: \"all:\\n\"}}}}, {{write_file: {{path: new.txt, content: new}}}}]
    - answer: {{files_created: [Makefile, new.txt], files_modified: [], tests_run: false, tests_passed: false}}
"
    );
    let output = swarm(&world, &agents, &[]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let looks = |text: &str| text.lines().filter(|line| line.contains("look at")).count();
    let expected = "look at `Makefile`: it runs when the project is built or tested";
    assert!(output.stderr.contains(expected), "{}", output.stderr);
    assert_eq!(
        looks(&output.stderr),
        1,
        "and nothing else: {}",
        output.stderr
    );
    // Its copy was one, and is gone.
    let forked = world.selvedge(&["sessions", "fork", &world.session()]);
    assert_eq!(forked.code, 2, "{}", forked.stdout);
    assert!(
        forked.stderr.contains("a copy of the directory"),
        "{}",
        forked.stderr
    );
    // From the beginning it has a copy of its own.
    let (origin, place) = (world.session(), world.work());
    let forked = world.selvedge(&["sessions", "fork", &origin, "--at", "2"]);
    let fork = forked.stdout.trim();
    std::fs::remove_file(place.join("new.txt")).unwrap();
    let output = world.selvedge(&["resume", fork]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(!output.stderr.contains("is gone"), "{}", output.stderr);
    assert!(place.join("new.txt").exists(), "{}", output.stderr);
    let events = world
        .selvedge(&["sessions", "events", fork, "--json"])
        .stdout;
    assert!(!events.contains(&format!("sessions/{origin}/")), "{events}");
}

//! What is said against what happened: builders' claims, reviewers' issues, a planner's end.

use super::*;

/// What was found in the responses of the builder's tasks, by task.
fn found(world: &World) -> Vec<(String, Vec<String>)> {
    let summary = summary(world);
    let all = summary["discrepancies"].as_array().unwrap().iter();
    let each = all.map(|one| {
        let found = serde_json::from_value(one["found"].clone()).unwrap();
        (one["agent"].as_str().unwrap().to_owned(), found)
    });
    each.collect()
}

#[test]
fn a_claim_that_rests_on_no_test_or_on_a_file_that_is_gone_is_contradicted() {
    let world = repository();
    let planner: String = (1..=5)
        .map(|n| format!("    - calls: [{{builder: {{task: task {n}, work_dir: .}}}}]\n"))
        .collect();
    let passed = "tests_run: true, tests_passed: true}";
    let agents = format!(
        "
  planner:
{planner}    - calls: [{{mission_complete: {{summary: built, outcome: done}}}}]
  builder/task-001:
    - calls: [{{run_command: {{command: 'true'}}}}, {{run_command: {{command: ls test.sh}}}}]
    - answer: {{files_created: [], files_modified: [], {passed}
  builder/task-002:
    - calls: [{{run_command: {{command: sh test.sh || true}}}}]
    - answer: {{files_created: [], files_modified: [], {passed}
  builder/task-003:
    - calls: [{{write_file: {{path: gone.txt, content: x}}}}]
    - calls: [{{run_command: {{command: rm gone.txt}}}}]
    - answer: {{files_created: [gone.txt], files_modified: [], tests_run: false, tests_passed: false}}
  builder/task-004:
    - calls: [{{run_command: {{command: rm notes.txt}}}}]
    - answer: {NOTHING_BUILT}
  builder/task-005:
    - calls: [{{write_file: {{path: done.txt, content: x}}}}, {{run_command: {{command: sh test.sh}}}}]
    - answer: {{files_created: [done.txt], files_modified: [], {passed}
"
    );
    let output = swarm(&world, &agents, &[]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let expected = [
        (
            "builder task-001",
            "it says that it ran tests, and nothing that it ran looks like a test: `ls test.sh`, \
             `true`",
        ),
        (
            "builder task-002",
            "it says that tests passed, and the exit code of `sh test.sh || true` is not that of \
             its tests",
        ),
        (
            "builder task-003",
            "it says that it created `gone.txt`, which is not there any more",
        ),
        (
            "builder task-004",
            "it does not say that it removed `notes.txt`",
        ),
    ];
    let expected = expected.map(|(label, found)| (label.to_owned(), vec![found.to_owned()]));
    assert_eq!(found(&world), expected, "and the honest one is not");
    let told = told(&world);
    for words in [
        "nothing that it ran looks like a test",
        "not there any more",
    ] {
        assert!(told.contains(words), "{words} is not in {told}");
    }
}

#[test]
fn issues_of_all_reviews_are_open_until_they_were_fixed_and_looked_at_again() {
    let world = repository();
    let agents = format!(
        "
  planner:
    - calls: [{{reviewer: {{task: review, files_changed: [notes.txt, test.sh]}}}}]
    - calls:
        - builder:
            task: fix
            work_dir: .
            feedback: {{summary: two, issues: [{{severity: critical, file: test.sh, message: it tests nothing}}]}}
    - calls: [{{reviewer: {{task: review, files_changed: [test.sh]}}}}]
    - calls: [{{mission_complete: {{summary: good enough, outcome: done}}}}]
  builder:
    - answer: {NOTHING_BUILT}
  reviewer/task-001:
    - answer:
        summary: two things
        issues:
          - {{severity: critical, file: test.sh, message: It tests nothing}}
          - {{severity: minor, file: notes.txt, message: a typo}}
  reviewer/task-002:
    - answer:
        summary: better
        issues: [{{severity: nitpick, file: test.sh, message: a long line}}]
"
    );
    let output = swarm(&world, &agents, &[]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let summary = summary(&world);
    let open: Vec<[&str; 3]> = summary["open_issues"]
        .as_array()
        .unwrap()
        .iter()
        .map(|issue| ["severity", "message", "found_by"].map(|name| issue[name].as_str().unwrap()))
        .collect();
    let expected = [
        ["minor", "a typo", "reviewer task-001"],
        ["nitpick", "a long line", "reviewer task-002"],
    ];
    assert_eq!(open, expected);
}

#[test]
fn a_mission_is_ended_only_by_a_call_that_fits_its_schema() {
    let world = repository();
    let agents = "
  planner:
    - calls: [{mission_complete: {}}]
    - calls: [{mission_complete: {summary: built, outcome: splendid}}]
    - calls: [{mission_complete: {summary: nothing to do, outcome: done}}]
";
    let output = swarm(&world, agents, &[]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(summary(&world)["planner_turns"], 3);
    let heard = told(&world);
    let refused = "the arguments of `mission_complete` do not fit its schema";
    assert_eq!(heard.matches(refused).count(), 2, "{heard}");
    assert!(heard.contains("splendid"), "it is told why: {heard}");

    // Who never gets it right has failed, and whoever called it is told why.
    let world = repository();
    let agents = "
  planner:
    - calls: [{mission_complete: {outcome: done}}]
    - calls: [{mission_complete: {outcome: done}}]
    - calls: [{mission_complete: {outcome: done}}]
";
    let output = swarm(&world, agents, &[]);
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert_eq!(summary(&world)["outcome"], "failed");
    let heard = session_folder(&world).join("orchestrator/to_model.jsonl");
    let heard = std::fs::read_to_string(heard).unwrap();
    assert!(
        heard.contains("three answers in a row did not fit the schema"),
        "{heard}"
    );
}

#[test]
fn two_missions_at_once_are_carried_out_one_after_the_other() {
    let world = repository();
    let script = world.write(
        "script.yaml",
        "
price: {input: 2.0, output: 10.0}
agents:
  orchestrator:
    - calls:
        - delegate_to_planner: {mission: the first}
        - delegate_to_planner: {mission: the second}
    - text: Reported.
  planner:
    - calls: [{builder: {task: build it, work_dir: .}}]
      usage: {input: 1000, output: 100}
      delay: 300ms
    - calls: [{mission_complete: {summary: built, outcome: done}}]
      usage: {input: 1000, output: 100}
  builder:
    - calls: [{run_command: {command: echo line >> log.txt}}]
    - answer: {files_created: [log.txt], files_modified: [], tests_run: false, tests_passed: false}
",
    );
    let mut command = world.command(&["swarm", "--script"]);
    let output = world.output(command.arg(script).arg("two things"));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let events = events(&world);
    let at = |kind: &str, stream: &str| {
        let mut events = events.iter();
        let is_it = |event: &&Value| {
            let its = event["stream"].as_str().unwrap();
            event["kind"] == kind && its.ends_with(stream) && its.matches('/').count() == 1
        };
        events.find(is_it).unwrap()["time"].as_i64().unwrap()
    };
    assert!(
        at("RunFinished", "/t0.0") <= at("RunStarted", "/t0.1"),
        "the second planner begins when the first has ended"
    );
    let log = std::fs::read_to_string(world.work().join("log.txt")).unwrap();
    assert_eq!(log, "line\nline\n");
    // One folder for the planner, in which nothing is mixed up.
    let folder = session_folder(&world).join("planner");
    let sent = lines(&folder.join("to_model.jsonl"));
    let streams: Vec<&str> = sent
        .iter()
        .map(|line| line["stream"].as_str().unwrap())
        .collect();
    let is_grouped = streams.is_sorted() && streams[0] != streams[3];
    assert!(is_grouped && streams.len() == 4, "{streams:?}");
    assert_eq!(
        (&sent[0]["after"], &sent[2]["after"]),
        (&0.into(), &0.into())
    );
    let metadata = json(&folder.join("metadata.json"));
    assert_eq!(
        (&metadata["runs"], &metadata["turns"]),
        (&2.into(), &4.into())
    );
    let cost = metadata["cost"].as_f64().unwrap();
    assert!((cost - 0.012).abs() < 1e-9, "{metadata}");
    assert_eq!(summary(&world)["builder_tasks"], 2);
}

#[test]
fn two_builds_at_once_are_carried_out_one_after_the_other() {
    let world = repository();
    let agents = format!(
        "
  planner:
    - calls:
        - builder: {{task: the first, work_dir: .}}
        - builder: {{task: the second, work_dir: .}}
    - calls: [{{mission_complete: {{summary: built, outcome: done}}}}]
  builder:
    - answer: {NOTHING_BUILT}
      delay: 300ms
"
    );
    let output = swarm(&world, &agents, &[]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let events = events(&world);
    let at = |kind: &str, stream: &str| {
        let mut events = events.iter();
        let is_it = |event: &Value| {
            event["kind"] == kind && event["stream"].as_str().unwrap().ends_with(stream)
        };
        events.position(is_it).unwrap()
    };
    assert!(
        at("RunFinished", "/t0.0/t0.0") < at("RunStarted", "/t0.0/t0.1"),
        "the second builder begins when the first has ended"
    );
    assert_eq!(summary(&world)["builder_tasks"], 2);
}

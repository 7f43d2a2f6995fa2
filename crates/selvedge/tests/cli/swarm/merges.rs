//! The end of a mission: what comes into the user's directory, what does not, and what is
//! left when a merge is stopped halfway.

use super::*;
use crate::world::PATIENCE;

/// Enough to be killed among, and few enough for a slow disk.
const MANY: usize = 200;

fn many(world: &World) -> usize {
    let folder = world.work().join("many");
    std::fs::read_dir(folder).map_or(0, |entries| entries.count())
}

/// Kills a mission while it writes `MANY` files into the user's directory.
fn killed_while_it_merges() -> World {
    // It is looked at all the time, and killed when the first files are there. Should that
    // be too late all the same, another mission is tried.
    for _ in 0..5 {
        let world = repository();
        let agents = format!(
            "{ONE_BUILD}
  builder:
    - calls: [{{run_command: {{command: mkdir many}}}}]
    - calls: [{{run_command: {{command: seq {MANY} | split -l 1 -a 3 - many/x}}}}]
    - calls: [{{write_file: {{path: notes.txt, content: \"theirs\\n\"}}}}]
    - answer: {NOTHING_BUILT}
"
        );
        let running = Background::start(&world, swarm_command(&world, &agents, &[]));
        let begun = std::time::Instant::now();
        while many(&world) < 4 {
            assert!(begun.elapsed() < PATIENCE, "{}", running.stderr());
            std::thread::yield_now();
        }
        running.signal(Signal::KILL);
        assert_eq!(running.end(), -1);
        if many(&world) < MANY {
            return world;
        }
    }
    panic!("five merges were complete before they could be killed");
}

fn resume(world: &World) -> Output {
    world.selvedge(&["resume", &world.session()])
}

#[test]
fn a_merge_that_is_killed_halfway_is_taken_back_or_completed_and_never_left() {
    let world = killed_while_it_merges();
    // The user changes what the agents changed: nothing can be merged as it is.
    world.write("work/notes.txt", "mine\n");
    let output = resume(&world);
    assert_eq!(output.code, 3, "{}", output.stderr);
    let said = &output.stderr;
    assert!(said.contains("None of your files was changed"), "{said}");
    assert_eq!(many(&world), 0, "and that is so");
    assert!(!world.work().join("many").exists());
    let notes = std::fs::read_to_string(world.work().join("notes.txt")).unwrap();
    assert_eq!(notes, "mine\n");
    let status = git(&world, &["status", "--porcelain"]);
    assert_eq!(status, " M notes.txt\n", "nothing of ours is left behind");
    git(&world, &["checkout", "--quiet", "notes.txt"]);
    let output = resume(&world);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(many(&world), MANY);
    let notes = std::fs::read_to_string(world.work().join("notes.txt")).unwrap();
    assert_eq!(notes, "theirs\n");
}

#[test]
fn a_file_that_was_changed_after_a_killed_merge_is_left_and_the_message_says_so() {
    let world = killed_while_it_merges();
    // Written by the merge, and then by the user.
    let entries = std::fs::read_dir(world.work().join("many")).unwrap();
    let names = entries.flatten().map(|entry| entry.file_name());
    let name = names.map(|name| name.into_string().unwrap());
    let name = name.filter(|name| !name.starts_with('.')).min().unwrap();
    let mine = world.write(&format!("work/many/{name}"), "mine\n");
    let output = resume(&world);
    assert_eq!(output.code, 3, "{}", output.stderr);
    let said = &output.stderr;
    assert!(!said.contains("None of your files"), "{said}");
    let expected = format!("all was put back but many/{name}, which had been changed meanwhile");
    assert!(said.contains(&expected), "{said}");
    assert_eq!(std::fs::read_to_string(&mine).unwrap(), "mine\n");
    assert_eq!(many(&world), 1);
    std::fs::remove_file(mine).unwrap();
    assert_eq!(resume(&world).code, 0);
    assert_eq!(many(&world), MANY);
}

#[test]
fn a_link_that_leads_out_stays_out_of_the_users_directory_and_is_named() {
    let world = repository();
    let outside = world.root().join("outside");
    let outside = outside.display();
    let agents = format!(
        "{ONE_BUILD}
  builder:
    - calls:
        - run_command: {{command: ln -s {outside} link}}
        - run_command: {{command: ln -s notes.txt inside}}
        - write_file: {{path: new.txt, content: x}}
    - answer: {{files_created: [link, inside, new.txt], files_modified: [], tests_run: false, tests_passed: false}}
"
    );
    let output = swarm(&world, &agents, &[]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(world.work().join("link").symlink_metadata().is_err());
    assert!(world.work().join("inside").is_symlink());
    assert!(world.work().join("new.txt").exists());
    let named = format!("without what leads out of it (link -> {outside}): inside, new.txt");
    assert!(output.stderr.contains(&named), "{}", output.stderr);
    assert_eq!(summary(&world)["discrepancies"], Value::Array(Vec::new()));
    let shown = world
        .selvedge(&["sessions", "show", &world.session()])
        .stdout;
    assert!(
        shown.contains(&format!("left out: link -> {outside}")),
        "{shown}"
    );
    let audit = world.selvedge(&["audit", "query", "--json"]).stdout;
    assert!(audit.contains(&format!("link -> {outside}")), "{audit}");
}

#[test]
fn at_the_edge_of_the_budget_the_work_is_kept_and_more_money_completes_it() {
    let world = repository();
    let agents = "
  planner:
    - calls: [{builder: {task: first, work_dir: .}}]
      usage: {input: 100, output: 10}
    - calls: [{builder: {task: second, work_dir: .}}]
      usage: {input: 100, output: 10}
    - calls: [{mission_complete: {summary: built, outcome: done}}]
      usage: {input: 100, output: 10}
  builder/task-001:
    - calls: [{write_file: {path: first.txt, content: first}}]
      usage: {input: 1000, output: 3000}
    - answer: {files_created: [first.txt], files_modified: [], tests_run: false, tests_passed: false}
      usage: {input: 1000, output: 3000}
  builder/task-002:
    - calls: [{write_file: {path: second.txt, content: second}}]
      usage: {input: 1000, output: 3000}
    - answer: {files_created: [second.txt], files_modified: [], tests_run: false, tests_passed: false}
      usage: {input: 1000, output: 3000}
";
    let output = swarm(&world, agents, &["--budget", "0.16"]);
    assert_eq!(output.code, 4, "{}", output.stderr);
    let first = summary(&world);
    assert_eq!(first["outcome"], "budget_exhausted");
    let spent = first["total_cost"].as_f64().unwrap();
    assert!(spent <= 0.16, "{spent}");
    // The work so far is there, apart from the user's, and the next step is named.
    let kept = session_folder(&world).join("work/first.txt");
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "first");
    assert!(!world.work().join("first.txt").exists());
    let session = world.session();
    let next = format!("selvedge resume {session} --budget");
    assert!(output.stderr.contains(&next), "{}", output.stderr);
    let output = world.selvedge(&["resume", &session, "--budget", "2"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    for name in ["first", "second"] {
        let text = std::fs::read_to_string(world.work().join(format!("{name}.txt"))).unwrap();
        assert_eq!(text, name);
    }
    let summary = summary(&world);
    assert_eq!(summary["outcome"], "success");
    assert_eq!(summary["builder_tasks"], 2, "nobody began anew");
    assert!(summary["total_cost"].as_f64().unwrap() > spent);
}

//! Phases: what passes from one to the next, when a transition is rejected, and what is
//! refused where.

use serde_json::{Value, json};

use super::*;

#[test]
fn a_job_of_two_phases_runs_to_its_end_and_nothing_but_files_passes_between_them() {
    let world = world(json!({}));
    let output = run(&world, &two_phases());
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("Counted."), "{}", output.stdout);
    assert!(
        output.stderr.contains("phase 2 (tactical), 5 of 5 todos"),
        "{}",
        output.stderr
    );
    let folder = folder(&world);
    let archive = read(&folder.join("archive/phase_2.yaml"));
    assert_eq!(archive.matches("status: completed").count(), 5, "{archive}");
    assert!(
        !folder.join("todos.yaml").exists(),
        "the list has done its work"
    );
    assert_eq!(read(&folder.join("output/count.md")), "forty-two\nwords\n");
    let completion = read_json(&folder.join("output/completion.json"));
    assert_eq!(completion["status"], "completed");
    assert_eq!(completion["outputs"], json!(["output/count.md"]));
    assert!(completion["finished_at"].as_str().unwrap().ends_with('Z'));
    assert!(!folder.join("output/error.json").exists());

    for (agent, task, memory) in [
        ("strategic", 1, "Job of config `mine`"),
        ("tactical", 2, "the answer is 42"),
        ("strategic", 3, "the answer is 42"),
    ] {
        let first = &sent(&world, agent, task)[0];
        let system = first["system"].as_str().unwrap();
        assert!(system.contains(memory), "{agent} {task}: {system}");
        assert!(
            system.contains(&format!("phase {task} ({agent})")),
            "{system}"
        );
        let messages = first["messages"].as_array().unwrap();
        // The request of the phase, and its todos.
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert!(messages.iter().all(|message| message["role"] == "user"));
        assert!(!first["messages"].to_string().contains("Going on."));
    }
    let status = world.selvedge(&["job", "status", &world.session(), "--json"]);
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(
        (&status["state"], &status["phase"]),
        (&json!("done"), &json!(3))
    );
    assert_eq!(
        (&status["iterations"], &status["todos_completed_in_all"]),
        (&json!(8), &json!(12))
    );
    let list = world.selvedge(&["job", "list"]);
    assert!(
        list.stdout.contains("mine")
            && list.stdout.contains("done")
            && list.stdout.contains("12 todos in 3 phases"),
        "{}",
        list.stdout
    );
    let logs = world.selvedge(&["job", "logs", "-f", &world.session()]);
    assert!(
        logs.stdout
            .trim_end()
            .lines()
            .last()
            .unwrap()
            .contains("12 todos in 3 phases"),
        "{}",
        logs.stdout
    );
    for line in [
        "strategic task-001: Going on.",
        "✓ append_file output/count.md",
        "■■■■■ phase 2 (tactical), 5 of 5 todos",
        "done Counted.",
    ] {
        assert!(logs.stdout.contains(line), "{line}: {}", logs.stdout);
    }
    let verified = world.selvedge(&["audit", "verify"]);
    assert_eq!(verified.code, 0, "{}", verified.stderr);
}

/// A strategic phase that is rejected twice, for these lists, and then accepted.
fn rejected_twice(lists: [Option<&str>; 2]) -> Vec<String> {
    let world = world(json!({}));
    let attempt = |list: Option<&str>| {
        let written = list.map(|list| write_file("todos.yaml", list));
        turn(&written.into_iter().chain(completing(1)).collect::<Vec<_>>())
    };
    let mut agents = two_phases();
    agents["strategic/task-001"] = json!([
        turn(&completing(3)),
        attempt(lists[0]),
        attempt(lists[1]),
        turn(&[todo_write(5)]),
        turn(&completing(1)),
    ]);
    let output = run(&world, &agents);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let answers = answers(&events(&world)).into_iter();
    let rejected = answers.filter(|(_, text, _)| text.starts_with("Phase transition rejected: "));
    rejected
        .map(|(_, text, _)| text.lines().next().unwrap().to_owned())
        .collect()
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("todos:\n{}", items.collect::<String>())
}

#[test]
fn a_list_that_cannot_be_used_is_rejected_with_the_reason_and_accepted_when_corrected() {
    let item = |n: usize| format!("  - {{id: {n}, content: todo {n}}}\n");
    let (four, too_many) = (list((1..=4).map(item)), list((1..=21).map(item)));
    let no_id = list((1..=5).map(|n| format!("  - content: todo {n}\n")));
    let twice = list((1..=5).map(|n| item(n.min(4))));
    for (lists, reasons) in [
        (
            [None, Some("todos: [")],
            ["todos.yaml not found", "not valid YAML"],
        ),
        (
            [Some(four.as_str()), Some(too_many.as_str())],
            ["4 todos, and 5 to 20", "21 todos"],
        ),
        (
            [Some(no_id.as_str()), Some(twice.as_str())],
            [
                "item 1 of todos.yaml has no integer `id`",
                "the id 4 occurs twice",
            ],
        ),
    ] {
        let rejected = rejected_twice(lists);
        assert_eq!(rejected.len(), 2, "{rejected:?}");
        for (text, reason) in rejected.iter().zip(reasons) {
            assert!(text.contains(reason), "{text}");
        }
    }
}

#[test]
fn three_rejections_in_a_row_fail_the_job_and_so_does_a_phase_without_progress() {
    let first = world(json!({}));
    let turns = [
        turn(&completing(3)),
        turn(&completing(1)),
        turn(&completing(1)),
        turn(&completing(1)),
    ];
    let output = run(&first, &json!({ "strategic": turns }));
    assert_eq!(output.code, 1, "{}", output.stderr);
    let error = read_json(&folder(&first).join("output/error.json"));
    let what = error["what"].as_str().unwrap();
    assert!(
        what.contains("3 phase transitions in a row were rejected"),
        "{what}"
    );
    assert_eq!(error["where"]["phase"], 1);

    let second = world(json!({ "limits": { "max_iterations_per_phase": 4 } }));
    let looking = vec![turn(&[json!({ "list_files": {} })]); 9];
    let output = run(&second, &json!({ "strategic": looking }));
    assert_eq!(output.code, 1, "{}", output.stderr);
    let error = read_json(&folder(&second).join("output/error.json"));
    let what = error["what"].as_str().unwrap();
    assert!(
        what.contains("no todo was completed in 4 model calls"),
        "{what}"
    );

    let third = world(json!({ "limits": { "max_iterations": 3 } }));
    let output = run(&third, &two_phases());
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(output.stderr.contains("it used all"), "{}", output.stderr);
}

#[test]
fn a_tool_of_the_other_phase_is_refused_by_name() {
    let world = world(json!({ "tools": { "domain": ["chunk_document"] } }));
    let mut agents = two_phases();
    let strategic = agents["strategic/task-001"].as_array_mut().unwrap();
    strategic.insert(
        0,
        turn(&[json!({ "chunk_document": { "path": "instructions.md" } })]),
    );
    let tactical = agents["tactical/task-002"].as_array_mut().unwrap();
    tactical.insert(
        0,
        turn(&[json!({ "job_complete": { "summary": "already" } })]),
    );
    tactical.insert(
        1,
        turn(&[
            todo_write(5),
            json!({ "chunk_document": { "path": "instructions.md" } }),
        ]),
    );
    let output = run(&world, &agents);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let answers = answers(&events(&world));
    let refused: Vec<&str> = answers
        .iter()
        .filter(|(_, text, is_error)| *is_error && text.contains("cannot be used in a"))
        .map(|(_, text, _)| text.as_str())
        .collect();
    assert_eq!(refused.len(), 3, "{refused:?}");
    assert!(refused[0].starts_with("`chunk_document` cannot be used in a strategic phase"));
    assert!(refused[1].starts_with("`job_complete` cannot be used in a tactical phase"));
    assert!(refused[2].starts_with("`todo_write` cannot be used in a tactical phase"));
    assert!(
        folder(&world).join("chunks/manifest.json").exists(),
        "in its own phase it works"
    );
    // Who plans is told what can be done, and how much at once.
    let system = |agent, task| sent(&world, agent, task)[0]["system"].to_string();
    let planner = system("strategic", 1);
    assert!(
        planner.contains("- chunk_document: Cut a document"),
        "{planner}"
    );
    assert!(planner.contains("5 to 20 todos"), "{planner}");
    assert!(!system("tactical", 2).contains("- chunk_document"));
}

#[test]
fn a_free_job_directs_itself_and_makes_room_when_a_list_is_put_away() {
    let world = world(json!({ "loop": "free", "todo": { "max_items": 2 } }));
    let long = "word ".repeat(2_000);
    let agents = json!({ "worker": [
        turn(&[json!({ "add_todo": { "content": "one" } }), json!({ "add_todo": { "content": "two" } }),
               json!({ "add_todo": { "content": "three" } })]),
        turn(&[write_file("notes/long.md", &long)]),
        turn(&[json!({ "read_file": { "path": "notes/long.md" } })]),
        turn(&[json!({ "complete_todo": { "id": 1, "notes": "well" } }), json!({ "start_todo": { "id": 2 } })]),
        turn(&[json!({ "archive_and_reset": { "phase_name": "first" } })]),
        { "text": "A summary of what was done." },
        turn(&[json!({ "job_complete": { "summary": "All done." } })]),
    ]});
    let output = run(&world, &agents);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let answers = answers(&events(&world));
    assert!(answers.iter().any(|(tool, text, is_error)| {
        tool == "add_todo" && *is_error && text.contains("2 todos are open")
    }));
    let archive = std::fs::read_dir(folder(&world).join("archive")).unwrap();
    let archive: Vec<PathBuf> = archive.map(|entry| entry.unwrap().path()).collect();
    let page = read(&archive[0]);
    for part in [
        "## Completed\n\n- [x] 1. one",
        "## In progress\n\n- [ ] 2. two",
        "## Notes\n\n- 1: well",
    ] {
        assert!(page.contains(part), "{page}");
    }
    let last = sent(&world, "worker", 1).pop().unwrap();
    let words = last["messages"].to_string();
    assert!(words.contains("A summary of what was done."), "{words}");
}

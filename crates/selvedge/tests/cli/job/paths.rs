//! No path leads out of a job's folder, whichever tool is given it.

use serde_json::json;

use super::*;

#[test]
fn path_attacks_are_refused_by_every_file_tool() {
    let tools = [
        "extract_document_text",
        "chunk_document",
        "cite_document",
        "index_file_for_search",
    ];
    let world = world(json!({ "tools": { "domain": tools } }));
    let canary = world.write("work/canary.md", "canary\n");
    let outside = world.write("outside/secret.md", "canary\n");
    let link = outside.parent().unwrap().to_str().unwrap().to_owned();
    let absolute = canary.to_str().unwrap().to_owned();
    let paths = [
        "../../canary.md",
        "..",
        "documents/../../../canary.md",
        &absolute,
        "/etc/passwd",
        "~/canary.md",
        "documents/link/secret.md",
        "DOCUMENTS/../../../canary.md",
        "a\u{0}b",
        "..\u{2f}..\u{2f}canary.md",
        "\u{2e}\u{2e}/../canary.md",
        "documents/./../../../canary.md",
        "... ",
    ];
    let mut calls = Vec::new();
    for path in paths {
        for tool in [
            "read_file",
            "delete_file",
            "file_exists",
            "list_files",
            "extract_document_text",
            "chunk_document",
            "index_file_for_search",
        ] {
            calls.push(json!({ tool: { "path": path } }));
        }
        calls.push(json!({ "write_file": { "path": path, "content": "x" } }));
        calls.push(json!({ "append_file": { "path": path, "content": "x" } }));
        calls.push(json!({ "search_files": { "pattern": "canary", "path": path } }));
        calls.push(json!({ "cite_document": { "path": path, "quote": "canary" } }));
    }
    let attacks: Vec<Value> = calls.chunks(100).map(turn).collect();
    let mut agents = two_phases();
    // The link leads out; only somebody outside can have put it there.
    let tactical = agents["tactical/task-002"].as_array_mut().unwrap();
    let count = attacks.len();
    for attack in attacks.into_iter().rev() {
        tactical.insert(0, attack);
    }
    let mut command = run_command(&world, &agents, &["--config", "mine", "--json"]);
    let child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null());
    let mut child = child.spawn().unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let mut is_linked = false;
    for line in lines {
        let line = line.unwrap();
        if !is_linked && line.contains("\"RunStarted\"") {
            is_linked = true;
            std::os::unix::fs::symlink(&link, folder(&world).join("documents/link")).unwrap();
        }
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let events = events(&world);
    let attacked: Vec<_> = answers(&events)
        .into_iter()
        .filter(|(tool, _, _)| calls.iter().any(|call| call.get(tool).is_some()))
        .collect();
    assert!(count > 1 && attacked.len() >= calls.len());
    let done: Vec<_> = attacked
        .iter()
        .take(calls.len())
        .filter(|(_, _, is_error)| !is_error)
        .collect();
    // The first file calls are those of the plan.
    let done: Vec<_> = done
        .into_iter()
        .filter(|(_, text, _)| !text.contains("`workspace.md`") && !text.contains("`main_plan.md`"))
        .collect();
    assert!(done.is_empty(), "{done:?}");
    for place in [&canary, &outside] {
        assert_eq!(read(place), "canary\n");
    }
    let beside = std::fs::read_dir(outside.parent().unwrap())
        .unwrap()
        .count();
    assert_eq!(beside, 1, "nothing was written through the link");
}

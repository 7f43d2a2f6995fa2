//! The index of a job's folder follows its files while they are written, and not only when
//! somebody searches.

use serde_json::json;

use super::*;

#[test]
fn a_file_is_in_the_index_once_it_is_written_and_leaves_it_once_it_is_deleted() {
    let world = world(json!({ "tools": { "domain": ["get_vector_index_stats"] } }));
    // It says how the index was left, and does not look at the files.
    let look = || turn(&[json!({ "get_vector_index_stats": {} })]);
    let mut agents = two_phases();
    agents["tactical/task-002"] = json!([
        look(),
        turn(&[write_file(
            "notes/geese.md",
            "# Geese\n\nThey fly south in October.\n"
        )]),
        look(),
        turn(&[
            json!({ "append_file": { "path": "notes/geese.md", "content": "\n# Ducks\n\nThey stay.\n" } })
        ]),
        look(),
        turn(&[json!({ "delete_file": { "path": "notes/geese.md" } })]),
        look(),
        turn(&[write_file("output/count.md", "none\n")]),
        turn(&completing(5)),
    ]);
    let document = world.write("inputs/report.md", "# Report\n\nAll birds were counted.\n");
    let mut command = run_command(&world, &agents, &["--config", "mine", "--document"]);
    let output = world.output(command.arg(document));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let stats = answers(&events(&world)).into_iter();
    let stats = stats.filter(|(tool, _, _)| tool == "get_vector_index_stats");
    let stats: Vec<(u64, u64)> = stats
        .map(|(_, text, _)| {
            let stats: Value = serde_json::from_str(&text).unwrap();
            let count = |name: &str| stats[name].as_u64().unwrap();
            (count("files"), count("vectors"))
        })
        .collect();
    let [before, written, longer, deleted] = stats.as_slice() else {
        panic!("{stats:?}");
    };
    // The document, the instructions, and what the first phase wrote.
    assert!(before.0 >= 4, "{stats:?}");
    assert_eq!(written.0, before.0 + 1, "{stats:?}");
    assert!(longer.0 == written.0 && longer.1 > written.1, "{stats:?}");
    assert_eq!(deleted, before, "{stats:?}");
}

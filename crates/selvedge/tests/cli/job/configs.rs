//! A config that is wrong is refused at the start, and nothing is written.

use serde_json::json;

use super::*;

#[test]
fn a_wrong_config_is_refused_with_file_line_key_reason_and_the_nearest_name() {
    for (config, parts) in [
        (
            json!({ "tools": { "domain": ["cite_documents"] } }),
            [
                "tools.domain.0",
                "the tool `cite_documents`, which does not exist",
                "`cite_document`",
            ],
        ),
        (
            json!({ "limits": { "max_iterations": "many" } }),
            [
                "limits.max_iterations",
                "not of type \"integer\"",
                "config schema job",
            ],
        ),
        (
            json!({ "limit": {} }),
            ["`limit`", "is not a key that a config has", "`limits`"],
        ),
        (
            json!({ "$extends": "mine" }),
            ["$extends", "is a circle: mine → mine", "defaults"],
        ),
        (
            json!({ "connections": { "postgres": "postgres://127.0.0.1:9/x" } }),
            [
                "PostgreSQL at `127.0.0.1:9`",
                "connections.postgres",
                "embedded",
            ],
        ),
    ] {
        let world = world(config);
        let output = run(&world, &two_phases());
        assert!([1, 2].contains(&output.code), "{}", output.stderr);
        for part in parts {
            assert!(output.stderr.contains(part), "{part}: {}", output.stderr);
        }
        assert!(
            !world.work().join("workspace").exists(),
            "nothing was written"
        );
        if !output.stderr.contains("PostgreSQL") {
            assert!(
                output.stderr.contains("mine/config.json`, line 1"),
                "{}",
                output.stderr
            );
            assert_eq!(output.code, 2);
        }
    }
}

#[test]
fn the_schema_of_configs_is_published_and_an_unknown_config_is_answered_with_the_nearest() {
    let world = world(json!({}));
    let output = world.selvedge(&["config", "schema", "job"]);
    let schema: Value = serde_json::from_str(&output.stdout).unwrap();
    assert!(schema["properties"]["phase_settings"].is_object());
    assert_eq!(schema["additionalProperties"], false);
    let output = world.output(&mut run_command(
        &world,
        &two_phases(),
        &["--config", "creater"],
    ));
    assert_eq!(output.code, 2, "{}", output.stderr);
    assert!(output.stderr.contains("`creator`"), "{}", output.stderr);
    let missing = ["--config", "mine", "--document", "none.pdf"];
    let output = world.output(&mut run_command(&world, &two_phases(), &missing));
    assert_eq!(output.code, 2, "{}", output.stderr);
    assert!(
        output.stderr.contains("no document `none.pdf`"),
        "{}",
        output.stderr
    );
}

#[test]
fn a_database_that_answers_is_refused_in_other_words_than_one_that_does_not() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let answers = listener.local_addr().unwrap().to_string();
    for (key, scheme, name) in [
        ("postgres", "postgres", "PostgreSQL"),
        ("neo4j", "bolt", "Neo4j"),
    ] {
        let refused = |place: &str| {
            let address = format!("{scheme}://user:secret-word@{place}/x");
            let world = world(json!({ "connections": { key: address } }));
            let output = run(&world, &two_phases());
            assert_ne!(output.code, 0, "{}", output.stderr);
            assert!(
                !world.work().join("workspace").exists(),
                "nothing was written"
            );
            assert!(!output.stderr.contains("secret-word"), "{}", output.stderr);
            output.stderr
        };
        let away = refused("127.0.0.1:9");
        assert!(
            away.contains(&format!("{name} at `127.0.0.1:9` does not answer")),
            "{away}"
        );
        let there = refused(&answers);
        let said = format!("{name} at `{answers}` answers, and cannot be used");
        assert!(
            there.contains(&said) && there.contains("embedded store only"),
            "{there}"
        );
    }
}

#[test]
fn an_address_of_a_model_that_cannot_be_meant_is_refused() {
    for (llm, part) in [
        (
            json!({ "model": "openai/m", "base_url": "localhost" }),
            "is not the address of a server",
        ),
        (
            json!({ "model": "openai/m", "base_url": "http://a:b@host/v1" }),
            "has a name or a password",
        ),
        (
            json!({ "tier": "high", "base_url": "http://127.0.0.1:1/v1" }),
            "says where a provider is, and not which",
        ),
    ] {
        let world = world(json!({ "llm": llm }));
        let output = run(&world, &two_phases());
        assert_eq!(output.code, 2, "{}", output.stderr);
        for part in ["mine/config.json`, line 1", "llm.base_url", part] {
            assert!(output.stderr.contains(part), "{part}: {}", output.stderr);
        }
    }
}

#[test]
fn every_key_of_a_config_has_its_effect() {
    let world = world(json!({
        "job_type": "counter",
        "display_name": "Counter",
        "workspace": { "structure": ["drafts/early"], "instructions_template": "brief.md" },
        "tools": {
            "workspace": ["read_file", "write_file"],
            "tactical": ["todo_complete", "append_file"],
            "domain": ["cite_document"],
            "deferred": ["get_vector_index_stats"],
        },
        "phase_settings": { "min_todos": 1, "max_todos": 2, "archive_on_transition": false },
        "context_management": { "keep_recent_tool_results": 1 },
    }));
    world.write("work/.selvedge/configs/mine/brief.md", "Count the birds.\n");
    let read = || turn(&[json!({ "read_file": { "path": "main_plan.md" } })]);
    let mut agents = two_phases();
    agents["strategic/task-001"][0]["calls"][1] = write_file("main_plan.md", &"plan ".repeat(400));
    agents["strategic/task-001"][0]["calls"][2] = todo_write(2);
    agents["tactical/task-002"] = json!([
        read(),
        read(),
        turn(&[json!({ "tool_search": { "query": "index" } })]),
        turn(&[json!({ "get_vector_index_stats": {} })]),
        turn(&[json!({ "append_file": { "path": "output/count.md", "content": "3\n" } })]),
        turn(&completing(2)),
    ]);
    let output = run(&world, &agents);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(
        output.stderr.contains("counter on scripted/"),
        "{}",
        output.stderr
    );
    let folder = folder(&world);
    assert_eq!(
        super::read(&folder.join("instructions.md")),
        "Count the birds.\n"
    );
    assert!(folder.join("drafts/early").is_dir());
    assert!(
        !folder.join("archive/phase_2.yaml").exists(),
        "nothing is archived"
    );
    let status = world.selvedge(&["job", "status", &world.session()]);
    assert!(
        status.stdout.contains("mine (Counter)"),
        "{}",
        status.stdout
    );

    let requests = sent(&world, "tactical", 2);
    let tools = requests[0]["tools"].to_string();
    for name in ["read_file", "append_file", "cite_document", "tool_search"] {
        assert!(tools.contains(name), "{name}: {tools}");
    }
    for name in ["delete_file", "get_vector_index_stats"] {
        assert!(!tools.contains(name), "{name}: {tools}");
    }
    let answers = answers(&events(&world));
    let stats = answers
        .iter()
        .find(|(tool, _, _)| tool == "get_vector_index_stats");
    assert!(stats.is_some_and(|(_, _, is_error)| !is_error), "{stats:?}");
    // All but the last result are where they say.
    let last = requests.last().unwrap().to_string();
    assert!(!last.contains("plan plan"), "{last}");
}

#[test]
fn flags_that_fit_nothing_are_answered_with_what_would() {
    let world = world(json!({}));
    for (arguments, parts) in [
        (&["job", "run"][..], ["--config", "required"]),
        (
            &["job", "run", "--config", "mine", "--resume", "s_1"],
            ["--resume", "cannot be used with"],
        ),
        (
            &["job", "run", "--config", "mine", "--document", "."],
            ["no document `.`", "name a file"],
        ),
        (
            &["job", "run", "--config", "mine", "-C", "nowhere"],
            ["nowhere", "director"],
        ),
        (&["job", "run", "--resume", "s_1"], ["s_1", "selvedge"]),
        (&["job", "status", "s_1"], ["s_1", "selvedge"]),
        (&["job", "logs", "s_1"], ["s_1", "selvedge"]),
        (&["job", "cancel", "s_1"], ["s_1", "selvedge"]),
        (&["job", "finish"], ["finish", "--help"]),
        (&["worker", "--jobs", "0"], ["--jobs", "1..=64"]),
        (&["worker", "--config", "creater"], ["creater", "`creator`"]),
        (&["config", "schema", "jobs"], ["jobs", "job"]),
    ] {
        let output = world.selvedge(arguments);
        assert_eq!(output.code, 2, "{arguments:?}: {}", output.stderr);
        for part in parts {
            assert!(
                output.stderr.contains(part),
                "{arguments:?}: {}",
                output.stderr
            );
        }
        assert_eq!(output.stdout, "", "{arguments:?}");
    }
    let none = world.selvedge(&["job", "list"]);
    assert!(
        none.code == 0 && none.stderr.contains("there are no jobs"),
        "{}",
        none.stderr
    );
}

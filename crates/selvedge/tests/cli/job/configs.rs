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

//! What a config says of its model reaches the server that answers, and keys do not go where
//! a project sends them.

use selvedge_testkit::{ModelServer, Reply, ReplyFault};
use serde_json::json;

use super::*;

/// Kept for as long as the server is asked.
struct Served {
    _runtime: tokio::runtime::Runtime,
    server: ModelServer,
}

/// A server that ends a job with its first answer.
fn serve() -> Served {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let end = |_: &_| Reply::text("That was all.").call("job_complete", r#"{"summary": "Done."}"#);
    let server = runtime.block_on(ModelServer::start_with(end));
    Served {
        _runtime: runtime,
        server,
    }
}

fn llm(served: &Served) -> Value {
    json!({ "llm": {
        "model": "openai/local-7b",
        "base_url": served.server.openai_url(),
        "reasoning_level": "high",
        "temperature": 0.25,
    } })
}

fn keyed(world: &World, arguments: &[&str]) -> Command {
    let mut command = world.command(arguments);
    command.env("OPENAI_API_KEY", "sk-very-secret");
    command
}

#[test]
fn a_job_asks_the_server_that_its_config_names_and_a_projects_config_gets_no_key() {
    let served = serve();
    let world = world(llm(&served));
    let output = world.output(&mut keyed(&world, &["job", "run", "--config", "mine"]));
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("Done."), "{}", output.stdout);
    let asked = served.server.last_request();
    assert_eq!(asked.path, "/v1/chat/completions");
    assert_eq!(asked.body["model"], "local-7b");
    assert_eq!(asked.body["reasoning_effort"], "high");
    assert_eq!(asked.body["temperature"], 0.25);
    assert_eq!(asked.headers.get("authorization"), None);
    assert!(
        output.stderr.contains("the key of `openai` is not sent to"),
        "{}",
        output.stderr
    );

    // The same in the user's own folder is the user's word.
    let place = "work/.selvedge/configs/mine";
    let own = world.home().join("config/configs/own");
    std::fs::create_dir_all(own.parent().unwrap()).unwrap();
    std::fs::rename(world.root().join(place), own).unwrap();
    let output = world.output(&mut keyed(&world, &["job", "run", "--config", "own"]));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let asked = served.server.last_request();
    assert_eq!(asked.headers["authorization"], "Bearer sk-very-secret");
    assert!(!output.stderr.contains("is not sent"), "{}", output.stderr);
}

#[test]
fn a_worker_asks_the_server_that_the_job_was_begun_with() {
    let served = serve();
    let world = world(llm(&served));
    let submitted = world.selvedge(&["job", "submit", "--config", "mine"]);
    assert_eq!(submitted.code, 0, "{}", submitted.stderr);
    // What the config says by then is for jobs to come.
    world.write("work/.selvedge/configs/mine/config.json", "{}");
    let drained = world.selvedge(&["worker", "--drain"]);
    assert_eq!(drained.code, 0, "{}", drained.stderr);
    assert!(drained.stderr.contains(": done"), "{}", drained.stderr);
    assert_eq!(served.server.requests().len(), 1);
}

#[test]
fn a_resumed_job_asks_the_server_that_it_was_begun_with_and_gets_no_key_there_either() {
    let served = serve();
    let world = world(llm(&served));
    let arguments = ["job", "run", "--config", "mine", "--budget-tokens", "1"];
    let stopped = world.output(&mut keyed(&world, &arguments));
    assert_eq!(stopped.code, 4, "{}", stopped.stderr);
    assert!(served.server.requests().is_empty());
    // What the config says by then is for jobs to come.
    world.write("work/.selvedge/configs/mine/config.json", "{}");
    // It fails, so that it goes on once more as another.
    served.server.push(Reply::fault(ReplyFault::status(400)));
    let resume = |session: &str, more: &[&str]| {
        let mut arguments = vec!["job", "run", "--timeout", "60s", "--resume", session];
        arguments.extend(more);
        world.output(&mut keyed(&world, &arguments))
    };
    let session = world.session();
    let failed = resume(&session, &["--budget-tokens", "9000000"]);
    assert_eq!(failed.code, 1, "{}", failed.stderr);
    assert_eq!(served.server.requests().len(), 1, "{}", failed.stderr);
    let done = resume(&session, &[]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stdout.contains("Done."), "{}", done.stdout);
    let asked = served.server.requests();
    assert_eq!(asked.len(), 2);
    for asked in asked {
        assert_eq!(asked.body["model"], "local-7b");
        assert_eq!(asked.headers.get("authorization"), None);
    }
}

#[test]
fn a_level_of_reasoning_that_a_model_does_not_take_is_told_at_the_start() {
    let served = serve();
    let url = served.server.url();
    for (command, llm, is_deaf) in [
        (
            "submit",
            json!({ "model": "openai/gpt-4.1-mini", "reasoning_level": "high" }),
            true,
        ),
        (
            "submit",
            json!({ "model": "openai/gpt-4.1-mini", "reasoning_level": "none" }),
            false,
        ),
        ("submit", json!({ "model": "openai/gpt-4.1-mini" }), false),
        (
            "submit",
            json!({ "model": "openai/gpt-5.2", "reasoning_level": "high" }),
            false,
        ),
        (
            "run",
            json!({ "model": "anthropic/claude-3-7-sonnet", "base_url": url, "reasoning_level": "low" }),
            true,
        ),
        (
            "run",
            json!({ "model": "anthropic/claude-sonnet-4-6", "base_url": url, "reasoning_level": "low" }),
            false,
        ),
    ] {
        let model = llm["model"].as_str().unwrap().to_owned();
        let wanted = llm["reasoning_level"].clone();
        let world = world(json!({ "llm": llm }));
        let output = world.output(&mut keyed(&world, &["job", command, "--config", "mine"]));
        assert_eq!(output.code, 0, "{}", output.stderr);
        let warned = format!("`{model}` cannot be told how long to think");
        let is_warned = output.stderr.contains(&warned)
            && output
                .stderr
                .contains("`llm.reasoning_level` of `mine` has no effect");
        assert_eq!(is_warned, is_deaf, "{model}, {wanted}: {}", output.stderr);
        // What is said is what is done.
        if command == "run" {
            let effort = &served.server.last_request().body["output_config"]["effort"];
            assert_eq!(*effort == wanted, !is_deaf, "{model}: {effort}");
        }
    }
}

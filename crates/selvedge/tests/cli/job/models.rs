//! What a config says of its model reaches the server that answers, and keys do not go where
//! a project sends them.

use selvedge_testkit::{ModelServer, Reply};
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
fn a_worker_and_a_resumed_job_ask_the_server_that_the_job_was_begun_with() {
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

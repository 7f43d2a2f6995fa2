//! Models over real sockets: keys from the environment, refusals, and Ctrl-C.

use expect_test::expect;
use rustix::process::Signal;
use selvedge_testkit::{ModelServer, Reply, ReplyFault};

use crate::world::{Background, PATIENCE, World};

struct Served {
    runtime: tokio::runtime::Runtime,
    server: ModelServer,
}

/// A model server for as long as the test looks.
fn serve() -> Served {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(ModelServer::start());
    Served { runtime, server }
}

fn run(world: &World, served: &Served, arguments: &[&str]) -> std::process::Command {
    let mut command = world.command(&["run"]);
    command
        .args(arguments)
        .env("OPENAI_BASE_URL", served.server.openai_url())
        .env("OPENAI_API_KEY", "sk-very-secret");
    command
}

#[test]
fn with_one_key_set_and_nothing_said_its_provider_answers() {
    let world = World::new();
    world.write("work/notes.txt", "hello\n");
    let served = serve();
    let read = Reply::text("I read.").call("read_file", r#"{"path": "notes.txt"}"#);
    served.server.push(read);
    served.server.push(Reply::text("It says hello."));
    let output = world.output(&mut run(&world, &served, &["what does it say?"]));
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(output.stdout, "It says hello.\n");
    let requests = served.server.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(
        requests[0].headers["authorization"],
        "Bearer sk-very-secret"
    );
    let events = world.selvedge(&["sessions", "events", &world.session(), "--json"]);
    assert!(!events.stdout.contains("secret"), "a key is in the ledger");
}

#[test]
fn a_refused_key_pauses_the_run_and_says_what_to_do() {
    let world = World::new();
    let served = serve();
    served.server.push(Reply::fault(ReplyFault::status(401)));
    let output = world.output(&mut run(&world, &served, &["do it"]));
    assert_eq!(output.code, 6, "{}", output.stderr);
    assert!(
        output.stderr.contains("go on: selvedge resume"),
        "{}",
        output.stderr
    );
    assert!(!output.stderr.contains("secret"), "{}", output.stderr);
    // Without the key it is not even tried.
    world.selvedge(&["resume"]).check(expect![[r#"
        exit 6
        -- stderr --
        error: `openai/gpt-6.1-sol` needs the provider `openai`, which is not available
          hint: set `OPENAI_API_KEY`
    "#]]);
    served.server.push(Reply::text("fine"));
    let mut command = world.command(&["resume"]);
    command
        .env("OPENAI_BASE_URL", served.server.openai_url())
        .env("OPENAI_API_KEY", "another");
    let output = world.output(&mut command);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (0, "fine\n"),
        "{}",
        output.stderr
    );
}

#[test]
fn ctrl_c_hangs_up_on_a_model_that_is_answering() {
    let world = World::new();
    let served = serve();
    let stalls = Reply::text("too late").with_fault(ReplyFault::StallAt(200));
    served.server.push(stalls);
    let running = Background::start(&world, run(&world, &served, &["do it"]));
    crate::world::until("the model is asked", || served.server.requests().len() == 1);
    running.signal(Signal::INT);
    assert_eq!(running.end(), 130);
    let hung_up = served.server.until_abandoned(1);
    let hung_up = async { tokio::time::timeout(PATIENCE, hung_up).await };
    assert!(served.runtime.block_on(hung_up).is_ok(), "nobody hung up");
}

#[test]
fn what_a_server_did_not_count_is_marked_as_estimated() {
    let world = World::new();
    let served = serve();
    served.server.push(Reply::text("fine").uncounted());
    let output = world.output(&mut run(&world, &served, &["do it"]));
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stderr.contains("about $"), "{}", output.stderr);
    let usage = world.selvedge(&["usage"]);
    let row = usage.stdout.lines().nth(1).unwrap();
    assert!(row.contains(" ~") && row.contains("about $"), "{row}");
    let why = "1 answer came without a count of tokens";
    assert!(usage.stderr.contains(why), "{}", usage.stderr);
    let json = world.selvedge(&["usage", "--json"]).stdout;
    assert!(json.contains("\"estimated_calls\":1"), "{json}");

    served.server.push(Reply::text("fine"));
    assert_eq!(world.output(&mut run(&world, &served, &["again"])).code, 0);
    let usage = world.selvedge(&["usage", "--session", &world.session()]);
    assert!(!usage.stdout.contains('~'), "{}", usage.stdout);
}

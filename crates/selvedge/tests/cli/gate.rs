//! The gate through the binary: broken answers, fallbacks, allowances, cassettes.

use std::io::Read;
use std::process::Command;

use expect_test::expect;
use selvedge_testkit::{ModelServer, Reply, ReplyFault};

use crate::world::{Background, Output, World};

/// A turn that is cut off once, then answered.
const CUT: &str = "\
- error: {kind: transient, what: the stream was cut, after: I was about to say}
- text: It is done.
  usage: {input: 1000, output: 100}";

#[test]
fn an_answer_that_broke_off_is_told_shown_and_paid_for() {
    let world = World::new();
    world.run(CUT, &["do it"]).check(expect![[r#"
        exit 0
        -- stdout --
        It is done.
        -- stderr --
        engineer on scripted/script · session s_ID
          scripted: the stream was cut; what was said so far does not count; trying again in N s (2 of 3)
          It is done.
        done · 1 turn · about Nk tokens · about $N · N s · session s_ID
    "#]]);
    let show = world.selvedge(&["sessions", "show", &world.session()]);
    let broke_off = "scripted/script broke off (scripted: the stream was cut); this does not \
                     count:\n    I was about to say";
    assert!(show.stdout.contains(broke_off), "{}", show.stdout);
    assert_eq!(
        world.kinds()[2..6],
        [
            "ModelCallStarted",
            "ModelCallInterrupted",
            "ModelCallStarted",
            "ModelCallFinished"
        ]
    );
    let usage = world.selvedge(&["usage", "--json"]);
    let row: serde_json::Value = serde_json::from_str(usage.stdout.trim()).unwrap();
    assert_eq!(
        (&row["calls"], &row["broken_attempts"]),
        (&1.into(), &1.into())
    );
    // The answer alone is 0.003; what broke off is estimated besides.
    let cost = row["cost_usd"].as_f64().unwrap();
    assert!(cost > 0.003 && cost < 0.02, "{cost}");
    let usage = world.selvedge(&["usage"]);
    let told = "1 attempt broke off before the provider said what was used";
    assert!(usage.stderr.contains(told), "{}", usage.stderr);
}

#[test]
fn a_budget_of_all_sessions_parks_the_next_one() {
    let world = World::new();
    world.write(
        "home/config/config.toml",
        "[budget]\nusd_per_month = 0.15\n",
    );
    let turns = "- text: fine\n  usage: {input: 50000, output: 10}";
    let first = world.run(turns, &["do it"]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    let second = world.run(turns, &["do it"]);
    assert_eq!(second.code, 4, "{}", second.stderr);
    let why = "budget `all sessions: all providers, per month` allows $0.15: $0.1001 spent";
    assert!(second.stderr.contains(why), "{}", second.stderr);
    // What is not a session is not listed as one, and is verified like all else.
    let list = world.selvedge(&["sessions", "list"]);
    assert!(!list.stdout.contains("machine"), "{}", list.stdout);
    assert_eq!(world.selvedge(&["audit", "verify"]).code, 0);
    // Raised, it goes on.
    world.write("home/config/config.toml", "[budget]\nusd_per_month = 1\n");
    let resumed = world.selvedge(&["resume", "--last"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
}

#[test]
fn what_was_spent_before_a_budget_was_set_counts() {
    let world = World::new();
    let turns = "- text: fine\n  usage: {input: 50000, output: 10}";
    assert_eq!(world.run(turns, &["do it"]).code, 0);
    world.write(
        "home/config/config.toml",
        "[budget]\nusd_per_month = 0.15\n",
    );
    let second = world.run(turns, &["do it"]);
    assert_eq!(second.code, 4, "{}", second.stderr);
}

#[test]
fn a_soft_limit_is_told_once_and_stops_nothing() {
    let world = World::new();
    let limit = "[soft_limits.scripted]\nperiod = 'month'\ntokens = 120000\n";
    world.write("home/config/config.toml", limit);
    let turns = "- text: fine\n  usage: {input: 50000, output: 10}";
    let told = |output: &Output| output.stderr.matches("soft limit").count();
    let runs: Vec<Output> = (0..4).map(|_| world.run(turns, &["do it"])).collect();
    assert!(runs.iter().all(|run| run.code == 0));
    let counts: Vec<usize> = runs.iter().map(told).collect();
    assert_eq!(counts, [0, 1, 1, 0], "near, over, and no more");
    let near = "83% of the soft limit of scripted, per month is spent";
    assert!(runs[1].stderr.contains(near), "{}", runs[1].stderr);
}

#[test]
fn a_cassette_plays_what_was_recorded_with_the_network_closed() {
    let world = World::new();
    world.write("work/notes.txt", "hello\n");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(ModelServer::start());
    server.push(Reply::text("I read.").call("read_file", r#"{"path": "notes.txt"}"#));
    server.push(Reply::text("It says hello."));
    let tape = world.root().join("tape.jsonl");
    let tape = tape.to_str().unwrap();
    let mut command = world.command(&["run", "--record", tape, "what does it say?"]);
    command
        .env("OPENAI_BASE_URL", server.openai_url())
        .env("OPENAI_API_KEY", "sk-very-secret");
    let recorded = world.output(&mut command);
    assert_eq!(recorded.code, 0, "{}", recorded.stderr);
    drop(server);

    let replay = |arguments: &[&str]| {
        let mut all = vec!["run", "--replay", tape];
        all.extend(arguments);
        world.selvedge(&all)
    };
    let replayed = replay(&["what does it say?"]);
    assert_eq!(
        (replayed.code, &replayed.stdout),
        (0, &recorded.stdout),
        "{}",
        replayed.stderr
    );
    assert!(replayed.stderr.contains("$0.00"), "{}", replayed.stderr);
    // Another request is not answered with somebody else's answer.
    let other = replay(&["what else?"]);
    assert_eq!(other.code, 1);
    let why = "has no answer to turn 0 of `engineer`: message 1 of 1 differs";
    assert!(other.stderr.contains(why), "{}", other.stderr);
    // As a script, it plays to anybody.
    let script = world.selvedge(&["run", "--script", tape, "what else?"]);
    assert_eq!(script.stdout, "It says hello.\n", "{}", script.stderr);
}

#[test]
fn the_same_request_is_answered_once_where_answers_are_kept() {
    let world = World::new();
    world.write("home/config/config.toml", "cache = true\n");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(ModelServer::start());
    server.push(Reply::text("Four."));
    let run = || {
        let mut command = world.command(&["run", "two and two?"]);
        command
            .env("OPENAI_BASE_URL", server.openai_url())
            .env("OPENAI_API_KEY", "sk-very-secret");
        world.output(&mut command)
    };
    let (first, second) = (run(), run());
    assert_eq!((first.code, first.stdout), (second.code, second.stdout));
    assert_eq!(server.requests().len(), 1);
    let usage = world.selvedge(&["usage", "--by", "model", "--json"]);
    let row: serde_json::Value = serde_json::from_str(usage.stdout.trim()).unwrap();
    assert_eq!(
        (&row["calls"], &row["cached_answers"]),
        (&1.into(), &1.into())
    );
}

#[test]
fn a_configured_fallback_answers_and_says_why() {
    // Under the name of the provider, of the tier, or of the model itself.
    for key in ["openai", "medium", "'openai/gpt-6.1-sol'"] {
        let world = World::new();
        let config = format!("[fallback]\n{key} = ['anthropic/claude-opus-5']\n");
        world.write("home/config/config.toml", &config);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (away, there) = runtime.block_on(async {
            let away = ModelServer::start_with(|_| Reply::fault(ReplyFault::status(401))).await;
            (away, ModelServer::start().await)
        });
        there.push(Reply::text("I am here."));
        let mut command = world.command(&["run", "--model", "openai/gpt-6.1-sol", "hello?"]);
        command
            .env("OPENAI_BASE_URL", away.openai_url())
            .env("OPENAI_API_KEY", "sk-wrong")
            .env("ANTHROPIC_BASE_URL", there.url())
            .env("ANTHROPIC_API_KEY", "sk-right");
        let output = world.output(&mut command);
        assert_eq!(output.stdout, "I am here.\n", "{key}: {}", output.stderr);
        assert_eq!(away.requests().len(), 1, "a wrong key is tried once");
        let told = "answered by anthropic/claude-opus-5, because openai: status 401";
        assert!(output.stderr.contains(told), "{}", output.stderr);
        let show = world.selvedge(&["sessions", "show", &world.session()]);
        assert!(show.stdout.contains(told), "{}", show.stdout);
    }
}

#[test]
fn an_agents_own_fallback_answers_and_says_why() {
    let world = World::new();
    let crew = "home/config/crews/one";
    world.write(
        &format!("{crew}/crew.toml"),
        "name = 'one'\ndescription = 'One of them.'\nentry = 'lead'\n",
    );
    // The first of them has no key, and is passed over.
    world.write(
        &format!("{crew}/agents/lead.md"),
        "---\nname: lead\ndescription: Leads.\nmodel: openai/gpt-6.1-sol\n\
         fallback: [gemini/gemini-3-pro, anthropic/claude-opus-5]\n---\nYou lead.\n",
    );
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (away, there) = runtime.block_on(async {
        let away = ModelServer::start_with(|_| Reply::fault(ReplyFault::status(401))).await;
        (away, ModelServer::start().await)
    });
    there.push(Reply::text("I am here."));
    let mut command = world.command(&["run", "--crew", "one", "hello?"]);
    command
        .env("OPENAI_BASE_URL", away.openai_url())
        .env("OPENAI_API_KEY", "sk-wrong")
        .env("ANTHROPIC_BASE_URL", there.url())
        .env("ANTHROPIC_API_KEY", "sk-right");
    let output = world.output(&mut command);
    assert_eq!(output.stdout, "I am here.\n", "{}", output.stderr);
    assert_eq!((away.requests().len(), there.requests().len()), (1, 1));
    let told = "answered by anthropic/claude-opus-5, because openai: status 401";
    assert!(output.stderr.contains(told), "{}", output.stderr);
}

/// A run of its own process, at a server, with a key.
fn at(world: &World, url: &str, key: &str) -> Command {
    let mut command = world.command(&["run", "--model", "openai/gpt-6.1-sol", "hello?"]);
    command
        .env("OPENAI_BASE_URL", url)
        .env("OPENAI_API_KEY", key);
    command
}

/// Starts a run, and kills it once it has said `words`.
fn until_it_says(world: &World, url: &str, key: &str, words: &str) -> String {
    let run = Background::start(world, at(world, url, key));
    run.wait_for(words);
    run.stderr()
}

#[test]
fn a_process_waits_for_what_another_was_told_to_wait_for() {
    let world = World::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(ModelServer::start());
    server.push(Reply::fault(ReplyFault::too_many(Some("120"))));
    let (url, key) = (server.openai_url(), "sk-one-and-the-same");
    until_it_says(
        &world,
        &url,
        key,
        "paused (provider): openai limits the rate",
    );
    assert_eq!(server.requests().len(), 1);
    // The first was killed, and the second knows.
    until_it_says(
        &world,
        &url,
        key,
        "it asked for patience; it goes on by itself in",
    );
    assert_eq!(server.requests().len(), 1, "nobody is asked meanwhile");
    // A limit is a key's: another is asked at once.
    server.push(Reply::text("I am here."));
    let other = world.output(&mut at(&world, &url, "sk-of-somebody-else"));
    assert_eq!(other.stdout, "I am here.\n", "{}", other.stderr);
    assert_eq!(world.selvedge(&["audit", "verify"]).code, 0);
}

#[test]
fn a_provider_that_failed_several_processes_is_given_a_rest_by_all() {
    let world = World::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(ModelServer::start_with(|_| {
        Reply::fault(ReplyFault::status(500))
    }));
    let (url, paused) = (server.openai_url(), "paused (provider)");
    let run = || until_it_says(&world, &url, "sk-one-and-the-same", paused);
    let first = run();
    assert!(!first.contains("given a rest"), "{first}");
    assert_eq!(server.requests().len(), 3);
    let second = run();
    let rest = "openai does not answer and is given a rest";
    assert!(second.contains(rest), "{second}");
    assert_eq!(
        server.requests().len(),
        5,
        "three and two are five in a row"
    );
    let third = run();
    assert!(third.contains("its last calls failed"), "{third}");
    assert_eq!(server.requests().len(), 5, "nobody asks it any more");
}

#[test]
fn what_a_request_cost_that_was_never_answered_is_unknown_and_not_nothing() {
    let world = World::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    // Takes each request, and hangs up.
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let _ = socket.read(&mut [0; 1024]);
        }
    });
    until_it_says(&world, &url, "sk-some-key-or-other", "paused (provider)");
    let usage = world.selvedge(&["usage", "--json"]);
    let row: serde_json::Value = serde_json::from_str(usage.stdout.trim()).unwrap();
    assert_eq!(
        (&row["calls"], &row["broken_attempts"]),
        (&0.into(), &3.into())
    );
    assert_eq!(row["cost_usd"], serde_json::Value::Null);
    assert!(
        row["at_most_usd"].as_f64() > Some(0.0),
        "a budget counts it: {row}"
    );
    let usage = world.selvedge(&["usage"]);
    assert!(usage.stdout.contains("unknown"), "{}", usage.stdout);
    let show = world.selvedge(&["sessions", "show", &world.session()]);
    assert!(
        show.stdout.contains("openai/gpt-6.1-sol broke off"),
        "{}",
        show.stdout
    );
}

#[test]
fn a_request_that_was_accepted_costs_its_reading_though_no_word_came_back() {
    let world = World::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(ModelServer::start());
    server.push(Reply::fault(ReplyFault::ResetAt(0)));
    server.push(Reply::text("I am here."));
    let output = world.output(&mut at(
        &world,
        &server.openai_url(),
        "sk-some-key-or-other",
    ));
    assert_eq!(output.stdout, "I am here.\n", "{}", output.stderr);
    let usage = world.selvedge(&["usage", "--json"]);
    let row: serde_json::Value = serde_json::from_str(usage.stdout.trim()).unwrap();
    assert_eq!(
        (&row["calls"], &row["broken_attempts"]),
        (&1.into(), &1.into())
    );
    assert!(row["estimated_usd"].as_f64() > Some(0.0), "{row}");
}

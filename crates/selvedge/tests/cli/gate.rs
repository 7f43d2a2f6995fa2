//! The gate through the binary: broken answers, fallbacks, allowances, cassettes.

use expect_test::expect;
use selvedge_testkit::{ModelServer, Reply, ReplyFault};

use crate::world::{Output, World};

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

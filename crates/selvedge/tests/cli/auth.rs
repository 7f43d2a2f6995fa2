//! Keys: stored, used, shown to nobody.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use expect_test::expect;
use selvedge_testkit::{ModelServer, Reply, ReplyFault};

use crate::terminal::Terminal;
use crate::world::{Output, World};

const KEY: &str = "sk-stored-very-secret-0123456789";
const OTHER: &str = "sk-ant-environment-secret-9876543210";

struct Served {
    _runtime: tokio::runtime::Runtime,
    server: ModelServer,
}

fn serve() -> Served {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(ModelServer::start());
    Served {
        _runtime: runtime,
        server,
    }
}

fn command(world: &World, served: &Served, arguments: &[&str]) -> Command {
    let mut command = world.command(arguments);
    command.env("OPENAI_BASE_URL", served.server.openai_url());
    command
}

/// Runs a command with a key on its stdin.
fn with_key(command: &mut Command, key: &str) -> Answered {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(key.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    Answered {
        code: output.status.code().unwrap_or(-1),
        said: String::from_utf8(output.stderr).unwrap()
            + &String::from_utf8(output.stdout).unwrap(),
    }
}

/// How a command ended, and everything it printed.
struct Answered {
    code: i32,
    said: String,
}

fn log_in(world: &World, served: &Served, arguments: &[&str]) {
    served.server.push(Reply::text("ok"));
    let mut login = command(world, served, &["auth", "login", "openai"]);
    let login = with_key(login.args(arguments), &format!("{KEY}\n"));
    assert_eq!(login.code, 0, "{}", login.said);
    assert!(!login.said.contains(KEY), "{}", login.said);
}

/// The files below `folder` that hold `word`.
fn holding(folder: &Path, word: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holding(&path, word));
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        if bytes
            .windows(word.len())
            .any(|window| window == word.as_bytes())
        {
            found.push(path.display().to_string());
        }
    }
    found
}

fn assert_unseen(world: &World, outputs: &[&Output]) {
    for key in [KEY, OTHER] {
        assert_eq!(holding(&world.home(), key), Vec::<String>::new());
        for output in outputs {
            assert!(!output.stdout.contains(key), "{}", output.stdout);
            assert!(!output.stderr.contains(key), "{}", output.stderr);
        }
    }
}

#[test]
fn a_stored_key_is_verified_used_and_forgotten() {
    let world = World::new();
    let served = serve();
    log_in(&world, &served, &[]);
    world.selvedge(&["auth", "status"]).check(expect![[r#"
        exit 0
        -- stdout --
        PROVIDER  KEY FROM  PROFILE  LENGTH
        anthropic  none
        azure  none
        gemini  none
        ollama  none
        openai  file  default  usual
        openrouter  none
    "#]]);
    served.server.push(Reply::text("fine"));
    let output = world.output(&mut command(&world, &served, &["run", "do it"]));
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (0, "fine\n"),
        "{}",
        output.stderr
    );
    for request in served.server.requests() {
        assert_eq!(request.headers["authorization"], format!("Bearer {KEY}"));
    }
    assert_unseen(&world, &[&output]);
    let output = world.selvedge(&["auth", "logout", "openai"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(world.selvedge(&["auth", "logout", "openai"]).code, 2);
    assert_eq!(world.selvedge(&["run", "do it"]).code, 6);
}

#[test]
fn a_key_that_is_refused_is_not_stored_and_not_repeated() {
    let world = World::new();
    let served = serve();
    let echo = ReplyFault::Status {
        code: 401,
        retry_after: None,
        body: format!(r#"{{"error":{{"message":"incorrect API key provided: {KEY}"}}}}"#),
    };
    served.server.push(Reply::fault(echo));
    let mut login = command(&world, &served, &["auth", "login", "openai"]);
    let login = with_key(&mut login, KEY);
    assert_eq!(login.code, 6, "{}", login.said);
    assert!(login.said.contains("was not stored"), "{}", login.said);
    assert!(!login.said.contains(KEY), "{}", login.said);
    assert_eq!(world.selvedge(&["auth", "logout", "openai"]).code, 2);
}

#[test]
fn no_key_reaches_a_command_the_ledger_a_log_or_the_terminal() {
    let world = World::new();
    let served = serve();
    log_in(&world, &served, &[]);
    let turns = "- text: I look.\n  calls: [{run_command: {command: env}}]\n- text: done";
    let mut run = world.run_command(turns, &["--approve", "auto", "--json", "show it"]);
    run.env("ANTHROPIC_API_KEY", OTHER)
        .env("SELVEDGE_LOG", "trace");
    let output = world.output(&mut run);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("GIT_PAGER"), "{}", output.stdout);
    assert_unseen(&world, &[&output]);
}

#[test]
fn a_provider_that_repeats_the_key_is_not_repeated() {
    let world = World::new();
    let served = serve();
    log_in(&world, &served, &[]);
    let echo = ReplyFault::Status {
        code: 401,
        retry_after: None,
        body: format!(r#"{{"error":{{"message":"incorrect API key provided: {KEY}"}}}}"#),
    };
    served.server.push(Reply::fault(echo));
    let mut run = command(&world, &served, &["run", "do it"]);
    let output = world.output(run.env("SELVEDGE_LOG", "trace"));
    assert_eq!(output.code, 6, "{}", output.stderr);
    assert!(
        output.stderr.contains("incorrect API key"),
        "{}",
        output.stderr
    );
    let events = world.selvedge(&["sessions", "events", &world.session(), "--json"]);
    assert_unseen(&world, &[&output, &events]);
}

#[test]
fn a_locked_file_opens_with_its_passphrase_only() {
    let world = World::new();
    let served = serve();
    let mut login = command(&world, &served, &["auth", "login", "openai", "--no-verify"]);
    let login = with_key(login.env("SELVEDGE_PASSPHRASE", "horse"), KEY);
    assert_eq!(login.code, 0, "{}", login.said);
    served.server.push(Reply::text("ok"));
    let mut test = command(&world, &served, &["models", "test"]);
    let test = world.output(test.env("SELVEDGE_PASSPHRASE", "horse"));
    assert_eq!(test.code, 0, "{}", test.stderr);
    let mut test = world.command(&["models", "test"]);
    world
        .output(test.env("SELVEDGE_PASSPHRASE", "mule"))
        .check(expect![[r#"
            exit 6
            -- stderr --
            warning: the stored key of `openai` is not used: the passphrase does not open the stored keys; try again; if it is lost, remove `credentials.enc` and log in again
            error: no model provider is available
              cause: no key is set or stored
              hint: type `selvedge auth login anthropic`, or set `ANTHROPIC_API_KEY`
        "#]]);
    world.selvedge(&["models", "test"]).check(expect![[r#"
        exit 6
        -- stderr --
        warning: the stored key of `openai` is not used: the stored keys are locked with a passphrase; set `SELVEDGE_PASSPHRASE`, or run it at a terminal
        error: no model provider is available
          cause: no key is set or stored
          hint: type `selvedge auth login anthropic`, or set `ANTHROPIC_API_KEY`
    "#]]);
}

#[test]
fn each_profile_has_keys_of_its_own() {
    let world = World::new();
    let served = serve();
    log_in(&world, &served, &["--profile", "work"]);
    assert_eq!(world.selvedge(&["run", "do it"]).code, 6);
    served.server.push(Reply::text("fine"));
    let output = world.output(&mut command(
        &world,
        &served,
        &["run", "--profile", "work", "do it"],
    ));
    assert_eq!(output.code, 0, "{}", output.stderr);
    served.server.push(Reply::text("fine"));
    let mut run = command(&world, &served, &["run", "do it"]);
    let output = world.output(run.env("SELVEDGE_PROFILE", "work"));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let authorizations = served.server.requests();
    assert!(
        authorizations
            .iter()
            .all(|r| r.headers["authorization"].contains(KEY))
    );
}

#[test]
fn models_test_tells_what_fails_and_why() {
    let world = World::new();
    let served = serve();
    served.server.push(Reply::fault(ReplyFault::status(401)));
    let mut test = command(&world, &served, &["models", "test"]);
    world
        .output(test.env("OPENAI_API_KEY", KEY))
        .check(expect![[r#"
            exit 6
            -- stdout --
            MODEL  ANSWER  TIME  COST
            openai/gpt-6-luna  failed
            -- stderr --
            `openai/gpt-6-luna` does not answer
              cause: openai: status 401: status 401
              hint: check `OPENAI_API_KEY`: the key is missing, wrong or not allowed this
        "#]]);
    served.server.push(Reply::text("ok"));
    let mut test = command(&world, &served, &["models", "test", "--json"]);
    let output = world.output(test.env("OPENAI_API_KEY", KEY));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let line: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(
        (&line["provider"], &line["ok"]),
        (&"openai".into(), &true.into())
    );
    assert!(line["latency_ms"].is_u64());
}

#[test]
fn usage_is_summed_by_what_is_asked_for() {
    let world = World::new();
    let turns = "- text: done\n  usage: {input: 1000, output: 100}";
    assert_eq!(world.run(turns, &["do it"]).code, 0);
    assert_eq!(world.run(turns, &["do it again"]).code, 0);
    world
        .selvedge(&["usage", "--by", "agent", "--since", "1d"])
        .check(expect![[r#"
            exit 0
            -- stdout --
            AGENT  CALLS  IN  CACHED  OUT  COST
            engineer  2  2.0k  0  200  $0.006
            total  2  2.0k  0  200  $0.006
            -- stderr --
            tool schemas: …
        "#]]);
    world
        .selvedge(&["usage", "--provider", "openai"])
        .check(expect![[r#"
            exit 0
            -- stderr --
            nothing was spent
        "#]]);
    let days = world.selvedge(&["usage", "--by", "day", "--agent", "engineer", "--json"]);
    let day: serde_json::Value = serde_json::from_str(&days.stdout).unwrap();
    assert_eq!(
        (&day["calls"], &day["cost_usd"]),
        (&2.into(), &0.006.into())
    );
    assert_eq!(world.selvedge(&["usage", "--since", "soon"]).code, 2);
}

#[test]
fn a_key_is_typed_unseen_at_a_terminal_verified_and_stored() {
    let world = World::new();
    let served = serve();
    served.server.push(Reply::text("ok"));
    let login = command(&world, &served, &["auth", "login", "openai"]);
    let mut terminal = Terminal::start(login, 120);
    terminal.wait_for("key of `openai`: ");
    // What was typed before is taken back by Ctrl-U, a slip by the delete key.
    terminal.press("something else\x15");
    terminal.press(KEY);
    terminal.press("X\x7f");
    terminal.press("\n");
    terminal.wait_for("the key of `openai` is in");
    assert_eq!(terminal.exit(), 0, "{}", terminal.text());
    for unseen in [KEY, "something", "secret"] {
        assert!(!terminal.text().contains(unseen), "{}", terminal.text());
    }
    served.server.push(Reply::text("fine"));
    let output = world.output(&mut command(&world, &served, &["run", "do it"]));
    assert_eq!(output.stdout, "fine\n", "{}", output.stderr);
    let requests = served.server.requests();
    assert_eq!(requests.len(), 2, "verified by one light call, then used");
    for request in requests {
        assert_eq!(request.headers["authorization"], format!("Bearer {KEY}"));
    }
    assert_unseen(&world, &[&output]);
}

#[test]
fn a_key_that_is_refused_or_not_typed_to_its_end_is_not_stored() {
    let world = World::new();
    let served = serve();
    served.server.push(Reply::fault(ReplyFault::status(401)));
    let login = || {
        let login = command(&world, &served, &["auth", "login", "openai"]);
        let terminal = Terminal::start(login, 120);
        terminal.wait_for("key of `openai`: ");
        terminal
    };
    let mut refused = login();
    refused.type_line(KEY);
    refused.wait_for("was not stored: it could not be verified");
    assert_eq!(refused.exit(), 6, "{}", refused.text());
    let mut interrupted = login();
    interrupted.press("sk-half\x03");
    assert_eq!(interrupted.exit(), 130, "{}", interrupted.text());
    let status = world.selvedge(&["auth", "status"]);
    let lines = status.stdout.lines().map(|line| line.split_whitespace());
    let mut lines = lines.map(Iterator::collect::<Vec<_>>);
    assert!(
        lines.any(|line| line == ["openai", "none"]),
        "{}",
        status.stdout
    );
}

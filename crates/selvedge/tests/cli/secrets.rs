//! Secrets through the real binary: what is refused, what is replaced, and that
//! nothing of them is left on disk, on screen or with the model.

use std::io::Write;
use std::process::{Command, Stdio};

use expect_test::expect;
use selvedge_testkit::{ModelServer, Reply, ReplyFault, leaks, leaks_in};
use serde_json::json;

use crate::world::{Output, World};

// Put together here, so that no scanner takes this file for a leak.
fn github() -> String {
    format!("{}{}", "ghp_", "q8Zt1VbX0pLr7KdM2nWcY5jHs3fGxR9vTaE6")
}

fn provider_key() -> String {
    format!("{}{}", "sk-proj-", "b7Q/x+2Lm9Rt4Vw0Zk8Hs1Nd6Pc3Yf5Gj")
}

const PASSWORD: &str = "c0rrect+horse/b4ttery";

struct Stage {
    world: World,
    // Kept: the server lives in it.
    _runtime: tokio::runtime::Runtime,
    server: ModelServer,
}

/// A workspace with secrets in it, and a model that does as it is told.
fn stage(replies: impl IntoIterator<Item = Reply>) -> Stage {
    let world = World::new();
    let env = format!("DB_PASSWORD={PASSWORD}\nMODE=fast\n");
    world.write("work/.env", &env);
    world.write("work/.gitignore", ".env\n");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(ModelServer::start());
    replies.into_iter().for_each(|reply| server.push(reply));
    Stage {
        world,
        _runtime: runtime,
        server,
    }
}

impl Stage {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.world.command(arguments);
        command
            .env("OPENAI_BASE_URL", self.server.openai_url())
            .env("OPENAI_API_KEY", provider_key())
            .env("SELVEDGE_LOG", "trace");
        command
    }

    fn selvedge(&self, arguments: &[&str]) -> Output {
        self.world.output(&mut self.command(arguments))
    }

    /// Everything that left the process is looked through.
    fn check_nothing_leaked(&self, outputs: &[&Output]) {
        let secrets = [&*provider_key(), PASSWORD, &github()];
        let found = leaks(&self.world.home(), &secrets);
        assert!(found.is_empty(), "on disk: {found:?}");
        for output in outputs {
            for text in [&output.stdout, &output.stderr] {
                assert!(leaks_in(text, &secrets).is_empty(), "on screen: {text}");
            }
        }
        for request in self.server.requests() {
            let body = request.body.to_string();
            assert!(leaks_in(&body, &secrets).is_empty(), "sent: {body}");
        }
    }
}

fn command(text: &str) -> Reply {
    Reply::text("I look.").call("run_command", json!({ "command": text }).to_string())
}

#[test]
fn secrets_of_every_origin_reach_neither_disk_nor_screen_nor_model() {
    let key = provider_key();
    let flood = "yes \"$(cat .env)\" | head -n 20000";
    let stage = stage([
        command("cat .env; base64 .env; od -An -tx1 -v .env | tr -d ' \\n'; cat .env >&2; exit 3"),
        command(flood),
        Reply::text("").call("read_file", r#"{"path": "@result/t1.0"}"#),
        Reply::text("").call("read_file", r#"{"path": ".env"}"#),
        Reply::text("").call("search_files", r#"{"pattern": "PASSWORD"}"#),
        // A model that has come by a secret all the same, and says it in pieces.
        Reply::text(format!("the key is {key}, the password {PASSWORD}."))
            .call(
                "write_file",
                json!({"path": "a.txt", "content": key}).to_string(),
            )
            .call(
                "run_command",
                json!({"command": format!("echo {key}")}).to_string(),
            )
            .with_fault(ReplyFault::EveryByte),
        Reply::fault(ReplyFault::Status {
            code: 400,
            retry_after: None,
            body: json!({"error": {"message": format!("no such key: {key} {PASSWORD}")}})
                .to_string(),
        }),
    ]);
    let ran = stage.selvedge(&["run", "--json", "--approve", "auto", "look around"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert_eq!(stage.server.requests().len(), 7, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("DB_PASSWORD=[REDACTED]"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("MODE=fast"), "what is no secret stays");
    let session = stage.world.session();
    let shown = stage.selvedge(&["sessions", "show", &session]);
    let exported = stage.selvedge(&["sessions", "export", &session]);
    let events = stage.selvedge(&["sessions", "events", &session, "--json"]);
    let verified = stage.selvedge(&["audit", "verify"]);
    assert_eq!(verified.code, 0, "{}", verified.stderr);
    assert!(!events.stdout.is_empty() && !exported.stdout.is_empty());
    stage.check_nothing_leaked(&[&ran, &shown, &exported, &events, &verified]);
}

#[test]
fn neither_a_broken_answer_nor_the_cache_nor_a_cassette_keeps_a_secret() {
    let key = provider_key();
    let said = || {
        Reply::text(format!(
            "I have found it, and it is {key}; that is all there is."
        ))
    };
    let broken =
        ReplyFault::ErrorEvent(format!("data: {{\"error\":{{\"message\":\"{key}\"}}}}\n\n"));
    let stage = stage([said().with_fault(broken), said()]);
    stage
        .world
        .write("home/config/config.toml", "cache = true\n");
    let tape = stage.world.home().join("tape.jsonl");
    let ran = stage.selvedge(&["run", "--json", "--record", tape.to_str().unwrap(), "look"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(stage.server.requests().len(), 2, "{}", ran.stderr);
    let cached = std::fs::read_dir(stage.world.home().join("data/cache")).unwrap();
    assert_eq!(cached.count(), 1);
    let taped = std::fs::read_to_string(&tape).unwrap();
    assert!(taped.contains("it is [REDACTED]; that"), "{taped}");
    stage.check_nothing_leaked(&[&ran]);
}

#[test]
fn a_scan_would_find_what_is_stored() {
    let stage = stage([Reply::text("the word is plainly-visible-1")]);
    stage.selvedge(&["run", "say it"]);
    let found = leaks(&stage.world.home(), &["plainly-visible-1"]);
    assert!(!found.is_empty(), "the scanner is blind");
}

#[test]
fn a_printed_key_keeps_its_name_and_a_private_key_goes_as_a_whole() {
    let value = "q8Zt1VbX0pLr7KdM2nWc";
    let print = format!(
        "echo 'api_key = {value}'; echo '{}'; echo MIIEowIBAAKCAQEA7; echo '{}'; echo after",
        "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"
    );
    let stage = stage([]);
    // From a file, because a command that holds a key is refused.
    stage.world.write("work/print.sh", &print);
    stage.server.push(command("sh print.sh"));
    stage.server.push(Reply::text("seen"));
    let output = stage.selvedge(&["run", "--approve", "auto", "print it"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let told = stage.server.requests()[1].body.to_string();
    assert!(
        told.contains("api_key = [REDACTED]\\n[REDACTED]\\nafter"),
        "{told}"
    );
    assert!(!told.contains("MIIEow") && !told.contains(value), "{told}");
}

#[test]
fn a_request_with_a_secret_is_refused_before_anything_is_stored_or_asked() {
    let stage = stage([]);
    let request = format!("push with {} to the origin", github());
    let output = stage.selvedge(&["run", &request]);
    output.check(expect![[r#"
        exit 5
        -- stderr --
        error: the request holds a secret and was not sent
          cause: github_token in line 1, at `push with [REDACTED] to the origin`
          hint: take it out, and let a tool read it from a variable or a file; if it is none, pass `--allow-secret`
    "#]]);
    let known = stage.selvedge(&["run", "--allow-secret", &format!("use {}", provider_key())]);
    assert_eq!(
        known.code, 5,
        "a known value is never sent: {}",
        known.stderr
    );
    assert!(known.stderr.contains("known_value"), "{}", known.stderr);
    assert!(stage.server.requests().is_empty());
    assert!(!stage.world.home().join("data/ledger.db").exists());
    stage.check_nothing_leaked(&[&output, &known]);
}

#[test]
fn what_only_looks_like_a_secret_is_sent_when_the_user_says_so() {
    let stage = stage([
        Reply::text("fine"),
        Reply::text("fine"),
        Reply::text("fine"),
    ]);
    let fake = format!("the test expects {}", github());
    assert_eq!(stage.selvedge(&["run", "--allow-secret", &fake]).code, 0);
    let sent = stage.server.requests()[0].body.to_string();
    assert!(sent.contains(&github()), "{sent}");
    // What is doubtful is sent with a warning.
    let doubtful = "session_key = \"q8Zt1VbX0p+r7KdM2nWcY5jHs3fGxR9vTaE6/NoBiCwDyFzQ\"";
    let output = stage.selvedge(&["run", doubtful]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let warning = "warning: the request may hold a secret: high_entropy_assignment";
    assert!(output.stderr.contains(warning), "{}", output.stderr);
    stage
        .world
        .write("home/config/config.toml", "secrets.prompt = 'off'\n");
    assert_eq!(stage.selvedge(&["run", &fake]).code, 0);
}

#[test]
fn messages_and_answers_are_refused_as_requests_are() {
    let stage = stage([Reply::text("").call("ask_user", r#"{"question": "which token?"}"#)]);
    let ran = stage.selvedge(&["run", "do it"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let session = stage.world.session();
    let steered = stage.selvedge(&["sessions", "steer", &session, &format!("use {}", github())]);
    let answered = stage.selvedge(&["answer", &github()]);
    for (output, what) in [(&steered, "message"), (&answered, "answer")] {
        assert_eq!(output.code, 5, "{}", output.stderr);
        let expected = format!("error: the {what} holds a secret and was not sent");
        assert!(output.stderr.starts_with(&expected), "{}", output.stderr);
    }
    stage.check_nothing_leaked(&[&ran, &steered, &answered]);
    assert_eq!(stage.selvedge(&["answer", "the usual one"]).code, 0);
}

#[test]
fn a_command_with_a_secret_is_not_run_and_the_model_is_told_why() {
    let stage = stage([
        command(&format!("echo {} > stolen", github())),
        Reply::text("I see"),
    ]);
    let ran = stage.selvedge(&["run", "--approve", "auto", "do it"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!stage.world.work().join("stolen").exists());
    let told = stage.server.requests()[1].body.to_string();
    assert!(
        told.contains("stands for a secret that you are not shown"),
        "{told}"
    );
    stage.check_nothing_leaked(&[&ran]);
}

#[test]
fn instructions_of_a_workspace_lose_their_secrets() {
    let stage = stage([Reply::text("fine")]);
    stage
        .world
        .write("work/AGENTS.md", &format!("Deploy with {}.\n", github()));
    let ran = stage.selvedge(&["run", "do it"]);
    let sent = stage.server.requests()[0].body.to_string();
    assert!(sent.contains("Deploy with [REDACTED]."), "{sent}");
    stage.check_nothing_leaked(&[&ran]);
}

#[test]
fn a_project_may_add_to_what_is_secret_and_never_take_away() {
    let world = World::new();
    let project = "[secrets]\nprompt = 'off'\nfiles = ['!.env', '*.vault']\n\
                   patterns = [{ name = 'ticket', regex = 'TICKET-([0-9]{6})' }]\n";
    world.write("work/.selvedge/config.toml", project);
    world.write("work/.env", "MODE=fast\n");
    world.write("work/a.vault", "plain words\n");
    let turns = "- calls: [{read_file: {path: .env}}, {read_file: {path: a.vault}}]\n- text: fine";
    let output = world.run(turns, &["--json", "see TICKET-123456"]);
    assert_eq!(output.code, 5, "{}", output.stderr);
    assert!(
        output.stderr.contains("ticket in line 1"),
        "{}",
        output.stderr
    );
    assert_eq!(
        output.stderr.matches("is ignored").count(),
        1,
        "{}",
        output.stderr
    );
    assert_eq!(
        output.stderr.matches("allow nothing").count(),
        1,
        "{}",
        output.stderr
    );
    let output = world.run(turns, &["--json", "look"]);
    assert_eq!(
        output.stdout.matches("is a sensitive file").count(),
        2,
        "{}",
        output.stdout
    );
    world.write("home/config/config.toml", "secrets.files = ['!.env']\n");
    let output = world.run(turns, &["--json", "look"]);
    assert_eq!(
        output.stdout.matches("is a sensitive file").count(),
        1,
        "{}",
        output.stdout
    );
    assert!(output.stdout.contains("MODE=fast"), "{}", output.stdout);
    world.write(
        "work/.selvedge/config.toml",
        "secrets.patterns = [{ name = 'x', regex = '(' }]\n",
    );
    let output = world.run(turns, &["look"]);
    assert_eq!(output.code, 2);
    assert!(
        output.stderr.contains("the pattern `x` is not"),
        "{}",
        output.stderr
    );
}

#[test]
fn a_text_is_checked_for_secrets_on_the_command_line() {
    let world = World::new();
    world.write("work/a.txt", &format!("fine\ntoken {} here\n", github()));
    world
        .selvedge(&["secrets", "check", "a.txt"])
        .check(expect![[r#"
        exit 1
        -- stdout --
        github_token in line 2, at `token [REDACTED] here`
        -- stderr --
        1 secret
    "#]]);
    let json = world.selvedge(&["secrets", "check", "--json", "a.txt"]);
    let found: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(found["pattern"], "github_token");
    assert_eq!(found["severity"], "high");
    let mut child = world
        .command(&["secrets", "check", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"nothing of the kind\n")
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(world.selvedge(&["secrets", "check", "none"]).code, 2);
}

#[test]
fn what_a_user_allows_always_is_kept_where_no_tool_writes() {
    let world = World::new();
    assert_eq!(world.selvedge(&["secrets", "allow", "github"]).code, 0);
    let file = world.home().join("data/consents.json");
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(
        kept.contains("engineer") && kept.contains("github"),
        "{kept}"
    );
    let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(world.selvedge(&["secrets", "forbid", "github"]).code, 0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "[]");
}

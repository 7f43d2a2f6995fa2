//! A model that says anything that fits its schemas: whatever it is, a mission ends, and
//! nothing outside of the work directory is touched.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use selvedge_agent::{AGENT, Limits};
use selvedge_ledger::{Event, Ledger, Payload, Position, StreamId};
use selvedge_model::{
    Message, Part, Price, Request, Response, Role, ScriptedModel, Stop, ToolCall, ToolDefinition,
    Usage, Usd,
};
use selvedge_runtime::{Rest, Status};
use selvedge_testkit::{Dice, fitting};
use selvedge_tool::{Sandbox, Tool, ToolContext, ToolOutput, ToolSpec, Toolbox, WorkCopy};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::rig;

const SEEDS: u64 = 1_000;
/// A mission that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// One in so many runs its commands for real, and one does so in a copy.
const REAL_EVERY: u64 = 25;
const COPY_EVERY: u64 = 20;

const COMMANDS: [&str; 9] = [
    "true",
    "sh test.sh",
    "sh out.sh",
    "echo x > made.txt",
    "ln -s ../outside stray",
    "touch ../outside/escaped",
    "echo x > /etc/selvedge-escaped",
    "rm -rf ../outside",
    "no-such-program --at-all",
];

/// What a policy that reads commands does not see: only the fence can stop it.
const OUT: &str = "\
touch ../outside/escaped
echo x > ../outside/canary
echo x > link/escaped
echo x > ../escaped
echo x > /etc/selvedge-escaped
rm -rf ../outside
";
const TEST: &str = "ln -s ../outside stray\ntest -e made.txt\n";

/// What should happen at least now and then; otherwise the test tries less than it says.
const SOMETIMES: [&str; 12] = [
    "succeeded",
    "failed",
    "was out of budget",
    "worked on a copy",
    "merged a copy",
    "left a link out",
    "ran a real command",
    "had a real command stopped at the fence",
    "was refused a path",
    "was contradicted",
    "had a response that never fit",
    "ran two helpers",
];

/// How many missions did what.
type Counts = BTreeMap<&'static str, u64>;

#[test]
fn a_mission_ends_and_stays_inside_whatever_the_model_says() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let counts = Arc::new(Mutex::new(Counts::new()));
    runtime.block_on(async {
        let (folder, disk) = (rig::scratch(), rig::scratch_on_disk());
        let ledger = rig::ledger(folder.path());
        let mut tasks = tokio::task::JoinSet::new();
        for seed in 0..SEEDS {
            if tasks.len() >= 4 {
                tasks.join_next().await.unwrap().unwrap();
            }
            let place = if is_real(seed) { &disk } else { &folder };
            let (ledger, root) = (ledger.clone(), place.path().join(seed.to_string()));
            let counts = counts.clone();
            tasks.spawn(async move {
                let happened = mission(seed, ledger, &root).await;
                let mut counts = counts.lock().unwrap();
                for what in happened {
                    *counts.entry(what).or_default() += 1;
                }
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
    });
    let counts = counts.lock().unwrap();
    eprintln!("of {SEEDS} missions: {counts:#?}");
    let ends = ["succeeded", "failed", "was out of budget"];
    assert_eq!(ends.iter().map(|end| counts[end]).sum::<u64>(), SEEDS);
    for what in SOMETIMES {
        assert!(counts.contains_key(what), "no mission {what}: {counts:?}");
    }
}

#[test]
fn a_mission_that_got_out_would_be_noticed() {
    type Way = (&'static str, fn(&Path));
    let ways: [Way; 5] = [
        ("a new file outside", |root| write(root, "outside/escaped")),
        ("a changed file outside", |root| {
            write(root, "outside/canary")
        }),
        ("a removed folder", |root| {
            std::fs::remove_dir_all(root.join("outside")).unwrap();
        }),
        ("a file beside the work", |root| write(root, "escaped")),
        ("a link that leads out", |root| {
            std::os::unix::fs::symlink("../outside", root.join("work/stray")).unwrap();
        }),
    ];
    for (how, get_out) in ways {
        let root = rig::scratch();
        lay_out(root.path());
        assert_eq!(escapes(root.path(), true), Vec::<String>::new(), "{how}");
        get_out(root.path());
        assert_ne!(escapes(root.path(), true), Vec::<String>::new(), "{how}");
    }
}

fn write(root: &Path, name: &str) {
    std::fs::write(root.join(name), "x").unwrap();
}

/// A directory to work in, and beside it what nobody may touch.
fn lay_out(root: &Path) {
    let (work, outside) = (root.join("work"), root.join("outside"));
    for folder in [&work, &outside] {
        std::fs::create_dir_all(folder).unwrap();
    }
    std::fs::write(outside.join("canary"), "canary").unwrap();
    for (name, script) in [("test.sh", TEST), ("out.sh", OUT)] {
        std::fs::write(work.join(name), script).unwrap();
    }
    std::os::unix::fs::symlink(&outside, work.join("link")).unwrap();
}

/// What a mission did outside of its directory. Its own directory must not get a link out
/// of it either, if it worked on a copy.
fn escapes(root: &Path, is_copy: bool) -> Vec<String> {
    let names = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.collect::<Vec<String>>()
    };
    let mut found = Vec::new();
    let known = ["work", "outside", "session"];
    found.extend(
        names(root)
            .into_iter()
            .filter(|name| !known.contains(&&**name)),
    );
    found.extend(
        names(&root.join("outside"))
            .into_iter()
            .filter(|name| name != "canary"),
    );
    let canary = std::fs::read_to_string(root.join("outside/canary")).ok();
    if canary.as_deref() != Some("canary") {
        found.push(format!("the canary is {canary:?}"));
    }
    if Path::new("/etc/selvedge-escaped").exists() {
        found.push("/etc/selvedge-escaped".into());
    }
    if is_copy && root.join("work/stray").symlink_metadata().is_ok() {
        found.push("work/stray".into());
    }
    found
}

fn is_copy(seed: u64) -> bool {
    seed.is_multiple_of(COPY_EVERY)
}

fn is_real(seed: u64) -> bool {
    seed.is_multiple_of(REAL_EVERY) || is_copy(seed)
}

/// Runs a mission, and says what happened in it.
async fn mission(seed: u64, ledger: Arc<dyn Ledger>, root: &Path) -> Vec<&'static str> {
    let again = format!("seed {seed}");
    lay_out(root);
    let work = root.join("work");
    let toolbox = match is_real(seed) {
        true => rig::tools(),
        false => pretending(),
    };
    let limits = Limits {
        model_calls_max: 6,
        output_tokens_max: 1_000,
        tool_seconds_max: 10,
        ..Limits::default()
    };
    let budget = seed.is_multiple_of(3).then_some(0.08);
    let mut spec = rig::spec(&work, Sandbox::default(), budget, limits);
    if is_copy(seed) {
        let copy = WorkCopy::of(&work, &root.join("session")).await.unwrap();
        spec = spec.in_copy(copy);
    }
    let model = ScriptedModel::from_fn("scripted/test", move |request| answer(seed, request))
        .with_price(Price {
            input: Usd::from_dollars(2.0).unwrap(),
            cached: None,
            cache_written: None,
            output: Usd::from_dollars(10.0).unwrap(),
            long: None,
        });
    let driver = rig::driver(ledger.clone(), Arc::new(model), toolbox);
    let session = StreamId::new(format!("s_{seed}"));
    driver
        .start(&session, None, AGENT, spec, None)
        .await
        .unwrap();
    let driven = driver.drive(&session, None, CancellationToken::new());
    let rest = tokio::time::timeout(PATIENCE, driven).await;
    let rest = rest.unwrap_or_else(|_| panic!("{again} hangs")).unwrap();
    assert_eq!(
        escapes(root, is_copy(seed)),
        Vec::<String>::new(),
        "{again}"
    );
    let mut happened = vec![match rest {
        Rest::Ended(ending) if ending.status == Status::Done => "succeeded",
        Rest::Ended(_) => "failed",
        Rest::Paused(reasons) if reasons.contains_key("budget") => "was out of budget",
        rest => panic!("{again} is neither over nor out of money: {rest:?}"),
    }];
    let events = ledger.session_after(&session, Position::default()).await;
    let events = events.unwrap().0;
    let text = |event: &Event| event.data.get().to_owned();
    let has = |kind: &str, words: &str| {
        let mut events = events.iter().filter(|event| &*event.kind == kind);
        events.any(|event| text(event).contains(words))
    };
    let outcomes = [
        ("worked on a copy", has("CopyFinished", "base")),
        ("merged a copy", has("MergeFinished", "merged")),
        ("left a link out", has("MergeFinished", "stray")),
        (
            "ran a real command",
            has("ToolCallFinished", "\"sandboxed\":true"),
        ),
        (
            "had a real command stopped at the fence",
            has("ToolCallFinished", "\"sandbox_denied\":true"),
        ),
        (
            "was refused a path",
            has("ToolCallFinished", "leads outside of the workspace"),
        ),
        ("was contradicted", has("RunFinished", "discrepancies")),
        (
            "had a response that never fit",
            has("RunFinished", "three answers in a row did not fit"),
        ),
    ];
    happened.extend(
        outcomes
            .iter()
            .filter(|(_, is_so)| *is_so)
            .map(|(what, _)| *what),
    );
    let helpers = events.iter().filter(|event| {
        &*event.kind == "RunStarted" && event.stream.as_str().matches('/').count() == 2
    });
    if helpers.count() >= 2 {
        happened.push("ran two helpers");
    }
    happened
}

/// What the model says: calls, a result, words, or half of something.
fn answer(seed: u64, request: &Request) -> Response {
    let dice = Dice::new(seed, &format!("{} {}", request.agent, request.turn));
    let mut parts = Vec::new();
    let mut stop = Stop::End;
    // Some never say what is asked of them, however often they are told.
    let is_obstinate = Dice::new(seed, &format!("{} says", request.agent)).percent(5);
    let calls_something = !request.tools.is_empty() && !is_obstinate && dice.percent(70);
    if calls_something {
        for n in 0..1 + dice.below(3) {
            parts.push(Part::ToolCall(call(seed, request, &dice, n)));
        }
        stop = Stop::Tools;
    } else {
        let text = match &request.output_schema {
            Some(schema) if !is_obstinate && dice.percent(85) => fitting(schema, &dice).to_string(),
            _ => "I have nothing more to say.".to_owned(),
        };
        parts.push(Part::Text {
            text: Payload::new(text),
        });
    }
    if dice.percent(3) {
        stop = [Stop::Length, Stop::Filtered][dice.below(2) as usize];
    }
    Response {
        message: Message {
            role: Role::Assistant,
            parts,
        },
        stop,
        usage: Usage {
            input: 200 + dice.below(800),
            output: dice.below(1_000),
            ..Usage::default()
        },
        model: request.model.clone(),
    }
}

fn call(seed: u64, request: &Request, dice: &Dice, n: u64) -> ToolCall {
    // Where commands are real, more is built, and more comes to an end.
    let wanted: &[&str] = match dice.below(4) {
        _ if !is_real(seed) => &[],
        0 | 1 => &["builder", "run_command"],
        2 => &["mission_complete"],
        _ => &[],
    };
    let is_wanted = |tool: &&ToolDefinition| wanted.contains(&&*tool.name);
    let tool = match request.tools.iter().find(is_wanted) {
        Some(tool) => tool,
        None => &request.tools[dice.below(request.tools.len() as u64) as usize],
    };
    let mut arguments = fitting(&tool.schema, dice);
    if tool.name == "run_command" {
        arguments = json!({ "command": COMMANDS[dice.below(COMMANDS.len() as u64) as usize] });
    }
    let mut text = arguments.to_string();
    if dice.percent(4) {
        text.pop();
    }
    ToolCall {
        id: format!("c{n}"),
        name: tool.name.clone(),
        arguments: Payload::new(text),
    }
}

/// The tools, without commands: a thousand real ones take too long.
fn pretending() -> Toolbox {
    static TOOLS: LazyLock<Toolbox> = LazyLock::new(|| rig::tools().with(Arc::new(Pretence)));
    TOOLS.clone()
}

/// Says that a command was run.
struct Pretence;

#[async_trait]
impl Tool for Pretence {
    fn spec(&self) -> ToolSpec {
        rig::tools().spec("run_command").unwrap().clone()
    }

    async fn run(&self, _: &ToolContext, input: &Value, _: &Value) -> ToolOutput {
        let code = Dice::new(0, &input.to_string()).below(2);
        ToolOutput {
            is_error: code != 0,
            ..ToolOutput::ok("[no output]").with_facts(json!({ "exit_code": code }))
        }
    }
}

//! A model that says anything that fits its schemas: whatever it is, a mission ends, and
//! nothing outside of the work directory is touched.

use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use selvedge_agent::{AGENT, Limits};
use selvedge_ledger::{Payload, StreamId};
use selvedge_model::{
    Message, Part, Price, Request, Response, Role, ScriptedModel, Stop, ToolCall, Usage, Usd,
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
/// One in so many runs its commands for real, and one works on a copy.
const REAL_EVERY: u64 = 25;
const COPY_EVERY: u64 = 100;

const COMMANDS: [&str; 8] = [
    "true",
    "sh test.sh",
    "echo x > made.txt",
    "ln -s ../outside link",
    "touch ../outside/escaped",
    "echo x > /etc/selvedge-escaped",
    "rm -rf ../outside",
    "no-such-program --at-all",
];

#[test]
fn a_mission_ends_and_stays_inside_whatever_the_model_says() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let counts = runtime.block_on(async {
        let folder = rig::scratch();
        let ledger = rig::ledger(folder.path());
        let mut tasks = tokio::task::JoinSet::new();
        let mut counts = [0_u64; 3];
        let mut count = |how: usize| counts[how] += 1;
        for seed in 0..SEEDS {
            if tasks.len() >= 4 {
                count(tasks.join_next().await.unwrap().unwrap());
            }
            let (ledger, root) = (ledger.clone(), folder.path().join(seed.to_string()));
            tasks.spawn(async move { mission(seed, ledger, &root).await });
        }
        while let Some(how) = tasks.join_next().await {
            count(how.unwrap());
        }
        counts
    });
    let [done, failed, out_of_budget] = counts;
    eprintln!("{done} succeeded, {failed} failed, {out_of_budget} were out of budget");
    assert_eq!(done + failed + out_of_budget, SEEDS);
    assert!(
        counts.iter().all(|count| *count > 0),
        "every end is met: {counts:?}"
    );
}

/// Runs a mission: 0 for a success, 1 for a failure, 2 for an exhausted budget.
async fn mission(seed: u64, ledger: Arc<dyn selvedge_ledger::Ledger>, root: &Path) -> usize {
    let again = format!("seed {seed}");
    let (work, outside) = (root.join("work"), root.join("outside"));
    for folder in [&work, &outside] {
        std::fs::create_dir_all(folder).unwrap();
    }
    std::fs::write(outside.join("canary"), "canary").unwrap();
    std::fs::write(work.join("test.sh"), "test -e made.txt\n").unwrap();
    std::os::unix::fs::symlink(&outside, work.join("link")).unwrap();
    let is_real = seed.is_multiple_of(REAL_EVERY);
    let toolbox = match is_real {
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
    if seed.is_multiple_of(COPY_EVERY) {
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
    let driver = rig::driver(ledger, Arc::new(model), toolbox);
    let session = StreamId::new(format!("s_{seed}"));
    driver
        .start(&session, None, AGENT, spec, None)
        .await
        .unwrap();
    let driven = driver.drive(&session, None, CancellationToken::new());
    let rest = tokio::time::timeout(PATIENCE, driven).await;
    let rest = rest.unwrap_or_else(|_| panic!("{again} hangs")).unwrap();
    let left: Vec<_> = std::fs::read_dir(&outside).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "{again}: {left:?}");
    let canary = std::fs::read_to_string(outside.join("canary")).unwrap();
    assert_eq!(canary, "canary", "{again}");
    let beside = std::fs::read_dir(root).unwrap().flatten();
    let names: Vec<_> = beside.map(|entry| entry.file_name()).collect();
    let is_known = |name: &std::ffi::OsString| {
        ["work", "outside", "session"]
            .iter()
            .any(|known| name == known)
    };
    assert!(names.iter().all(is_known), "{again}: {names:?}");
    assert!(!Path::new("/etc/selvedge-escaped").exists(), "{again}");
    match rest {
        Rest::Ended(ending) if ending.status == Status::Done => 0,
        Rest::Ended(_) => 1,
        Rest::Paused(reasons) if reasons.contains_key("budget") => 2,
        rest => panic!("{again} is neither over nor out of money: {rest:?}"),
    }
}

/// What the model says: calls, a result, words, or half of something.
fn answer(seed: u64, request: &Request) -> Response {
    let dice = Dice::new(seed, &format!("{} {}", request.agent, request.turn));
    let mut parts = Vec::new();
    let mut stop = Stop::End;
    let calls_something = !request.tools.is_empty() && dice.percent(70);
    if calls_something {
        for n in 0..1 + dice.below(3) {
            parts.push(Part::ToolCall(call(request, &dice, n)));
        }
        stop = Stop::Tools;
    } else {
        let text = match &request.output_schema {
            Some(schema) if dice.percent(85) => fitting(schema, &dice).to_string(),
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

fn call(request: &Request, dice: &Dice, n: u64) -> ToolCall {
    let tool = &request.tools[dice.below(request.tools.len() as u64) as usize];
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

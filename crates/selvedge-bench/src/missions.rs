//! A hundred missions of the swarm at once, each waiting for a slow model.
//!
//! A mission is the ten steps of its demo: eighteen model calls, one after another, by
//! seven agents, two of which write files and have the tree compared. Everything is
//! recorded, durably. What is left out: the copy of the directory and its merge (they would
//! measure git), commands, and the folder of what was said, which is made by the program
//! that follows a session. The time is from before the first mission's files are read to
//! the end of the last, and memory is what was resident at most, looked at four times a
//! second, without what was so before.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use selvedge_agent::{AGENT, Approve, Lazy, RunSpec, Setup, assemble};
use selvedge_ledger::{Payload, StreamId};
use selvedge_model::{Message, Part, Request, Response, Role, Stop, ToolCall, Usage};
use selvedge_runtime::{Rest, Status};
use selvedge_tool::{Policy, Sandbox, Toolbox};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::figures::{Figures, cpu_ms, resident_kb};
use crate::rig;

const MISSIONS: u32 = 100;
const LATENCY_MS: u64 = 200;
/// Two of the orchestrator, seven of the planner, one of the designer, two each of two
/// builders and two reviewers.
const CALLS: u32 = 2 + 7 + 1 + 4 + 4;

/// Calls that were really made: fewer would be measured against too long an ideal.
static MADE: AtomicU32 = AtomicU32::new(0);

/// Measures a hundred missions.
pub fn measure(figures: &mut Figures) -> anyhow::Result<()> {
    let folder = rig::scratch()?;
    let runtime = selvedge_runtime::executor().worker_threads(2).build()?;
    let (wall, cpu, memory) = runtime.block_on(async {
        let driver = rig::driver(rig::ledger(folder.path(), true)?, LATENCY_MS, reply);
        let before = resident_kb();
        let cpu = cpu_ms();
        let begun = Instant::now();
        let mut peak = before;
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..MISSIONS {
            let workspace = folder.path().join(format!("work-{n}"));
            std::fs::create_dir(&workspace)?;
            let (driver, spec) = (driver.clone(), spec(&workspace)?);
            tasks.spawn(async move {
                let session = StreamId::new(format!("s_{n}"));
                driver.start(&session, None, AGENT, spec, None).await?;
                let cancel = CancellationToken::new();
                Ok::<_, anyhow::Error>(driver.drive(&session, None, cancel).await?)
            });
        }
        let mut looking = tokio::time::interval(std::time::Duration::from_millis(250));
        loop {
            tokio::select! {
                ended = tasks.join_next() => {
                    let Some(rest) = ended else { break };
                    let rest = rest??;
                    anyhow::ensure!(
                        matches!(&rest, Rest::Ended(e) if e.status == Status::Done),
                        "a mission failed: {rest:?}"
                    );
                }
                _ = looking.tick() => peak = peak.max(resident_kb()),
            }
        }
        anyhow::Ok((
            begun.elapsed().as_secs_f64(),
            cpu_ms() - cpu,
            (peak - before) / f64::from(MISSIONS),
        ))
    })?;
    let made = MADE.swap(0, Ordering::Relaxed);
    anyhow::ensure!(
        made == MISSIONS * CALLS,
        "{made} calls were made, and not {MISSIONS} times {CALLS}"
    );
    let ideal = f64::from(CALLS) * LATENCY_MS as f64 / 1e3;
    let name = format!("{MISSIONS} missions × {CALLS} calls at {LATENCY_MS} ms");
    figures.add(format!("{name}: time"), wall, "s", None);
    figures.add(
        format!("{name}: against ideal"),
        wall / ideal,
        "ratio",
        Some(1.1),
    );
    figures.add(format!("{name}: CPU"), cpu / 1e3, "s", None);
    figures.add(format!("{name}: memory each"), memory, "KB", None);
    Ok(())
}

/// What a mission in `workspace` starts with.
fn spec(workspace: &Path) -> anyhow::Result<RunSpec> {
    let crew = selvedge_crews::all().find("swarm", &[])?;
    let setup = Setup {
        request: "measure".into(),
        workspace: workspace.to_owned(),
        approve: Approve::Never,
        sandbox: Sandbox::off(),
        policy: Policy::default(),
        is_trusted: true,
        budget_usd: None,
        output_schema: None,
        budget_tokens: None,
        instructions: None,
        skills: Vec::new(),
        lazy: Lazy::Auto,
        resolve: &|_| Ok("scripted/bench".into()),
    };
    Ok(assemble(&crew, &Toolbox::core(), &setup)?)
}

fn reply(request: &Request) -> Response {
    MADE.fetch_add(1, Ordering::Relaxed);
    let call = |name: &str, arguments: Value| (name.to_owned(), arguments);
    let build = |task: &str| call("builder", json!({ "task": task, "work_dir": "." }));
    let review = |task: &str| {
        call(
            "reviewer",
            json!({ "task": task, "files_changed": ["a.sh"] }),
        )
    };
    let issue = json!({ "severity": "critical", "file": "a.sh", "message": "no error handling" });
    let answer = |value: Value| (String::new(), value);
    let (name, said) = match (request.agent.as_str(), request.turn) {
        ("orchestrator", 0) => call("delegate_to_planner", json!({ "mission": "build it" })),
        ("orchestrator", _) => answer(json!("built")),
        ("planner/task-001", 0) => call("list_files", json!({ "path": "." })),
        ("planner/task-001", 1) => call("designer", json!({ "task": "design it" })),
        ("planner/task-001", 2) => build("build it"),
        ("planner/task-001", 3) => review("review it"),
        ("planner/task-001", 4) => build("fix it"),
        ("planner/task-001", 5) => review("review it again"),
        ("planner/task-001", _) => call(
            "mission_complete",
            json!({ "summary": "built", "outcome": "done" }),
        ),
        ("designer/task-001", _) => answer(json!({ "architecture": "plain", "files": [] })),
        ("reviewer/task-001" | "reviewer/task-002", 0) => {
            call("read_file", json!({ "path": "a.sh" }))
        }
        ("reviewer/task-001", _) => answer(json!({ "summary": "one thing", "issues": [issue] })),
        ("reviewer/task-002", _) => answer(json!({ "summary": "fine", "issues": [] })),
        (agent, 0) => call("write_file", json!({ "path": "a.sh", "content": agent })),
        (agent, _) => {
            let (made, changed) = match agent {
                "builder/task-001" => (json!(["a.sh"]), json!([])),
                _ => (json!([]), json!(["a.sh"])),
            };
            answer(json!({
                "files_created": made, "files_modified": changed,
                "tests_run": false, "tests_passed": false,
            }))
        }
    };
    let (part, stop) = match name.is_empty() {
        true => {
            let text = Payload::new(said.to_string());
            (Part::Text { text }, Stop::End)
        }
        false => {
            let call = ToolCall {
                id: "c0".into(),
                name,
                arguments: Payload::new(said.to_string()),
            };
            (Part::ToolCall(call), Stop::Tools)
        }
    };
    Response {
        message: Message {
            role: Role::Assistant,
            parts: vec![part],
        },
        stop,
        usage: Usage {
            input: 500,
            output: 100,
            ..Usage::default()
        },
        model: request.model.clone(),
    }
}

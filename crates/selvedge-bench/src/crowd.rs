//! Many sessions at once, each waiting for a slow model.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use selvedge_agent::AGENT;
use selvedge_ledger::{Payload, StreamId};
use selvedge_model::{Message, Part, Request, Response, Role, Stop, ToolCall, Usage};
use selvedge_runtime::{Rest, Status};
use tokio_util::sync::CancellationToken;

use crate::figures::{Figures, cpu_ms, resident_kb};
use crate::rig;

const TURNS: u32 = 10;
const LATENCY_MS: u64 = 200;

/// Measures a hundred and a thousand sessions.
pub fn measure(figures: &mut Figures) -> anyhow::Result<()> {
    for sessions in [100, 1000] {
        crowd(figures, sessions)?;
    }
    Ok(())
}

fn crowd(figures: &mut Figures, sessions: u32) -> anyhow::Result<()> {
    let folder = rig::scratch()?;
    let workspace = folder.path().join("workspace");
    std::fs::create_dir(&workspace)?;
    std::fs::write(workspace.join("small.txt"), "a line\n")?;
    let runtime = selvedge_runtime::executor().worker_threads(2).build()?;
    // When a model was asked last, by turn.
    let last: Arc<Mutex<[Option<Instant>; TURNS as usize]>> = Arc::default();
    let noted = last.clone();
    let answer = move |request: &Request| {
        noted.lock().expect("no panic under this lock")[request.turn as usize] =
            Some(Instant::now());
        reply(request)
    };
    let (begun, wall, cpu, memory) = runtime.block_on(async {
        let driver = rig::driver(rig::ledger(folder.path(), true)?, LATENCY_MS, answer);
        let spec = rig::spec(&workspace)?;
        let before = resident_kb();
        let cpu = cpu_ms();
        let begun = Instant::now();
        let mut peak = before;
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..sessions {
            let (driver, spec) = (driver.clone(), spec.clone());
            tasks.spawn(async move {
                let session = StreamId::new(format!("s_{n}"));
                let cancel = CancellationToken::new();
                let rest = driver.launch(&session, AGENT, spec, None, cancel);
                Ok::<_, anyhow::Error>(rest.await?)
            });
        }
        let mut ended = 0;
        while let Some(rest) = tasks.join_next().await {
            let rest = rest??;
            anyhow::ensure!(
                matches!(&rest, Rest::Ended(e) if e.status == Status::Done),
                "a session failed: {rest:?}"
            );
            ended += 1;
            // Looking takes as long as a tenth of a turn, so not after each.
            if ended % 50 == 1 {
                peak = peak.max(resident_kb());
            }
        }
        anyhow::Ok((
            begun,
            begun.elapsed().as_secs_f64(),
            cpu_ms() - cpu,
            (peak - before) / f64::from(sessions),
        ))
    })?;
    let ideal = f64::from(TURNS) * LATENCY_MS as f64 / 1e3;
    let name = format!("{sessions} sessions × {TURNS} turns at {LATENCY_MS} ms");
    figures.add(format!("{name}: time"), wall, "s", None);
    let last = last.lock().expect("no panic under this lock");
    if let (Some(first), Some(end)) = (last[0], last[TURNS as usize - 1]) {
        let started = (first - begun).as_secs_f64() * 1e3;
        figures.add(format!("{name}: until all have asked"), started, "ms", None);
        let turn = (end - first).as_secs_f64() * 1e3 / f64::from(TURNS - 1);
        let over = turn - LATENCY_MS as f64;
        figures.add(
            format!("{name}: a turn beyond its latency"),
            over,
            "ms",
            None,
        );
    }
    figures.add(
        format!("{name}: against ideal"),
        wall / ideal,
        "ratio",
        Some(1.1),
    );
    figures.add(format!("{name}: CPU"), cpu / 1e3, "s", None);
    let goal = (sessions == 1000).then_some(150.0);
    figures.add(format!("{name}: memory each"), memory, "KB", goal);
    Ok(())
}

fn reply(request: &Request) -> Response {
    let (name, arguments) = if request.turn + 1 < TURNS {
        ("read_file", r#"{"path":"small.txt"}"#)
    } else {
        ("finish", r#"{"summary":"done"}"#)
    };
    let text = Part::Text {
        text: Payload::new("thinking about it. ".repeat(20)),
    };
    let call = Part::ToolCall(ToolCall {
        id: "c0".into(),
        name: name.into(),
        arguments: Payload::new(arguments),
    });
    Response {
        message: Message {
            role: Role::Assistant,
            parts: vec![text, call],
        },
        stop: Stop::Tools,
        usage: Usage {
            input: 500,
            output: 100,
            ..Usage::default()
        },
        model: request.model.clone(),
    }
}

//! How long it takes to be back in a session of four hundred turns.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use selvedge_agent::AGENT;
use selvedge_ledger::{Payload, StreamId};
use selvedge_model::{Message, Part, Request, Response, Role, Stop, ToolCall, Usage};
use tokio_util::sync::CancellationToken;

use crate::figures::{Figures, median};
use crate::rig;

const TURNS: u32 = 400;

/// Stops a session in its four-hundredth turn, then measures from opening the
/// ledger to the next request of a model.
pub fn measure(figures: &mut Figures) -> anyhow::Result<()> {
    let folder = rig::scratch()?;
    let workspace = folder.path().join("workspace");
    std::fs::create_dir(&workspace)?;
    std::fs::write(workspace.join("small.txt"), "a line\n")?;
    let runtime = selvedge_runtime::executor().worker_threads(2).build()?;
    let session = StreamId::new("s_bench");
    drive(&runtime, folder.path(), &workspace, &session, TURNS)?;
    let mut times = Vec::new();
    for n in 1..=9 {
        times.push(drive(
            &runtime,
            folder.path(),
            &workspace,
            &session,
            TURNS + n,
        )?);
    }
    figures.add(
        "400-turn session: open, verify, fold, first request",
        median(&mut times),
        "ms",
        Some(50.0),
    );
    Ok(())
}

/// Drives until the model was asked for turn `stop_at`, then interrupts. Returns
/// the milliseconds until the first request.
fn drive(
    runtime: &tokio::runtime::Runtime,
    folder: &std::path::Path,
    workspace: &std::path::Path,
    session: &StreamId,
    stop_at: u32,
) -> anyhow::Result<f64> {
    let cancel = CancellationToken::new();
    let begun = Instant::now();
    let first = Arc::new(AtomicU32::new(0));
    let (stop, noted) = (cancel.clone(), first.clone());
    let answer = move |request: &Request| {
        let micros = u32::try_from(begun.elapsed().as_micros()).unwrap_or(u32::MAX);
        let _ = noted.compare_exchange(0, micros, Ordering::Relaxed, Ordering::Relaxed);
        if request.turn >= stop_at {
            stop.cancel();
        }
        reply(request)
    };
    runtime.block_on(async {
        let driver = rig::driver(rig::ledger(folder, true)?, 0, answer);
        driver
            .start(session, None, AGENT, rig::spec(workspace)?, None)
            .await?;
        let resume = selvedge_runtime::Signal::Resume { reason: None };
        let id = format!("resume-{stop_at}");
        resume
            .send(&*driver.ledger, &*driver.clock, session, "bench", id)
            .await?;
        driver.drive(session, None, cancel).await?;
        Ok::<_, anyhow::Error>(())
    })?;
    Ok(f64::from(first.load(Ordering::Relaxed)) / 1e3)
}

fn reply(request: &Request) -> Response {
    let text = Part::Text {
        text: Payload::new("thinking about it. ".repeat(50)),
    };
    let call = Part::ToolCall(ToolCall {
        id: "c0".into(),
        name: "read_file".into(),
        arguments: Payload::new(r#"{"path":"small.txt"}"#),
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

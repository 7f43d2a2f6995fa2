//! What a durable turn costs, early and late in a session.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use selvedge_agent::AGENT;
use selvedge_ledger::{Payload, StreamId};
use selvedge_model::{Message, Part, Request, Response, Role, Stop, ToolCall, Usage};
use selvedge_runtime::Rest;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::figures::{Figures, cpu_ms, median};
use crate::rig;

const TURNS: u32 = 410;
const AT: [u32; 5] = [10, 50, 100, 200, 400];
/// Turns around each position that are measured together.
const AROUND: u32 = 5;
/// Sessions that are measured one after the other. A disk that is busy for a moment
/// would make one of ten turns what it likes.
const SESSIONS: usize = 5;

/// What a turn consists of.
#[derive(Clone, Copy, PartialEq)]
enum Load {
    /// 1 KB of text and a small read.
    Light,
    /// 20 KB of text, two writes of 30 KB and a result of 4 KB.
    Heavy,
    /// 1 KB of text and a shell command.
    Shell,
}

impl Load {
    fn name(self) -> &'static str {
        match self {
            Self::Light => "1 KB",
            Self::Heavy => "heavy",
            Self::Shell => "shell",
        }
    }

    fn new_bytes(self) -> f64 {
        match self {
            Self::Light | Self::Shell => 1_100.0,
            Self::Heavy => 84_000.0,
        }
    }
}

/// When a model was asked: time and CPU so far.
#[derive(Clone, Copy)]
struct Mark {
    at: Instant,
    cpu_ms: f64,
}

/// Measures all loads, with and without syncing.
pub fn measure(figures: &mut Figures) -> anyhow::Result<()> {
    for load in [Load::Light, Load::Heavy, Load::Shell] {
        for sync in [true, false] {
            if load == Load::Shell && !sync {
                continue;
            }
            let runs = (0..SESSIONS).map(|_| run(load, sync));
            let runs = runs.collect::<anyhow::Result<Vec<_>>>()?;
            report(figures, load, sync, &runs);
        }
    }
    Ok(())
}

fn run(load: Load, sync: bool) -> anyhow::Result<(Vec<Mark>, u64)> {
    let folder = rig::scratch()?;
    let workspace = folder.path().join("workspace");
    std::fs::create_dir(&workspace)?;
    std::fs::write(workspace.join("small.txt"), noise(0, 40))?;
    std::fs::write(workspace.join("four.txt"), noise(1, 4096))?;
    let marks: Arc<Mutex<Vec<Mark>>> = Arc::default();
    let noted = marks.clone();
    let answer = move |request: &Request| {
        let mark = Mark {
            at: Instant::now(),
            cpu_ms: cpu_ms(),
        };
        let mut noted = noted.lock().expect("one writer");
        noted.push(mark);
        reply(
            load,
            request,
            u32::try_from(noted.len()).unwrap_or(u32::MAX),
        )
    };
    let runtime = selvedge_runtime::executor().worker_threads(2).build()?;
    runtime.block_on(async {
        let driver = rig::driver(rig::ledger(folder.path(), sync)?, 0, answer);
        let session = StreamId::new("s_bench");
        driver
            .start(&session, None, AGENT, rig::spec(&workspace)?, None)
            .await?;
        let rest = driver
            .drive(&session, None, CancellationToken::new())
            .await?;
        anyhow::ensure!(
            matches!(&rest, Rest::Ended(e) if e.status == selvedge_runtime::Status::Done),
            "{rest:?}"
        );
        Ok(())
    })?;
    let marks = marks.lock().expect("one writer").clone();
    // The ledger is closed by now, and its log folded into its file.
    Ok((marks, bytes(folder.path())))
}

fn report(figures: &mut Figures, load: Load, sync: bool, runs: &[(Vec<Mark>, u64)]) {
    let name = format!(
        "{} turn, {}",
        load.name(),
        if sync { "FULL" } else { "NORMAL" }
    );
    let mut first = f64::NAN;
    for at in AT {
        let (from, to) = (at.saturating_sub(AROUND) as usize, (at + AROUND) as usize);
        let pairs = || {
            let windows = runs
                .iter()
                .map(|(marks, _)| &marks[from..=to.min(marks.len() - 1)]);
            windows.flat_map(|window| window.windows(2))
        };
        let time = |w: &[Mark]| (w[1].at - w[0].at).as_secs_f64() * 1e3;
        let time = median(&mut pairs().map(time).collect::<Vec<_>>());
        let cpu = pairs().map(|w| w[1].cpu_ms - w[0].cpu_ms).sum::<f64>() / pairs().count() as f64;
        if at == AT[0] {
            first = time;
        }
        figures.add(format!("{name}, at {at}: time"), time, "ms", None);
        figures.add(format!("{name}, at {at}: CPU"), cpu, "ms", None);
        if at == AT[4] {
            figures.add(
                format!("{name}, at {at} against {}", AT[0]),
                time / first,
                "ratio",
                Some(1.2),
            );
        }
    }
    let turns: usize = runs.iter().map(|(marks, _)| marks.len() - 1).sum();
    let per_turn = runs.iter().map(|(_, bytes)| bytes).sum::<u64>() as f64 / turns as f64;
    figures.add(
        format!("{name}: bytes on disk per turn"),
        per_turn,
        "bytes",
        None,
    );
    let goal = (load == Load::Heavy).then_some(2.0);
    figures.add(
        format!("{name}: bytes against new content"),
        per_turn / load.new_bytes(),
        "ratio",
        goal,
    );
}

fn reply(load: Load, request: &Request, nth: u32) -> Response {
    let last = request.messages.last().expect("a request has messages");
    let summary = matches!(last.parts.first(), Some(Part::Text { text })
        if text.text().is_some_and(|t| t.starts_with("The conversation is about to exceed")));
    let seed = u64::from(nth);
    let parts = if summary {
        vec![said(noise(seed, 600))]
    } else if nth >= TURNS {
        vec![call(0, "finish", &json!({ "summary": "measured" }))]
    } else {
        match load {
            Load::Light => vec![
                said(noise(seed, 1000)),
                call(0, "read_file", &json!({ "path": "small.txt" })),
            ],
            Load::Shell => vec![
                said(noise(seed, 1000)),
                call(0, "run_command", &json!({ "command": "cat small.txt" })),
            ],
            Load::Heavy => vec![
                said(noise(seed, 20_000)),
                call(
                    0,
                    "write_file",
                    &json!({ "path": "a.txt", "content": noise(seed + 1000, 30_000) }),
                ),
                call(
                    1,
                    "write_file",
                    &json!({ "path": "b.txt", "content": noise(seed + 2000, 30_000) }),
                ),
                call(2, "read_file", &json!({ "path": "four.txt" })),
            ],
        }
    };
    Response {
        message: Message {
            role: Role::Assistant,
            parts,
        },
        stop: if summary { Stop::End } else { Stop::Tools },
        usage: Usage {
            input: 1000,
            output: 300,
            ..Usage::default()
        },
        model: request.model.clone(),
    }
}

fn said(text: String) -> Part {
    Part::Text {
        text: Payload::new(text),
    }
}

fn call(n: u32, name: &str, arguments: &Value) -> Part {
    let arguments = Payload::new(arguments.to_string());
    Part::ToolCall(ToolCall {
        id: format!("c{n}"),
        name: name.into(),
        arguments,
    })
}

/// Text that compresses about as well as source code, different for each seed.
fn noise(seed: u64, length: usize) -> String {
    const WORDS: [&str; 16] = [
        "let ", "fn ", "return ", "value", "index", "(", ")", " = ", "self.", "name", "\n    ",
        "match ", "Some", " { ", " }", "; ",
    ];
    let dice = selvedge_testkit::Dice::new(seed, "noise");
    let mut text = String::with_capacity(length + 16);
    while text.len() < length {
        let n = dice.next();
        text.push_str(WORDS[(n % 16) as usize]);
        if n.is_multiple_of(5) {
            text.push_str(&format!("{:x}", n >> 44));
        }
    }
    text.truncate(length);
    text
}

/// Bytes that the ledger takes: its file and its log.
fn bytes(folder: &Path) -> u64 {
    ["ledger.db", "ledger.db-wal"]
        .iter()
        .filter_map(|f| std::fs::metadata(folder.join(f)).ok())
        .map(|m| m.len())
        .sum()
}

//! What the gate costs a call when a thousand others want the same slots.

use std::sync::Arc;
use std::time::Instant;

use selvedge_ledger::Payload;
use selvedge_model::{
    Ask, Budget, Catalogue, Gate, Limits, Message, Part, Providers, Request, Response, Role,
    ScriptedModel, Stop, ToolDefinition, Urgency, Usage,
};
use selvedge_runtime::{SystemChance, SystemClock};
use selvedge_tool::Toolbox;
use tokio_util::sync::CancellationToken;

use crate::figures::{Figures, median};

const QUEUED: usize = 1000;
const ROUNDS: usize = 20;
const GOAL_MICROS: f64 = 100.0;

/// Measures reserving, queueing, asking and settling, with a model that answers at
/// once.
pub fn measure(figures: &mut Figures) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let mut per_call = Vec::new();
    for _ in 0..ROUNDS {
        per_call.push(runtime.block_on(crowd())? / QUEUED as f64);
    }
    let name = format!("gate: overhead per call at {QUEUED} queued calls");
    figures.add(name, median(&mut per_call), "µs", Some(GOAL_MICROS));
    Ok(())
}

/// Microseconds until everybody is answered.
async fn crowd() -> anyhow::Result<f64> {
    let model = ScriptedModel::from_fn("scripted/bench", answer);
    let gate = Arc::new(Gate::new(
        Providers::new().with_script(model),
        Catalogue::built_in(),
        Arc::new(SystemClock),
        Arc::new(SystemChance),
    ));
    let limits = Limits {
        tokens: Some(u64::MAX / 2),
        usd: None,
        calls: None,
    };
    let session = Budget::new("session", limits);
    let request = Arc::new(request());
    let begun = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..QUEUED {
        let (gate, request) = (gate.clone(), request.clone());
        let budget = session.child(format!("agent {n}"), Limits::default());
        tasks.spawn(async move {
            let reservation = gate.reserve(&budget, &request, &[])?;
            let ask = Ask {
                urgency: Urgency {
                    awaited: n % 10 == 0,
                    priority: (n % 100) as u8,
                },
                ..Ask::from(&*request)
            };
            let cancel = CancellationToken::new();
            let answered = gate.ask(ask, &mut |_| {}, &|_| {}, &cancel).await?;
            reservation.settle(answered.spend());
            Ok::<_, anyhow::Error>(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    let micros = begun.elapsed().as_secs_f64() * 1e6;
    anyhow::ensure!(session.spent().calls == QUEUED as u64, "a call was lost");
    Ok(micros)
}

/// A request as an agent makes it in its tenth turn.
fn request() -> Request {
    let tools = Toolbox::core().specs().into_iter().map(|s| ToolDefinition {
        name: s.name,
        description: s.description,
        schema: s.schema,
    });
    let message = || Arc::new(Message::user("a few words about the work. ".repeat(20)));
    Request {
        model: "scripted/bench".into(),
        agent: "engineer".into(),
        turn: 10,
        system: "You are an engineer. ".repeat(100).into(),
        messages: (0..20).map(|_| message()).collect(),
        tools: tools.collect::<Vec<_>>().into(),
        output_schema: None,
        output_tokens_max: 8192,
        temperature: None,
        effort: None,
    }
}

fn answer(request: &Request) -> Response {
    let text = Payload::new("done");
    Response {
        message: Message {
            role: Role::Assistant,
            parts: vec![Part::Text { text }],
        },
        stop: Stop::End,
        usage: Usage {
            input: 500,
            output: 100,
            ..Usage::default()
        },
        model: request.model.clone(),
    }
}

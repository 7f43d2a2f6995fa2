//! What the gate costs a call when a thousand others want the same slots.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use selvedge_ledger::Payload;
use selvedge_model::{
    Ask, Budget, Catalogue, DeltaSink, Gate, Limits, Message, ModelError, Part, Provider,
    Providers, Request, Response, Role, Slots, Stop, ToolDefinition, Urgency, Usage,
};
use selvedge_runtime::{SystemChance, SystemClock};
use selvedge_tool::Toolbox;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::figures::{Figures, median};

const QUEUED: usize = 1000;
const ROUNDS: usize = 20;
const GOAL_MICROS: f64 = 100.0;

/// Answers nobody until it is let go, and everybody at once from then on.
struct Held(watch::Receiver<bool>);

#[async_trait]
impl Provider for Held {
    async fn ask(
        &self,
        request: &Request,
        _: &mut dyn DeltaSink,
        _: &CancellationToken,
    ) -> Result<Response, ModelError> {
        let gone = "the bench lets go before it ends";
        self.0.clone().wait_for(|go| *go).await.expect(gone);
        Ok(answer(request))
    }
}

/// Microseconds for all of the crowd.
struct Took {
    /// Until everybody has reserved and waits in the queue.
    queueing: f64,
    /// From the first free slot until everybody is answered and settled.
    draining: f64,
}

/// Measures reserving, queueing, asking and settling: all slots are held until a
/// thousand calls wait for them, and then the queue drains.
pub fn measure(figures: &mut Figures) -> anyhow::Result<()> {
    let runtime = selvedge_runtime::executor().worker_threads(2).build()?;
    let (mut queueing, mut draining, mut in_all) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let took = runtime.block_on(crowd())?;
        queueing.push(took.queueing / QUEUED as f64);
        draining.push(took.draining / QUEUED as f64);
        in_all.push((took.queueing + took.draining) / QUEUED as f64);
    }
    let rows = [
        ("reserving and entering the queue", &mut queueing, None),
        ("a drained call", &mut draining, Some(GOAL_MICROS)),
        ("both together", &mut in_all, Some(GOAL_MICROS)),
    ];
    for (what, micros, goal) in rows {
        let name = format!("gate: {what}, with {QUEUED} queued calls");
        figures.add(name, median(micros), "µs", goal);
    }
    Ok(())
}

/// One crowd: more calls than slots, by as many as are to wait.
async fn crowd() -> anyhow::Result<Took> {
    let (let_go, held) = watch::channel(false);
    let gate = Arc::new(Gate::new(
        Providers::new().with("bench", Arc::new(Held(held))),
        Catalogue::built_in(),
        Arc::new(SystemClock),
        Arc::new(SystemChance),
    ));
    let calls = QUEUED + Slots::default().per_provider;
    let limits = Limits {
        tokens: Some(u64::MAX / 2),
        usd: None,
        calls: None,
    };
    let session = Budget::new("session", limits);
    let request = Arc::new(request());
    let begun = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..calls {
        let (gate, request) = (gate.clone(), request.clone());
        let budget = session.child(format!("agent {n}"), Limits::default());
        tasks.spawn(async move {
            let reservation = gate.reserve(&budget, &request, &[])?;
            let ask = Ask {
                urgency: Urgency {
                    // Nobody who waits makes another give way: that has its own tests.
                    awaited: false,
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
    while gate.waiting() < QUEUED {
        if let Some(done) = tasks.try_join_next() {
            done??;
            anyhow::bail!("a call was answered before its time");
        }
        tokio::task::yield_now().await;
    }
    let queueing = begun.elapsed().as_secs_f64() * 1e6;
    anyhow::ensure!(session.spent().calls == 0, "a call did not wait");
    let begun = Instant::now();
    let_go.send_replace(true);
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    let draining = begun.elapsed().as_secs_f64() * 1e6;
    anyhow::ensure!(session.spent().calls == calls as u64, "a call was lost");
    anyhow::ensure!(gate.waiting() == 0, "somebody waits still");
    Ok(Took { queueing, draining })
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
        model: "bench/one".into(),
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

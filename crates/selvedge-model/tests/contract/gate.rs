//! The gate before a real provider: retries, costs and budgets together.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use selvedge_model::{
    Ask, Budget, BudgetError, Catalogue, ErrorTier, Gate, HttpOptions, Limits, Providers, Request,
    Retry, Usage, Usd,
};
use selvedge_runtime::{Notice, SeededChance, SystemClock};
use selvedge_testkit::{ModelServer, Reply, ReplyFault};
use tokio_util::sync::CancellationToken;

use crate::world::request;

fn gate(server: &ModelServer) -> Gate {
    let table = toml::toml! {
        [providers.openai.models.model-1]
        price = { input = 1.0, output = 10.0 }
    };
    let catalogue = Catalogue::with(&table).unwrap();
    let url = server.openai_url();
    let lookup = |name: &str| (name == "OPENAI_BASE_URL").then(|| url.clone());
    let providers = Providers::from_env(&catalogue, &HttpOptions::default(), lookup);
    let short = Duration::from_millis(1);
    let retry = Retry {
        wait_min: short,
        wait_max: short,
        ..Retry::default()
    };
    Gate::new(
        providers,
        catalogue,
        Arc::new(SystemClock),
        Arc::new(SeededChance::new(7)),
    )
    .with_retry(retry)
}

fn asking() -> Request {
    Request {
        model: "openai/model-1".into(),
        ..request()
    }
}

#[tokio::test]
async fn a_call_survives_two_failures_and_pays_for_what_had_begun() {
    let server = ModelServer::start().await;
    server.push(Reply::fault(ReplyFault::ResetAt(500)));
    server.push(Reply::fault(ReplyFault::too_many(Some("0"))));
    server.push(Reply::text("hi").usage(Usage {
        input: 1000,
        output: 100,
        ..Usage::default()
    }));
    let notices = Mutex::new(Vec::new());
    let notice = |notice: Notice| notices.lock().unwrap().push(notice.text);
    let (gate, request, cancel) = (gate(&server), asking(), CancellationToken::new());
    let failed = gate.ask(&request, &mut |_| {}, &notice, &cancel).await;
    let failed = failed.unwrap_err();
    let broken = failed.broken.unwrap();
    let wasted = broken.spend();
    assert!(wasted.tokens > 0 && wasted.calls == 0 && wasted.usd > Usd::ZERO);
    assert_eq!((broken.tier, failed.attempts), (ErrorTier::Transient, 1));
    let ask = Ask {
        course: failed.go_on,
        ..Ask::from(&request)
    };
    let answered = gate.ask(ask, &mut |_| {}, &notice, &cancel).await.unwrap();
    assert_eq!(
        (answered.attempts, answered.response.text().as_str()),
        (3, "hi")
    );
    assert_eq!(answered.cost, Usd::from_dollars(0.002));
    assert_eq!((answered.spend().calls, answered.spend().tokens), (1, 1100));
    assert!(
        answered
            .first_token_ms
            .is_some_and(|first| first <= answered.total_ms)
    );
    assert_eq!(notices.into_inner().unwrap().len(), 2);
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn what_asking_again_cannot_help_is_asked_once() {
    for (status, tier) in [
        (400, ErrorTier::Permanent),
        (401, ErrorTier::UserFixable),
        (403, ErrorTier::UserFixable),
    ] {
        let server = ModelServer::start().await;
        server.push(Reply::fault(ReplyFault::status(status)));
        server.push(Reply::text("never heard"));
        let failed = gate(&server)
            .ask(&asking(), &mut |_| {}, &|_| {}, &CancellationToken::new())
            .await
            .unwrap_err();
        assert_eq!((failed.error.tier(), failed.attempts), (tier, 1));
        assert_eq!(server.requests().len(), 1, "status {status}");
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_leaves_what_was_heard() {
    let server = ModelServer::start().await;
    let words = "one two three four five six seven eight nine ten ".repeat(20);
    server.push(Reply::text(&words).with_fault(ReplyFault::ResetAt(3000)));
    let failed = gate(&server)
        .ask(&asking(), &mut |_| {}, &|_| {}, &CancellationToken::new())
        .await
        .unwrap_err();
    let broken = failed.broken.unwrap();
    let text = broken.text.text().unwrap();
    assert!(!text.is_empty() && words.starts_with(&**text), "{text}");
    assert!(failed.go_on.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_calls_at_the_edge_never_spend_more_than_the_budget() {
    // Every answer uses all the output it may, and the input that was reserved.
    let server = ModelServer::start_with(|_| {
        Reply::text("hi").usage(Usage {
            input: 500,
            output: 256,
            ..Usage::default()
        })
    })
    .await;
    let gate = Arc::new(gate(&server));
    let limit = Usd::from_dollars(0.05).unwrap();
    let budget = Budget::new(
        "run",
        Limits {
            usd: Some(limit),
            ..Limits::default()
        },
    );
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..64 {
        let (gate, budget) = (Arc::clone(&gate), budget.clone());
        tasks.spawn(async move {
            let reservation = gate.reserve(&budget, &asking(), &[])?;
            let answered = gate
                .ask(&asking(), &mut |_| {}, &|_| {}, &CancellationToken::new())
                .await;
            reservation.settle(answered.expect("the server is well").spend());
            Ok::<(), BudgetError>(())
        });
    }
    let results = tasks.join_all().await;
    let admitted = results.iter().filter(|result| result.is_ok()).count() as u64;
    assert!((1..64).contains(&admitted), "{admitted}");
    assert_eq!(budget.spent().calls, admitted);
    assert!(budget.spent().usd <= limit, "{}", budget.spent().usd);
    assert_eq!(budget.held(), selvedge_model::Spend::default());
}

use std::sync::Mutex;
use std::time::Duration;

use selvedge_runtime::{SeededChance, SystemClock};
use serde_json::json;

use super::*;
use crate::scripted::{Entry, ScriptedModel, Turn};
use crate::types::Stop;

fn usd(dollars: f64) -> Usd {
    Usd::from_dollars(dollars).unwrap()
}

fn price() -> Price {
    Price {
        input: usd(1.0),
        cached: None,
        cache_written: None,
        output: usd(10.0),
        long: None,
    }
}

fn request(model: &str) -> Request {
    Request {
        model: model.into(),
        agent: "a".into(),
        turn: 0,
        system: Arc::from("x".repeat(1000)),
        messages: vec![],
        tools: Arc::from([]),
        output_schema: None,
        output_tokens_max: 1000,
        temperature: None,
    }
}

fn gate(entries: Vec<Entry>) -> Gate {
    let script = ScriptedModel::from_turns([("a", entries)]).with_price(price());
    let providers = Providers::new().with_script(script);
    Gate::new(
        providers,
        Catalogue::built_in(),
        Arc::new(SystemClock),
        Arc::new(SeededChance::new(1)),
    )
}

fn transient() -> Entry {
    ModelError::Transient {
        provider: "scripted".into(),
        what: "the connection was reset".into(),
    }
    .into()
}

fn limited(seconds: u64) -> Entry {
    let retry_after = Some(Duration::from_secs(seconds));
    ModelError::RateLimited {
        provider: "scripted".into(),
        what: "slow down".into(),
        retry_after,
    }
    .into()
}

/// Asks once; returns what came of it, the notices, and the seconds it took.
async fn ask(gate: &Gate) -> (Result<Answered, Failed>, Vec<String>, f64) {
    let notices = Mutex::new(Vec::new());
    let notice = |text: &str| notices.lock().unwrap().push(text.to_owned());
    let begun = tokio::time::Instant::now();
    let cancel = CancellationToken::new();
    let result = gate
        .ask(&request("scripted/demo"), &mut |_| {}, &notice, &cancel)
        .await;
    (
        result,
        notices.into_inner().unwrap(),
        begun.elapsed().as_secs_f64(),
    )
}

#[tokio::test(start_paused = true)]
async fn a_transient_failure_is_tried_again_and_the_person_is_told() {
    let usage = Usage {
        input: 1000,
        output: 100,
        ..Usage::default()
    };
    let (result, notices, took) = ask(&gate(vec![
        transient(),
        transient(),
        Turn::text("hi").usage(usage).into(),
    ]))
    .await;
    let answered = result.unwrap();
    assert_eq!((answered.attempts, answered.response.stop), (3, Stop::End));
    assert_eq!(answered.cost, Some(usd(0.002)));
    assert_eq!(
        answered.spend(),
        Spend {
            usd: usd(0.002),
            tokens: 1100,
            calls: 1,
            unpriced: 0
        }
    );
    assert!((1.5..=3.0).contains(&took), "{took}");
    assert!(
        notices[0].starts_with("scripted: the connection was reset; trying again in 0."),
        "{notices:?}"
    );
    assert!(notices[1].ends_with("(3 of 3)"), "{notices:?}");
}

#[tokio::test(start_paused = true)]
async fn a_third_failure_is_the_last() {
    let (result, notices, _) = ask(&gate(vec![
        transient(),
        transient(),
        transient(),
        Turn::text("hi").into(),
    ]))
    .await;
    let failed = result.unwrap_err();
    assert_eq!((failed.attempts, notices.len()), (3, 2));
}

#[tokio::test(start_paused = true)]
async fn a_wait_the_provider_asks_for_is_kept_and_a_long_one_handed_back() {
    let (result, _, took) = ask(&gate(vec![limited(7), Turn::text("hi").into()])).await;
    assert!(result.is_ok() && (7.0..8.0).contains(&took), "{took}");
    let (result, notices, took) = ask(&gate(vec![limited(3600), Turn::text("hi").into()])).await;
    assert!(matches!(
        result.unwrap_err().error,
        ModelError::RateLimited { .. }
    ));
    assert!(notices.is_empty() && took < 0.1);
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_the_call_is_cancelled() {
    let gate = gate(vec![limited(50), Turn::text("hi").into()]);
    let cancel = CancellationToken::new();
    let begun = tokio::time::Instant::now();
    let notice = |_: &str| cancel.cancel();
    let failed = gate
        .ask(&request("scripted/demo"), &mut |_| {}, &notice, &cancel)
        .await
        .unwrap_err();
    assert_eq!(failed.error, ModelError::Cancelled);
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[tokio::test]
async fn a_model_nobody_answers_for_is_a_persons_to_fix() {
    let gate = gate(vec![]);
    let asked = request("script/demo");
    let failed = gate
        .ask(&asked, &mut |_| {}, &|_| {}, &CancellationToken::new())
        .await
        .unwrap_err();
    assert!(
        failed
            .to_string()
            .contains("no provider answers for `script/demo`; did you mean `scripted`?")
    );
}

#[test]
fn a_reservation_is_the_worst_case_at_the_models_price() {
    let budget = Budget::new(
        "run",
        Limits {
            usd: Some(usd(1.0)),
            ..Limits::default()
        },
    );
    let held = gate(vec![])
        .reserve(&budget, &request("scripted/demo"))
        .unwrap();
    let input = input_tokens_estimate(&request("scripted/demo"));
    assert_eq!(held.amount().tokens, input + 1000);
    assert_eq!(held.amount().usd, price().worst(input, 1000));
    assert!(input >= 500, "a thousand bytes may be five hundred tokens");
}

#[test]
fn limited_money_refuses_a_model_without_a_price() {
    let gate = gate(vec![]);
    let unknown = request("anthropic/claude-unheard-of");
    let session = Budget::new(
        "session",
        Limits {
            usd: Some(usd(1.0)),
            ..Limits::default()
        },
    );
    let run = session.child(
        "run",
        Limits {
            tokens: Some(100_000),
            ..Limits::default()
        },
    );
    let error = gate.reserve(&run, &unknown).unwrap_err();
    assert_eq!(
        error.to_string(),
        "budget `session` limits money, and the price of `anthropic/claude-unheard-of` is not known"
    );
    assert!(error.hint().contains("limit tokens"));
    let by_tokens = Budget::new(
        "run",
        Limits {
            tokens: Some(100_000),
            ..Limits::default()
        },
    );
    assert_eq!(
        gate.reserve(&by_tokens, &unknown)
            .unwrap()
            .amount()
            .unpriced,
        1
    );
}

#[test]
fn limits_are_read_as_plain_numbers() {
    let limits: Limits = serde_json::from_value(json!({"usd": 0.5, "calls": 40})).unwrap();
    assert_eq!(
        limits,
        Limits {
            usd: Some(usd(0.5)),
            tokens: None,
            calls: Some(40)
        }
    );
}

//! The gate before models that do as they are told.

mod trouble;

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use selvedge_runtime::{Clock, Notice, SeededChance};
use serde_json::json;

use super::*;
use crate::scripted::{Entry, ScriptedModel, Turn};
use crate::types::{Response, Stop, Usage};

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
        messages: Default::default(),
        tools: Arc::from([]),
        output_schema: None,
        output_tokens_max: 1000,
        temperature: None,
        effort: None,
    }
}

/// The time that passes while everybody waits.
struct Virtual(tokio::time::Instant);

#[async_trait]
impl Clock for Virtual {
    fn now(&self) -> Time {
        Time(i64::try_from(self.0.elapsed().as_millis()).unwrap())
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

fn gate(entries: Vec<Entry>) -> Gate {
    let script = ScriptedModel::from_turns([("a", entries)]).with_price(price());
    let providers = Providers::new().with_script(script);
    Gate::new(
        providers,
        Catalogue::built_in(),
        Arc::new(Virtual(tokio::time::Instant::now())),
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
    let notice = |notice: Notice| notices.lock().unwrap().push(notice.text);
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
async fn a_transient_failure_is_tried_again_in_silence() {
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
    assert_eq!(notices, ["", ""], "there is only a countdown");
}

#[tokio::test(start_paused = true)]
async fn frequent_failures_are_told_once() {
    let entries = (0..3).flat_map(|_| [transient(), transient()]);
    let gate = gate(entries.chain([Turn::text("hi").into()]).collect());
    let gate = gate.with_retry(Retry {
        attempts_max: 10,
        wait_max: Duration::from_secs(1),
        ..Retry::default()
    });
    let (result, mut notices, _) = ask(&gate).await;
    assert_eq!(result.unwrap_err().attempts, 5, "then it counts as down");
    notices.retain(|notice| notice.contains("trying again"));
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(
        notices[0].starts_with("scripted: the connection was reset; trying again in"),
        "{notices:?}"
    );
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
    assert!(notices.is_empty() && took < 0.1, "{notices:?} {took}");
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_the_call_is_cancelled() {
    let gate = gate(vec![limited(50), Turn::text("hi").into()]);
    let cancel = CancellationToken::new();
    let begun = tokio::time::Instant::now();
    let notice = |_: Notice| cancel.cancel();
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
        .reserve(&budget, &request("scripted/demo"), &[])
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
    let error = gate.reserve(&run, &unknown, &[]).unwrap_err();
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
        gate.reserve(&by_tokens, &unknown, &[])
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

/// A provider that counts how often it is asked, and answers by a function.
struct Counting<F> {
    asked: Arc<std::sync::atomic::AtomicU32>,
    answer: F,
}

#[async_trait]
impl<F: Fn(u32) -> Result<&'static str, ModelError> + Send + Sync> crate::Provider for Counting<F> {
    async fn ask(
        &self,
        request: &Request,
        deltas: &mut dyn DeltaSink,
        _cancel: &CancellationToken,
    ) -> Result<Response, ModelError> {
        let nth = self
            .asked
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(10)).await;
        let text = (self.answer)(nth)?;
        deltas.take(Delta::Text(text.into()));
        let mut response = Turn::text(text).response(request, &request.model);
        response.stop = Stop::End;
        Ok(response)
    }
}

type Answer = fn(u32) -> Result<&'static str, ModelError>;

/// A gate to providers `a` and `b`, and how often each was asked.
fn two(a: Answer, b: Answer) -> (Gate, [Arc<std::sync::atomic::AtomicU32>; 2]) {
    let asked: [Arc<std::sync::atomic::AtomicU32>; 2] = Default::default();
    let provider = |n: usize, answer| {
        Arc::new(Counting {
            asked: asked[n].clone(),
            answer,
        }) as Arc<dyn crate::Provider>
    };
    let providers = Providers::new()
        .with("a", provider(0, a))
        .with("b", provider(1, b));
    let clock = Arc::new(Virtual(tokio::time::Instant::now()));
    let chance = Arc::new(SeededChance::new(1));
    (
        Gate::new(providers, Catalogue::built_in(), clock, chance),
        asked,
    )
}

fn down(_: u32) -> Result<&'static str, ModelError> {
    Err(ModelError::Transient {
        provider: "a".into(),
        what: "no route".into(),
    })
}

async fn ask_a(gate: &Gate, urgency: Urgency, fallbacks: &[String]) -> Result<Answered, Failed> {
    let request = request("a/one");
    let ask = Ask {
        urgency,
        fallbacks,
        ..Ask::from(&request)
    };
    gate.ask(ask, &mut |_| {}, &|_| {}, &CancellationToken::new())
        .await
}

fn count(asked: &Arc<std::sync::atomic::AtomicU32>) -> u32 {
    asked.load(std::sync::atomic::Ordering::Relaxed)
}

#[tokio::test(start_paused = true)]
async fn a_dead_provider_is_routed_around_and_hardly_asked_any_more() {
    let (gate, asked) = two(down, |_| Ok("from b"));
    let fallbacks = ["b/two".to_owned()];
    for _ in 0..100 {
        let answered = ask_a(&gate, Urgency::default(), &fallbacks).await.unwrap();
        assert_eq!(answered.response.model, "b/two");
        assert_eq!(answered.response.text(), "from b");
    }
    // Five failures open the breaker; the rest goes straight to the other.
    assert!(count(&asked[0]) <= 6, "asked {} times", count(&asked[0]));
    assert_eq!(count(&asked[1]), 100);
}

#[tokio::test(start_paused = true)]
async fn a_dead_provider_without_fallback_fails_at_once_and_recovers_by_a_probe() {
    let (gate, asked) = two(
        |nth| if nth < 6 { down(nth) } else { Ok("back") },
        |_| Ok("unused"),
    );
    for _ in 0..2 {
        assert!(ask_a(&gate, Urgency::default(), &[]).await.is_err());
    }
    let before = count(&asked[0]);
    for _ in 0..50 {
        let failed = ask_a(&gate, Urgency::default(), &[]).await.unwrap_err();
        assert!(matches!(failed.error, ModelError::Degraded { .. }));
    }
    assert_eq!(
        count(&asked[0]),
        before,
        "an open breaker lets nothing through"
    );
    // One probe fails, the next succeeds.
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert!(ask_a(&gate, Urgency::default(), &[]).await.is_err());
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(
        ask_a(&gate, Urgency::default(), &[])
            .await
            .unwrap()
            .response
            .text(),
        "back"
    );
}

#[tokio::test(start_paused = true)]
async fn a_wrong_request_goes_to_nobody_else_and_is_not_repeated() {
    let (gate, asked) = two(
        |_| {
            Err(ModelError::Permanent {
                provider: "a".into(),
                what: "no".into(),
            })
        },
        |_| Ok("from b"),
    );
    let failed = ask_a(&gate, Urgency::default(), &["b/two".to_owned()])
        .await
        .unwrap_err();
    assert!(matches!(failed.error, ModelError::Permanent { .. }));
    assert_eq!((count(&asked[0]), count(&asked[1])), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_gave_way_is_asked_again_and_answered() {
    let (gate, asked) = two(|_| Ok("hi"), |_| Ok("unused"));
    let gate = gate.with_slots(Slots {
        per_provider: 1,
        in_all: 1,
    });
    let awaited = Urgency {
        awaited: true,
        priority: 60,
    };
    let background = ask_a(&gate, Urgency::default(), &[]);
    let person = async {
        tokio::time::sleep(Duration::from_millis(3)).await;
        let begun = tokio::time::Instant::now();
        let answered = ask_a(&gate, awaited, &[]).await;
        (answered, begun.elapsed())
    };
    let (background, (person, waited)) = tokio::join!(background, person);
    assert!(background.is_ok() && person.is_ok());
    assert!(waited < Duration::from_millis(13), "waited {waited:?}");
    assert_eq!(count(&asked[0]), 3, "one call was begun twice");
}

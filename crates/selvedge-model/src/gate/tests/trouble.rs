//! Answers that break off, providers in trouble, and who goes first afterwards.

use std::sync::atomic::Ordering;

use super::*;
use crate::types::Message;

fn cut(what: &str) -> ModelError {
    ModelError::Transient {
        provider: "scripted".into(),
        what: what.into(),
    }
}

/// What is heard of a question, in the order in which it is.
#[derive(Clone, Debug, PartialEq)]
enum Heard {
    Words(String),
    Abandoned,
}

async fn listen(gate: &Gate, ask: Ask<'_>) -> (Result<Answered, Failed>, Vec<Heard>) {
    let heard = Mutex::new(Vec::new());
    let mut deltas = |delta: Delta| {
        if let Delta::Text(text) = delta {
            heard.lock().unwrap().push(Heard::Words(text));
        }
    };
    let notice = |notice: Notice| {
        if notice.abandons {
            heard.lock().unwrap().push(Heard::Abandoned);
        }
    };
    let cancel = CancellationToken::new();
    let asked = gate.ask(ask, &mut deltas, &notice, &cancel).await;
    (asked, heard.into_inner().unwrap())
}

fn words(text: &str) -> Heard {
    Heard::Words(text.to_owned())
}

#[tokio::test(start_paused = true)]
async fn what_was_said_before_a_cut_is_kept_costed_and_abandoned() {
    let gate = gate(vec![
        Entry::Cut("I was about".into(), cut("the stream was cut")),
        Turn::text("fine").into(),
    ]);
    let asked = request("scripted/demo");
    let (first, heard) = listen(&gate, Ask::from(&asked)).await;
    let failed = first.unwrap_err();
    let broken = failed.broken.unwrap();
    assert_eq!(broken.text.text().map(|t| &**t), Some("I was about"));
    assert_eq!(broken.why, "scripted: the stream was cut");
    // A thousand bytes asked with, eleven heard.
    assert_eq!((broken.usage.input, broken.usage.output), (250, 3));
    assert_eq!(broken.cost, Some(price().cost(&broken.usage)));
    assert_eq!(heard, [words("I was about"), Heard::Abandoned]);

    let ask = Ask {
        course: failed.go_on,
        ..Ask::from(&asked)
    };
    let (second, heard) = listen(&gate, ask).await;
    let answered = second.unwrap();
    assert_eq!(answered.attempts, 2);
    assert_eq!(answered.response.text(), "fine", "and nothing of the first");
    assert_eq!(heard, [words("fine")]);
}

#[tokio::test(start_paused = true)]
async fn three_answers_that_break_off_are_enough() {
    let entry = || Entry::Cut("ah".into(), cut("again"));
    let gate = gate(vec![entry(), entry(), entry(), Turn::text("late").into()]);
    let asked = request("scripted/demo");
    let mut course = None;
    for nth in 1..=3 {
        let ask = Ask {
            course,
            ..Ask::from(&asked)
        };
        let failed = listen(&gate, ask).await.0.unwrap_err();
        assert!(failed.broken.is_some());
        assert_eq!((failed.attempts, failed.go_on.is_some()), (nth, nth < 3));
        course = failed.go_on;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_answer_leaves_its_words() {
    let turn = Turn::text("one two three four five six seven eight nine ten")
        .delay(Duration::from_secs(10));
    let gate = gate(vec![turn.into()]);
    let (asked, cancel) = (request("scripted/demo"), CancellationToken::new());
    let mut deltas = |_: Delta| cancel.cancel();
    let failed = gate
        .ask(&asked, &mut deltas, &|_| {}, &cancel)
        .await
        .unwrap_err();
    assert_eq!(failed.error, ModelError::Cancelled);
    assert!(failed.broken.is_some_and(|broken| !broken.text.is_empty()));
    assert!(failed.go_on.is_none());
}

/// Says a word again and again, and never stops.
struct Endless;

#[async_trait]
impl crate::Provider for Endless {
    async fn ask(
        &self,
        _: &Request,
        deltas: &mut dyn DeltaSink,
        _: &CancellationToken,
    ) -> Result<Response, ModelError> {
        loop {
            deltas.take(Delta::Text("word ".repeat(20)));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_beyond_what_was_set_aside_is_stopped_and_recorded() {
    let providers = Providers::new().with("a", Arc::new(Endless));
    let clock = Arc::new(Virtual(tokio::time::Instant::now()));
    let chance = Arc::new(SeededChance::new(1));
    let gate = Gate::new(providers, Catalogue::built_in(), clock, chance);
    let asked = request("a/one");
    let ask = Ask {
        is_capped: true,
        ..Ask::from(&asked)
    };
    let failed = listen(&gate, ask).await.0.unwrap_err();
    assert!(matches!(failed.error, ModelError::Overrun { .. }));
    let broken = failed.broken.unwrap();
    // Eight bytes to a token are more than any text has.
    assert!(
        (8000..8200).contains(&broken.text.len()),
        "{}",
        broken.text.len()
    );
    assert!(broken.usage.output >= u64::from(asked.output_tokens_max));
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_one_models_and_says_why_it_is_not_the_others() {
    let (gate, asked) = two(down, |_| Ok("from b"));
    let fallbacks = ["b/two".to_owned()];
    let answered = ask_a(&gate, Urgency::default(), &fallbacks).await.unwrap();
    assert_eq!(answered.response.model, "b/two");
    assert_eq!(answered.because.as_deref(), Some("a: no route"));
    assert_eq!((count(&asked[0]), count(&asked[1])), (3, 1));
    let own = ask_b(&gate).await.unwrap();
    assert_eq!(own.because, None);
}

async fn ask_b(gate: &Gate) -> Result<Answered, Failed> {
    let cancel = CancellationToken::new();
    gate.ask(&request("b/two"), &mut |_| {}, &|_| {}, &cancel)
        .await
}

#[tokio::test(start_paused = true)]
async fn a_dead_provider_is_asked_no_more_than_a_fifth_beyond_the_requests() {
    let (gate, asked) = two(down, |_| Ok("unused"));
    // Until the breaker opens.
    for _ in 0..2 {
        assert!(ask_a(&gate, Urgency::default(), &[]).await.is_err());
    }
    let before = count(&asked[0]);
    let mut requests = 0;
    // Ten minutes of a question every second: a probe every half minute.
    for _ in 0..600 {
        let failed = ask_a(&gate, Urgency::default(), &[]).await.unwrap_err();
        assert!(failed.again_at.is_some(), "it is said when it may be back");
        requests += 1;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let upstream = count(&asked[0]) - before;
    assert!((15..=requests * 12 / 10).contains(&upstream), "{upstream}");
    assert!(upstream <= 25, "one probe for each half minute: {upstream}");
}

#[tokio::test(start_paused = true)]
async fn one_session_trips_the_breaker_and_another_fails_fast() {
    let (gate, asked) = two(down, |_| Ok("unused"));
    let asks = (0..20).map(|_| ask_a(&gate, Urgency::default(), &[]));
    let failed = futures::future::join_all(asks).await;
    assert!(failed.iter().all(Result::is_err));
    let before = count(&asked[0]);
    assert!(
        before <= 20 + 10,
        "those under way end, and nothing more: {before}"
    );
    tokio::time::sleep(Duration::from_secs(31)).await;
    let asks = (0..20).map(|_| ask_a(&gate, Urgency::default(), &[]));
    futures::future::join_all(asks).await;
    assert_eq!(count(&asked[0]), before + 1, "one of twenty probes");
}

#[tokio::test(start_paused = true)]
async fn a_provider_in_trouble_is_asked_again_after_longer_waits() {
    let (gate, asked) = two(
        |nth| match nth {
            0 | 1 => Err(ModelError::Degraded {
                provider: "a".into(),
                what: "overloaded".into(),
            }),
            _ => Ok("back"),
        },
        |_| Ok("unused"),
    );
    let begun = tokio::time::Instant::now();
    assert!(ask_a(&gate, Urgency::default(), &[]).await.is_ok());
    let took = begun.elapsed().as_secs_f64();
    assert!(
        (15.0..=30.1).contains(&took),
        "5 to 10 s, then 10 to 20 s: {took}"
    );
    assert_eq!(count(&asked[0]), 3);
}

#[tokio::test(start_paused = true)]
async fn rate_limits_double_from_a_second_and_others_are_not_held_up() {
    let (gate, asked) = two(
        |nth| match nth {
            0..3 => Err(ModelError::RateLimited {
                provider: "a".into(),
                what: "slow down".into(),
                retry_after: None,
            }),
            _ => Ok("at last"),
        },
        |_| Ok("from b"),
    );
    let gate = gate.with_retry(Retry {
        attempts_max: 10,
        ..Retry::default()
    });
    let begun = tokio::time::Instant::now();
    let (a, b) = tokio::join!(ask_a(&gate, Urgency::default(), &[]), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let answered = ask_b(&gate).await;
        (answered, begun.elapsed())
    });
    assert!(a.is_ok() && b.0.is_ok());
    assert!(b.1 < Duration::from_millis(200), "another provider goes on");
    let took = begun.elapsed().as_secs_f64();
    // One, two and four seconds, a tenth more each, and ten milliseconds a call.
    assert!((7.0..=7.9).contains(&took), "{took}");
    assert_eq!(count(&asked[0]), 4);
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_rate_limit_is_announced_with_its_end() {
    let gate = gate(vec![limited(7), Turn::text("hi").into()]);
    let notices = Mutex::new(Vec::new());
    let notice = |notice: Notice| notices.lock().unwrap().push(notice);
    let asked = request("scripted/demo");
    let cancel = CancellationToken::new();
    let answered = gate.ask(&asked, &mut |_| {}, &notice, &cancel).await;
    assert!(answered.is_ok());
    let notices = notices.into_inner().unwrap();
    let until = notices.iter().find_map(|notice| notice.until).unwrap();
    assert!((7000..7800).contains(&until.0), "{notices:?}");
}

#[tokio::test(start_paused = true)]
async fn after_a_rate_limit_people_go_before_the_background() {
    let order: Arc<Mutex<Vec<String>>> = Arc::default();
    let noting = Noting {
        order: order.clone(),
        limited_once: std::sync::atomic::AtomicBool::new(true),
    };
    let providers = Providers::new().with("a", Arc::new(noting));
    let clock = Arc::new(Virtual(tokio::time::Instant::now()));
    let chance = Arc::new(SeededChance::new(1));
    let gate = Gate::new(providers, Catalogue::built_in(), clock, chance).with_slots(Slots {
        per_provider: 2,
        in_all: 2,
    });
    let ask = |who: &str, awaited: bool| {
        let mut asked = request("a/one");
        asked.messages.push(Arc::new(Message::user(who.to_owned())));
        let gate = &gate;
        async move {
            // People come while everybody else waits already.
            tokio::time::sleep(Duration::from_secs(u64::from(awaited))).await;
            let ask = Ask {
                urgency: Urgency {
                    awaited,
                    priority: 60,
                },
                ..Ask::from(&asked)
            };
            let cancel = CancellationToken::new();
            gate.ask(ask, &mut |_| {}, &|_| {}, &cancel).await.unwrap();
        }
    };
    let background = (0..6).map(|n| ask(&format!("background {n}"), false));
    let people = (0..4).map(|n| ask(&format!("person {n}"), true));
    let all = background.map(futures::future::Either::Left);
    let all = all.chain(people.map(futures::future::Either::Right));
    futures::future::join_all(all).await;
    let order = order.lock().unwrap();
    let asked: Vec<&str> = order.iter().map(|who| &who[..6]).collect();
    assert_eq!(asked[..4], ["person"; 4], "{order:?}");
}

/// Says 429 once, to whoever comes first; notes who asks afterwards.
struct Noting {
    order: Arc<Mutex<Vec<String>>>,
    limited_once: std::sync::atomic::AtomicBool,
}

#[async_trait]
impl crate::Provider for Noting {
    async fn ask(
        &self,
        request: &Request,
        _: &mut dyn DeltaSink,
        _: &CancellationToken,
    ) -> Result<Response, ModelError> {
        if self.limited_once.swap(false, Ordering::Relaxed) {
            return Err(ModelError::RateLimited {
                provider: "a".into(),
                what: "slow down".into(),
                retry_after: Some(Duration::from_secs(2)),
            });
        }
        let crate::types::Part::Text { text } = &request.messages[0].parts[0] else {
            unreachable!("only words are asked");
        };
        let who = text.text().unwrap().to_string();
        self.order.lock().unwrap().push(who);
        tokio::time::sleep(Duration::from_millis(50)).await;
        Ok(Turn::text("hi").response(request, &request.model))
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_request_is_answered_from_the_cache_at_no_cost() {
    let folder = tempfile::tempdir().unwrap();
    let (gate, asked) = two(|_| Ok("from a"), |_| Ok("unused"));
    let cache = crate::cache::ResponseCache::open(folder.path()).unwrap();
    let gate = gate.with_cache(Some(cache));
    let first = ask_a(&gate, Urgency::default(), &[]).await.unwrap();
    assert!(!first.is_cached);
    let again = ask_a(&gate, Urgency::default(), &[]).await.unwrap();
    assert!(again.is_cached);
    assert_eq!(again.response.message, first.response.message);
    assert_eq!(
        (again.cost, again.spend()),
        (Some(Usd::ZERO), Spend::default())
    );
    assert_eq!(count(&asked[0]), 1);
}

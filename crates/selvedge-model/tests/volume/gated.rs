//! The same storm before the whole gate: retries, breaker, fallbacks, queue, budgets.
//!
//! Waits are skipped, not sat through, so that ten thousand questions meet every
//! patience of the gate in a minute. What each wait was asked to be is looked at
//! instead. The server's counts of tokens are made to fit what it was asked for: a
//! budget cannot hold against a provider that charges for what was not said.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::StreamExt;
use selvedge_ledger::Time;
use selvedge_model::{
    Answered, Ask, Budget, Catalogue, Course, Delta, DeltaSink, Failed, Gate, Limits, ModelError,
    Price, Provider, Providers, Request, Response, Slots, Spend, Urgency, Usage, Usd,
};
use selvedge_runtime::{Clock, Notice, SeededChance};
use selvedge_testkit::{Case, STORM_KEY, Storm, Wire};
use tokio_util::sync::CancellationToken;

use crate::{CASES, CONCURRENT, Clients, DEADLINE, alone, request};

/// Questions that draw on one budget.
const TO_A_BUDGET: u64 = 100;
/// How often a question is asked whose providers are all away.
const ROUNDS: u32 = 9;
/// The longest wait that a provider gets, and what jitter adds.
const WAIT_MAX: Duration = Duration::from_secs(67);

/// A clock that jumps to the end of every wait.
#[derive(Default)]
struct Skipping {
    skipped: AtomicI64,
    longest: AtomicI64,
}

#[async_trait]
impl Clock for Skipping {
    fn now(&self) -> Time {
        Time(self.skipped.load(Ordering::SeqCst))
    }

    async fn sleep(&self, duration: Duration) {
        let millis = i64::try_from(duration.as_millis()).unwrap();
        self.longest.fetch_max(millis, Ordering::SeqCst);
        self.skipped.fetch_add(millis, Ordering::SeqCst);
        tokio::task::yield_now().await;
    }
}

/// The clients of the storm behind one name, with a bill of their own.
struct Stormy {
    clients: Arc<Clients>,
    asked: AtomicU64,
    billed: Mutex<Usd>,
}

fn price() -> Price {
    Price {
        input: Usd::from_dollars(1.0).unwrap(),
        cached: None,
        cache_written: None,
        output: Usd::from_dollars(10.0).unwrap(),
        long: None,
    }
}

/// What a server can have counted for so small a request and answer.
fn fitting(usage: Usage, request: &Request) -> Usage {
    Usage {
        input: usage.input.min(request.bytes() / 8),
        output: usage.output.min(u64::from(request.output_tokens_max)),
        is_estimated: usage.is_estimated,
        ..Usage::default()
    }
}

fn case_of(model: &str) -> Case {
    let number = model.rsplit_once("case-").expect("it names a case").1;
    Case::new(number.parse().expect("a case has a number"))
}

#[async_trait]
impl Provider for Stormy {
    async fn ask(
        &self,
        request: &Request,
        deltas: &mut dyn DeltaSink,
        cancel: &CancellationToken,
    ) -> Result<Response, ModelError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut listen = |delta: Delta| {
            deltas.take(match delta {
                Delta::Used { usage, is_all } => Delta::Used {
                    usage: fitting(usage, request),
                    is_all,
                },
                other => other,
            });
        };
        let client = self.clients.of(&case_of(&request.model));
        let mut response = client.ask(request, &mut listen, cancel).await?;
        response.usage = fitting(response.usage, request);
        let mut billed = self.billed.lock().unwrap();
        *billed = *billed + price().cost(&response.usage);
        Ok(response)
    }

    fn price(&self, _: &str) -> Option<Price> {
        Some(price())
    }
}

/// How often each thing worth seeing was seen: no vacuous passes.
#[derive(Default)]
struct Seen(Mutex<BTreeMap<&'static str, u64>>);

impl Seen {
    fn add(&self, what: &'static str) {
        *self.0.lock().unwrap().entry(what).or_default() += 1;
    }
}

struct World {
    gate: Gate,
    clock: Arc<Skipping>,
    budgets: Vec<Budget>,
    settled: Mutex<Spend>,
    seen: Seen,
}

/// The model that asks for a case, at the provider that speaks its protocol.
fn model(seed: u64) -> String {
    let case = Case::new(seed);
    format!("{:?}/{}", case.wire, case.model()).to_lowercase()
}

fn budget(nth: u64) -> Budget {
    let limits = Limits {
        // Most are enough for everything, some for little.
        usd: Usd::from_dollars(if nth.is_multiple_of(10) { 0.05 } else { 20.0 }),
        ..Limits::default()
    };
    Budget::new(format!("session {nth}"), limits)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_storm_gets_past_the_gates_deadlines_and_budgets_nor_mixes_two_answers() {
    let _alone = alone();
    let storm = Storm::start().await;
    let stormy = Arc::new(Stormy {
        clients: Arc::new(Clients::new(&storm)),
        asked: AtomicU64::new(0),
        billed: Mutex::default(),
    });
    let names = Wire::ALL.map(|wire| format!("{wire:?}").to_lowercase());
    let providers = names.into_iter().fold(Providers::new(), |all, name| {
        all.with(name, stormy.clone() as Arc<dyn Provider>)
    });
    let clock = Arc::new(Skipping::default());
    let chance = Arc::new(SeededChance::new(13));
    let gate = Gate::new(providers, Catalogue::built_in(), clock.clone(), chance);
    let world = Arc::new(World {
        gate: gate.with_slots(Slots {
            per_provider: 12,
            in_all: 40,
        }),
        clock,
        budgets: (0..CASES / TO_A_BUDGET).map(budget).collect(),
        settled: Mutex::default(),
        seen: Seen::default(),
    });
    let wrong: Vec<String> = futures::stream::iter(0..CASES)
        .map(|seed| {
            let world = world.clone();
            async move {
                let question = tokio::spawn(async move { world.question(seed).await });
                let ended = question
                    .await
                    .unwrap_or_else(|panic| Err(panic.to_string()));
                ended.err().map(|what| format!("{seed}: {what}"))
            }
        })
        .buffer_unordered(CONCURRENT)
        .filter_map(|wrong| async { wrong })
        .collect()
        .await;
    let shown = &wrong[..wrong.len().min(20)];
    assert!(wrong.is_empty(), "{} wrong: {shown:#?}", wrong.len());

    let mut spent = Spend::default();
    for budget in &world.budgets {
        let (own, limits) = (budget.spent(), budget.limits());
        assert!(Some(own.usd) <= limits.usd, "{budget:?}");
        assert_eq!(budget.held(), Spend::default(), "{budget:?}");
        spent = spent + own;
    }
    assert_eq!(spent, *world.settled.lock().unwrap());
    let billed = *stormy.billed.lock().unwrap();
    assert!(
        billed <= spent.usd,
        "{billed} billed, {} counted",
        spent.usd
    );
    let longest = world.clock.longest.load(Ordering::SeqCst).unsigned_abs();
    assert!(Duration::from_millis(longest) <= WAIT_MAX, "{longest} ms");
    assert_eq!(world.gate.waiting(), 0);

    let seen = world.seen.0.lock().unwrap();
    let asked = stormy.asked.load(Ordering::SeqCst);
    eprintln!("{seen:?}, {asked} upstream calls");
    assert!(asked >= CASES, "only {asked} faulty answers came");
    let expected = [
        "answered", "fallback", "retried", "broken", "rest", "budget", "given up",
    ];
    for what in expected {
        let times = seen.get(what).copied().unwrap_or(0);
        assert!(times >= 20, "`{what}` was seen {times} times only");
    }
}

impl World {
    /// One question, asked as a run asks it: each attempt that may cost something has a
    /// reservation of its own, and providers that are away are asked again when they
    /// may be back.
    async fn question(&self, seed: u64) -> Result<(), String> {
        let budget = &self.budgets[usize::try_from(seed / TO_A_BUDGET).unwrap()];
        let request = request(model(seed));
        let fallbacks = [model(seed + CASES)];
        let begun = Instant::now();
        let (mut course, mut rounds) = (None, 0);
        loop {
            let Ok(reservation) = self.gate.reserve(budget, &request, &fallbacks) else {
                self.seen.add("budget");
                return Ok(());
            };
            let asked = self.ask(seed, &request, &fallbacks, course.take());
            let asked = tokio::time::timeout(DEADLINE, asked).await;
            let (asked, heard) = asked.map_err(|_| "waited past the deadline".to_owned())?;
            if begun.elapsed() > DEADLINE {
                return Err("waited past the deadline".to_owned());
            }
            let spend = match &asked {
                Ok(answered) => answered.spend(),
                Err(failed) => failed
                    .broken
                    .as_ref()
                    .map(|b| b.spend())
                    .unwrap_or_default(),
            };
            let reserved = reservation.amount();
            if spend.usd > reserved.usd || spend.tokens > reserved.tokens {
                return Err(format!("{spend:?} beyond {reserved:?}"));
            }
            {
                let mut settled = self.settled.lock().unwrap();
                *settled = *settled + spend;
            }
            reservation.settle(spend);
            let failed = match asked {
                Ok(answered) => return self.check(&answered, &heard, seed),
                Err(failed) => failed,
            };
            if format!("{failed:?}").contains(STORM_KEY) {
                return Err("the key is shown".to_owned());
            }
            if failed.broken.is_some() {
                self.seen.add("broken");
            }
            match (failed.go_on, failed.again_at) {
                (Some(next), _) => course = Some(next),
                (None, Some(until)) if rounds < ROUNDS => {
                    rounds += 1;
                    let left = until.millis_since(self.clock.now()).max(0).unsigned_abs();
                    // It is the run that waits here, and it may for minutes.
                    let skip = Duration::from_millis(left.min(60_000));
                    self.clock.sleep(skip).await;
                }
                (None, _) => {
                    self.seen.add("given up");
                    return Ok(());
                }
            }
        }
    }

    /// Asks once; returns the words that were heard, too.
    async fn ask(
        &self,
        seed: u64,
        request: &Request,
        fallbacks: &[String],
        course: Option<Course>,
    ) -> (Result<Answered, Failed>, String) {
        let ask = Ask {
            urgency: Urgency {
                awaited: seed.is_multiple_of(10),
                ..Urgency::default()
            },
            fallbacks,
            is_capped: true,
            course,
            ..Ask::from(request)
        };
        let mut heard = String::new();
        let mut deltas = |delta: Delta| {
            if let Delta::Text(text) = delta {
                heard.push_str(&text);
            }
        };
        let notice = |notice: Notice| {
            if notice.text.contains("is given a rest") {
                self.seen.add("rest");
            }
        };
        let cancel = CancellationToken::new();
        let asked = self.gate.ask(ask, &mut deltas, &notice, &cancel).await;
        (asked, heard)
    }

    /// Whether an answer is one model's, whole, and what was heard of it.
    fn check(&self, answered: &Answered, heard: &str, seed: u64) -> Result<(), String> {
        self.seen.add("answered");
        if answered.attempts > 1 {
            self.seen.add("retried");
        }
        let model = &answered.response.model;
        let is_fallback = answered.because.is_some();
        let meant = if is_fallback { seed + CASES } else { seed };
        if is_fallback {
            self.seen.add("fallback");
        }
        if !model.ends_with(&format!("-{meant}")) {
            return Err(format!(
                "{model} answered instead of {}",
                self::model(meant)
            ));
        }
        let response = &answered.response;
        if heard != response.text() {
            return Err(format!("heard {heard:?}, got {:?}", response.text()));
        }
        Case::new(meant).verdict(&Ok(response.clone()))
    }
}

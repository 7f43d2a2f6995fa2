//! Several processes, one allowance.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use selvedge_ledger::{SqliteLedger, SqliteOptions, StreamId};

use super::*;
use crate::money::Usd;
use crate::shared::Fold;

const NOON: Time = Time(1_794_916_800_000);
const DAY: i64 = 24 * 3600 * 1000;

/// A clock that stands still until it is set.
#[derive(Clone)]
struct Dial(Arc<AtomicI64>);

#[async_trait]
impl Clock for Dial {
    fn now(&self) -> Time {
        Time(self.0.load(Ordering::Relaxed))
    }

    async fn sleep(&self, _: Duration) {}
}

struct Machine {
    folder: tempfile::TempDir,
    dial: Dial,
    rules: Vec<Rule>,
}

impl Machine {
    fn new(rules: Vec<Rule>) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            dial: Dial(Arc::new(AtomicI64::new(NOON.0))),
            rules,
        }
    }

    /// A connection of its own.
    fn ledger(&self) -> Arc<SqliteLedger> {
        let options = SqliteOptions {
            sync: false,
            ..SqliteOptions::new(self.folder.path().join("ledger.db"))
        };
        Arc::new(SqliteLedger::open(&options).unwrap())
    }

    /// A process: its own connection, its own memory.
    fn process(&self) -> Ceilings {
        let ledger = self.ledger();
        let clock = Arc::new(self.dial.clone());
        Ceilings::new(ledger, clock, TimeZone::UTC, self.rules.clone()).unwrap()
    }

    fn pass(&self, millis: i64) {
        self.dial.0.fetch_add(millis, Ordering::Relaxed);
    }
}

fn rule(provider: Option<&str>, period: Period, usd: f64, strength: Strength) -> Rule {
    Rule {
        provider: provider.map(str::to_owned),
        period,
        allowance: Allowance {
            usd: Usd::from_dollars(usd),
            ..Allowance::default()
        },
        strength,
    }
}

fn dollars(usd: f64) -> Spend {
    Spend::one(100, Usd::from_dollars(usd))
}

fn call(name: &str) -> CallName {
    CallName {
        call: name.into(),
        attempt: 1,
    }
}

fn on(provider: &str) -> [String; 1] {
    [provider.to_owned()]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_fill_a_ceiling_to_the_edge_and_not_beyond() {
    let machine = Machine::new(vec![rule(None, Period::Day, 1.0, Strength::Hard)]);
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..4 {
        let process = Arc::new(machine.process());
        for m in 0..16 {
            let process = process.clone();
            tasks.spawn(async move {
                let mut admitted = 0;
                for k in 0..4 {
                    let name = call(&format!("{n} {m} {k}"));
                    let held = process.hold(&name, &on("p"), dollars(0.01)).await;
                    match held {
                        Ok(_) => {}
                        Err(CeilingError::Reached { .. }) => continue,
                        Err(other) => panic!("{other}"),
                    }
                    admitted += 1;
                    process.settle(&name, "p", dollars(0.01)).await.unwrap();
                }
                admitted
            });
        }
    }
    let admitted: u32 = tasks.join_all().await.into_iter().sum();
    assert_eq!(admitted, 100, "of 256 calls at a cent each");
}

#[tokio::test]
async fn a_crash_leaves_its_reservation_held_until_the_call_is_made_again() {
    let machine = Machine::new(vec![rule(None, Period::Day, 1.0, Strength::Hard)]);
    let first = machine.process();
    first
        .hold(&call("s m0"), &on("p"), dollars(0.6))
        .await
        .unwrap();
    drop(first);
    let second = machine.process();
    let other = second.hold(&call("t m0"), &on("p"), dollars(0.6)).await;
    let Err(CeilingError::Reached { error, until }) = other else {
        panic!("it fits: {other:?}");
    };
    assert!(error.would_fit_later());
    assert_eq!(until, Period::Day.span(NOON, &TimeZone::UTC).1);
    // Made again, what the first attempt cost is not known: it counts in full.
    let again = CallName {
        attempt: 2,
        ..call("s m0")
    };
    let held = second.hold(&again, &on("p"), dollars(0.3)).await;
    assert!(held.is_ok());
    second.settle(&again, "p", dollars(0.1)).await.unwrap();
    let too_much = second.hold(&call("t m0"), &on("p"), dollars(0.4)).await;
    let Err(CeilingError::Reached { error, .. }) = too_much else {
        panic!("it fits: {too_much:?}");
    };
    assert_eq!(
        error.to_string(),
        "budget `all sessions: all providers, per day` allows $1.00: $0.70 spent, $0.00 held by \
         calls under way, and this call may take $0.40"
    );
    assert!(
        second
            .hold(&call("t m0"), &on("p"), dollars(0.3))
            .await
            .is_ok(),
        "at exactly the limit it fits"
    );
}

#[tokio::test]
async fn a_providers_ceiling_is_its_own_and_is_lifted_with_the_next_period() {
    let machine = Machine::new(vec![rule(Some("a"), Period::Day, 1.0, Strength::Hard)]);
    let process = machine.process();
    let full = call("s m0");
    process.hold(&full, &on("a"), dollars(1.0)).await.unwrap();
    process.settle(&full, "a", dollars(1.0)).await.unwrap();
    let more = |name| (call(name), dollars(0.1));
    let (name, amount) = more("s m1");
    assert!(process.hold(&name, &on("a"), amount).await.is_err());
    assert!(process.hold(&name, &on("b"), amount).await.is_ok());
    // A call that either may answer is held against both.
    let (name, amount) = more("s m2");
    let both = ["b".to_owned(), "a".to_owned()];
    assert!(process.hold(&name, &both, amount).await.is_err());
    machine.pass(DAY);
    assert!(process.hold(&name, &on("a"), amount).await.is_ok());
}

#[tokio::test]
async fn a_soft_limit_warns_every_process_once_and_lets_everything_pass() {
    let soft = Strength::Soft { warn_at: 0.8 };
    let machine = Machine::new(vec![rule(Some("p"), Period::Week, 1.0, soft)]);
    let (one, two) = (machine.process(), machine.process());
    let spend = async |process: &Ceilings, name: &str, usd: f64| {
        let name = call(name);
        let mut told = process.hold(&name, &on("p"), dollars(usd)).await.unwrap();
        told.extend(process.settle(&name, "p", dollars(usd)).await.unwrap());
        told
    };
    assert!(spend(&one, "a", 0.5).await.is_empty());
    assert!(spend(&two, "b", 0.2).await.is_empty());
    let near = "80% of the soft limit of p, per week is spent";
    assert_eq!(spend(&one, "c", 0.1).await, [near]);
    assert!(spend(&one, "d", 0.01).await.is_empty());
    assert_eq!(
        spend(&two, "e", 0.01).await,
        ["81% of the soft limit of p, per week is spent"],
        "the other is told when it looks"
    );
    // A process that begins later is told of nothing old.
    let three = machine.process();
    assert!(spend(&three, "f", 0.01).await.is_empty());
    assert_eq!(
        spend(&three, "g", 0.5).await,
        ["the soft limit of p, per week is spent (133%)"]
    );
    machine.pass(7 * DAY);
    assert!(spend(&three, "h", 0.5).await.is_empty());
    assert_eq!(
        spend(&three, "i", 0.3).await,
        [near],
        "a new week warns anew"
    );
}

#[tokio::test]
async fn what_was_spent_before_a_limit_was_set_counts() {
    let machine = Machine::new(vec![rule(None, Period::Day, 1.0, Strength::Hard)]);
    let process = machine.process();
    let since = process.past_wanted().await.unwrap().unwrap();
    assert_eq!(since, Period::Day.span(NOON, &TimeZone::UTC).0);
    let past = Past {
        provider: "p".into(),
        time: NOON,
        spend: dollars(0.95),
    };
    process.begin(std::slice::from_ref(&past)).await.unwrap();
    assert_eq!(process.past_wanted().await.unwrap(), None);
    machine.process().begin(&[past]).await.unwrap();
    let held = process.hold(&call("s"), &on("p"), dollars(0.06)).await;
    assert!(held.is_err(), "and counts once");
    let held = process.hold(&call("s"), &on("p"), dollars(0.05)).await;
    assert!(held.is_ok());
}

#[tokio::test]
async fn zero_is_no_limit_and_a_price_that_is_not_known_is_refused_where_money_is_limited() {
    let machine = Machine::new(vec![rule(None, Period::Day, 1.0, Strength::Hard)]);
    let unpriced = machine
        .process()
        .hold(&call("s"), &on("p"), Spend::one(100, None))
        .await;
    assert!(unpriced.unwrap_err().to_string().contains("is not known"));
    let ledger = machine.ledger();
    let none = rule(None, Period::Day, 0.0, Strength::Hard);
    let clock = Arc::new(machine.dial.clone());
    assert!(Ceilings::new(ledger, clock, TimeZone::UTC, vec![none]).is_none());
}

#[tokio::test]
async fn the_account_survives_by_snapshot_and_by_fold() {
    let machine = Machine::new(vec![rule(None, Period::Month, 100.0, Strength::Hard)]);
    let process = machine.process();
    for n in 0..600 {
        let name = call(&format!("s m{n}"));
        process.hold(&name, &on("p"), dollars(0.01)).await.unwrap();
        process.settle(&name, "p", dollars(0.01)).await.unwrap();
    }
    let other = machine.process();
    let stream = StreamId::new(Account::STREAM);
    let kept = machine.ledger().snapshot(&stream).await.unwrap();
    assert!(kept.is_some_and(|kept| kept.seq >= 1000));
    let spent = |account: &Account, _| account.spent(&machine.rules[0], Time(0));
    let spent = other.account.with(spent).await.unwrap();
    assert_eq!((spent.usd, spent.calls), (dollars(6.0).usd, 600));
}

#[tokio::test]
async fn only_a_hard_limit_of_amounts_that_concerns_a_call_bounds_its_answer() {
    let bounds = |rule| Machine::new(vec![rule]).process().bound(&on("p"));
    let hard = |provider| rule(provider, Period::Day, 1.0, Strength::Hard);
    assert!(bounds(hard(None)) && bounds(hard(Some("p"))));
    assert!(!bounds(hard(Some("q"))));
    assert!(!bounds(rule(
        None,
        Period::Day,
        1.0,
        Strength::Soft { warn_at: 0.8 }
    )));
    let mut requests = hard(None);
    requests.allowance = Allowance {
        requests: Some(3),
        ..Allowance::default()
    };
    assert!(!bounds(requests));
}

//! The pace: of one process, and of several.

use std::sync::atomic::{AtomicI64, Ordering};

use selvedge_ledger::{SqliteLedger, SqliteOptions, StreamId};

use super::*;

fn limited(retry_after: Option<u64>) -> Result<(), ModelError> {
    Err(ModelError::RateLimited {
        provider: "p".into(),
        what: "slow down".into(),
        retry_after: retry_after.map(Duration::from_secs),
    })
}

fn down() -> Result<(), ModelError> {
    Err(ModelError::Transient {
        provider: "p".into(),
        what: "reset".into(),
    })
}

fn refused() -> Result<(), ModelError> {
    Err(ModelError::Permanent {
        provider: "p".into(),
        what: "no".into(),
    })
}

fn p() -> Account {
    Account::new("p", None)
}

fn alone() -> Pacing {
    Pacing::new(BreakerOptions::default())
}

async fn permit(pacing: &Pacing, account: &Account, now: Time) -> Permit {
    match pacing.go(account, now).await {
        Go::Now(permit) => permit,
        other => panic!("{other:?} at {now:?}"),
    }
}

/// A call that is let through and ends like this. True if the provider is down then.
async fn call(pacing: &Pacing, account: &Account, now: Time, end: Result<(), ModelError>) -> bool {
    let permit = permit(pacing, account, now).await;
    pacing.note(account, permit, &end, now, 0).await
}

#[tokio::test]
async fn a_rate_limit_holds_everybody_and_nobody_else() {
    let pacing = alone();
    call(&pacing, &p(), Time(0), limited(Some(7))).await;
    assert_eq!(
        pacing.go(&p(), Time(6_999)).await,
        Go::Patience(Time(7_000))
    );
    permit(&pacing, &Account::new("q", None), Time(0)).await;
    permit(&pacing, &p(), Time(7_000)).await;
}

#[tokio::test]
async fn waits_grow_until_an_answer_comes_and_have_an_end() {
    let pacing = alone();
    let mut now = Time(0);
    let mut waits = Vec::new();
    for _ in 0..40 {
        call(&pacing, &p(), now, limited(None)).await;
        let Go::Patience(until) = pacing.go(&p(), now).await else {
            panic!("no patience");
        };
        waits.push(until.millis_since(now));
        now = until;
    }
    assert_eq!(waits[..4], [1_000, 2_000, 4_000, 8_000]);
    assert_eq!(waits[39], 300_000);
    call(&pacing, &p(), now, Ok(())).await;
    call(&pacing, &p(), now, limited(None)).await;
    let until = now.plus_millis(1_000);
    assert_eq!(pacing.go(&p(), now).await, Go::Patience(until));
}

#[tokio::test]
async fn a_clock_that_was_set_back_holds_nobody_for_days() {
    let pacing = alone();
    let day = Time(86_400_000);
    call(&pacing, &p(), day, limited(Some(7))).await;
    permit(&pacing, &p(), Time(0)).await;
    for _ in 0..5 {
        call(&pacing, &p(), day.plus_millis(7_000), down()).await;
    }
    assert!(matches!(
        pacing.go(&p(), day.plus_millis(7_000)).await,
        Go::Down(_)
    ));
    permit(&pacing, &p(), Time(0)).await;
}

#[tokio::test]
async fn a_wait_of_centuries_is_cut() {
    let pacing = alone();
    call(&pacing, &p(), Time(0), limited(Some(u64::MAX / 2))).await;
    assert_eq!(pacing.go(&p(), Time(0)).await, Go::Patience(Time(300_000)));
}

#[tokio::test]
async fn refusals_are_not_outages() {
    let pacing = alone();
    for _ in 0..20 {
        assert!(!call(&pacing, &p(), Time(0), refused()).await);
    }
    for n in 0..5 {
        assert_eq!(call(&pacing, &p(), Time(0), down()).await, n == 4);
    }
    assert!(matches!(pacing.go(&p(), Time(0)).await, Go::Down(_)));
}

/// Processes of one machine: one file, a connection each.
struct Machine {
    folder: tempfile::TempDir,
    dial: Dial,
}

/// A clock that stands still until it is set.
#[derive(Clone, Default)]
struct Dial(Arc<AtomicI64>);

#[async_trait::async_trait]
impl Clock for Dial {
    fn now(&self) -> Time {
        Time(self.0.load(Ordering::Relaxed))
    }

    async fn sleep(&self, _: Duration) {}
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let dial = Dial::default();
        Self { folder, dial }
    }

    fn ledger(&self) -> Arc<dyn Ledger> {
        let path = self.folder.path().join("ledger.db");
        let options = SqliteOptions {
            sync: false,
            ..SqliteOptions::new(path)
        };
        Arc::new(SqliteLedger::open(&options).unwrap())
    }

    fn process(&self) -> Pacing {
        alone().shared(self.ledger(), Arc::new(self.dial.clone()))
    }

    fn at(&self, seconds: i64) -> Time {
        self.dial.0.store(seconds * 1000, Ordering::Relaxed);
        self.dial.now()
    }

    async fn written(&self) -> usize {
        let stream = StreamId::new(Paces::STREAM);
        match self.ledger().read(&stream, 0).await {
            Ok(events) => events.iter().filter(|e| &*e.kind == "PaceChanged").count(),
            Err(_) => 0,
        }
    }
}

fn key(place: &str) -> Account {
    Account::new("p", Some(place))
}

#[tokio::test]
async fn what_one_process_is_told_to_wait_for_all_wait_for() {
    let machine = Machine::new();
    let (one, two) = (machine.process(), machine.process());
    permit(&two, &key("k"), machine.at(0)).await;
    call(&one, &key("k"), machine.at(0), limited(Some(7))).await;
    let later = machine.at(1);
    assert_eq!(two.go(&key("k"), later).await, Go::Patience(Time(7_000)));
    // A process that comes later, after the first was killed, knows as well.
    drop(one);
    let three = machine.process();
    assert_eq!(three.go(&key("k"), later).await, Go::Patience(Time(7_000)));
    // Another key has limits of its own.
    permit(&three, &key("other"), later).await;
    // The waits grow over all of them.
    call(&two, &key("k"), machine.at(7), limited(None)).await;
    let until = three.go(&key("k"), machine.at(8)).await;
    assert_eq!(
        until,
        Go::Patience(Time(9_000)),
        "the second wait is twice as long"
    );
}

#[tokio::test]
async fn failures_of_all_processes_open_it_and_one_of_them_probes() {
    let machine = Machine::new();
    let processes = [machine.process(), machine.process(), machine.process()];
    for n in 0..5 {
        let opened = call(&processes[n % 3], &key("k"), machine.at(n as i64), down()).await;
        assert_eq!(opened, n == 4, "two or less of each are enough together");
    }
    for process in &processes {
        let go = process.go(&key("k"), machine.at(5)).await;
        assert_eq!(go, Go::Down(Time(34_000)));
    }
    let now = machine.at(34);
    let shared = key("k");
    let go = processes.iter().map(|process| process.go(&shared, now));
    let go = futures::future::join_all(go).await;
    let probes = go.iter().filter(|go| matches!(go, Go::Now(_)));
    assert_eq!(probes.count(), 1, "{go:?}");
    // Whoever it was is killed: another probes after a while, and three answers,
    // whoever gets them, close it.
    for (process, seconds) in processes.iter().zip(70..) {
        call(process, &key("k"), machine.at(seconds), Ok(())).await;
    }
    for process in &processes {
        permit(process, &key("k"), machine.at(80)).await;
        permit(process, &key("k"), machine.at(80)).await;
    }
}

#[tokio::test]
async fn nothing_is_written_while_all_is_well() {
    let machine = Machine::new();
    let (one, two) = (machine.process(), machine.process());
    for n in 0..50 {
        call(&one, &key("k"), machine.at(n), Ok(())).await;
        call(&two, &key("k"), machine.at(n), refused()).await;
    }
    assert_eq!(machine.written().await, 0);
    call(&one, &key("k"), machine.at(51), down()).await;
    for n in 52..60 {
        call(&two, &key("k"), machine.at(n), Ok(())).await;
    }
    assert_eq!(machine.written().await, 2, "a failure, and that it is over");
}

#[tokio::test]
async fn what_is_nobody_elses_account_is_not_shared() {
    let machine = Machine::new();
    let (one, two) = (machine.process(), machine.process());
    call(&one, &p(), machine.at(0), limited(Some(7))).await;
    permit(&two, &p(), machine.at(1)).await;
}

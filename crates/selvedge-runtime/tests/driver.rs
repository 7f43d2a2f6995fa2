//! The driver with a machine that is a list of effects, and calls that end when
//! the test says so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use selvedge_ledger::{
    Event, Ledger, LedgerError, Payload, SqliteLedger, SqliteOptions, StreamId, Time,
};
use selvedge_runtime::{
    Act, Call, ChildFinished, ChildSpec, DriveError, Driver, Due, Effect, EffectId, Ending,
    Finished, Hold, Machine, Nature, NoWatcher, Patience, Performed, Performer, Probe, Question,
    QuestionAnswered, Rest, RunStarted, Scene, SessionState, Signal, Status, SystemClock,
    Unfinished, session_state,
};
use selvedge_testkit::Watch;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// What a toy does: everything at once.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Plan {
    reads: Vec<String>,
    changes: Vec<String>,
    asks: Vec<String>,
    children: BTreeMap<String, Plan>,
    /// Timers that end in another century.
    waits: Vec<String>,
    /// Children of a kind that does not exist.
    strangers: Vec<String>,
    /// Ends when this is done, whatever else is under way.
    ends_on: Option<String>,
}

/// A machine that wants everything of its plan until it is done.
#[derive(Default)]
struct Toy {
    plan: Plan,
    done: BTreeSet<String>,
}

#[derive(Clone, Debug)]
struct ToyCall {
    name: String,
    nature: Nature,
}

impl Call for ToyCall {
    type Outcome = String;

    fn noun(&self) -> &'static str {
        "ToyCall"
    }

    fn describe(&self) -> Value {
        json!(self.name)
    }

    fn nature(&self) -> Nature {
        self.nature
    }
}

impl Machine for Toy {
    type Call = ToyCall;

    fn apply(&mut self, event: &Event) -> Result<(), LedgerError> {
        let effect = match &*event.kind {
            "RunStarted" => {
                self.plan = event.decode::<RunStarted<Plan>>()?.spec;
                return Ok(());
            }
            "ToyCallFinished" => event.decode::<Finished<String>>()?.effect,
            "ToyCallInDoubt" => event.decode::<Unfinished>()?.effect,
            "QuestionAnswered" => event.decode::<QuestionAnswered>()?.effect,
            "ChildFinished" => event.decode::<ChildFinished>()?.effect,
            _ => return Ok(()),
        };
        self.done.insert(effect.as_str().to_owned());
        Ok(())
    }

    fn due(&self) -> Due<ToyCall> {
        let plan = &self.plan;
        let call = |nature| {
            move |name: &String| {
                let name = name.clone();
                (name.clone(), Act::Call(ToyCall { name, nature }))
            }
        };
        let ask = |name: &String| {
            let question = Question {
                text: name.clone(),
                options: Vec::new(),
                approval: None,
            };
            (name.clone(), Act::Ask(question))
        };
        let child = |kind: &str, name: &String, plan: &Plan| {
            let (kind, spec) = (kind.to_owned(), json!(plan));
            (name.clone(), Act::Child(ChildSpec { kind, spec }))
        };
        let nothing = Plan::default();
        let all = (plan.reads.iter().map(call(Nature::Reads)))
            .chain(plan.changes.iter().map(call(Nature::Changes)))
            .chain(plan.asks.iter().map(ask))
            .chain(plan.children.iter().map(|(n, p)| child("toy", n, p)))
            .chain((plan.waits.iter()).map(|n| (n.clone(), Act::Wait(Time(4_102_444_800_000)))))
            .chain((plan.strangers.iter()).map(|n| child("stranger", n, &nothing)));
        let effects: Vec<Effect<ToyCall>> = all
            .filter(|(name, _)| !self.done.contains(name))
            .map(|(name, act)| Effect {
                id: EffectId::new(name),
                act,
            })
            .collect();
        let is_done = |name: &String| self.done.contains(name);
        if effects.is_empty() || plan.ends_on.as_ref().is_some_and(is_done) {
            return Due::Ended(Ending {
                status: Status::Done,
                result: Payload::new("done"),
                data: None,
            });
        }
        Due::Effects(effects)
    }
}

/// Calls end at once, except those named `slow…`: they wait until they are let
/// go or told to stop. One named `answers` answers the question `q` of its run.
struct Hands {
    ledger: Arc<dyn Ledger>,
    go: Notify,
    running: Mutex<BTreeSet<String>>,
    begun: Mutex<Vec<String>>,
}

#[async_trait]
impl Performer<ToyCall> for Hands {
    async fn prepare(&self, _: &Scene, _: &ToyCall) -> Result<Value, Hold> {
        Ok(Value::Null)
    }

    async fn perform(&self, scene: Scene, call: ToyCall, _: Value) -> Performed<String> {
        self.running.lock().unwrap().insert(call.name.clone());
        self.begun.lock().unwrap().push(call.name.clone());
        if call.name == "answers" {
            let (ledger, id) = (&*self.ledger, "answers".into());
            let letter = answer("q");
            let sent = letter.send(ledger, &SystemClock, &scene.stream, "test", id);
            sent.await.unwrap();
        }
        let is_stopped = call.name.starts_with("slow")
            && tokio::select! {
                () = self.go.notified() => false,
                () = scene.cancel.cancelled() => {
                    // Stopping takes a moment.
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    true
                }
            };
        self.running.lock().unwrap().remove(&call.name);
        match call.nature {
            Nature::Changes if is_stopped => Performed::Finished("stopped half way".into()),
            _ if is_stopped => Performed::Interrupted(None),
            _ => Performed::Finished("ok".into()),
        }
    }

    async fn probe(&self, _: &Scene, _: &ToyCall, _: &Value) -> Probe<String> {
        Probe::Unknown
    }
}

struct World {
    /// Before the folder: it is looked through before it goes.
    _watch: Watch,
    _folder: tempfile::TempDir,
    ledger: Arc<dyn Ledger>,
    hands: Arc<Hands>,
    driver: Driver<ToyCall>,
}

fn root() -> StreamId {
    StreamId::new("s")
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|n| (*n).to_owned()).collect()
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = SqliteOptions::new(folder.path().join("ledger.db"));
        let ledger: Arc<dyn Ledger> = Arc::new(SqliteLedger::open(&options).unwrap());
        let hands = Arc::new(Hands {
            ledger: ledger.clone(),
            go: Notify::default(),
            running: Mutex::default(),
            begun: Mutex::default(),
        });
        let driver = Driver {
            ledger: ledger.clone(),
            clock: Arc::new(SystemClock),
            performer: hands.clone(),
            machines: Arc::new(|kind: &str| {
                let toy = || Box::new(Toy::default()) as Box<dyn Machine<Call = ToyCall>>;
                (kind == "toy").then(toy)
            }),
            watcher: Arc::new(NoWatcher),
            patience: Patience::Return,
        };
        Self {
            _watch: Watch::over(folder.path()),
            _folder: folder,
            ledger,
            hands,
            driver,
        }
    }

    async fn with(plan: Plan) -> Self {
        let world = Self::new();
        world.start(&root(), None, plan).await;
        world
    }

    async fn start(&self, stream: &StreamId, parent: Option<&StreamId>, plan: Plan) {
        let started = self.driver.start(stream, parent, "toy", plan, None);
        started.await.unwrap();
    }

    async fn drive(&self) -> Result<Rest, DriveError> {
        self.drive_until(CancellationToken::new()).await
    }

    async fn drive_until(&self, cancel: CancellationToken) -> Result<Rest, DriveError> {
        let session = root();
        let driven = self.driver.drive(&session, None, cancel);
        tokio::time::timeout(Duration::from_secs(10), driven)
            .await
            .expect("a run does not hang")
    }

    async fn send(&self, to: &StreamId, signal: Signal) {
        let id = format!("{signal:?}");
        let sent = signal.send(&*self.ledger, &SystemClock, to, "test", id);
        sent.await.unwrap();
    }

    async fn kinds(&self, stream: &StreamId) -> Vec<String> {
        let events = self.ledger.read(stream, 0).await.unwrap_or_default();
        events.iter().map(|e| e.kind.to_string()).collect()
    }

    /// Waits until `stream` has an event of this kind.
    async fn until(&self, stream: &StreamId, kind: &str) {
        for _ in 0..500 {
            if self.kinds(stream).await.iter().any(|k| k == kind) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("{stream} never had {kind}: {:?}", self.kinds(stream).await);
    }

    fn assert_nothing_runs(&self) {
        let running = self.hands.running.lock().unwrap();
        assert!(running.is_empty(), "still running: {running:?}");
    }
}

/// A plan with one child of this plan.
fn parent_of(child: Plan) -> Plan {
    Plan {
        children: [("a".to_owned(), child)].into(),
        ..Plan::default()
    }
}

fn asking() -> Plan {
    Plan {
        asks: names(&["q"]),
        ..Plan::default()
    }
}

fn answer(effect: &str) -> Signal {
    Signal::Answer {
        effect: Some(EffectId::new(effect)),
        text: Payload::new("yes"),
        digest: None,
    }
}

fn pause() -> Signal {
    let reason = "lunch".into();
    Signal::Pause { reason }
}

#[tokio::test]
async fn a_child_that_rests_goes_on_when_it_is_answered_although_others_work() {
    let world = World::with(Plan {
        reads: names(&["slow"]),
        ..parent_of(asking())
    })
    .await;
    let child = root().child("a");
    let follow = async {
        world.until(&child, "QuestionAsked").await;
        // The child has come to rest before the answer arrives.
        tokio::time::sleep(Duration::from_millis(50)).await;
        world.send(&child, answer("q")).await;
        world.until(&root(), "ChildFinished").await;
        world.hands.go.notify_waiters();
    };
    let (rest, ()) = tokio::join!(world.drive(), follow);
    assert!(matches!(rest, Ok(Rest::Ended(_))), "{rest:?}");
}

#[tokio::test]
async fn a_child_that_is_paused_goes_on_with_its_parent_although_others_work() {
    let world = World::with(Plan {
        reads: names(&["slow"]),
        ..parent_of(asking())
    })
    .await;
    let child = root().child("a");
    world.send(&child, pause()).await;
    let follow = async {
        world.until(&child, "RunPaused").await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        world.send(&root(), Signal::Resume { reason: None }).await;
        world.until(&child, "QuestionAsked").await;
        world.hands.go.notify_waiters();
    };
    let (rest, ()) = tokio::join!(world.drive(), follow);
    assert!(matches!(rest, Ok(Rest::Waiting)), "{rest:?}");
}

#[tokio::test]
async fn a_machine_that_ends_stops_what_is_under_way_and_waits_for_it() {
    let world = World::with(Plan {
        reads: names(&["quick", "slow-read"]),
        changes: names(&["slow-change"]),
        waits: names(&["timer"]),
        ends_on: Some("quick".into()),
        ..parent_of(Plan {
            changes: names(&["slow-child"]),
            ..Plan::default()
        })
    })
    .await;
    let rest = world.drive().await;
    assert!(matches!(rest, Ok(Rest::Ended(_))), "{rest:?}");
    world.assert_nothing_runs();
    let kinds = world.kinds(&root()).await;
    let count = |kind: &str| kinds.iter().filter(|k| *k == kind).count();
    assert_eq!(kinds.last().unwrap(), "RunFinished", "{kinds:?}");
    assert_eq!(count("ToyCallStarted"), 3);
    assert_eq!(count("ToyCallFinished") + count("ToyCallInterrupted"), 3);
    assert_eq!(count("ChildFinished"), 1);
}

#[tokio::test]
async fn a_run_that_cannot_go_on_stops_what_is_under_way_and_waits_for_it() {
    let world = World::with(Plan {
        changes: names(&["slow-change"]),
        strangers: names(&["x"]),
        ..parent_of(Plan {
            changes: names(&["slow-child"]),
            ..Plan::default()
        })
    })
    .await;
    let rest = world.drive().await;
    let is_stranger = matches!(rest, Err(DriveError::UnknownMachine { .. }));
    assert!(is_stranger, "{rest:?}");
    assert!(!world.hands.begun.lock().unwrap().is_empty());
    world.assert_nothing_runs();
}

#[tokio::test]
async fn a_cancelled_run_ends_its_children_that_rest() {
    let world = World::with(Plan {
        reads: names(&["slow"]),
        waits: names(&["timer"]),
        ..parent_of(parent_of(asking()))
    })
    .await;
    let below = root().child("a").child("a");
    let follow = async {
        world.until(&below, "QuestionAsked").await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        let reason = "enough".into();
        world.send(&root(), Signal::Cancel { reason }).await;
    };
    let (rest, ()) = tokio::join!(world.drive(), follow);
    let ended = rest.unwrap();
    assert!(matches!(&ended, Rest::Ended(e) if e.status == Status::Cancelled));
    world.assert_nothing_runs();
    for stream in [below, root().child("a"), root()] {
        let kinds = world.kinds(&stream).await;
        assert_eq!(kinds.last().unwrap(), "RunFinished", "{stream}: {kinds:?}");
    }
}

#[tokio::test]
async fn an_interrupted_run_goes_on_with_its_children_after_a_resume() {
    let world = World::with(parent_of(Plan {
        reads: names(&["slow"]),
        waits: names(&["timer"]),
        ends_on: Some("slow".into()),
        ..Plan::default()
    }))
    .await;
    let cancel = CancellationToken::new();
    let child = root().child("a");
    let follow = async {
        world.until(&child, "ToyCallStarted").await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        cancel.cancel();
    };
    let (rest, ()) = tokio::join!(world.drive_until(cancel.clone()), follow);
    assert_eq!(rest.unwrap(), Rest::Interrupted);
    world.assert_nothing_runs();
    let rest = world.drive().await.unwrap();
    assert!(matches!(rest, Rest::Paused(_)), "{rest:?}");
    world.send(&root(), Signal::Resume { reason: None }).await;
    let follow = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        world.hands.go.notify_waiters();
    };
    let (rest, ()) = tokio::join!(world.drive(), follow);
    assert!(matches!(rest, Ok(Rest::Ended(_))), "{rest:?}");
    let started = world.kinds(&child).await;
    let started = started.iter().filter(|k| *k == "ToyCallStarted").count();
    assert_eq!(started, 2);
}

#[tokio::test]
async fn the_state_of_a_session_is_that_of_its_own_stream() {
    // As in a fork: the child's stream is the older one.
    let world = World::new();
    let child = root().child("a");
    world.start(&child, Some(&root()), asking()).await;
    let plan = Plan {
        asks: names(&["own"]),
        ..parent_of(asking())
    };
    world.start(&root(), None, plan).await;
    assert_eq!(world.drive().await.unwrap(), Rest::Waiting);
    let reason = "not needed".into();
    world.send(&child, Signal::Cancel { reason }).await;
    assert_eq!(world.drive().await.unwrap(), Rest::Waiting);
    let state = session_state(&*world.ledger, &SystemClock, &root()).await;
    match state.unwrap() {
        SessionState::Waiting { stream, effect, .. } => {
            assert_eq!((stream, effect.as_str()), (root(), "own"));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn two_calls_in_doubt_are_both_told() {
    let world = World::with(Plan {
        changes: names(&["slow-1", "slow-2"]),
        ..Plan::default()
    })
    .await;
    // The process dies while both are under way.
    let session = root();
    let driven = world.driver.drive(&session, None, CancellationToken::new());
    let died = tokio::time::timeout(Duration::from_millis(100), driven);
    assert!(died.await.is_err());
    let rest = world.drive().await;
    assert!(matches!(rest, Ok(Rest::Ended(_))), "{rest:?}");
    let kinds = world.kinds(&root()).await;
    let count = |kind: &str| kinds.iter().filter(|k| *k == kind).count();
    assert_eq!((count("ToyCallStarted"), count("ToyCallInDoubt")), (2, 2));
    assert_eq!(world.hands.begun.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_letter_that_arrives_just_before_a_run_rests_is_taken() {
    let world = World::with(Plan {
        reads: names(&["answers"]),
        ..asking()
    })
    .await;
    let rest = world.drive().await;
    assert!(matches!(rest, Ok(Rest::Ended(_))), "{rest:?}");
}

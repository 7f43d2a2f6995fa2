//! Building a world from a seed, crashing it, and going on until the run ends.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use selvedge_agent::{
    AGENT, AgentCall, AgentMachine, AgentPerformer, Approve, Limits, RunSpec, Terms,
};
use selvedge_ledger::{Ledger, LedgerError, Mode, Payload, SqliteLedger, SqliteOptions, StreamId};
use selvedge_model::{Catalogue, Gate, Providers, ToolDefinition};
use selvedge_runtime::{
    Clock, DriveError, Driver, Machine, NoWatcher, Patience, Rest, SeededChance, SessionState,
    Signal, SteerMode, session_state,
};
use selvedge_tool::{Policy, Role, Sandbox, Toolbox, World};
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::check::{Broken, Counts, Digest, check};
use super::clock::SimClock;
use super::dice::Dice;
use super::ledger::{Acknowledged, NotingLedger};
use super::model::SimModel;
use super::tools::{Bench, Effects};
use crate::disk::{
    CrashKind, CrashPlan, Fault, FaultEffect, FaultError, FaultSpan, Moment, OperationKind, SimDisk,
};

/// A process may be started this often before a run counts as stuck.
const LIVES_MAX: u32 = 60;
/// A life that lasts longer than this in virtual time is stuck.
const LIFE_MAX: Duration = Duration::from_secs(24 * 3600);

/// What happens in a world, apart from what the seed draws.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Everything random comes from it.
    pub seed: u64,
    /// Model calls of the run.
    pub turns: u32,
    /// What goes wrong.
    pub faults: Faults,
}

/// What goes wrong.
#[derive(Clone, Debug)]
pub enum Faults {
    /// Nothing.
    None,
    /// One crash at one disk operation.
    CrashAt(CrashPlan),
    /// Whatever the seed draws: a different subset of faults for each.
    Swarm,
}

/// What came of a world.
#[derive(Clone, Debug)]
pub struct Report {
    /// Hashes of all streams, for comparing two runs of one seed.
    pub heads: String,
    /// What must be equal however often the run was killed.
    pub story: BTreeMap<String, String>,
    /// Whether the run did what it was for.
    pub done: bool,
    /// What was seen.
    pub counts: Counts,
    /// The disk operations before and after each append of the first life.
    pub appends: Vec<(u64, u64)>,
    /// How often a process was started.
    pub lives: u32,
}

/// Runs a world to its end. An error names the seed and the broken invariant.
pub fn simulate(scenario: &Scenario) -> Result<Report, Broken> {
    Universe::new(scenario)
        .run()
        .map_err(|Broken(why)| Broken(format!("{scenario:?}: {why}")))
}

/// What survives a crash.
struct Universe<'a> {
    scenario: &'a Scenario,
    swarm: Swarm,
    dice: Dice,
    disk: Arc<SimDisk>,
    effects: Effects,
    notes: Arc<Mutex<Acknowledged>>,
    counts: Arc<Mutex<Counts>>,
    elapsed: i64,
    lives: u32,
    /// What the next crash takes away.
    crash: CrashKind,
    first_appends: Vec<(u64, u64)>,
}

/// Which faults a seed enables, in percent of occasions.
#[derive(Clone, Copy, Debug, Default)]
struct Swarm {
    kills: bool,
    disk_crashes: bool,
    disk_faults: bool,
    model_faults: u64,
    letters: bool,
    jumps: bool,
    lively: bool,
    budget: bool,
    small_context: bool,
}

impl Swarm {
    fn draw(scenario: &Scenario) -> Self {
        if !matches!(scenario.faults, Faults::Swarm) {
            return Self::default();
        }
        let dice = Dice::new(scenario.seed, "swarm");
        Self {
            kills: dice.percent(60),
            disk_crashes: dice.percent(60),
            disk_faults: dice.percent(30),
            model_faults: if dice.percent(40) {
                5 + dice.below(20)
            } else {
                0
            },
            letters: dice.percent(40),
            jumps: dice.percent(30),
            lively: dice.percent(70),
            budget: dice.percent(20),
            small_context: dice.percent(30),
        }
    }
}

/// How a life ended. `SELVEDGE_SIM_TRACE` prints it.
#[derive(Debug)]
enum End {
    Rest(Rest),
    Refused,
    Killed,
}

impl<'a> Universe<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        let disk = SimDisk::new(scenario.seed);
        let mut crash = CrashKind::ProcessKill;
        if let Faults::CrashAt(plan) = scenario.faults {
            disk.arm(plan);
            crash = plan.kind;
        }
        Self {
            scenario,
            swarm: Swarm::draw(scenario),
            dice: Dice::new(scenario.seed, "world"),
            disk,
            effects: Effects::default(),
            notes: Arc::default(),
            counts: Arc::default(),
            elapsed: 0,
            lives: 0,
            crash,
            first_appends: Vec::new(),
        }
    }

    fn hit(&self, what: &'static str) {
        self.counts.lock().expect("one thread").hit(what);
    }

    fn run(mut self) -> Result<Report, Broken> {
        loop {
            self.lives += 1;
            if self.lives > LIVES_MAX {
                return Err(Broken(format!(
                    "the run has not ended after {LIVES_MAX} lives"
                )));
            }
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .start_paused(true)
                .build()
                .expect("a runtime without I/O needs nothing");
            let end = runtime.block_on(self.life());
            // Everything of that process is gone before the next begins.
            drop(runtime);
            let end = end?;
            if std::env::var_os("SELVEDGE_SIM_TRACE").is_some() {
                eprintln!("life {}: {end:?}", self.lives);
            }
            match end {
                End::Rest(Rest::Ended(ending)) => {
                    return self.finish(ending.status == selvedge_runtime::Status::Done);
                }
                End::Rest(_) => {}
                End::Refused => self.hit("ledger refused"),
                End::Killed => {}
            }
            if self.lives == 1 {
                self.first_appends = self.notes.lock().expect("one thread").appends.clone();
            }
            self.restart();
            self.disk.heal();
        }
    }

    /// A new process after a crash, if there was one.
    fn restart(&mut self) {
        if !self.disk.is_dead() {
            return;
        }
        self.disk.restart();
        if self.crash == CrashKind::PowerLoss {
            // What was acknowledged before it was synced may be gone.
            let mut notes = self.notes.lock().expect("one thread");
            let synced = notes.synced;
            notes.heads.truncate(synced);
        }
    }

    fn finish(mut self, done: bool) -> Result<Report, Broken> {
        if self.lives == 1 {
            self.first_appends = self.notes.lock().expect("one thread").appends.clone();
        }
        // The last process may have died while it closed its files.
        self.restart();
        self.disk.disarm();
        self.disk.heal();
        let digest = self.inspect()?;
        let counts = self.counts.lock().expect("one thread").clone();
        Ok(Report {
            heads: digest.heads,
            story: digest.story,
            done,
            counts,
            appends: self.first_appends,
            lives: self.lives,
        })
    }

    /// Opens the disk as a stranger would and checks what must hold.
    fn inspect(&mut self) -> Result<Digest, Broken> {
        let ledger = self.open().map_err(|e| Broken(e.to_string()))?;
        let notes = self.notes.lock().expect("one thread").clone();
        let effects = self.effects.lock().expect("one thread").clone();
        let mut counts = self.counts.lock().expect("one thread");
        block_on(check(&ledger, &session(), &notes, &effects, &mut counts))
    }

    fn open(&self) -> Result<SqliteLedger, LedgerError> {
        SqliteLedger::open(&SqliteOptions {
            mode: Mode::Inline,
            vfs: Some(self.disk.vfs_name().to_owned()),
            checkpoint_pages: 60,
            ..SqliteOptions::new("ledger.db")
        })
    }

    /// One process: opens the ledger, drives the session until it rests or dies.
    async fn life(&mut self) -> Result<End, Broken> {
        let died = Arc::new(Notify::new());
        let on_death = died.clone();
        self.disk.on_death(Arc::new(move || on_death.notify_one()));
        self.draw_disk_trouble();
        let clock = Arc::new(SimClock::new(self.elapsed));
        let kill_after = self.kill_after();
        let end = tokio::select! {
            biased;
            () = died.notified() => { self.hit("disk crash"); Ok(End::Killed) }
            () = tokio::time::sleep(kill_after) => {
                if kill_after == LIFE_MAX {
                    return Err(Broken("the run is stuck".into()));
                }
                self.hit("killed");
                self.crash = self.crash_kind();
                self.disk.crash(self.crash);
                Ok(End::Killed)
            }
            end = self.drive(clock.clone()) => end,
        };
        self.elapsed = clock.elapsed() + 1;
        end
    }

    fn kill_after(&self) -> Duration {
        // Faults stop after a while: then everything must come to an end.
        if self.swarm.kills && self.lives < 12 && self.dice.percent(70) {
            return Duration::from_millis(self.dice.below(1500 * u64::from(self.scenario.turns)));
        }
        LIFE_MAX
    }

    fn crash_kind(&self) -> CrashKind {
        if self.dice.percent(50) {
            CrashKind::PowerLoss
        } else {
            CrashKind::ProcessKill
        }
    }

    fn draw_disk_trouble(&mut self) {
        if self.lives >= 12 {
            return;
        }
        let writes = 60 * u64::from(self.scenario.turns);
        if self.swarm.disk_crashes && self.dice.percent(60) {
            self.crash = self.crash_kind();
            self.disk.arm(CrashPlan {
                at: self.disk.operations() + 1 + self.dice.below(writes),
                moment: if self.dice.percent(50) {
                    Moment::Before
                } else {
                    Moment::After
                },
                kind: self.crash,
            });
        }
        if self.swarm.disk_faults && self.dice.percent(50) {
            let on = if self.dice.percent(50) {
                OperationKind::Write
            } else {
                OperationKind::Sync
            };
            let (error, effect) = match self.dice.below(3) {
                0 => (FaultError::Full, FaultEffect::Refused),
                1 if on == OperationKind::Write => (FaultError::Write, FaultEffect::Refused),
                1 => (FaultError::Fsync, FaultEffect::Performed),
                _ if on == OperationKind::Write => (FaultError::Write, FaultEffect::Performed),
                _ => (FaultError::Fsync, FaultEffect::Performed),
            };
            let span = if self.dice.percent(30) {
                FaultSpan::UntilHealed
            } else {
                FaultSpan::Once
            };
            let so_far = self.disk.counters().of(on);
            let within = if on == OperationKind::Write {
                writes
            } else {
                writes / 10
            };
            let nth = so_far + 1 + self.dice.below(within);
            self.disk.inject(Fault {
                on,
                nth,
                error,
                effect,
                span,
            });
        }
    }

    async fn drive(&self, clock: Arc<SimClock>) -> Result<End, Broken> {
        let inner = match self.open() {
            Ok(inner) => inner,
            Err(_) => return Ok(End::Refused),
        };
        let checked = {
            let notes = self.notes.lock().expect("one thread").clone();
            let effects = self.effects.lock().expect("one thread").clone();
            let mut counts = Counts::default();
            check(&inner, &session(), &notes, &effects, &mut counts).await
        };
        // The very first life has nothing to check; a faulty disk may refuse.
        if let Err(broken) = checked
            && !broken.0.contains("did not answer")
            && !broken.0.contains("disk I/O error")
        {
            return Err(broken);
        }
        let ledger: Arc<dyn Ledger> = Arc::new(NotingLedger {
            inner,
            disk: self.disk.clone(),
            notes: self.notes.clone(),
        });
        let driver = self.driver(ledger.clone(), clock.clone());
        let started = driver
            .start(&session(), None, AGENT, self.spec(), None)
            .await;
        if let Err(error) = started {
            return self.refused(error);
        }
        let visitor = self.visit(ledger.clone(), clock.clone());
        let cancel = CancellationToken::new();
        let session = session();
        let driven = tokio::select! {
            biased;
            driven = driver.drive(&session, None, cancel) => driven,
            () = visitor => unreachable!("a visitor never leaves"),
        };
        let rest = match driven {
            Ok(rest) => rest,
            Err(error) => return self.refused(error),
        };
        match self.bring_forward(&*ledger, &*clock, &rest).await {
            Ok(()) => Ok(End::Rest(rest)),
            Err(error) => self.refused(error.into()),
        }
    }

    fn refused(&self, error: DriveError) -> Result<End, Broken> {
        use LedgerError::{Full, Unavailable, Unusable};
        match error {
            DriveError::Ledger(Full { .. } | Unavailable { .. } | Unusable { .. }) => {
                Ok(End::Refused)
            }
            _ if self.disk.is_dead() => Ok(End::Refused),
            other => Err(Broken(other.to_string())),
        }
    }

    /// What a person does about a run that rests.
    async fn bring_forward(
        &self,
        ledger: &dyn Ledger,
        clock: &dyn Clock,
        rest: &Rest,
    ) -> Result<(), LedgerError> {
        let id = format!("life-{}", self.lives);
        match rest {
            Rest::Waiting => {
                if let SessionState::Waiting {
                    stream,
                    effect,
                    question,
                } = session_state(ledger, clock, &session()).await?
                {
                    let yes = question.approval.is_none() || self.dice.percent(70);
                    let text = Payload::new(if yes { "yes" } else { "no" });
                    let answer = Signal::Answer {
                        effect: Some(effect),
                        text,
                        digest: None,
                    };
                    let first = answer
                        .send(ledger, clock, &stream, "human", id.clone())
                        .await?;
                    // The same letter twice is one letter.
                    let again = answer.send(ledger, clock, &stream, "human", id).await?;
                    assert_eq!((first.seq, again.repeated), (again.seq, true));
                }
            }
            Rest::Paused(reasons) => {
                if reasons.contains_key("budget") {
                    self.hit("budget exhausted");
                    let raise = Signal::RaiseBudget {
                        usd: Some(1000.0),
                        tokens: None,
                        model_calls: None,
                    };
                    raise
                        .send(ledger, clock, &session(), "human", format!("{id}-b"))
                        .await?;
                }
                Signal::Resume { reason: None }
                    .send(ledger, clock, &session(), "human", id)
                    .await?;
            }
            Rest::Ended(_) | Rest::Idle | Rest::Interrupted => {}
        }
        Ok(())
    }

    /// Somebody who writes letters and moves the clock while the run goes on.
    async fn visit(&self, ledger: Arc<dyn Ledger>, clock: Arc<SimClock>) {
        let dice = Dice::new(self.scenario.seed, &format!("visitor {}", self.lives));
        for n in 0..4 {
            tokio::time::sleep(Duration::from_millis(dice.below(3000))).await;
            if self.swarm.jumps {
                const JUMPS: [i64; 6] = [
                    1_000,
                    -1_000,
                    3_600_000,
                    -3_600_000,
                    7_200_000,
                    -315_360_000,
                ];
                clock.jump(JUMPS[dice.below(6) as usize]);
                self.hit("clock jump");
            }
            if self.swarm.letters && self.lives < 12 {
                let signal = match dice.below(20) {
                    0 => Signal::Cancel {
                        reason: "enough".into(),
                    },
                    1..8 => Signal::Steer {
                        mode: SteerMode::Steer,
                        text: Payload::new("faster"),
                    },
                    8..12 => Signal::Steer {
                        mode: SteerMode::Queue,
                        text: Payload::new("one more"),
                    },
                    12..15 => Signal::Pause {
                        reason: "lunch".into(),
                    },
                    15..18 => Signal::Resume { reason: None },
                    _ => Signal::Answer {
                        effect: None,
                        text: Payload::new("42"),
                        digest: None,
                    },
                };
                let id = format!("visit-{}-{n}", self.lives);
                // A visitor whose letter is not taken shrugs.
                let _ = signal
                    .send(&*ledger, &*clock, &session(), "visitor", id)
                    .await;
            }
        }
        std::future::pending().await
    }

    fn driver(&self, ledger: Arc<dyn Ledger>, clock: Arc<SimClock>) -> Driver<AgentCall> {
        let model = SimModel {
            seed: self.scenario.seed,
            turns: self.scenario.turns,
            fault_percent: if self.lives < 12 {
                self.swarm.model_faults
            } else {
                0
            },
            lively: self.swarm.lively,
            faults: Dice::new(self.scenario.seed, &format!("model {}", self.lives)),
            counts: self.counts.clone(),
        };
        let chance = Arc::new(SeededChance::new(
            self.scenario.seed ^ u64::from(self.lives),
        ));
        let providers = Providers::new().with("sim", Arc::new(model));
        let gate = Gate::new(providers, Catalogue::built_in(), clock.clone(), chance);
        let toolbox = Arc::new(self.toolbox());
        let performer = AgentPerformer::new(ledger.clone(), clock.clone(), Arc::new(gate), toolbox);
        Driver {
            ledger,
            clock,
            performer: Arc::new(performer),
            machines: Arc::new(|kind: &str| {
                let machine =
                    || Box::new(AgentMachine::default()) as Box<dyn Machine<Call = AgentCall>>;
                (kind == AGENT).then(machine)
            }),
            watcher: Arc::new(NoWatcher),
            patience: Patience::Return,
        }
    }

    fn toolbox(&self) -> Toolbox {
        let bench = Arc::new(Bench {
            effects: self.effects.clone(),
            disk: self.disk.clone(),
            dice: Arc::new(Dice::new(
                self.scenario.seed,
                &format!("tools {}", self.lives),
            )),
            counts: self.counts.clone(),
        });
        bench.toolbox()
    }

    fn spec(&self) -> RunSpec {
        let toolbox = self.toolbox();
        let definitions: Vec<ToolDefinition> = toolbox
            .specs()
            .into_iter()
            .map(|s| ToolDefinition {
                name: s.name,
                description: s.description,
                schema: s.schema,
            })
            .collect();
        let mut tools: BTreeMap<String, World> = toolbox
            .specs()
            .into_iter()
            .map(|s| (s.name, s.world))
            .collect();
        let small = Limits {
            context_tokens_max: 6_000,
            output_tokens_max: 1_000,
            model_calls_max: 2_000,
            ..Limits::default()
        };
        let limits = if self.swarm.small_context {
            small
        } else {
            Limits {
                context_tokens_max: 1_000_000,
                ..small
            }
        };
        let helper = RunSpec {
            crew: "sim".into(),
            agent: "helper".into(),
            request: Payload::new(""),
            model: "sim/one".into(),
            fallbacks: Vec::new(),
            awaited: false,
            priority: 60,
            system: Payload::new("You help."),
            tools: tools.clone(),
            definitions: Payload::new(json!(definitions).to_string()),
            offers: None,
            skills: None,
            limits,
            output_schema: None,
            approve: Approve::Ask,
            sandbox: Sandbox::off(),
            policy: Policy {
                role: Role::Supervisor,
                ..Policy::default()
            },
            budget_usd: None,
            budget_tokens: None,
            workspace: PathBuf::from("."),
            terms: Terms::default(),
            team: BTreeMap::new(),
        };
        tools.insert("delegate".into(), World::Delegates);
        RunSpec {
            agent: "lead".into(),
            request: Payload::new("build it"),
            tools,
            budget_usd: self.swarm.budget.then_some(0.05),
            team: BTreeMap::from([("helper".to_owned(), helper.clone())]),
            ..helper
        }
    }
}

/// Runs a future that never has to wait.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime
        .expect("a runtime without I/O needs nothing")
        .block_on(future)
}

fn session() -> StreamId {
    StreamId::new("s_sim")
}

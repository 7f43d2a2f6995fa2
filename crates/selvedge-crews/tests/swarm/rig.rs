//! Crews on a real ledger with real tools, and a model of the test's own.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use selvedge_agent::{
    AGENT, AgentCall, AgentMachine, AgentPerformer, Approve, Crew, Lazy, Limits, RunSpec, Setup,
    assemble,
};
use selvedge_crews::{JOB, JobMachine};
use selvedge_ledger::{Ledger, SqliteLedger, SqliteOptions};
use selvedge_model::{Catalogue, Gate, Provider, Providers};
use selvedge_runtime::{Clock, Driver, Machine, NoWatcher, Patience, SeededChance, SystemClock};
use selvedge_testkit::Watch;
use selvedge_tool::{Policy, Sandbox, Toolbox};

/// A folder that is looked through for secrets before it goes.
pub struct Scratch {
    _watch: Watch,
    folder: tempfile::TempDir,
}

impl Scratch {
    fn over(folder: tempfile::TempDir) -> Self {
        Self {
            _watch: Watch::over(folder.path()),
            folder,
        }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// A folder in memory where possible: many files are written.
pub fn scratch() -> Scratch {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap());
    Scratch::over(folder)
}

/// A folder on disk: in the fence, memory is a command's own.
pub fn scratch_on_disk() -> Scratch {
    Scratch::over(tempfile::tempdir().unwrap())
}

pub fn ledger(folder: &Path) -> Arc<dyn Ledger> {
    let options = SqliteOptions {
        sync: false,
        ..SqliteOptions::new(folder.join("ledger.db"))
    };
    Arc::new(SqliteLedger::open(&options).unwrap())
}

/// A driver whose models are all `provider`.
pub fn driver(
    ledger: Arc<dyn Ledger>,
    provider: Arc<dyn Provider>,
    toolbox: Toolbox,
) -> Driver<AgentCall> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let gate = Gate::new(
        Providers::new().with("scripted", provider),
        Catalogue::built_in(),
        clock.clone(),
        Arc::new(SeededChance::new(1)),
    );
    let performer = AgentPerformer::new(
        ledger.clone(),
        clock.clone(),
        Arc::new(gate),
        Arc::new(toolbox),
    );
    Driver {
        ledger,
        clock,
        performer: Arc::new(performer),
        machines: Arc::new(|kind: &str| -> Option<Box<dyn Machine<Call = AgentCall>>> {
            match kind {
                JOB => Some(Box::new(JobMachine::default())),
                AGENT => Some(Box::new(AgentMachine::default())),
                _ => None,
            }
        }),
        watcher: Arc::new(NoWatcher),
        patience: Patience::Return,
    }
}

/// The built-in tools. Their schemas are made once.
pub fn tools() -> Toolbox {
    static TOOLS: LazyLock<Toolbox> = LazyLock::new(Toolbox::core);
    TOOLS.clone()
}

/// What a mission in `workspace` starts with, every agent within `limits`.
pub fn spec(
    workspace: &Path,
    sandbox: Sandbox,
    budget_usd: Option<f64>,
    limits: Limits,
) -> RunSpec {
    static CREW: LazyLock<Crew> =
        LazyLock::new(|| selvedge_crews::all().find("swarm", &[]).unwrap());
    spec_of(&CREW, workspace, sandbox, budget_usd, limits)
}

/// The same for another crew.
pub fn spec_of(
    crew: &Crew,
    workspace: &Path,
    sandbox: Sandbox,
    budget_usd: Option<f64>,
    limits: Limits,
) -> RunSpec {
    let setup = Setup {
        request: "the mission".into(),
        workspace: workspace.to_owned(),
        approve: Approve::Never,
        policy: Policy::default().fenced_by(&sandbox),
        sandbox,
        is_trusted: true,
        budget_usd,
        output_schema: None,
        budget_tokens: None,
        instructions: None,
        skills: Vec::new(),
        lazy: Lazy::Auto,
        resolve: &|_| Ok("scripted/test".into()),
    };
    let mut spec = assemble(crew, &tools(), &setup).unwrap();
    bound(&mut spec, limits);
    spec
}

fn bound(spec: &mut RunSpec, limits: Limits) {
    spec.limits = limits;
    spec.team
        .values_mut()
        .for_each(|helper| bound(helper, limits));
}

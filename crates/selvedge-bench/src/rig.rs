//! A driver on a real ledger with real tools and a model in process.

use std::path::Path;
use std::sync::Arc;

use selvedge_agent::{
    AGENT, AgentCall, AgentMachine, AgentPerformer, Approve, Crew, Limits, RunSpec, Setup, assemble,
};
use selvedge_ledger::{Ledger, SqliteLedger, SqliteOptions};
use selvedge_model::{Catalogue, Gate, Providers, Request, Response, ScriptedModel, Slots};
use selvedge_runtime::{Clock, Driver, Machine, NoWatcher, Patience, SystemChance, SystemClock};
use selvedge_tool::{Policy, Sandbox, Toolbox};

/// A directory on a real disk: beside the build, not in a memory file system.
pub fn scratch() -> anyhow::Result<tempfile::TempDir> {
    let beside = std::env::current_exe()?;
    let folder = beside.parent().unwrap_or(Path::new(".")).to_owned();
    Ok(tempfile::Builder::new()
        .prefix("bench-")
        .tempdir_in(folder)?)
}

/// Opens a ledger; `sync` off measures what syncing costs.
pub fn ledger(folder: &Path, sync: bool) -> anyhow::Result<Arc<SqliteLedger>> {
    let options = SqliteOptions {
        sync,
        ..SqliteOptions::new(folder.join("ledger.db"))
    };
    Ok(Arc::new(SqliteLedger::open(&options)?))
}

/// A driver whose model answers by `answer`, after `latency_ms`.
pub fn driver(
    ledger: Arc<dyn Ledger>,
    latency_ms: u64,
    answer: impl Fn(&Request) -> Response + Send + Sync + 'static,
) -> Driver<AgentCall> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let model = ScriptedModel::from_fn("scripted/bench", answer)
        .with_latency(std::time::Duration::from_millis(latency_ms));
    let providers = Providers::new().with_script(model);
    let gate = Gate::new(
        providers,
        Catalogue::built_in(),
        clock.clone(),
        Arc::new(SystemChance),
    );
    // The crowd is to wait for the model, not for a slot.
    let slots = Slots {
        per_provider: usize::MAX,
        in_all: usize::MAX,
    };
    let gate = gate.with_slots(slots);
    let toolbox = Arc::new(Toolbox::core());
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

/// What a session of the solo crew in `workspace` starts with.
pub fn spec(workspace: &Path) -> anyhow::Result<RunSpec> {
    let crew = Crew::find("solo", &[])?;
    let setup = Setup {
        request: "measure".into(),
        workspace: workspace.to_owned(),
        approve: Approve::Auto,
        sandbox: Sandbox::off(),
        policy: Policy::default(),
        is_trusted: true,
        budget_usd: None,
        budget_tokens: None,
        output_schema: None,
        instructions: None,
        skills: Vec::new(),
        lazy: selvedge_agent::Lazy::Auto,
        resolve: &|_| Ok("scripted/bench".into()),
    };
    let mut spec = assemble(&crew, &Toolbox::core(), &setup)?;
    spec.limits = Limits {
        model_calls_max: 5_000,
        ..spec.limits
    };
    Ok(spec)
}

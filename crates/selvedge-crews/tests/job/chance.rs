//! A model that says anything that fits its schemas: whatever it is, a job ends, its list
//! of phases is in order, and nothing outside of its folder is touched.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use selvedge_agent::{Approve, Lazy, Setup, ToolOutcome};
use selvedge_crews::{
    Configs, JOB, JobFolder, JobSetup, JobView, LoadedConfig, Stand, desk_tools, set_up,
};
use selvedge_ledger::{Ledger, Payload, Position, StreamId};
use selvedge_model::{
    Message, Part, Request, Response, Role, ScriptedModel, Stop, ToolCall, Usage,
};
use selvedge_runtime::{Finished, Rest, Status};
use selvedge_testkit::{Dice, fitting};
use selvedge_tool::{Policy, Sandbox, Toolbox};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::rig;

const SEEDS: u64 = 1_000;
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_job_ends_and_stays_inside_whatever_the_model_says() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let counts = runtime.block_on(async {
        let folder = rig::scratch();
        let ledger = rig::ledger(folder.path());
        let loaded = Arc::new(config(&folder.path().join("configs")));
        let mut tasks = tokio::task::JoinSet::new();
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for seed in 0..SEEDS {
            if tasks.len() >= 4 {
                let how = tasks.join_next().await.unwrap().unwrap();
                *counts.entry(how).or_default() += 1;
            }
            let (ledger, loaded) = (ledger.clone(), loaded.clone());
            let root = folder.path().join(seed.to_string());
            tasks.spawn(async move { job(seed, ledger, &loaded, &root).await });
        }
        while let Some(how) = tasks.join_next().await {
            *counts.entry(how.unwrap()).or_default() += 1;
        }
        counts
    });
    eprintln!("{counts:?}");
    assert_eq!(counts.values().sum::<u64>(), SEEDS);
    for end in counts.keys() {
        assert!(ENDS.contains(&end.as_str()), "{end}: {counts:?}");
    }
    for end in ENDS {
        assert!(counts.contains_key(end), "never {end}: {counts:?}");
    }
}

/// How a job can end: it is done, or what stopped it, in the words that people read.
const ENDS: [&str; 7] = [
    "done after planning",
    "done after work",
    "phase transitions in a row were rejected",
    "no todo was completed in",
    "it used all",
    "three answers in a row had no call",
    "three answers in a row were cut off at the output limit",
];

/// A config with small bounds, so that a thousand jobs are over soon.
fn config(folder: &Path) -> LoadedConfig {
    let place = folder.join("small");
    std::fs::create_dir_all(&place).unwrap();
    let text = json!({
        "$extends": "defaults",
        "phase_settings": { "min_todos": 1, "max_todos": 4 },
        "limits": { "max_iterations": 24, "max_iterations_per_phase": 8 },
    });
    std::fs::write(place.join("config.json"), text.to_string()).unwrap();
    let folders = vec![folder.to_owned()];
    Configs { folders }.load("small").unwrap()
}

/// Does a job, and says how it ended: one of `ENDS`, or else the words that nobody expected.
async fn job(seed: u64, ledger: Arc<dyn Ledger>, loaded: &LoadedConfig, root: &Path) -> String {
    let again = format!("seed {seed}");
    let outside = root.join("outside");
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::write(outside.join("canary"), "canary").unwrap();
    let folder = JobFolder::make(root, "x", &loaded.config, &loaded.instructions, &[]).unwrap();
    std::os::unix::fs::symlink(&outside, folder.path.join("link")).unwrap();
    let sandbox = Sandbox::default();
    let setup = Setup {
        request: "the job".into(),
        workspace: folder.path.clone(),
        approve: Approve::Never,
        policy: Policy::default().fenced_by(&sandbox),
        sandbox,
        is_trusted: false,
        budget_usd: None,
        budget_tokens: None,
        output_schema: None,
        instructions: None,
        skills: Vec::new(),
        lazy: Lazy::Auto,
        resolve: &|_| Ok("scripted/test".into()),
    };
    let job = JobSetup {
        loaded,
        setup,
        address: None,
        queued: false,
    };
    let spec = set_up(job, &tools()).unwrap();
    let model = ScriptedModel::from_fn("scripted/test", move |request| answer(seed, request));
    let driver = rig::driver(ledger.clone(), Arc::new(model), tools());
    let session = StreamId::new(format!("s_{seed}"));
    driver.start(&session, None, JOB, spec, None).await.unwrap();
    let driven = driver.drive(&session, None, CancellationToken::new());
    let rest = tokio::time::timeout(PATIENCE, driven).await;
    let rest = rest.unwrap_or_else(|_| panic!("{again} hangs")).unwrap();
    let Rest::Ended(ending) = rest else {
        panic!("{again} is not over: {rest:?}");
    };
    let left = std::fs::read_dir(&outside).unwrap().count();
    assert_eq!(left, 1, "{again}: something was written outside");
    let beside = std::fs::read_dir(root).unwrap().count();
    assert_eq!(beside, 2, "{again}: something was written beside");
    let mut view = JobView::default();
    let (events, _) = ledger
        .session_after(&session, Position::default())
        .await
        .unwrap();
    for event in &events {
        view.apply(event).unwrap();
        if &*event.kind == "ToolCallFinished" {
            let outcome = event.decode::<Finished<ToolOutcome>>().unwrap().outcome;
            let is_own = outcome.tool.starts_with("phase_");
            assert!(!(is_own && outcome.is_error), "{again}: {outcome:?}");
        }
    }
    let completed = folder.path.join("output/completion.json").exists();
    match ending.status {
        Status::Done => {
            assert!(completed && view.stand() == Stand::Done, "{again}");
            assert!(
                view.phase % 2 == 1,
                "{again}: a job is completed in a strategic phase"
            );
            for tactical in (2..view.phase).step_by(2) {
                let archive = folder.path.join(format!("archive/phase_{tactical}.yaml"));
                assert!(
                    archive.exists(),
                    "{again}: phase {tactical} left no archive"
                );
            }
            ENDS[usize::from(view.phase > 1)].to_owned()
        }
        _ => {
            let why = ledger.text(&ending.result).await.unwrap();
            let found = ENDS[2..].iter().find(|words| why.contains(**words));
            found.map_or_else(|| why.to_string(), |words| (*words).to_owned())
        }
    }
}

fn tools() -> Toolbox {
    static TOOLS: LazyLock<Toolbox> =
        LazyLock::new(|| desk_tools().into_iter().fold(rig::tools(), Toolbox::with));
    TOOLS.clone()
}

/// What the model says: mostly the tools of the list, so that phases come to an end.
fn answer(seed: u64, request: &Request) -> Response {
    let dice = Dice::new(seed, &format!("{} {}", request.agent, request.turn));
    let mut parts = Vec::new();
    let mut stop = Stop::End;
    if dice.percent(92) {
        for n in 0..1 + dice.below(4) {
            parts.push(Part::ToolCall(call(request, &dice, n)));
        }
        stop = Stop::Tools;
    } else {
        let text = Payload::new("I have nothing more to say.");
        parts.push(Part::Text { text });
    }
    if dice.percent(2) {
        stop = [Stop::Length, Stop::Filtered][dice.below(2) as usize];
    }
    Response {
        message: Message {
            role: Role::Assistant,
            parts,
        },
        stop,
        usage: Usage::default(),
        model: request.model.clone(),
    }
}

fn call(request: &Request, dice: &Dice, n: u64) -> ToolCall {
    let usual = ["todo_complete", "todo_complete", "todo_write"];
    let usual = usual[dice.below(3) as usize];
    let wanted = request.tools.iter().find(|tool| tool.name == usual);
    let tool = match wanted {
        Some(tool) if dice.percent(70) => tool,
        _ => &request.tools[dice.below(request.tools.len() as u64) as usize],
    };
    let mut arguments = fitting(&tool.schema, dice);
    // Most of the time the current todo is meant, and a list has todos.
    if tool.name == "todo_complete" && dice.percent(80) {
        arguments = json!({});
    }
    if tool.name == "todo_write" && dice.percent(80) {
        arguments = json!({ "todos": [{ "content": "a" }, { "content": "b" }] });
    }
    let mut text = arguments.to_string();
    if dice.percent(4) {
        text.pop();
    }
    ToolCall {
        id: format!("c{n}"),
        name: tool.name.clone(),
        arguments: Payload::new(text),
    }
}

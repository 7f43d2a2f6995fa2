//! From a config to what a job starts with: one agent for each kind of phase.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_agent::{
    Address, AgentDefinition, Crew, Lazy, Limits, RunSpec, Setup, SetupError, Terms, Ways, assemble,
};
use selvedge_ledger::Payload;
use selvedge_model::ToolDefinition;
use selvedge_tool::{REQUEST_TOOLS, Rules, TOOL_SEARCH, TodoBounds, Toolbox, World};
use serde_json::{Map, json};

use super::config::{JobConfig, LoopMode, PhaseSettings};
use super::desk::{PHASE_CLOSE, PHASE_OPEN};
use super::load::LoadedConfig;
use super::terms::{JobSpec, JobTerms, PhaseKind};

/// The crew that jobs belong to.
const CREW: &str = "job";
const TODO_COMPLETE: &str = "todo_complete";
const JOB_COMPLETE: &str = "job_complete";
/// Before this, a phase was called by nobody.
const PHASE: &str = "phase";

const PROMPTS: [(PhaseKind, &str); 3] = [
    (
        PhaseKind::Strategic,
        include_str!("../../prompts/strategic.md"),
    ),
    (
        PhaseKind::Tactical,
        include_str!("../../prompts/tactical.md"),
    ),
    (PhaseKind::Free, include_str!("../../prompts/free.md")),
];

/// What a job is set up from.
pub struct JobSetup<'a> {
    /// Its config.
    pub loaded: &'a LoadedConfig,
    /// What holds for any run. Its workspace is the job's own folder.
    pub setup: Setup<'a>,
    /// Where its provider is, if the config says so.
    pub address: Option<Address>,
    /// Whether it waits for a worker.
    pub queued: bool,
}

/// What a job starts with.
pub fn set_up(job: JobSetup<'_>, toolbox: &Toolbox) -> Result<JobSpec, SetupError> {
    let JobSetup {
        loaded,
        mut setup,
        address,
        queued,
    } = job;
    let config = &loaded.config;
    // What is deferred is loaded on request, however little it is.
    setup.lazy = Lazy::Always;
    let said = setup.instructions.take();
    let kinds = match config.mode {
        LoopMode::Phased => vec![PhaseKind::Strategic, PhaseKind::Tactical],
        LoopMode::Free => vec![PhaseKind::Free],
    };
    let mut run = assemble(&crew(config, &kinds), toolbox, &setup)?;
    run.request = Payload::inline(setup.request.as_str());
    run.definitions = Payload::inline("[]");
    run.tools = BTreeMap::from([
        (PHASE_OPEN.to_owned(), World::Reads),
        (PHASE_CLOSE.to_owned(), World::Writes),
    ]);
    run.terms = Terms {
        record: true,
        address,
        ..Terms::default()
    };
    let mut prompts = BTreeMap::new();
    for kind in &kinds {
        let agent = kind.agent();
        let phase = run.team.get_mut(agent).expect("every kind has an agent");
        search_for_tools(phase, toolbox);
        phase.terms = terms(config, *kind);
        let mut prompt = prompt(*kind).trim_end().to_owned();
        if *kind == PhaseKind::Strategic {
            prompt.push_str(&what_can_be_planned(config, toolbox));
        }
        let said = said
            .as_deref()
            .map(|said| format!("\n\nThe user asks this of every agent:\n\n{}", said.trim()));
        let prompt = format!("{prompt}{}", said.unwrap_or_default());
        prompts.insert(agent.to_owned(), prompt);
    }
    let phases = &config.phase_settings;
    let display_name = config.display_name.clone();
    let job = JobTerms {
        config: loaded.name.clone(),
        display_name: display_name.unwrap_or_else(|| loaded.name.clone()),
        first: kinds[0],
        bounds: TodoBounds {
            min: phases.min_todos,
            max: phases.max_todos,
        },
        archives: phases.archive_on_transition,
        iterations_max: config.limits.max_iterations,
        stall_calls_max: config.limits.max_iterations_per_phase,
        context_tokens_max: config.limits.context_threshold_tokens,
        prompts,
        documents: Vec::new(),
        queued,
    };
    Ok(JobSpec { run, job })
}

fn prompt(kind: PhaseKind) -> &'static str {
    let found = PROMPTS.iter().find(|(of, _)| *of == kind);
    found.map_or("", |(_, prompt)| prompt)
}

/// What a planner needs to know of the phases that it plans: how long their lists are, and
/// the tools that they have and it has not.
fn what_can_be_planned(config: &JobConfig, toolbox: &Toolbox) -> String {
    let PhaseSettings {
        min_todos,
        max_todos,
        ..
    } = config.phase_settings;
    let mut text = format!(
        "\n\n## Tactical phases\n\nA list has {min_todos} to {max_todos} todos. Beside the tools \
         for files, those who work through it have:\n"
    );
    let own = tools(config, PhaseKind::Strategic);
    let work = tools(config, PhaseKind::Tactical);
    let mut has_any = false;
    for spec in work
        .iter()
        .filter(|name| !own.contains(name))
        .filter_map(|name| toolbox.spec(name))
    {
        has_any = true;
        text.push_str(&format!("\n- {}: {}", spec.name, spec.description));
    }
    if !config.tools.deferred.is_empty() {
        text.push_str("\n- more, which they look for with tool_search");
    } else if !has_any {
        text.push_str("\n- no others");
    }
    text
}

/// The config as a crew: whoever leads the phases, and an agent for each kind.
fn crew(config: &JobConfig, kinds: &[PhaseKind]) -> Crew {
    let lead = AgentDefinition {
        agents: kinds.iter().map(|kind| kind.agent().to_owned()).collect(),
        ..agent(config, config.name(), "Leads the phases of a job.")
    };
    let mut agents = BTreeMap::from([(lead.name.clone(), lead)]);
    for kind in kinds {
        let words = match kind {
            PhaseKind::Strategic => "Plans the phases of a job.",
            PhaseKind::Tactical => "Works through the todos of a phase.",
            PhaseKind::Free => "Does the whole of a job.",
        };
        let has_domain = *kind != PhaseKind::Strategic;
        let definition = AgentDefinition {
            tools: tools(config, *kind),
            more_tools: match has_domain {
                true => config.tools.deferred.clone(),
                false => Vec::new(),
            },
            prompt: prompt(*kind).to_owned(),
            ..agent(config, kind.agent(), words)
        };
        agents.insert(kind.agent().to_owned(), definition);
    }
    Crew {
        name: CREW.into(),
        description: "Hours of work, on disk.".into(),
        entry: config.name().to_owned(),
        agents,
        commands: Vec::new(),
        ways: Ways {
            asks: false,
            isolated: false,
            record: true,
        },
        folder: None,
    }
}

fn agent(config: &JobConfig, name: &str, description: &str) -> AgentDefinition {
    let limits = &config.limits;
    AgentDefinition {
        name: name.to_owned(),
        description: description.to_owned(),
        model: config.model(),
        fallback: Vec::new(),
        priority: selvedge_model::Urgency::default().priority,
        tools: Vec::new(),
        more_tools: Vec::new(),
        agents: Vec::new(),
        role: None,
        git: None,
        policy: Rules::default(),
        limits: Limits {
            model_calls_max: limits.max_iterations,
            context_tokens_max: limits.context_threshold_tokens,
            results_kept: config.context_management.keep_recent_tool_results,
            // A job goes on where it fell; nothing is put back under it.
            strikes_max: 0,
            tool_attempts_max: limits.tool_retry_count,
            ..Limits::default()
        },
        output_schema: None,
        input_schema: None,
        called_by: None,
        ends_by: None,
        ends_schema: None,
        claims: None,
        answerable: false,
        alone: false,
        prompt: "A job.".into(),
    }
}

/// The tools of a phase, each once.
fn tools(config: &JobConfig, kind: PhaseKind) -> Vec<String> {
    let tools = &config.tools;
    let own: Vec<&Vec<String>> = match kind {
        PhaseKind::Strategic => vec![&tools.workspace, &tools.strategic],
        PhaseKind::Tactical => vec![&tools.workspace, &tools.tactical, &tools.domain],
        PhaseKind::Free => vec![&tools.workspace, &tools.todo, &tools.domain],
    };
    let ends = match kind {
        PhaseKind::Free => JOB_COMPLETE,
        _ => TODO_COMPLETE,
    };
    let mut names: Vec<String> = Vec::new();
    for name in own.into_iter().flatten().map(String::as_str).chain([ends]) {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// What binds a phase beyond the loop.
fn terms(config: &JobConfig, kind: PhaseKind) -> Terms {
    let phases = &config.phase_settings;
    let todos = match kind {
        PhaseKind::Strategic => json!({
            "ends": true,
            "next": { "min": phases.min_todos, "max": phases.max_todos },
        }),
        PhaseKind::Tactical => json!({ "ends": true }),
        PhaseKind::Free => json!({
            "open_max": config.todo.max_items,
            "compacts": config.context_management.compact_on_archive,
        }),
    };
    let mut settings = Map::from_iter([("todos".to_owned(), todos)]);
    if let Some(endpoint) = &config.connections.web_search {
        settings.insert("web_search".into(), json!(endpoint));
    }
    let heeds: &[&str] = match kind {
        PhaseKind::Strategic => &[TODO_COMPLETE, JOB_COMPLETE],
        PhaseKind::Tactical => &[TODO_COMPLETE],
        PhaseKind::Free => &[
            "add_todo",
            "start_todo",
            "complete_todo",
            "archive_and_reset",
            JOB_COMPLETE,
        ],
    };
    Terms {
        called_by: Some(PHASE.into()),
        ends_by: Some(match kind {
            PhaseKind::Free => JOB_COMPLETE.into(),
            _ => TODO_COMPLETE.into(),
        }),
        heeds: heeds.iter().map(|name| (*name).to_owned()).collect(),
        settings,
        refused: refused(config, kind),
        summary_request: config.context_management.summarization_prompt.clone(),
        temperature: config.llm.temperature,
        effort: config.llm.reasoning_level.map(Into::into),
        record: true,
        ..Terms::default()
    }
}

/// The tools of the other kind of phase, and what is said to whoever calls one.
fn refused(config: &JobConfig, kind: PhaseKind) -> BTreeMap<String, String> {
    let other = match kind {
        PhaseKind::Strategic => PhaseKind::Tactical,
        PhaseKind::Tactical => PhaseKind::Strategic,
        PhaseKind::Free => return BTreeMap::new(),
    };
    let own: BTreeSet<String> = tools(config, kind).into_iter().collect();
    let mut names: BTreeSet<String> = tools(config, other).into_iter().collect();
    names.extend([JOB_COMPLETE.to_owned(), "todo_write".to_owned()]);
    if kind == PhaseKind::Strategic {
        names.extend(config.tools.deferred.iter().cloned());
    }
    let (word, other) = (kind.word(), other.word());
    let said = |name: String| {
        let why = format!(
            "`{name}` cannot be used in a {word} phase: it belongs to the {other} phase. Nothing \
             was done."
        );
        (name, why)
    };
    names.difference(&own).cloned().map(said).collect()
}

/// Tools that are on offer are looked for with `tool_search`, and not listed.
fn search_for_tools(spec: &mut RunSpec, toolbox: &Toolbox) {
    let (Some(_), Some(search)) = (&spec.offers, toolbox.spec(TOOL_SEARCH)) else {
        return;
    };
    let text = spec.definitions.text().map_or("[]", |text| &**text);
    let mut definitions: Vec<ToolDefinition> = serde_json::from_str(text).unwrap_or_default();
    definitions.retain(|definition| definition.name != REQUEST_TOOLS);
    definitions.push(ToolDefinition {
        name: search.name.clone(),
        description: search.description.clone(),
        schema: search.schema.clone(),
    });
    let text = serde_json::to_string(&definitions).expect("definitions are plain data");
    spec.definitions = Payload::new(text);
    spec.tools.remove(REQUEST_TOOLS);
    spec.tools.insert(search.name.clone(), search.world);
}

/// How long the definitions are that may be loaded in a run.
pub(super) fn offered_bytes(spec: &RunSpec) -> u64 {
    let offers = spec.offers.as_ref();
    offers.map_or(0, |offers| offers.definitions.len())
}

//! An input of the journal: from what was typed to a session that is driven.

use std::cell::RefCell;
use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use jiff::civil::Time;
use selvedge_agent::{Crew, RunSpec, Setup, SetupError, assemble, user_instructions};
use selvedge_crews::journal::{
    AGENTS, Brief, EntryId, Intent, JournalSpec, WITHOUT_MODELS, journal_spec,
};
use selvedge_ledger::{Payload, StreamId, Tail};
use selvedge_runtime::{RunPaused, Signal, SteerMode};
use selvedge_tool::Toolbox;

use super::room::Room;
use crate::commands::run;
use crate::config::Approve;
use crate::drive::{self, Options, Start};
use crate::error::{Error, Exit, Result};
use crate::interrupt::parse_duration;
use crate::script::Script;
use crate::secrets;
use crate::sessions;
use crate::wiring::{Models, Store};
use crate::{mcp, out};

/// A pause that ends sooner is waited for; after a longer one it goes on without models.
const PAUSE_WAITED_FOR_MILLIS: i64 = 20_000;
const CONTEXT_TOKENS_MAX: usize = 2000;

/// How an input is dealt with.
#[derive(Args, Clone, Default)]
pub struct Manner {
    /// When it is noted or asked, such as `2026-01-04 10:30` or `yesterday`. Default: now.
    #[arg(long, value_name = "WHEN")]
    pub at: Option<String>,
    /// The model: `provider/model`, an alias, or a tier (low, medium, high).
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Ask no model: keep the note as it is, or list what was found.
    #[arg(long)]
    pub no_model: bool,
    /// Print one event per line to stdout, as JSON, and nothing else.
    #[arg(long)]
    pub json: bool,
    /// Stop after this long, such as `90s` or `5m`.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub timeout: Option<Duration>,
    /// Send it although it holds what looks like a secret.
    #[arg(long)]
    pub allow_secret: bool,
    /// Answer from a script instead of a model: a YAML file of turns.
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
}

/// What was typed.
pub struct Input {
    text: String,
    intent: Intent,
    /// What was said just before.
    pub session_context: Option<String>,
    /// The entry that is parsed again, and its moment.
    pub entry: Option<(EntryId, jiff::civil::DateTime)>,
    /// Whether questions are asked by whoever called.
    pub is_asked_elsewhere: bool,
    /// What answers in the place of a model, if it is not named by a path.
    script: Option<Script>,
}

impl Input {
    /// Something to be noted or answered.
    pub fn new(text: String, intent: Intent) -> Self {
        Self {
            text,
            intent,
            session_context: None,
            entry: None,
            is_asked_elsewhere: false,
            script: None,
        }
    }

    /// The same, with recorded words in the place of a model's.
    pub fn scripted(text: String, intent: Intent, script: Script) -> Self {
        Self {
            script: Some(script),
            ..Self::new(text, intent)
        }
    }
}

/// Starts a session and drives it. One whose models do not answer goes on without them.
pub async fn enter(room: &Room, mut input: Input, manner: &Manner) -> Result<(StreamId, Exit)> {
    secrets::learn(&room.config)?;
    secrets::guard(
        "note",
        &input.text,
        manner.allow_secret || input.entry.is_some(),
    )?;
    std::fs::create_dir_all(&room.folder).map_err(|error| {
        Error::failed(format!(
            "the folder `{}` cannot be made",
            room.folder.display()
        ))
        .cause(error)
        .hint("name another with `journal.dir` in your configuration")
    })?;
    let script = match input.script.take() {
        Some(script) => Some(script),
        None => run::script(manner.script.as_deref())?,
    };
    let text = script.as_ref().map(|script| script.text().to_owned());
    let models = Models::find(&room.config, script)?;
    let options = Options {
        json: manner.json,
        timeout: manner.timeout,
        can_ask: out::can_ask() && !input.is_asked_elsewhere,
        markdown: true,
    };
    let spec = prepare(room, &models, input, manner)?;
    let store = Store::open_at(room.paths.clone())?;
    let session = StreamId::new(store.chance.id("s"));
    if let Some(text) = text {
        store.keep_script(&session, &text)?;
    }
    let servers = mcp::fleet(&store.paths, &room.config, &room.folder);
    let impatience = tokio::spawn(lose_patience(store.clone(), session.clone()));
    let start = Start::Journal(Box::new(spec));
    let exit = drive::session(&store, models, &servers, &session, start, options).await;
    let exit = match exit? {
        Exit::NoProvider => go_on_without(room, &store, &session, manner, options).await?,
        exit => exit,
    };
    impatience.abort();
    Ok((session, exit))
}

/// What the session starts with. Without a model it starts with no agents.
fn prepare(room: &Room, models: &Models, input: Input, manner: &Manner) -> Result<JournalSpec> {
    let settings = room.config.settings();
    let failed = RefCell::new(None);
    let resolve = models.resolver(settings.model.as_deref(), &failed);
    let crew = selvedge_crews::all().find("journal", &room.paths.crews(&room.folder))?;
    if let Some(missing) = AGENTS.iter().find(|name| !crew.agents.contains_key(**name)) {
        return Err(
            Error::usage(format!("the crew `journal` has no agent `{missing}`"))
                .hint("a crew of your own in its place needs all nine agents"),
        );
    }
    let is_trusted = run::vouched(&room.paths, &room.folder, &crew);
    let instructions = user_instructions(&room.paths.user_instructions());
    let toolbox = Toolbox::new().with_secrets(secrets::of_this_process().clone());
    let of = |name: &str, resolve: &dyn Fn(&str) -> std::result::Result<String, String>| {
        let own = Crew {
            entry: name.to_owned(),
            ..crew.clone()
        };
        let setup = Setup {
            request: String::new(),
            workspace: room.folder.clone(),
            approve: settings.approve.unwrap_or(Approve::Ask).into(),
            policy: room.config.policy().clone(),
            sandbox: settings.sandbox.sandbox(&room.paths),
            is_trusted,
            budget_usd: settings.budget_usd.map(|budget| budget.0),
            budget_tokens: settings.budget_tokens,
            output_schema: None,
            instructions: instructions.clone(),
            skills: Vec::new(),
            lazy: settings.tools.lazy.map(Into::into).unwrap_or_default(),
            resolve,
        };
        assemble(&own, &toolbox, &setup)
    };
    let team: std::result::Result<Vec<RunSpec>, SetupError> = match manner.no_model {
        true => Ok(Vec::new()),
        false => AGENTS.iter().map(|name| of(name, &resolve)).collect(),
    };
    let (team, no_model) = match team {
        Ok(team) if team.is_empty() => (team, Some("no model was to be asked")),
        Ok(team) => (team, None),
        // A model that was asked for and is not there is wrong usage; none at all is not.
        Err(SetupError::Model { .. }) if settings.model.is_none() => {
            (Vec::new(), Some("no model is configured"))
        }
        Err(SetupError::Model { agent, why }) => {
            let cause = failed.borrow_mut().take().map(Error::from);
            return Err(cause.unwrap_or_else(|| SetupError::Model { agent, why }.into()));
        }
        Err(error) => return Err(error.into()),
    };
    let base = match team.first() {
        Some(router) => router.clone(),
        // A session that asks nobody names no model.
        None => of(AGENTS[0], &|_| Ok(String::new()))?,
    };
    let moment = match &input.entry {
        Some((_, moment)) => *moment,
        None => room.moment(manner.at.as_deref())?,
    };
    let time = moment.time();
    let brief = Brief {
        input: input.text,
        intent: input.intent,
        date: moment.date(),
        time: Time::new(time.hour(), time.minute(), 0, 0).unwrap_or_default(),
        zone: room.zone.iana_name().unwrap_or("local").to_owned(),
        domains: room.domains().infos(),
        units: room.units,
        style: Default::default(),
        session_context: input.session_context,
        no_model: no_model.map(str::to_owned),
        entry: input.entry.map(|(id, _)| id),
        context_tokens_max: settings
            .journal
            .max_global_context_tokens
            .and_then(|tokens| usize::try_from(tokens).ok())
            .unwrap_or(CONTEXT_TOKENS_MAX),
    };
    let mut spec = journal_spec(base, team, brief);
    settings.limits.bound(&mut spec.run);
    models.add_fallbacks(&mut spec.run);
    spec.run.awaited = true;
    Ok(spec)
}

/// Tells a session to do without models as soon as one of its agents must wait for long.
async fn lose_patience(store: Store, session: StreamId) {
    let mut tail = Tail::new(store.ledger.clone(), session.clone());
    while let Ok(events) = tail.next().await {
        for event in events.iter().filter(|event| &*event.kind == "RunPaused") {
            let Ok(paused) = event.decode::<RunPaused>() else {
                continue;
            };
            let now = store.clock.now();
            let is_long =
                |until: selvedge_ledger::Time| until.millis_since(now) > PAUSE_WAITED_FOR_MILLIS;
            if paused.reason == "provider" && paused.until.is_none_or(is_long) {
                // What is told twice is told once: the session knows by then.
                let _ = sessions::send(&store, &session, &without_models()).await;
                return;
            }
        }
    }
}

/// Goes on with a session whose models do not answer.
pub async fn go_on_without(
    room: &Room,
    store: &Store,
    session: &StreamId,
    manner: &Manner,
    options: Options,
) -> Result<Exit> {
    let spec = drive::spec_of(store, session).await?;
    let script = match spec.model.starts_with("scripted/") {
        true => store.kept_script(session, &spec.model)?,
        false => run::script(manner.script.as_deref())?,
    };
    let models = Models::find(&room.config, script)?;
    let letters = vec![(session.clone(), without_models())];
    let servers = mcp::fleet(&store.paths, &room.config, &room.folder);
    drive::session(
        store,
        models,
        &servers,
        session,
        Start::Resume(letters),
        options,
    )
    .await
}

fn without_models() -> Signal {
    Signal::Steer {
        mode: SteerMode::Steer,
        text: Payload::new(WITHOUT_MODELS),
    }
}

/// What was piped in; nothing if nobody did.
pub fn read_stdin() -> Result<String> {
    let mut text = String::new();
    if std::io::stdin().is_terminal() {
        return Ok(text);
    }
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| {
            Error::usage("the note cannot be read from stdin")
                .cause(error)
                .hint("pipe UTF-8 text, or give the note as an argument")
        })?;
    Ok(text)
}

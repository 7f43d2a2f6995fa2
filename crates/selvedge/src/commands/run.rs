//! `run`: does a piece of work.

use std::cell::RefCell;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use selvedge_agent::{Crew, RunSpec, Setup, SetupError, assemble, expand, user_instructions};
use selvedge_ledger::StreamId;
use selvedge_mcp::Fleet;
use selvedge_model::{Profile, Recorder};
use selvedge_tool::{CopyError, LeftOut, Owner, Skill, WorkCopy, find_skills};
use serde_json::Value;

use crate::config::{Approve, Config, Dollars, SandboxMode};
use crate::drive::{self, Options, Start};
use crate::env;
use crate::error::{Error, Exit, Result};
use crate::interrupt::parse_duration;
use crate::mcp;
use crate::out;
use crate::paths::Paths;
use crate::script::Script;
use crate::secrets;
use crate::text::{escape, one_line};
use crate::trust::Trust;
use crate::wiring::{self, Models, Store};

#[derive(Args)]
pub struct Run {
    /// What is to be done; `-`, or nothing with a pipe, reads it from stdin.
    #[arg(num_args = 0..)]
    request: Vec<String>,
    /// The crew that does it.
    #[arg(long, value_name = "CREW")]
    crew: Option<String>,
    /// Print one event per line to stdout, as JSON, and nothing else.
    #[arg(long)]
    json: bool,
    /// The model: `provider/model`, an alias, or a tier (low, medium, high).
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// The profile whose stored keys are used.
    #[arg(long, value_name = "PROFILE")]
    profile: Option<Profile>,
    /// What it may cost, in US dollars.
    #[arg(long, value_name = "USD", allow_negative_numbers = true)]
    budget: Option<Dollars>,
    /// How many tokens it may use, of requests and answers together.
    #[arg(long, value_name = "TOKENS")]
    budget_tokens: Option<u32>,
    /// What happens when something must be approved.
    #[arg(long, value_name = "HOW")]
    approve: Option<Approve>,
    /// Whether commands run in a sandbox.
    #[arg(long, value_name = "MODE")]
    sandbox: Option<SandboxMode>,
    /// A file with the JSON Schema that the result must fit.
    #[arg(long, value_name = "FILE")]
    output_schema: Option<PathBuf>,
    /// The directory to work in.
    #[arg(short = 'C', long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Stop after this long, such as `90s` or `5m`.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    timeout: Option<Duration>,
    /// Send the request although it holds what looks like a secret.
    #[arg(long)]
    allow_secret: bool,
    /// Work in the directory itself, where the crew would work on a copy.
    #[arg(long)]
    in_place: bool,
    /// Answer from a script instead of a model: a YAML file of turns.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Add everything that models answer to a cassette. It holds no keys, and of
    /// requests only hashes.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Answer from a cassette instead of a model, with the network closed: the
    /// requests must be those that were recorded.
    #[arg(long, value_name = "FILE", conflicts_with = "script")]
    replay: Option<PathBuf>,
    /// The crew that a command is called after.
    #[arg(skip)]
    of: Option<&'static str>,
}

impl Run {
    /// The same by the crew that the command is called after.
    pub fn by(self, crew: &'static str) -> Self {
        Self {
            of: Some(crew),
            ..self
        }
    }

    /// The crew that is named, by the command or by a flag.
    fn crew(&self) -> Result<Option<String>> {
        match (self.of, self.crew.as_deref()) {
            (Some(own), Some(named)) if own != named => Err(Error::usage(format!(
                "`selvedge {own}` is done by the crew `{own}`, and not by `{named}`"
            ))
            .hint(format!("type `selvedge run --crew {named} \"…\"`"))),
            (own, named) => Ok(own.or(named).map(str::to_owned)),
        }
    }

    pub async fn perform(self) -> Result {
        // Everything that can be wrong is found out before anything is written.
        let request = self.request()?;
        let crew = self.crew()?;
        let workspace = workspace(self.directory.as_deref())?;
        let paths = Paths::find()?;
        let mut config = Config::load(&paths, &workspace)?;
        config.warnings().iter().for_each(|w| out::warn(w));
        secrets::learn(&config)?;
        let skills = skills_for(&paths, &workspace);
        let commands = paths.contents("commands");
        let request = expand(&request, &workspace, &commands, &skills)?;
        secrets::guard("request", &request, self.allow_secret)?;
        let text = |text: String| toml::Value::String(text);
        config.flag("model", "--model", self.model.map(text));
        config.flag("crew", "--crew", crew.map(text));
        let profile = self.profile.map(String::from).map(text);
        config.flag("profile", "--profile", profile);
        let dollars = self.budget.map(|budget| toml::Value::Float(budget.0));
        config.flag("budget_usd", "--budget", dollars);
        let tokens = self.budget_tokens.map(|n| toml::Value::Integer(n.into()));
        config.flag("budget_tokens", "--budget-tokens", tokens);
        let approve = self.approve.map(approve_value);
        config.flag("approve", "--approve", approve);
        let sandbox = self.sandbox.map(sandbox_value);
        config.flag("sandbox.mode", "--sandbox", sandbox);
        let output_schema = self.output_schema.as_deref().map(read_schema).transpose()?;
        let script = match &self.replay {
            Some(cassette) => Some(Script::replay(cassette)?),
            None => script(self.script.as_deref())?,
        };

        let plan = Plan {
            request,
            workspace,
            output_schema,
            skills,
            record: self.record.or_else(|| env::path(env::RECORD)),
            in_place: self.in_place,
        };
        let options = Options {
            json: self.json,
            timeout: self.timeout,
            can_ask: out::can_ask(),
            ..Options::default()
        };
        let (_, exit) = begin(paths, &config, script, plan, options).await?;
        Ok(exit)
    }

    fn request(&self) -> Result<String> {
        let request = match self.request.as_slice() {
            [] if std::io::stdin().is_terminal() => String::new(),
            [] => read_stdin()?,
            [one] if one == "-" => read_stdin()?,
            [one] => one.clone(),
            words => {
                return Err(Error::usage("the request is more than one argument")
                    .cause("a request is one text, so that none of its words is taken for a flag")
                    .hint(format!(
                        "put it into quotes: `selvedge {} \"{}\"`",
                        self.of.unwrap_or("run"),
                        one_line(&words.join(" "), 60)
                    )));
            }
        };
        match request.trim() {
            "" => Err(Error::usage("there is no request")
                .cause("neither an argument nor a pipe said what to do")
                .hint(format!(
                    "say what is to be done: `selvedge {} \"fix the failing test\"`",
                    self.of.unwrap_or("run")
                ))),
            request => Ok(request.to_owned()),
        }
    }
}

/// What a person wants of a run, apart from the configuration.
pub struct Plan {
    /// The request, word for word.
    pub request: String,
    /// The directory to work in.
    pub workspace: PathBuf,
    /// The schema that the result must fit.
    pub output_schema: Option<Value>,
    /// The skills that agents can use.
    pub skills: Vec<Skill>,
    /// The cassette that answers are added to.
    pub record: Option<PathBuf>,
    /// Whether a crew that would work on a copy works in the directory itself.
    pub in_place: bool,
}

/// Starts a session and drives it.
pub async fn begin(
    paths: Paths,
    config: &Config,
    script: Option<Script>,
    plan: Plan,
    options: Options,
) -> Result<(StreamId, Exit)> {
    let text = script.as_ref().map(|script| script.text().to_owned());
    let models = Models::find(config, script)?;
    let servers = mcp::fleet(&paths, config, &plan.workspace);
    let (mut spec, is_isolated) = prepare(&paths, config, &models, &servers, &plan)?;
    let (models, recorder) = record(models, plan.record.as_deref())?;
    let store = Store::open_at(paths)?;
    let session = StreamId::new(store.chance.id("s"));
    spec.sandbox.temp = Some(store.paths.temp(&session));
    if is_isolated && !plan.in_place {
        let copy = WorkCopy::of(&plan.workspace, &store.paths.session(&session)).await;
        spec = spec.in_copy(copy.map_err(|error| no_copy(&error))?);
    }
    if let Some(text) = text {
        store.keep_script(&session, &text)?;
    }
    let start = Start::New(Box::new(spec));
    let exit = drive::session(&store, models, &servers, &session, start, options).await?;
    tell_lost(recorder);
    Ok((session, exit))
}

/// The models with everything they answer added to a cassette, if one is named.
pub fn record(models: Models, to: Option<&Path>) -> Result<(Models, Option<Arc<Recorder>>)> {
    match to {
        None => Ok((models, None)),
        Some(path) => {
            let (models, recorder) = models.recorded(path)?;
            Ok((models, Some(recorder)))
        }
    }
}

/// Says that a cassette is not complete, if it is not.
pub fn tell_lost(recorder: Option<Arc<Recorder>>) {
    if let Some(error) = recorder.as_ref().and_then(|recorder| recorder.lost()) {
        out::warn(&format!("the cassette is not complete: {error}"));
    }
}

/// What the run starts with, and whether its crew works on a copy.
fn prepare(
    paths: &Paths,
    config: &Config,
    models: &Models,
    servers: &Fleet,
    plan: &Plan,
) -> Result<(RunSpec, bool)> {
    let settings = config.settings();
    let name = settings.crew.as_deref().unwrap_or("solo");
    let crew = selvedge_crews::all().find(name, &paths.crews(&plan.workspace))?;
    if crew.name == selvedge_crews::journal::JOURNAL {
        return Err(
            Error::usage("the crew `journal` works on notes, not in a directory")
                .hint("`selvedge log`, `selvedge ask` and `selvedge journal` are its ways in"),
        );
    }
    let is_trusted = vouched(paths, &plan.workspace, &crew);
    declare(&crew, is_trusted);
    let failed = RefCell::new(None);
    let resolve = models.resolver(settings.model.as_deref(), &failed);
    let mut sandbox = settings.sandbox.sandbox(paths);
    // The scripts of the user's own skills are of use to a command that can see them.
    let is_theirs = |skill: &&Skill| skill.owner == Owner::User && skill.brings_code;
    let scripts = plan.skills.iter().filter(is_theirs);
    sandbox
        .readable
        .extend(scripts.map(|skill| skill.folder.clone()));
    let setup = Setup {
        request: plan.request.clone(),
        workspace: plan.workspace.clone(),
        approve: match settings.approve {
            // Nobody is there to be asked: what must be approved is refused.
            None | Some(Approve::Ask) if !crew.ways.asks => Approve::Never.into(),
            approve => approve.unwrap_or(Approve::Ask).into(),
        },
        policy: config.policy().clone().fenced_by(&sandbox),
        sandbox,
        is_trusted,
        budget_usd: settings.budget_usd.map(|budget| budget.0),
        budget_tokens: settings.budget_tokens,
        output_schema: plan.output_schema.clone(),
        instructions: user_instructions(&paths.user_instructions()),
        skills: plan.skills.clone(),
        lazy: settings.tools.lazy.map(Into::into).unwrap_or_default(),
        resolve: &resolve,
    };
    let toolbox = wiring::offered(servers).with_secrets(secrets::of_this_process().clone());
    let mut spec = match assemble(&crew, &toolbox, &setup) {
        Ok(spec) => spec,
        Err(error @ SetupError::Model { .. }) => {
            let cause = failed.borrow_mut().take().map(Error::from);
            return Err(cause.unwrap_or_else(|| error.into()));
        }
        Err(error) => return Err(error.into()),
    };
    settings.limits.bound(&mut spec);
    models.add_fallbacks(&mut spec);
    spec.awaited = true;
    Ok((spec, crew.ways.isolated))
}

fn no_copy(error: &CopyError) -> Error {
    Error::failed("there is no copy of the directory to work on")
        .cause(error)
        .hint("make `git` available, or work in the directory itself: `--in-place`")
}

/// The skills that agents can use in a workspace. Those that would be there and do not
/// count are named; that one has the name of another is said by `skills list`.
pub fn skills_for(paths: &Paths, workspace: &Path) -> Vec<Skill> {
    let is_trusted = Trust::of(paths, workspace).is_given();
    let found = find_skills(workspace, &paths.contents("skills"), is_trusted);
    for (folder, why) in &found.left_out {
        let next = match why {
            LeftOut::Shadowed { .. } => continue,
            LeftOut::Broken(_) => "",
            LeftOut::Untrusted => "; look at it, then `selvedge trust`",
        };
        let folder = escape(&folder.display().to_string());
        let why = escape(&why.to_string());
        out::warn(&format!("the skill `{folder}` is left out: {why}{next}"));
    }
    found.skills
}

/// Whether somebody vouches for a crew: it is built in or the user's own, or the
/// user trusts the project it comes with.
pub fn vouched(paths: &Paths, workspace: &Path, crew: &Crew) -> bool {
    match &crew.folder {
        Some(folder) if folder.starts_with(workspace) => Trust::of(paths, workspace).is_given(),
        _ => true,
    }
}

/// Says what a crew's work needs before it begins.
fn declare(crew: &Crew, is_trusted: bool) {
    if crew.commands.is_empty() {
        return;
    }
    let commands: Vec<&str> = crew.commands.iter().map(|c| c.as_str()).collect();
    let commands = escape(&commands.join(", "));
    match is_trusted {
        true => out::say(&format!("crew {} may run unasked: {commands}", crew.name)),
        false => out::warn(&format!(
            "what crew `{}` declares is asked about all the same ({commands}): nobody vouches \
             for this folder; look at it, then `selvedge trust`",
            crew.name
        )),
    }
}

/// The directory to work in, complete.
pub fn workspace(directory: Option<&Path>) -> Result<PathBuf> {
    let directory = directory.unwrap_or(Path::new("."));
    let wrong = |why: String| {
        Error::usage(format!("`{}` cannot be worked in", directory.display()))
            .cause(why)
            .hint("name a directory that exists: `selvedge run -C DIR \"…\"`")
    };
    let path = std::fs::canonicalize(directory).map_err(|error| wrong(error.to_string()))?;
    match path.is_dir() {
        true => Ok(path),
        false => Err(wrong("it is not a directory".into())),
    }
}

/// The configuration that holds in this directory.
pub fn config_here() -> Result<Config> {
    Config::load(&Paths::find()?, &workspace(None)?)
}

/// The script that a flag or the environment names.
pub fn script(flag: Option<&Path>) -> Result<Option<Script>> {
    let named = flag.map(Path::to_owned).or_else(|| env::path(env::SCRIPT));
    named.map(|path| Script::load(&path)).transpose()
}

fn read_stdin() -> Result<String> {
    let mut text = String::new();
    let read = std::io::stdin().read_to_string(&mut text);
    read.map_err(|error| {
        Error::usage("the request cannot be read from stdin")
            .cause(error)
            .hint("pipe UTF-8 text, or give the request as an argument")
    })?;
    Ok(text)
}

fn read_schema(path: &Path) -> Result<Value> {
    let wrong = |why: String| {
        Error::usage(format!(
            "the output schema `{}` cannot be used",
            path.display()
        ))
        .cause(why)
        .hint("name a file with a JSON Schema")
    };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| wrong(format!("it is not JSON: {error}")))
}

fn sandbox_value(mode: SandboxMode) -> toml::Value {
    toml::Value::try_from(mode).expect("a word is TOML")
}

fn approve_value(approve: Approve) -> toml::Value {
    toml::Value::try_from(approve).expect("a word is TOML")
}

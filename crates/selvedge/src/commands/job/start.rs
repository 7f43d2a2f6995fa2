//! `job run` and `job submit`.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use selvedge_agent::{Address, Setup, SetupError, user_instructions};
use selvedge_crews::{
    ConfigError, Configs, FolderError, JobFolder, JobSetup, JobSpec, LoadedConfig, set_up,
};
use selvedge_ledger::StreamId;
use selvedge_mcp::Fleet;
use selvedge_model::Effort;

use super::again::{Raise, reopened};
use crate::commands::{resume, run};
use crate::config::{Approve, Config, Dollars};
use crate::drive::{self, Options, Start};
use crate::error::{Error, Exit, Result};
use crate::interrupt::parse_duration;
use crate::jobs;
use crate::paths::Paths;
use crate::script::Script;
use crate::wiring::{self, Models, Store};
use crate::{mcp, out, secrets, sessions};

/// What a job is ordered with.
#[derive(Args)]
pub struct Order {
    /// The config: `creator`, `validator`, or one of `.selvedge/configs/`.
    #[arg(long, value_name = "NAME", required_unless_present = "resume")]
    config: Option<String>,
    /// A file to work on; may be given more than once.
    #[arg(long = "document", value_name = "FILE")]
    documents: Vec<PathBuf>,
    /// What there is to say beyond the config's instructions.
    #[arg(value_name = "WORDS")]
    request: Option<String>,
    /// The model, instead of the config's.
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// What it may cost, in US dollars.
    #[arg(long, value_name = "USD", allow_negative_numbers = true)]
    budget: Option<Dollars>,
    /// How many tokens it may use, of requests and answers together.
    #[arg(long, value_name = "TOKENS")]
    budget_tokens: Option<u32>,
    /// The directory that the job's folder is made in: `workspace/job_ID`.
    #[arg(short = 'C', long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Answer from a script instead of a model: a YAML file of turns.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
}

#[derive(Args)]
pub struct RunJob {
    #[command(flatten)]
    order: Order,
    /// Go on with this job after a crash, a stop or a failed tool; with one that has failed,
    /// as a new one from the beginning of its last phase.
    #[arg(long, value_name = "ID", id = "resume", conflicts_with_all = ["config", "documents"])]
    resume: Option<String>,
    /// Raise the number of model calls of all its phases together to this many.
    #[arg(long, value_name = "COUNT", requires = "resume")]
    max_iterations: Option<u32>,
    /// Print one event per line to stdout, as JSON, and nothing else.
    #[arg(long)]
    json: bool,
    /// Stop after this long, such as `90s` or `5m`.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    timeout: Option<Duration>,
}

#[derive(Args)]
pub struct Submit {
    #[command(flatten)]
    order: Order,
    /// Never given: a submitted job is resumed by workers.
    #[arg(long, hide = true, id = "resume")]
    resume: Option<String>,
}

impl RunJob {
    pub async fn perform(self) -> Result {
        let options = Options {
            json: self.json,
            timeout: self.timeout,
            can_ask: false,
            markdown: false,
        };
        if let Some(id) = &self.resume {
            let store = Store::open()?;
            let session = sessions::find(&store, id).await?;
            let Order {
                budget,
                budget_tokens,
                ..
            } = self.order;
            let raise = Raise {
                usd: budget.map(|budget| budget.0),
                tokens: budget_tokens.map(u64::from),
                model_calls: self.max_iterations,
            };
            let (session, raise) = reopened(&store, session, raise).await?;
            let said = raise.signal().into_iter().collect();
            return resume::resume(&store, &session, said, self.order.script, options).await;
        }
        let paths = Paths::find()?;
        let (place, text) = self.order.settle(&paths)?;
        let ordered = order(&place, self.order, false)?;
        let (models, servers) = (place.models, place.servers);
        let store = Store::open_at(paths)?;
        let (session, spec) = ordered.make(&store, text.as_deref())?;
        out::say(&format!(
            "job {session} in {}",
            spec.run.workspace.display()
        ));
        let start = Start::Job(Box::new(spec));
        drive::session(&store, models, &servers, &session, start, options).await
    }
}

impl Submit {
    pub async fn perform(self) -> Result {
        let paths = Paths::find()?;
        let (place, text) = self.order.settle(&paths)?;
        let ordered = order(&place, self.order, true)?;
        let (models, servers) = (place.models, place.servers);
        let store = Store::open_at(paths)?;
        let (session, spec) = ordered.make(&store, text.as_deref())?;
        out::say(&format!(
            "submitted, to be done in {}",
            spec.run.workspace.display()
        ));
        jobs::open(&store, models, &servers, &session, spec).await?;
        out::line(session.as_str());
        Ok(Exit::Done)
    }
}

impl Order {
    /// An order from code: a config and its inputs.
    pub fn of(config: &str, documents: Vec<PathBuf>) -> Self {
        Self {
            config: Some(config.to_owned()),
            documents,
            request: None,
            model: None,
            budget: None,
            budget_tokens: None,
            directory: None,
            script: None,
        }
    }

    /// Where it is done and what holds there, and the text of what takes the place of a
    /// model.
    fn settle(&self, paths: &Paths) -> Result<(Place, Option<String>)> {
        let base = run::workspace(self.directory.as_deref())?;
        let mut config = Config::load(paths, &base)?;
        config.warnings().iter().for_each(|w| out::warn(w));
        secrets::learn(&config)?;
        if let Some(request) = &self.request {
            secrets::guard("request", request, false)?;
        }
        let model = self.model.clone().map(toml::Value::String);
        config.flag("model", "--model", model);
        let dollars = self.budget.map(|budget| toml::Value::Float(budget.0));
        config.flag("budget_usd", "--budget", dollars);
        let tokens = self.budget_tokens.map(|n| toml::Value::Integer(n.into()));
        config.flag("budget_tokens", "--budget-tokens", tokens);
        let script = run::script(self.script.as_deref())?;
        let text = script.as_ref().map(|script| script.text().to_owned());
        let name = self.config.as_deref().unwrap_or_default();
        Ok((Place::of(paths, base, config, name, script)?, text))
    }
}

/// Where a job is done, and what holds there.
pub struct Place {
    paths: Paths,
    base: PathBuf,
    config: Config,
    loaded: LoadedConfig,
    address: Option<Address>,
    /// Who can be asked.
    pub models: Models,
    /// Whose tools can be used.
    pub servers: Fleet,
}

impl Place {
    /// The directory `base` for jobs of the config `name`.
    pub fn of(
        paths: &Paths,
        base: PathBuf,
        config: Config,
        name: &str,
        script: Option<Script>,
    ) -> Result<Self> {
        let configs = Configs {
            folders: paths.job_configs(&base).into(),
        };
        let loaded = configs.load(name).map_err(config_error)?;
        // A project says where its jobs' models are. It does not get the user's keys by it.
        let address = loaded.address(|folder| folder.starts_with(paths.config()));
        if let Some(address) = address.as_ref().filter(|address| !address.has_key) {
            out::warn(&format!(
                "the key of `{}` is not sent to {}: the project's config says so, and not \
                 yours in {}",
                address.provider,
                address.base_url,
                paths.config().join("configs").display()
            ));
        }
        let models = Models::find_at(&config, script, address.as_ref())?;
        let servers = mcp::fleet(paths, &config, &base);
        Ok(Self {
            paths: paths.clone(),
            base,
            config,
            loaded,
            address,
            models,
            servers,
        })
    }
}

/// A job that could begin: everything was checked, and nothing was written.
pub struct Ordered {
    base: PathBuf,
    loaded: LoadedConfig,
    documents: Vec<PathBuf>,
    spec: JobSpec,
}

/// Checks an order, and sets the job up.
pub fn order(place: &Place, order: Order, queued: bool) -> Result<Ordered> {
    let Place {
        paths,
        base,
        config,
        loaded,
        address,
        models,
        servers,
    } = place;
    if queued {
        jobs::check_polling(loaded)?;
    }
    jobs::check_connections(&loaded.config.connections)?;
    let toolbox = wiring::offered(servers).with_secrets(secrets::of_this_process().clone());
    let known: Vec<String> = toolbox.specs().into_iter().map(|spec| spec.name).collect();
    loaded.check_tools(&known).map_err(config_error)?;
    let mut documents = Vec::new();
    for document in &order.documents {
        let place = std::fs::canonicalize(document);
        let place = place.ok().filter(|place| place.is_file()).ok_or_else(|| {
            Error::usage(format!("there is no document `{}`", document.display()))
                .hint("name a file that can be read")
        })?;
        documents.push(place);
    }
    let settings = config.settings();
    let failed = RefCell::new(None);
    let resolve = models.resolver(settings.model.as_deref(), &failed);
    let sandbox = settings.sandbox.sandbox(paths);
    let setup = Setup {
        request: order.request.unwrap_or_default(),
        workspace: base.clone(),
        approve: match settings.approve {
            // Nobody is there to be asked: what must be approved is refused.
            None | Some(Approve::Ask) => Approve::Never.into(),
            Some(approve) => approve.into(),
        },
        policy: config.policy().clone().fenced_by(&sandbox),
        sandbox,
        is_trusted: false,
        budget_usd: settings.budget_usd.map(|budget| budget.0),
        budget_tokens: settings.budget_tokens,
        output_schema: None,
        instructions: user_instructions(&paths.user_instructions()),
        skills: Vec::new(),
        lazy: settings.tools.lazy.map(Into::into).unwrap_or_default(),
        resolve: &resolve,
    };
    let job = JobSetup {
        loaded,
        setup,
        address: address.clone(),
        queued,
    };
    let mut spec = match set_up(job, &toolbox) {
        Ok(spec) => spec,
        Err(error @ SetupError::Model { .. }) => {
            let cause = failed.borrow_mut().take().map(Error::from);
            return Err(cause.unwrap_or_else(|| error.into()));
        }
        Err(error) => return Err(error.into()),
    };
    settings.limits.bound(&mut spec.run);
    warn_of_effort(loaded, models, &spec);
    models.add_fallbacks(&mut spec.run);
    Ok(Ordered {
        base: base.clone(),
        loaded: loaded.clone(),
        documents,
        spec,
    })
}

/// Says so if a job is to think long or short with a model that cannot be told.
fn warn_of_effort(loaded: &LoadedConfig, models: &Models, spec: &JobSpec) {
    let phases = spec.run.team.values();
    let told = phases.filter(|phase| phase.terms.effort.is_some_and(|e| e != Effort::None));
    let deaf = told.filter(|phase| !models.takes_effort(&phase.model));
    let names: BTreeSet<&str> = deaf.map(|phase| phase.model.as_str()).collect();
    for model in names {
        out::warn(&format!(
            "`{model}` cannot be told how long to think while it has tools: \
             `llm.reasoning_level` of `{}` has no effect",
            loaded.name
        ));
    }
}

impl Ordered {
    /// Makes the job's folder, and gives the job its name.
    pub fn make(self, store: &Store, script: Option<&str>) -> Result<(StreamId, JobSpec)> {
        let Self {
            base,
            loaded,
            documents,
            mut spec,
        } = self;
        let session = StreamId::new(store.chance.id("s"));
        let id = session.as_str().trim_start_matches("s_");
        let JobFolder { path, documents } =
            JobFolder::make(&base, id, &loaded.config, &loaded.instructions, &documents)?;
        spec.job.documents = documents;
        spec.run.sandbox.temp = Some(store.paths.temp(&session));
        spec.run.workspace.clone_from(&path);
        for phase in spec.run.team.values_mut() {
            phase.workspace.clone_from(&path);
            phase.sandbox.temp.clone_from(&spec.run.sandbox.temp);
        }
        if let Some(script) = script {
            store.keep_script(&session, script)?;
        }
        Ok((session, spec))
    }
}

/// What is wrong with a config, for people.
pub fn config_error(error: ConfigError) -> Error {
    let hint = error.hint.clone();
    let file = error.file.clone();
    Error::usage(error.to_string()).hint(hint.unwrap_or_else(|| {
        format!("correct `{file}`; `selvedge config schema job` says what it may have")
    }))
}

impl From<FolderError> for Error {
    fn from(error: FolderError) -> Self {
        Self::failed(error.to_string())
            .hint("make the directory writable, or name another with `-C`")
    }
}

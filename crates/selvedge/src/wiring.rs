//! Puts the rooms together: ledger, models, tools, driver.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

use jiff::tz::TimeZone;
use secrecy::{ExposeSecret, SecretString};
use selvedge_agent::{
    AGENT, Address, AgentCall, AgentMachine, AgentPerformer, DocumentStores, RunSpec,
    document_tools, knowledge_tools,
};
use selvedge_crews::journal::{JOURNAL, journal_machine, journal_tools};
use selvedge_crews::{JOB, JobMachine, desk_tools};
use selvedge_ledger::{Ledger, SqliteLedger, SqliteOptions, StreamId};
use selvedge_mcp::Fleet;
use selvedge_model::{
    Cassette, Catalogue, Ceilings, Gate, HttpOptions, Providers, Recorder, ResolveError,
    ResponseCache, provider_of,
};
use selvedge_runtime::{
    Chance, Clock, Driver, Machine, Patience, SystemChance, SystemClock, Watcher,
};
use selvedge_tool::{
    ConsentBook, DiscoverTools, Grants, Lender, NoConsent, Scopes, Toolbox, variable,
};

use crate::config::{self, Config, Settings};
use crate::env;
use crate::error::{Error, Result};
use crate::keys::{Keys, Opening};
use crate::knowledge;
use crate::out;
use crate::paths::Paths;
use crate::script::{Names, Script};
use crate::secrets;

/// The ledger, and what goes with it.
#[derive(Clone)]
pub struct Store {
    /// Where events are kept.
    pub ledger: Arc<dyn Ledger>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Where identifiers come from.
    pub chance: Arc<dyn Chance>,
    /// Where everything is.
    pub paths: Paths,
}

impl Store {
    /// Opens the user's ledger, and makes it if there is none.
    pub fn open() -> Result<Self> {
        Self::open_at(Paths::find()?)
    }

    /// Opens the ledger at `paths`.
    pub fn open_at(paths: Paths) -> Result<Self> {
        paths.make_data()?;
        let ledger = SqliteLedger::open(&SqliteOptions::new(paths.ledger()))?;
        Ok(Self {
            ledger: Arc::new(ledger),
            clock: Arc::new(SystemClock),
            chance: Arc::new(SystemChance),
            paths,
        })
    }

    /// Keeps the script that a session's model answers from, so that the
    /// session can be resumed without it.
    pub fn keep_script(&self, session: &StreamId, text: &str) -> Result<()> {
        let folder = self.paths.session(session);
        let path = self.paths.script(session);
        let kept = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, text));
        kept.map_err(|error| {
            Error::failed(format!("the script cannot be kept at `{}`", path.display()))
                .cause(error)
                .hint("make the data folder writable")
        })
    }

    /// The script or cassette kept for a session whose `model` it stands for.
    pub fn kept_script(&self, session: &StreamId, model: &str) -> Result<Option<Script>> {
        let path = self.paths.script(session);
        match path.exists() {
            true if model.starts_with("replay/") => Script::replay(&path).map(Some),
            true => Script::load(&path).map(Some),
            false => Ok(None),
        }
    }
}

/// Who can be asked, and by which names.
pub struct Models {
    /// What is known of them.
    pub catalogue: Arc<Catalogue>,
    /// Who answers.
    pub providers: Providers,
    /// The names a script answers to, when one was given.
    scripted: Option<Names>,
    settings: Settings,
}

impl Models {
    /// Those whose keys are set or stored, and the script if there is one.
    pub fn find(config: &Config, script: Option<Script>) -> Result<Self> {
        Self::find_at(config, script, None)
    }

    /// The same with a provider that is elsewhere for one session.
    pub fn find_at(
        config: &Config,
        script: Option<Script>,
        address: Option<&Address>,
    ) -> Result<Self> {
        // A script asks no provider, so nothing is unlocked for it.
        let opening = match script {
            Some(_) => Opening::Environment,
            None => Opening::All,
        };
        Self::with(config, script, opening, address)
    }

    /// The same to look at and not to ask: nothing is unlocked.
    pub fn known(config: &Config, script: Option<Script>) -> Result<Self> {
        Self::with(config, script, Opening::Nothing, None)
    }

    fn with(
        config: &Config,
        script: Option<Script>,
        opening: Opening,
        address: Option<&Address>,
    ) -> Result<Self> {
        let mut table = config.catalogue();
        if let Some(address) = address {
            lay_address(&mut table, &address.provider);
        }
        let catalogue = Catalogue::with(&table)?;
        let keys = Keys::find(config, opening)?;
        secrets::learn(config)?;
        let lookup = |name: &str| match address {
            Some(address) if name == ADDRESS => Some(address.base_url.clone()),
            _ => env::word(name),
        };
        let is_withheld = |provider: &str| {
            address.is_some_and(|address| address.provider == provider && !address.has_key)
        };
        let found = |provider: &str, facts: &_| {
            if is_withheld(provider) {
                return None;
            }
            let found = keys.of(provider, facts)?;
            // Known from here on, so that it appears in nothing.
            secrets::of_this_process().know(found.0.expose_secret());
            Some(found)
        };
        let mut providers =
            Providers::with_keys(&catalogue, &HttpOptions::default(), lookup, found);
        let mut scripted = None;
        if let Some(script) = script {
            let (with_script, names) = script.take_place(providers);
            (providers, scripted) = (with_script, Some(names));
        }
        Ok(Self {
            catalogue,
            providers,
            scripted,
            settings: config.settings(),
        })
    }

    /// The same with everything that is answered added to the cassette at `path`.
    pub fn recorded(mut self, path: &Path) -> Result<(Self, Arc<Recorder>)> {
        let recorder = Recorder::open(path, secrets::cleaner()).map_err(|error| {
            Error::usage(format!("`{}` cannot be recorded to", path.display()))
                .cause(error)
                .hint("name a file that can be written")
        })?;
        self.providers = recorder.listen(self.providers);
        Ok((self, recorder))
    }

    /// Adds the configured fallbacks to those that the agents of a run have.
    pub fn add_fallbacks(&self, spec: &mut RunSpec) {
        // A script is asked because nobody else is to be.
        if self.scripted.is_some() {
            return;
        }
        let provider = provider_of(&spec.model);
        let mut keys = vec![spec.model.as_str()];
        for tier in self.catalogue.tiers_of(&spec.model) {
            keys.push(tier.name());
        }
        keys.push(provider);
        let names = keys
            .iter()
            .filter_map(|key| self.settings.fallback.get(*key));
        let names: Vec<&String> = names.flatten().collect();
        for name in names {
            // Those whose provider is not available are passed over.
            if let Ok(model) = self.resolve(name)
                && model != spec.model
                && !spec.fallbacks.contains(&model)
            {
                spec.fallbacks.push(model);
            }
        }
        let team = spec.team.values_mut();
        team.for_each(|agent| self.add_fallbacks(agent));
    }

    /// The full name of the model that `name` means.
    pub fn resolve(&self, name: &str) -> std::result::Result<String, ResolveError> {
        let available = self.providers.available();
        let resolved = self.catalogue.resolve(Some(name), &available)?;
        Ok(resolved.name)
    }

    /// Whether a model can be told how long to think; one of which that is not known can.
    pub fn takes_effort(&self, model: &str) -> bool {
        let name = model.split_once('/').map_or(model, |(_, name)| name);
        let provider = self.providers.find(model);
        provider.is_none_or(|provider| provider.takes_effort(name))
    }

    /// Turns an agent's name for a model into a full one, for `assemble`; what
    /// went wrong is left in `failed`, with its hint.
    pub fn resolver<'a>(
        &'a self,
        wanted: Option<&'a str>,
        failed: &'a RefCell<Option<ResolveError>>,
    ) -> impl Fn(&str) -> std::result::Result<String, String> + 'a {
        move |own| {
            let name = wanted.unwrap_or(own);
            let resolved = match &self.scripted {
                Some(Names::One(scripted)) if wanted.is_none() => return Ok(scripted.clone()),
                Some(Names::Recorded(models)) => self.recorded_model(models, name),
                _ => self.resolve(name),
            };
            resolved.map_err(|error| {
                let why = error.to_string();
                *failed.borrow_mut() = Some(error);
                why
            })
        }
    }

    /// The recorded model that `name` means: the only one, or what the same name
    /// meant when its provider was there.
    fn recorded_model(
        &self,
        models: &[String],
        name: &str,
    ) -> std::result::Result<String, ResolveError> {
        if let [only] = models {
            return Ok(Cassette::name_of(only));
        }
        let provider = |model: &String| provider_of(model).to_owned();
        let available = models.iter().map(provider).collect();
        let resolved = self.catalogue.resolve(Some(name), &available)?;
        Ok(Cassette::name_of(&resolved.name))
    }

    /// What all sessions may spend together, as it is configured.
    fn ceilings(&self, store: &Store) -> Option<Ceilings> {
        let soft = self.settings.soft_limits.iter();
        let soft = soft.map(|(provider, limit)| limit.rule(provider));
        let rules = self.settings.budget.rules().into_iter().chain(soft);
        let (ledger, clock) = (store.ledger.clone(), store.clock.clone());
        Ceilings::new(ledger, clock, TimeZone::system(), rules.collect())
    }

    /// Answers that are given again, if that is wanted.
    fn cache(&self, store: &Store) -> Option<ResponseCache> {
        let wanted = self.settings.cache.filter(|wanted| *wanted);
        let opened = wanted.map(|_| ResponseCache::open(&store.paths.cache()))?;
        if let Err(error) = &opened {
            out::warn(&format!("no answer is kept: {error}"));
        }
        opened
            .ok()
            .map(|cache| cache.with_clean(secrets::cleaner()))
    }
}

/// A name that no variable of the environment has: it stands for the address of a session.
const ADDRESS: &str = "=ADDRESS";

/// Has the address of a provider looked up where only one session finds it.
fn lay_address(table: &mut toml::Table, provider: &str) {
    let mut at = table;
    for name in ["providers", provider] {
        let inner = at
            .entry(name)
            .or_insert_with(|| toml::Value::Table(toml::Table::new()));
        match inner {
            toml::Value::Table(inner) => at = inner,
            // The catalogue says what is wrong with it.
            _ => return,
        }
    }
    at.insert("base_url_variable".to_owned(), ADDRESS.into());
}

/// The tools, those of `servers` among them, with the secrets of this process kept out
/// of what they say.
pub fn toolbox(store: &Store, servers: &Fleet) -> Toolbox {
    let consent = ConsentBook::new(store.paths.consents(), Arc::new(NoConsent));
    let secrets = secrets::of_this_process();
    let lender = Lender::new(
        Scopes::default(),
        Arc::new(consent),
        Arc::new(|provider: &str| env::word(&variable(provider)).map(SecretString::from)),
        store.clock.clone(),
        secrets.clone(),
    );
    let discover = DiscoverTools::remembering(store.paths.discoveries());
    // What a machine of a crew uses is on nobody's list.
    let own = desk_tools().into_iter().chain(journal_tools());
    own.fold(offered(servers), Toolbox::with)
        .with(Arc::new(discover))
        .with_secrets(secrets.clone())
        .with_lender(Arc::new(lender))
}

/// The built-in tools, those of the index, and those of `servers`.
pub fn offered(servers: &Fleet) -> Toolbox {
    let index = knowledge_tools(&knowledge::opener());
    let documents = document_tools(&DocumentStores {
        own: knowledge::opener(),
        as_left: knowledge::opener_as_left(),
        shared: knowledge::shared_opener(),
    });
    let tools = index.into_iter().chain(documents).chain(servers.tools());
    tools.fold(Toolbox::core(), Toolbox::with)
}

/// A driver of agents.
pub fn driver(
    store: &Store,
    models: Models,
    toolbox: Arc<Toolbox>,
    watcher: Arc<dyn Watcher>,
) -> Driver<AgentCall> {
    let ceilings = models.ceilings(store);
    let cache = models.cache(store);
    let gate = Gate::new(
        models.providers,
        models.catalogue,
        store.clock.clone(),
        store.chance.clone(),
    )
    .with_slots(models.settings.slots.into())
    .with_pace_of(store.ledger.clone())
    .with_cache(cache);
    let hooks = config::chain(&models.settings.hooks).with(Arc::new(knowledge::FollowJobs::new()));
    let performer = AgentPerformer::new(
        store.ledger.clone(),
        store.clock.clone(),
        Arc::new(gate),
        toolbox,
    )
    .with_ceilings(ceilings)
    .with_grants(Grants::at(store.paths.approvals()))
    .with_hooks(hooks)
    .with_checkpoints(store.paths.sessions());
    Driver {
        ledger: store.ledger.clone(),
        clock: store.clock.clone(),
        performer: Arc::new(performer),
        machines: Arc::new(machine),
        watcher,
        patience: Patience::Return,
    }
}

fn machine(kind: &str) -> Option<Box<dyn Machine<Call = AgentCall>>> {
    match kind {
        JOB => Some(Box::new(JobMachine::default())),
        AGENT => Some(Box::new(AgentMachine::default())),
        JOURNAL => Some(journal_machine()),
        _ => None,
    }
}

//! Puts the rooms together: ledger, models, tools, driver.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};
use selvedge_agent::{AGENT, AgentCall, AgentMachine, AgentPerformer};
use selvedge_ledger::{Ledger, SqliteLedger, SqliteOptions, StreamId};
use selvedge_model::{Catalogue, Gate, HttpOptions, Providers, ResolveError, ScriptedModel};
use selvedge_runtime::{
    Chance, Clock, Driver, Machine, Patience, SystemChance, SystemClock, Watcher,
};
use selvedge_tool::{ConsentBook, Lender, NoConsent, Scopes, Toolbox, variable};

use crate::config::Config;
use crate::env;
use crate::error::{Error, Result};
use crate::keys::{Keys, Opening};
use crate::paths::Paths;
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

    /// The script kept for a session, if its model is scripted.
    pub fn kept_script(&self, session: &StreamId) -> Result<Option<Script>> {
        let path = self.paths.script(session);
        match path.exists() {
            true => Script::load(&path).map(Some),
            false => Ok(None),
        }
    }
}

/// A file of answers that takes the place of a model.
pub struct Script {
    name: String,
    text: String,
    model: ScriptedModel,
}

impl Script {
    /// Reads a script.
    pub fn load(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            Error::usage(format!("the script `{}` cannot be read", path.display()))
                .cause(error)
                .hint("name a file of turns; `selvedge demo` shows one at work")
        })?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        Self::parse(&path.display().to_string(), &stem, text)
    }

    /// Reads a script from its text. `stem` names its model if the text does not.
    pub fn parse(file: &str, stem: &str, text: String) -> Result<Self> {
        let model = ScriptedModel::parse(file, &text)?;
        let label = model.label().unwrap_or(stem);
        let name = match label.starts_with("scripted/") {
            true => label.to_owned(),
            false => format!("scripted/{label}"),
        };
        Ok(Self { name, text, model })
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The same script, taking longer for each answer.
    pub fn slower(mut self, by: std::time::Duration) -> Self {
        self.model = self.model.with_latency(by);
        self
    }
}

/// Who can be asked, and by which names.
pub struct Models {
    /// What is known of them.
    pub catalogue: Arc<Catalogue>,
    /// Who answers.
    pub providers: Providers,
    /// The model that stands for every name, when a script was given.
    scripted: Option<String>,
}

impl Models {
    /// Those whose keys are set or stored, and the script if there is one.
    pub fn find(config: &Config, script: Option<Script>) -> Result<Self> {
        // A script asks no provider, so nothing is unlocked for it.
        let opening = match script {
            Some(_) => Opening::Environment,
            None => Opening::All,
        };
        Self::with(config, script, opening)
    }

    /// The same to look at and not to ask: nothing is unlocked.
    pub fn known(config: &Config, script: Option<Script>) -> Result<Self> {
        Self::with(config, script, Opening::Nothing)
    }

    fn with(config: &Config, script: Option<Script>, opening: Opening) -> Result<Self> {
        let catalogue = Catalogue::with(config.catalogue())?;
        let keys = Keys::find(config, opening)?;
        secrets::learn(config)?;
        let found = |provider: &str, facts: &_| {
            let found = keys.of(provider, facts)?;
            // Known from here on, so that it appears in nothing.
            secrets::of_this_process().know(found.0.expose_secret());
            Some(found)
        };
        let mut providers =
            Providers::with_keys(&catalogue, &HttpOptions::default(), env::word, found);
        let mut scripted = None;
        if let Some(script) = script {
            scripted = Some(script.name);
            providers = providers.with_script(script.model);
        }
        Ok(Self {
            catalogue,
            providers,
            scripted,
        })
    }

    /// The full name of the model that `name` means.
    pub fn resolve(&self, name: &str) -> std::result::Result<String, ResolveError> {
        let available = self.providers.available();
        let resolved = self.catalogue.resolve(Some(name), &available)?;
        Ok(resolved.name)
    }

    /// Turns an agent's name for a model into a full one, for `assemble`; what
    /// went wrong is left in `failed`, with its hint.
    pub fn resolver<'a>(
        &'a self,
        wanted: Option<&'a str>,
        failed: &'a RefCell<Option<ResolveError>>,
    ) -> impl Fn(&str) -> std::result::Result<String, String> + 'a {
        move |own| {
            let name = match (wanted, &self.scripted) {
                (None, Some(scripted)) => return Ok(scripted.clone()),
                (wanted, _) => wanted.unwrap_or(own),
            };
            self.resolve(name).map_err(|error| {
                let why = error.to_string();
                *failed.borrow_mut() = Some(error);
                why
            })
        }
    }
}

/// The tools, with the secrets of this process kept out of what they say.
pub fn toolbox(store: &Store) -> Toolbox {
    let consent = ConsentBook::new(store.paths.consents(), Arc::new(NoConsent));
    let secrets = secrets::of_this_process();
    let lender = Lender::new(
        Scopes::default(),
        Arc::new(consent),
        Arc::new(|provider: &str| env::word(&variable(provider)).map(SecretString::from)),
        store.clock.clone(),
        secrets.clone(),
    );
    Toolbox::core()
        .with_secrets(secrets.clone())
        .with_lender(Arc::new(lender))
}

/// A driver of agents.
pub fn driver(
    store: &Store,
    models: Models,
    toolbox: Arc<Toolbox>,
    watcher: Arc<dyn Watcher>,
) -> Driver<AgentCall> {
    let gate = Gate::new(
        models.providers,
        models.catalogue,
        store.clock.clone(),
        store.chance.clone(),
    );
    let performer = AgentPerformer::new(
        store.ledger.clone(),
        store.clock.clone(),
        Arc::new(gate),
        toolbox,
    );
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
        AGENT => Some(Box::new(AgentMachine::default())),
        _ => None,
    }
}

//! `config`: shows, checks and describes the configuration.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use selvedge_model::ResolveError;
use serde_json::json;

use super::run;
use crate::config::{Config, Origin, Row, Settings};
use crate::error::{Error, Exit, Result};
use crate::out;
use crate::paths::Paths;
use crate::text::table;
use crate::wiring::Models;

#[derive(Subcommand)]
pub enum Configure {
    /// Print every value, and where it comes from.
    Show(Show),
    /// Check every file, and the variables.
    Check(Place),
    /// Print the files that are read, the lowest first.
    Path(Place),
    /// Print the JSON Schema of a configuration file, or of a job's config.
    Schema {
        /// `job` for that of a job's config.
        #[arg(value_name = "WHAT")]
        what: Option<Described>,
    },
}

/// What else has a schema.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum Described {
    /// A job's `config.json`.
    Job,
}

#[derive(Args)]
pub struct Show {
    #[command(flatten)]
    place: Place,
    /// Print one value per line, as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub struct Place {
    /// The directory whose project is meant.
    #[arg(short = 'C', long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

impl Configure {
    pub fn perform(self) -> Result {
        match self {
            Self::Show(show) => show.perform(),
            Self::Check(place) => check(&place),
            Self::Path(place) => {
                let workspace = run::workspace(place.directory.as_deref())?;
                for file in Config::files(&Paths::find()?, &workspace) {
                    out::line(&file.display().to_string());
                }
                Ok(Exit::Done)
            }
            Self::Schema { what } => {
                let schema = match what {
                    Some(Described::Job) => selvedge_crews::config_schema(),
                    None => schemars::schema_for!(Settings).to_value(),
                };
                let text = serde_json::to_string_pretty(&schema).expect("a schema is JSON");
                out::line(&text);
                Ok(Exit::Done)
            }
        }
    }
}

impl Show {
    fn perform(self) -> Result {
        let config = self.place.load()?;
        let mut rows = Vec::new();
        for (key, set) in config.shown() {
            if self.json {
                let value = set.map(|(value, _)| value);
                let origin = set.map_or("default".into(), |(_, origin)| origin.to_string());
                out::json(&json!({ "key": key, "value": value, "origin": origin }));
                continue;
            }
            let (value, origin) = match set {
                Some((value, origin)) => (value.to_string(), origin.clone()),
                None => ("(not set)".into(), Origin::Default),
            };
            rows.push(vec![key.to_owned(), value, origin.to_string()]);
        }
        for Row { key, value, origin } in config.more() {
            let origin = origin.to_string();
            match self.json {
                true => out::json(&json!({ "key": key, "value": value, "origin": origin })),
                false => rows.push(vec![key.clone(), value.to_string(), origin]),
            }
        }
        if !self.json {
            out::line(&table(&rows));
        }
        Ok(Exit::Done)
    }
}

fn check(place: &Place) -> Result {
    let config = place.load()?;
    let models = Models::known(&config, None)?;
    let workspace = run::workspace(place.directory.as_deref())?;
    let settings = config.settings();
    if let Some(crew) = &settings.crew {
        selvedge_crews::all().find(crew, &Paths::find()?.crews(&workspace))?;
    }
    match settings.model.as_deref().map(|model| models.resolve(model)) {
        // A key that is not set is no fault of a file.
        Some(Err(ResolveError::NoProvider { .. } | ResolveError::NotAvailable { .. })) => {}
        Some(Err(error)) => return Err(Error::from(error).exit(Exit::Usage)),
        None | Some(Ok(_)) => {}
    }
    let files = Config::files(&Paths::find()?, &workspace);
    let read = files.iter().filter(|file| file.exists()).count();
    let s = if read == 1 { "" } else { "s" };
    out::say(&format!("the configuration is valid ({read} file{s})"));
    Ok(Exit::Done)
}

impl Place {
    fn load(&self) -> Result<Config> {
        let workspace = run::workspace(self.directory.as_deref())?;
        let config = Config::load(&Paths::find()?, &workspace)?;
        config.warnings().iter().for_each(|w| out::warn(w));
        Ok(config)
    }
}

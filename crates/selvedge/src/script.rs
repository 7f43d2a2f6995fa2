//! A file that takes the place of models: turns somebody wrote, or a cassette.

use std::path::Path;
use std::time::Duration;

use selvedge_model::{Cassette, Providers, ScriptedModel};

use crate::error::{Error, Result};

/// A file of answers that takes the place of a model.
pub struct Script {
    text: String,
    stands_in: StandsIn,
}

/// What answers.
enum StandsIn {
    /// Turns by agent, under one name for every model.
    Turns { name: String, model: ScriptedModel },
    /// The same from a cassette.
    Places { name: String, cassette: Cassette },
    /// A cassette, request by request.
    Requests(Cassette),
}

impl Script {
    /// Reads a script: a YAML file of turns, or a cassette whose answers are given
    /// by agent and turn.
    pub fn load(path: &Path) -> Result<Self> {
        let hint = "name a file of turns; `selvedge demo` shows one at work";
        let text = read(path, hint)?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        Self::parse(&path.display().to_string(), &stem, text)
    }

    /// Reads a cassette whose answers are given to the requests they were given to.
    pub fn replay(path: &Path) -> Result<Self> {
        let hint = "name a cassette; `selvedge run --record FILE` makes one";
        let text = read(path, hint)?;
        let cassette = Cassette::parse(&path.display().to_string(), &text);
        let cassette = cassette.map_err(|error| Error::usage(error.to_string()).hint(hint))?;
        Ok(Self {
            text,
            stands_in: StandsIn::Requests(cassette),
        })
    }

    /// Reads a script from its text. `stem` names its model if the text does not.
    pub fn parse(file: &str, stem: &str, text: String) -> Result<Self> {
        if Cassette::is_one(&text) {
            let cassette = Cassette::parse(file, &text);
            let cassette = cassette.map_err(|error| Error::usage(error.to_string()))?;
            let stands_in = StandsIn::Places {
                name: format!("scripted/{stem}"),
                cassette: cassette.as_script(),
            };
            return Ok(Self { text, stands_in });
        }
        let model = ScriptedModel::parse(file, &text)?;
        let label = model.label().unwrap_or(stem);
        let name = match label.starts_with("scripted/") {
            true => label.to_owned(),
            false => format!("scripted/{label}"),
        };
        let stands_in = StandsIn::Turns { name, model };
        Ok(Self { text, stands_in })
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The same script, taking longer for each answer.
    pub fn slower(mut self, by: Duration) -> Self {
        if let StandsIn::Turns { name, model } = self.stands_in {
            let model = model.with_latency(by);
            self.stands_in = StandsIn::Turns { name, model };
        }
        self
    }

    /// The providers with this in the place of models, and the names it answers to.
    pub fn take_place(self, providers: Providers) -> (Providers, Names) {
        match self.stands_in {
            StandsIn::Turns { name, model } => (providers.with_script(model), Names::One(name)),
            StandsIn::Places { name, cassette } => {
                let providers = providers.with("scripted", std::sync::Arc::new(cassette));
                (providers, Names::One(name))
            }
            // The network is closed: nobody else can be asked.
            StandsIn::Requests(cassette) => {
                let models = cassette.models();
                let cassette = std::sync::Arc::new(cassette);
                (
                    Providers::new().with("replay", cassette),
                    Names::Recorded(models),
                )
            }
        }
    }
}

/// The names that a script answers to.
pub enum Names {
    /// One for every model.
    One(String),
    /// Those of the models that were recorded.
    Recorded(Vec<String>),
}

fn read(path: &Path, hint: &str) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| {
        Error::usage(format!("the script `{}` cannot be read", path.display()))
            .cause(error)
            .hint(hint)
    })
}

//! A provider that plays a cassette, with the network closed.
//!
//! An answer is found by the hash of its whole request. If there is none, the
//! exchange at the same place of the same agent is the one that was meant, and the
//! refusal says in what the two differ. Played as a script, that place alone
//! decides, as it does in every script.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use selvedge_ledger::Payload;
use tokio_util::sync::CancellationToken;

use super::exchange::{CassetteError, Exchange, Header, Outcome, VERSION};
use crate::error::ModelError;
use crate::fingerprint::Fingerprint;
use crate::money::{Price, Usd};
use crate::provider::{DeltaSink, Provider};
use crate::types::{Delta, Request, Response};

/// The provider under which recorded models go: their answers cost nothing now.
const PROVIDER: &str = "replay";

/// A cassette that can be played.
pub struct Cassette {
    file: String,
    exchanges: Vec<Exchange>,
    /// Which were played.
    played: Mutex<BTreeSet<usize>>,
    is_script: bool,
}

impl Cassette {
    /// Whether a text begins like a cassette.
    pub fn is_one(text: &str) -> bool {
        let first = text.lines().next().unwrap_or_default();
        serde_json::from_str::<Header>(first).is_ok()
    }

    /// Reads a cassette.
    pub fn load(path: &Path) -> Result<Self, CassetteError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| CassetteError {
            file: file.clone(),
            why: error.to_string(),
        })?;
        Self::parse(&file, &text)
    }

    /// Reads a cassette from its text; `file` is for messages.
    pub fn parse(file: &str, text: &str) -> Result<Self, CassetteError> {
        let wrong = |why: String| CassetteError {
            file: file.to_owned(),
            why,
        };
        let mut lines = text.lines().enumerate();
        let header = lines.next().map(|(_, line)| line).unwrap_or_default();
        let header: Header = serde_json::from_str(header)
            .map_err(|_| wrong(format!("it does not begin with {{\"cassette\":{VERSION}}}")))?;
        if header.cassette != VERSION {
            let version = header.cassette;
            return Err(wrong(format!(
                "it is of version {version}, and this program reads {VERSION}"
            )));
        }
        let exchanges = lines.map(|(n, line)| {
            serde_json::from_str(line).map_err(|error| wrong(format!("line {}: {error}", n + 1)))
        });
        Ok(Self {
            file: file.to_owned(),
            exchanges: exchanges.collect::<Result<_, _>>()?,
            played: Mutex::default(),
            is_script: false,
        })
    }

    /// The same, played by agent and turn alone.
    pub fn as_script(self) -> Self {
        Self {
            is_script: true,
            ..self
        }
    }

    /// The models that were recorded, each once.
    pub fn models(&self) -> Vec<String> {
        let models = self.exchanges.iter().map(|e| e.request.model.clone());
        models.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The name under which a recorded model is asked again.
    pub fn name_of(model: &str) -> String {
        format!("{PROVIDER}/{model}")
    }

    fn find(&self, request: &Request) -> Result<&Exchange, ModelError> {
        if self.is_script {
            let at_place = self.at_place(request);
            return at_place.ok_or_else(|| self.refuse(request, "there is none"));
        }
        let model = request.model.strip_prefix("replay/");
        let asked = Fingerprint::of(request, model.unwrap_or(&request.model));
        let digest = asked.digest();
        if let Some(found) = self.pick(|exchange| exchange.digest == digest) {
            return Ok(found);
        }
        let why = match self.at_place(request) {
            Some(meant) => meant.request.differences(&asked).join("; "),
            None => "there is none".to_owned(),
        };
        Err(self.refuse(request, &why))
    }

    fn at_place(&self, request: &Request) -> Option<&Exchange> {
        self.pick(|exchange| exchange.agent == request.agent && exchange.turn == request.turn)
    }

    /// The first of those that fit: not played yet rather than played, and an
    /// answer rather than an error, which was got over when it was recorded.
    fn pick(&self, fits: impl Fn(&Exchange) -> bool) -> Option<&Exchange> {
        let mut played = self.played.lock().unwrap_or_else(PoisonError::into_inner);
        let fitting = self.exchanges.iter().enumerate().filter(|(_, e)| fits(e));
        let (n, found) = fitting.min_by_key(|(n, exchange)| {
            let is_error = matches!(exchange.outcome, Outcome::Error(_));
            (is_error, played.contains(n), *n)
        })?;
        played.insert(n);
        Some(found)
    }

    fn refuse(&self, request: &Request, why: &str) -> ModelError {
        ModelError::Permanent {
            provider: PROVIDER.to_owned(),
            what: format!(
                "`{}` has no answer to turn {} of `{}`: {why}",
                self.file, request.turn, request.agent
            ),
        }
    }
}

#[async_trait]
impl Provider for Cassette {
    async fn ask(
        &self,
        request: &Request,
        deltas: &mut dyn DeltaSink,
        cancel: &CancellationToken,
    ) -> Result<Response, ModelError> {
        if cancel.is_cancelled() {
            return Err(ModelError::Cancelled);
        }
        match &self.find(request)?.outcome {
            Outcome::Error(error) => Err(error.clone().into()),
            Outcome::Response(response) => {
                let mut response = response.keeping(Payload::new);
                response.model.clone_from(&request.model);
                let text = response.text();
                if !text.is_empty() {
                    deltas.take(Delta::Text(text));
                }
                Ok(response)
            }
        }
    }

    /// Nothing is paid for what was paid for once.
    fn price(&self, _model: &str) -> Option<Price> {
        Some(Price {
            input: Usd::ZERO,
            cached: None,
            cache_written: None,
            output: Usd::ZERO,
            long: None,
        })
    }
}

//! A provider that writes down what another answers.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use async_trait::async_trait;
use serde::Serialize;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::exchange::{Exchange, Header, Outcome, VERSION};
use crate::error::ModelError;
use crate::fingerprint::Fingerprint;
use crate::money::Price;
use crate::provider::{DeltaSink, Provider};
use crate::providers::Providers;
use crate::types::{Delta, Request, Response};

/// Takes out of a text what must not be kept. What it makes of JSON is JSON.
pub type Clean = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// Writes exchanges to a cassette.
pub struct Recorder {
    file: Mutex<File>,
    clean: Clean,
    /// Why something could not be written, the first time.
    lost: OnceLock<io::Error>,
}

impl Recorder {
    /// Adds to the cassette at `path`, and makes it if there is none. Whatever is
    /// written goes through `clean`.
    pub fn open(path: &Path, clean: Clean) -> io::Result<Arc<Self>> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let is_new = file.metadata()?.len() == 0;
        let recorder = Self {
            file: Mutex::new(file),
            clean,
            lost: OnceLock::new(),
        };
        if is_new {
            recorder.write(&Header { cassette: VERSION })?;
        }
        Ok(Arc::new(recorder))
    }

    /// The same providers, with everything they answer written down.
    pub fn listen(self: &Arc<Self>, providers: Providers) -> Providers {
        let mut listened = providers.clone();
        for name in providers.available() {
            if let Some(inner) = providers.find(&name).cloned() {
                let recorder = self.clone();
                listened = listened.with(name, Arc::new(Recording { inner, recorder }));
            }
        }
        listened
    }

    /// Why the cassette is not complete, if it is not.
    pub fn lost(&self) -> Option<&io::Error> {
        self.lost.get()
    }

    fn write<T: Serialize>(&self, line: &T) -> io::Result<()> {
        let line = serde_json::to_string(line).map_err(io::Error::other)?;
        let mut line = (self.clean)(&line);
        line.push('\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // One call, so that lines of several processes do not mix.
        file.write_all(line.as_bytes())
    }
}

struct Recording {
    inner: Arc<dyn Provider>,
    recorder: Arc<Recorder>,
}

#[async_trait]
impl Provider for Recording {
    async fn ask(
        &self,
        request: &Request,
        deltas: &mut dyn DeltaSink,
        cancel: &CancellationToken,
    ) -> Result<Response, ModelError> {
        let begun = Instant::now();
        let millis = || u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut first_token_ms = None;
        let mut listen = |delta: Delta| {
            if !matches!(delta, Delta::Request(_)) {
                first_token_ms.get_or_insert_with(millis);
            }
            deltas.take(delta);
        };
        let result = self.inner.ask(request, &mut listen, cancel).await;
        if let Some(outcome) = Outcome::new(&result) {
            let fingerprint = Fingerprint::of(request, &request.model);
            let written = self.recorder.write(&Exchange {
                agent: request.agent.clone(),
                turn: request.turn,
                digest: fingerprint.digest(),
                request: fingerprint,
                outcome,
                first_token_ms,
                total_ms: millis(),
            });
            // The answer was paid for: it is not withheld because of this.
            if let Err(error) = written {
                let _ = self.recorder.lost.set(error);
            }
        }
        result
    }

    fn place(&self) -> Option<&str> {
        self.inner.place()
    }

    fn takes_effort(&self, model: &str) -> bool {
        self.inner.takes_effort(model)
    }

    fn price(&self, model: &str) -> Option<Price> {
        self.inner.price(model)
    }
}

//! Who makes the vectors of an index: Selvedge itself, a model on this machine, or a
//! server. Whoever cannot be had is away: there is search by words then, and a note.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use selvedge_knowledge::{Away, Embedder, Endpoint, Hashed, Protocol};
use serde_json::Value;

use crate::config::{Config, EmbedderKind, KnowledgeSettings};
use crate::{env, secrets};

const OPENAI: &str = "https://api.openai.com/v1";
const OLLAMA: &str = "http://localhost:11434";
/// A server that takes longer for a handful of texts is as good as away.
const ANSWER_MAX: Duration = Duration::from_secs(30);
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// The embedder that is configured, or what stands in for it.
pub fn find(config: &Config) -> Arc<dyn Embedder> {
    let settings = config.settings().knowledge;
    let found = match settings.embedder.unwrap_or(EmbedderKind::BuiltIn) {
        EmbedderKind::BuiltIn => return Arc::new(Hashed),
        EmbedderKind::Local => match &settings.folder {
            Some(folder) => local(folder.path()),
            None => Err("`knowledge.folder` does not say where the model is".into()),
        },
        EmbedderKind::Openai => server(&settings, Protocol::OpenAi),
        EmbedderKind::Ollama => server(&settings, Protocol::Ollama),
    };
    found.unwrap_or_else(|why| Arc::new(Away { why }))
}

/// Nobody, where no vector is needed: what others have made stays.
pub fn nobody() -> Arc<dyn Embedder> {
    let why = "no embedder was asked for".into();
    Arc::new(Away { why })
}

#[cfg(feature = "minilm")]
fn local(folder: &Path) -> Result<Arc<dyn Embedder>, String> {
    Ok(Arc::new(selvedge_knowledge::MiniLm::load(folder)?))
}

#[cfg(not(feature = "minilm"))]
fn local(folder: &Path) -> Result<Arc<dyn Embedder>, String> {
    let folder = folder.display();
    Err(format!(
        "this Selvedge was built without the feature `minilm`, which `{folder}` needs"
    ))
}

fn server(settings: &KnowledgeSettings, protocol: Protocol) -> Result<Arc<dyn Embedder>, String> {
    let (base, path, model) = match protocol {
        Protocol::OpenAi => (OPENAI, "/embeddings", "text-embedding-3-small"),
        Protocol::Ollama => (OLLAMA, "/api/embed", "nomic-embed-text"),
    };
    let url = settings.url.as_deref().unwrap_or(base);
    let variable = match &settings.key_variable {
        Some(variable) => Some(variable.as_str()),
        None => (url == OPENAI).then_some("OPENAI_API_KEY"),
    };
    let key = match variable {
        Some(variable) => {
            Some(env::word(variable).ok_or_else(|| format!("`${variable}` is not set"))?)
        }
        None => None,
    };
    if let Some(key) = &key {
        secrets::of_this_process().know(key);
    }
    let address = format!("{}{path}", url.trim_end_matches('/'));
    let line = Line::open(address, key)?;
    let model = settings.model.as_deref().unwrap_or(model);
    let send = move |body: &Value| line.send(body);
    let endpoint = Endpoint::new(model, protocol, Box::new(send));
    let endpoint = endpoint.map_err(|why| format!("`{model}` at `{url}`: {why}"))?;
    Ok(Arc::new(endpoint))
}

/// A line to a server, for callers that wait.
struct Line {
    /// Taken when the line is closed: a runtime must not be waited for where it may not
    /// be blocked.
    runtime: Option<tokio::runtime::Runtime>,
    client: reqwest::Client,
    address: String,
    key: Option<String>,
}

impl Line {
    fn open(address: String, key: Option<String>) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        // A redirect would take the code, and perhaps the key, to somebody else.
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_MAX)
            .timeout(ANSWER_MAX)
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self {
            runtime: Some(runtime),
            client,
            address,
            key,
        })
    }

    fn send(&self, body: &Value) -> Result<Value, String> {
        let mut request = self.client.post(&self.address).json(body);
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        let asked = async {
            let answer = request.send().await.map_err(|error| told(&error))?;
            let status = answer.status();
            if !status.is_success() {
                return Err(format!("it answered {status}"));
            }
            answer.json().await.map_err(|error| told(&error))
        };
        let runtime = self.runtime.as_ref().expect("it is taken only at the end");
        // On a thread of its own: the caller may be within a runtime already.
        std::thread::scope(|scope| {
            let waited = scope.spawn(|| runtime.block_on(asked)).join();
            waited.map_err(|_| "the request broke off".to_owned())?
        })
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// An error with what is beneath it, which says more.
fn told(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut beneath = std::error::Error::source(error);
    while let Some(error) = beneath {
        text = format!("{text}: {error}");
        beneath = error.source();
    }
    text
}

//! `[knowledge]`: who makes the vectors that a project is searched by.

use schemars::JsonSchema;
use serde::Deserialize;

use super::sandbox::Place;

/// Who makes the vectors that a project is searched by. Not read from a project's
/// `.selvedge/config.toml`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KnowledgeSettings {
    /// Who it is. Default: `built_in`.
    pub embedder: Option<EmbedderKind>,
    /// The model at an `openai` or `ollama` server. Default: `text-embedding-3-small`,
    /// or `nomic-embed-text`.
    pub model: Option<String>,
    /// The server. Default: `https://api.openai.com/v1`, or `http://localhost:11434`.
    pub url: Option<String>,
    /// The variable that holds the server's key. Default: `OPENAI_API_KEY` for OpenAI's
    /// own server, none for any other.
    pub key_variable: Option<String>,
    /// The folder of a `local` model: `config.json`, `tokenizer.json` and
    /// `model.safetensors` of MiniLM, or of another BERT that was trained on sentences.
    pub folder: Option<Place>,
}

/// Who makes vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EmbedderKind {
    /// Selvedge itself, from letters and words: at once, and everywhere.
    BuiltIn,
    /// A sentence model on this machine.
    Local,
    /// A server that answers `/embeddings` as OpenAI does.
    Openai,
    /// A server that answers `/api/embed` as Ollama does.
    Ollama,
}

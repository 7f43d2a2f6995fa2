//! What a server has given the user, kept where keys are kept.
//!
//! It is kept under the server's address: what was given by one is never shown to
//! another, whatever that one calls itself.

use std::sync::Arc;

use async_trait::async_trait;
use rmcp::transport::auth::{AuthError, CredentialStore, StoredCredentials};
use selvedge_tool::Secrets;
use serde_json::Value;

use crate::entry::hash;
use crate::server::Options;

/// Where it is kept.
pub trait Tokens: Send + Sync {
    /// What is kept under a name.
    fn load(&self, name: &str) -> Result<Option<String>, String>;
    /// Keeps something in the place of what was there.
    fn save(&self, name: &str, text: &str) -> Result<(), String>;
    /// Forgets it.
    fn clear(&self, name: &str) -> Result<(), String>;
}

/// What one server has given.
pub(super) struct Kept {
    name: String,
    tokens: Option<Arc<dyn Tokens>>,
    secrets: Secrets,
}

impl Kept {
    pub(super) fn new(url: &str, options: &Options) -> Self {
        Self {
            name: format!("mcp-{}", &hash(&url)[..16]),
            tokens: options.tokens.clone(),
            secrets: options.secrets.clone(),
        }
    }

    pub(super) fn has_any(&self) -> bool {
        self.read().is_ok_and(|kept| kept.is_some())
    }

    pub(super) fn read(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let Some(tokens) = &self.tokens else {
            return Ok(None);
        };
        let text = tokens
            .load(&self.name)
            .map_err(AuthError::CredentialStoreError)?;
        let Some(text) = text else { return Ok(None) };
        self.learn(&text);
        // What cannot be read any more is given anew.
        Ok(serde_json::from_str(&text).ok())
    }

    pub(super) fn forget(&self) -> Result<(), String> {
        self.tokens
            .as_ref()
            .map_or(Ok(()), |tokens| tokens.clear(&self.name))
    }

    /// Knows the secrets in it from here on, so that they appear in nothing.
    fn learn(&self, text: &str) {
        let Ok(kept) = serde_json::from_str::<Value>(text) else {
            return;
        };
        for name in ["access_token", "refresh_token", "id_token"] {
            if let Some(token) = kept["token_response"][name].as_str() {
                self.secrets.know(token);
            }
        }
    }
}

#[async_trait]
impl CredentialStore for Kept {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        self.read()
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let failed = |why: String| AuthError::CredentialStoreError(why);
        let text = serde_json::to_string(&credentials).map_err(|e| failed(e.to_string()))?;
        self.learn(&text);
        match &self.tokens {
            Some(tokens) => tokens.save(&self.name, &text).map_err(failed),
            None => Err(failed("there is no place to keep it".into())),
        }
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.forget().map_err(AuthError::CredentialStoreError)
    }
}

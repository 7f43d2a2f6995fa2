//! Signing in: the user says to somebody the server trusts who they are, and the server
//! is told.
//!
//! The user's browser goes there and comes back to a page of this machine. Where that is
//! and who may be asked comes from the server, so it is checked before anybody goes.

use std::collections::BTreeSet;

use async_trait::async_trait;
use reqwest::Url;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationRequest, AuthorizationSession,
    WWWAuthenticateParams,
};

use super::address::check_page;
use super::tokens::Kept;
use crate::entry::{Listed, Way};
use crate::expand::expand;
use crate::server::Options;

/// The user's way to a page, and back.
#[async_trait]
pub trait Browser: Send + Sync {
    /// Where a page sends the user back to.
    fn way_back(&self) -> String;
    /// Shows the user a page, and returns the address that they came back with.
    async fn visit(&self, server: &str, page: &str) -> Result<String, String>;
}

/// Why the user is not signed in.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// The server is a program of this machine, or its address is wrong.
    #[error("it is not a server at an address that one signs in to")]
    NotThere,
    /// A variable that its entry names is not set: set it.
    #[error("the variable `{0}`, which its entry names, is not set")]
    Variable(String),
    /// The page it names is none that anybody is sent to.
    #[error("the page that it names is not opened: {0}")]
    Page(String),
    /// The user did not come back, or not with an answer.
    #[error("nobody came back from the page: {0}")]
    NoAnswer(String),
    /// Somebody refused.
    #[error("{0}")]
    Refused(String),
}

/// Signs the user in. `challenge` is what the server said when it wanted to know.
pub async fn sign_in(
    listed: &Listed,
    options: &Options,
    browser: &dyn Browser,
    challenge: Option<&str>,
    scopes: &[String],
) -> Result<(), SignInError> {
    let Ok(Way::Web(url)) = listed.entry.way() else {
        return Err(SignInError::NotThere);
    };
    let refused = |error: AuthError| {
        let words = options.secrets.redact(&error.to_string()).into_owned();
        SignInError::Refused(words)
    };
    let kept = Kept::new(url, options);
    let request = request(listed, options, browser, &kept, challenge, scopes)?;
    let mut manager = AuthorizationManager::new(url).await.map_err(refused)?;
    manager.set_credential_store(kept);
    let found = manager.resolve_metadata_from_challenge(challenge).await;
    manager.set_metadata(found.map_err(refused)?.metadata);
    let session = AuthorizationSession::new(manager, request).await;
    let session = session.map_err(|(_, error)| refused(error))?;
    let page = session.get_authorization_url();
    check_page(page).map_err(SignInError::Page)?;
    let visited = browser.visit(&listed.name, page).await;
    let back = visited.map_err(SignInError::NoAnswer)?;
    session.handle_callback_url(&back).await.map_err(refused)?;
    Ok(())
}

/// Forgets what the server has given the user.
pub fn sign_out(listed: &Listed, options: &Options) -> Result<(), String> {
    match listed.entry.way() {
        Ok(Way::Web(url)) => Kept::new(url, options).forget(),
        _ => Ok(()),
    }
}

fn request(
    listed: &Listed,
    options: &Options,
    browser: &dyn Browser,
    kept: &Kept,
    challenge: Option<&str>,
    scopes: &[String],
) -> Result<AuthorizationRequest, SignInError> {
    let own = listed.entry.sign_in.clone().unwrap_or_default();
    let mut request = AuthorizationRequest::new(browser.way_back()).with_client_name("Selvedge");
    if let Some(client) = own.client_id {
        request = request.with_preregistered_client(client);
    }
    if let Some(text) = own.client_secret {
        let secret = expand(&text, |name| (options.variable)(name));
        let secret = secret.map_err(SignInError::Variable)?.text;
        options.secrets.know(&secret);
        request = request.with_client_secret(secret);
    }
    if let Some(page) = own.client_metadata_url {
        request = request.with_client_metadata_url(page);
    }
    let mut wanted: BTreeSet<String> = own.scopes.into_iter().chain(scopes.to_vec()).collect();
    wanted.extend(missing(listed, kept, challenge));
    if !wanted.is_empty() {
        request = request.with_scopes(wanted);
    }
    if let Some(challenge) = challenge {
        request = request.with_challenge(challenge);
    }
    Ok(request)
}

/// What the user may do already, and what the server says is missing: asking for less
/// would take the rest away.
fn missing(listed: &Listed, kept: &Kept, challenge: Option<&str>) -> Vec<String> {
    let Some(url) = listed
        .entry
        .url
        .as_deref()
        .and_then(|url| Url::parse(url).ok())
    else {
        return Vec::new();
    };
    let challenge = challenge.map(|challenge| WWWAuthenticateParams::parse(challenge, &url));
    let Some(challenge) = challenge.filter(WWWAuthenticateParams::is_insufficient_scope) else {
        return Vec::new();
    };
    let held = kept.read().ok().flatten().map(|kept| kept.granted_scopes);
    let named = challenge.scope.unwrap_or_default();
    let named = named.split_whitespace().map(str::to_owned);
    held.unwrap_or_default().into_iter().chain(named).collect()
}

//! Servers at an address: messages over HTTP, and who the user is there.
//!
//! The address is the user's own choice; whatever else a server names (another page, a
//! place to sign in) is a stranger's, and is looked at before it is reached.
//!
//! - `address`: which addresses are reached
//! - `web`: requests and answers, within bounds
//! - `tokens`: what a server has given the user, kept where keys are kept
//! - `sign_in`: how the user gets it

mod address;
mod sign_in;
mod tokens;
mod web;

pub(crate) use address::check_url;
pub use sign_in::{Browser, SignInError, sign_in, sign_out};
pub use tokens::Tokens;

use std::collections::HashMap;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::auth::{AuthClient, AuthorizationManager};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use crate::connection::ConnectError;
use crate::entry::Listed;
use crate::expand::expand;
use crate::server::Options;
use crate::wire::MESSAGE_BYTES_MAX;
use tokens::Kept;
use web::Web;

/// The way to a server at an address.
pub(crate) enum HttpTransport {
    /// With what the user has put into the headers.
    Plain(StreamableHttpClientTransport<Web>),
    /// As the user who signed in, if that has happened.
    SignedIn(StreamableHttpClientTransport<AuthClient<Web>>),
}

/// The way to a server, with what the user is known by there.
pub(crate) async fn transport(
    listed: &Listed,
    options: &Options,
    url: &str,
) -> Result<HttpTransport, ConnectError> {
    let refused = |why: String| ConnectError::Refused {
        why,
        said: String::new(),
    };
    let headers = headers(listed, options)?;
    let has_own = headers.keys().any(|name| name == "authorization");
    let config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(headers)
        .max_sse_event_size(MESSAGE_BYTES_MAX);
    let web = Web::new(url).map_err(refused)?;
    if has_own {
        let transport = StreamableHttpClientTransport::with_client(web, config);
        return Ok(HttpTransport::Plain(transport));
    }
    let manager = AuthorizationManager::new(url).await;
    let mut manager = manager.map_err(|error| refused(error.to_string()))?;
    let kept = Kept::new(url, options);
    if kept.has_any() {
        manager.set_credential_store(kept);
        // Where this fails the server says again what it wants.
        if let Err(error) = manager.initialize_from_store().await {
            tracing::debug!(%error, "what the user is known by cannot be used");
        }
    }
    let client = AuthClient::new(web, manager);
    let transport = StreamableHttpClientTransport::with_client(client, config);
    Ok(HttpTransport::SignedIn(transport))
}

fn headers(
    listed: &Listed,
    options: &Options,
) -> Result<HashMap<HeaderName, HeaderValue>, ConnectError> {
    let mut headers = HashMap::new();
    for (name, text) in &listed.entry.headers {
        let expanded =
            expand(text, |name| (options.variable)(name)).map_err(ConnectError::Variable)?;
        for secret in &expanded.secrets {
            options.secrets.know(secret);
        }
        let wrong = || ConnectError::Refused {
            why: format!("the header `{}` cannot be sent", name.escape_debug()),
            said: String::new(),
        };
        let key: HeaderName = name.parse().map_err(|_| wrong())?;
        let mut value: HeaderValue = expanded.text.parse().map_err(|_| wrong())?;
        if key == "authorization" || selvedge_tool::names_a_secret(name) {
            let word = expanded.text.rsplit(' ').next().unwrap_or_default();
            options.secrets.know(word);
        }
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    Ok(headers)
}

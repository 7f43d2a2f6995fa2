//! Credentials for tools: lent for one call, never seen by a model.
//!
//! A tool names what it needs. Before it runs, the agent's scope is checked, the
//! user's consent is looked up or asked for, and the value is fetched and put into a
//! handle that opens once and soon expires. The value is known as a secret from then
//! on, so it appears in nothing that the tool says. What happened is part of the
//! call's facts, and so of the ledger, without the value.

mod consent;
mod scope;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use selvedge_ledger::Time;
use selvedge_runtime::Clock;
use serde_json::{Value, json};

use super::Secrets;
use crate::tool::ToolOutput;

pub use consent::{Consent, ConsentBook, Granted, NoConsent};
pub use scope::Scopes;

// Long enough for a program to be started, too short to be kept for later.
const HANDLE_LIFE: Duration = Duration::from_secs(30);

/// Where the values of credentials come from.
pub trait Vault: Send + Sync {
    /// The value for a provider, if there is one.
    fn find(&self, provider: &str) -> Option<SecretString>;
}

impl<F: Fn(&str) -> Option<SecretString> + Send + Sync> Vault for F {
    fn find(&self, provider: &str) -> Option<SecretString> {
        self(provider)
    }
}

/// Who wants which credential, and for what.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Wanted {
    /// The agent, by its role's name.
    pub agent: String,
    /// Its session.
    pub session: String,
    /// The tool.
    pub tool: String,
    /// Whose credential.
    pub provider: String,
}

/// Lends credentials to tools.
pub struct Lender {
    scopes: Scopes,
    consent: Arc<dyn Consent>,
    vault: Arc<dyn Vault>,
    clock: Arc<dyn Clock>,
    secrets: Secrets,
}

/// A credential that is lent: opens once, within its time.
pub struct Credential {
    provider: String,
    state: Mutex<State>,
    lent: Time,
    clock: Arc<dyn Clock>,
}

/// What has become of a credential, as the audit calls it. The value is wiped when
/// it leaves this place.
enum State {
    Ready(SecretString),
    Over(&'static str),
}

/// The credentials of one call, and what became of them.
#[derive(Clone, Default)]
pub struct Lent(Arc<Vec<Credential>>);

/// The variable that programs read a provider's credential from.
pub fn variable(provider: &str) -> String {
    match provider {
        "github" => "GITHUB_TOKEN".into(),
        "gitlab" => "GITLAB_TOKEN".into(),
        "npm" => "NPM_TOKEN".into(),
        "figma" => "FIGMA_TOKEN".into(),
        other => {
            let name = other.to_ascii_uppercase().replace(['-', '.', ' '], "_");
            format!("{name}_API_KEY")
        }
    }
}

impl Lender {
    /// Lends from `vault`, to whom `scopes` allow and `consent` agrees. What is lent
    /// becomes known to `secrets`.
    pub fn new(
        scopes: Scopes,
        consent: Arc<dyn Consent>,
        vault: Arc<dyn Vault>,
        clock: Arc<dyn Clock>,
        secrets: Secrets,
    ) -> Self {
        Self {
            scopes,
            consent,
            vault,
            clock,
            secrets,
        }
    }

    /// Whether the user has to be asked before this can be lent.
    pub fn needs_consent(&self, wanted: &Wanted) -> bool {
        let Wanted {
            agent, provider, ..
        } = wanted;
        self.scopes.allow(agent, provider)
            && Scopes::needs_consent(provider)
            && !self.consent.has(wanted)
            && self.vault.find(provider).is_some()
    }

    /// Takes down what the user said to that.
    pub fn take_down(&self, wanted: &Wanted, granted: Granted) {
        self.consent.take_down(wanted, granted);
    }

    /// Lends one credential; the error is what the model is told.
    pub async fn lend(&self, wanted: &Wanted) -> Result<Credential, ToolOutput> {
        let Wanted {
            agent,
            tool,
            provider,
            ..
        } = wanted;
        if !self.scopes.allow(agent, provider) {
            return Err(refusal(
                provider,
                "scope_violation",
                format!(
                    "`{agent}` may not use credentials of `{provider}`, so `{tool}` was not run; find another way"
                ),
            ));
        }
        if Scopes::needs_consent(provider) {
            match self.consent.ask(wanted).await {
                Granted::Once | Granted::Session | Granted::Always => {}
                Granted::No => {
                    let why = format!(
                        "the user does not allow `{tool}` to use `{provider}`; find another way"
                    );
                    return Err(refusal(provider, "refused_by_user", why));
                }
                Granted::NobodyToAsk => {
                    let why = format!(
                        "`{tool}` needs the user's consent to use credentials of `{provider}`, and nobody \
                         is there to give it; go on without it, and tell the user that `selvedge secrets allow \
                         {provider} --agent {agent}` gives it"
                    );
                    return Err(refusal(provider, "awaiting_user", why));
                }
            }
        }
        let Some(value) = self.vault.find(provider) else {
            let why = format!(
                "there is no credential of `{provider}`: the user can set `{}`",
                variable(provider)
            );
            return Err(refusal(provider, "credential_not_found", why));
        };
        self.secrets.know(value.expose_secret());
        Ok(Credential {
            provider: provider.clone(),
            state: Mutex::new(State::Ready(value)),
            lent: self.clock.now(),
            clock: self.clock.clone(),
        })
    }
}

impl Credential {
    /// Whose it is.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// The value, the first time, within its time. Afterwards there is none.
    pub fn open(&self) -> Option<SecretString> {
        let age = self.clock.now().millis_since(self.lent);
        let is_fresh = i64::try_from(HANDLE_LIFE.as_millis()).is_ok_and(|life| age <= life);
        self.end(if is_fresh { "resolved" } else { "expired" })
            .filter(|_| is_fresh)
    }

    /// Ends it, if it has not ended; the value, if it was still there.
    fn end(&self, how: &'static str) -> Option<SecretString> {
        let mut state = self.state.lock().expect("no panic under this lock");
        match std::mem::replace(&mut *state, State::Over(how)) {
            State::Ready(value) => Some(value),
            State::Over(before) => {
                *state = State::Over(before);
                None
            }
        }
    }

    fn fate(&self) -> &'static str {
        match &*self.state.lock().expect("no panic under this lock") {
            State::Ready(_) => "granted",
            State::Over(how) => how,
        }
    }
}

impl Lent {
    pub(crate) fn new(credentials: Vec<Credential>) -> Self {
        Self(Arc::new(credentials))
    }

    /// The value for a provider, once.
    pub fn open(&self, provider: &str) -> Option<SecretString> {
        let mut all = self.0.iter();
        all.find(|credential| credential.provider == provider)?
            .open()
    }

    /// All of them as variables for a program. Opens them.
    pub fn environment(&self) -> Vec<(String, SecretString)> {
        let opened = |c: &Credential| Some((variable(&c.provider), c.open()?));
        self.0.iter().filter_map(opened).collect()
    }

    /// Takes back what was not used, and says what became of each.
    pub(crate) fn end(&self) -> Vec<Value> {
        let fate = |credential: &Credential| {
            drop(credential.end("revoked"));
            json!({ "provider": credential.provider, "action": credential.fate() })
        };
        self.0.iter().map(fate).collect()
    }
}

fn refusal(provider: &str, reason: &str, text: String) -> ToolOutput {
    ToolOutput::error(text).with_facts(json!({
        "credentials": [{ "provider": provider, "action": "denied", "reason": reason }],
    }))
}

#[cfg(test)]
mod tests;

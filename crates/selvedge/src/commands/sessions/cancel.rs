//! `sessions cancel`: ends a session.

use std::sync::Arc;

use clap::Args;
use selvedge_ledger::StreamId;
use selvedge_mcp::Fleet;
use selvedge_runtime::{NoWatcher, Seat, SessionState, Signal, session_state};
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::error::{Error, Exit, Result};
use crate::wiring::{self, Models, Store};
use crate::{drive, out, secrets, sessions};

#[derive(Args)]
pub struct Cancel {
    /// The session.
    #[arg(value_name = "ID")]
    session: String,
    /// Why; it is kept with the session.
    #[arg(long, default_value = "cancelled from the command line")]
    reason: String,
}

impl Cancel {
    pub async fn perform(self) -> Result {
        let store = Store::open()?;
        let session = sessions::find(&store, &self.session).await?;
        let state = session_state(&*store.ledger, &*store.clock, &session).await?;
        match state {
            SessionState::Ended { status } => {
                out::say(&format!(
                    "session {session} has ended already: {}",
                    sessions::status_word(status)
                ));
                return Ok(Exit::Done);
            }
            SessionState::Damaged { what } => {
                return Err(Error::new(
                    Exit::Unverified,
                    format!("session `{session}` cannot be cancelled"),
                )
                .cause(what)
                .hint("nothing drives it; it can stay as it is"));
            }
            _ => {}
        }
        let reason = secrets::of_this_process().redact(&self.reason).into_owned();
        sessions::send(&store, &session, &Signal::Cancel { reason }).await?;
        if let SessionState::Active { pid } = state {
            out::say(&format!("process {pid} stops what is under way and ends"));
            return Ok(Exit::Done);
        }
        end(&store, &session).await?;
        out::say(&format!("session {session} is cancelled"));
        // What its commands left there was temporary.
        let _ = std::fs::remove_dir_all(store.paths.temp(&session));
        let spec = drive::spec_of(&store, &session).await?;
        if let Some(kept) = drive::kept_work(&spec, &session) {
            out::say(&kept);
        }
        Ok(Exit::Done)
    }
}

/// Drives a session that nobody drives, to take the letter up. No model is
/// asked on the way.
async fn end(store: &Store, session: &StreamId) -> Result<()> {
    let models = Models::known(&Config::defaults(), None)?;
    let driver = wiring::driver(
        store,
        models,
        Arc::new(wiring::toolbox(store, &Fleet::default())),
        Arc::new(NoWatcher),
    );
    let nonce = store.chance.id("d");
    let seat = Seat::take(store.ledger.clone(), store.clock.clone(), &nonce);
    let lease = seat.claim(session).await?;
    let cancel = CancellationToken::new();
    driver.drive(session, Some(lease.fence()), cancel).await?;
    Ok(seat.release(&lease).await?)
}

//! `sessions suspend`: lets a session that is being driven come to rest.

use clap::Args;
use selvedge_runtime::{SessionState, Signal, session_state};

use crate::error::{Exit, Result};
use crate::wiring::Store;
use crate::{out, sessions};

#[derive(Args)]
pub struct Suspend {
    /// The session.
    #[arg(value_name = "ID")]
    session: String,
}

impl Suspend {
    pub async fn perform(self) -> Result {
        let store = Store::open()?;
        let session = sessions::find(&store, &self.session).await?;
        let state = session_state(&*store.ledger, &*store.clock, &session).await?;
        let SessionState::Active { pid } = state else {
            out::say(&format!("nothing drives {session}: it rests already"));
            return Ok(Exit::Done);
        };
        let reason = "user".to_owned();
        sessions::send(&store, &session, &Signal::Pause { reason }).await?;
        out::say(&format!(
            "process {pid} finishes what is under way and begins nothing new\n  \
             go on: selvedge resume {session}"
        ));
        Ok(Exit::Done)
    }
}

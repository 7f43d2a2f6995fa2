//! `sessions steer`: says something to a session's agent.

use clap::Args;
use selvedge_ledger::Payload;
use selvedge_runtime::{SessionState, Signal, SteerMode, session_state};

use crate::commands::run;
use crate::error::{Error, Exit, Result};
use crate::wiring::Store;
use crate::{jobs, out, secrets, sessions};

#[derive(Args)]
pub struct Steer {
    /// The session.
    #[arg(value_name = "ID")]
    session: String,
    /// What to say.
    text: String,
    /// Wait until the present work is done, instead of entering it.
    #[arg(long)]
    queue: bool,
    /// Send it although it holds what looks like a secret.
    #[arg(long)]
    allow_secret: bool,
}

impl Steer {
    pub async fn perform(self) -> Result {
        if self.text.trim().is_empty() {
            return Err(Error::usage("the message is empty").hint("say what the agent should know"));
        }
        secrets::learn(&run::config_here()?)?;
        secrets::guard("message", &self.text, self.allow_secret)?;
        let store = Store::open()?;
        let session = sessions::find(&store, &self.session).await?;
        let state = session_state(&*store.ledger, &*store.clock, &session).await?;
        if let SessionState::Ended { status } = state {
            return Err(Error::usage(format!(
                "session `{session}` has ended: {}",
                sessions::status_word(status)
            ))
            .hint(format!(
                "go on from an earlier point with `selvedge sessions fork {session}`"
            )));
        }
        let mode = match self.queue {
            true => SteerMode::Queue,
            false => SteerMode::Steer,
        };
        let text = Payload::new(self.text);
        let ear = jobs::ear(&store, &session).await?;
        sessions::send(&store, &ear, &Signal::Steer { mode, text }).await?;
        out::say(&match state {
            SessionState::Active { pid } => {
                format!("sent; process {pid} takes it up at the next safe point")
            }
            _ => format!("sent; it is taken up on `selvedge resume {session}`"),
        });
        Ok(Exit::Done)
    }
}

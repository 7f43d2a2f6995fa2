//! `sessions events`: what is stored of a session.

use clap::Args;
use selvedge_ledger::Position;

use crate::error::{Exit, Result};
use crate::text::{moment, one_line};
use crate::wiring::Store;
use crate::{lines, out, sessions};

#[derive(Args)]
pub struct Events {
    /// The session.
    #[arg(value_name = "ID")]
    session: String,
    /// Print one event per line, as JSON: the lines that `run --json` prints.
    #[arg(long)]
    json: bool,
}

impl Events {
    pub async fn perform(self) -> Result {
        let store = Store::open()?;
        let session = sessions::find(&store, &self.session).await?;
        let ledger = &*store.ledger;
        let (events, _) = ledger.session_after(&session, Position::default()).await?;
        for event in events {
            if self.json {
                out::line(&lines::line(ledger, &event).await?);
                continue;
            }
            let below = event.stream.as_str().trim_start_matches(session.as_str());
            let stream = if below.is_empty() { "." } else { below };
            out::line(&format!(
                "{:>4}  {}  {stream}  {:<17}  {}",
                event.seq,
                moment(event.time),
                event.kind,
                one_line(event.data.get(), 100)
            ));
        }
        Ok(Exit::Done)
    }
}

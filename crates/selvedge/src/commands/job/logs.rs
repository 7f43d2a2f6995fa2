//! `job logs`: what happened in a job, and with `-f` what happens.

use clap::Args;
use selvedge_ledger::{Event, StreamId, Tail};

use crate::error::{Exit, Result};
use crate::text::{moment, one_line};
use crate::wiring::Store;
use crate::{lines, out, sessions};

#[derive(Args)]
pub struct Logs {
    /// The job; the beginning of its id is enough.
    #[arg(value_name = "ID")]
    job: String,
    /// Go on until the job has ended.
    #[arg(short, long)]
    follow: bool,
    /// Print one event per line, as JSON.
    #[arg(long)]
    json: bool,
}

impl Logs {
    pub async fn perform(self) -> Result {
        let store = Store::open()?;
        let session = sessions::find(&store, &self.job).await?;
        let mut tail = Tail::new(store.ledger.clone(), session.clone());
        let mut events = tail.ready().await?;
        loop {
            let mut has_ended = false;
            for event in &events {
                has_ended |= event.stream == session && &*event.kind == "RunFinished";
                match self.json {
                    true => out::line(&lines::line(&*store.ledger, event).await?),
                    false => out::line(&shown(&session, event)),
                }
            }
            if !self.follow || has_ended {
                return Ok(Exit::Done);
            }
            events = tail.next().await?;
        }
    }
}

fn shown(session: &StreamId, event: &Event) -> String {
    let below = event.stream.as_str().trim_start_matches(session.as_str());
    let stream = if below.is_empty() { "." } else { below };
    let data = one_line(event.data.get(), 120);
    format!(
        "{}  {stream}  {:<17}  {data}",
        moment(event.time),
        event.kind
    )
}

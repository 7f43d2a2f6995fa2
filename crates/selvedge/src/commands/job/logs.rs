//! `job logs`: what happened in a job, and with `-f` what happens.

use clap::Args;
use selvedge_ledger::{StreamId, Tail};

use crate::commands::sessions::show::Telling;
use crate::drive::JobProgress;
use crate::error::{Exit, Result};
use crate::sessions::Told;
use crate::story::{Beat, Story, What};
use crate::text::{moment, one_line};
use crate::wiring::Store;
use crate::{lines, out, sessions};

/// More of a line nobody reads; `selvedge sessions show` has the whole.
const LINE_CHARS: usize = 160;

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
        let (mut story, mut progress) = (Story::default(), JobProgress::default());
        loop {
            let mut has_ended = false;
            // What a fork copied was told before, and is told here, too.
            for Told { event, .. } in sessions::told(events) {
                has_ended |= event.stream == session && &*event.kind == "RunFinished";
                if self.json {
                    out::line(&lines::line(&*store.ledger, &event).await?);
                    continue;
                }
                let beats = story.tell(&*store.ledger, &event).await?;
                let lines = beats.iter().filter_map(|beat| shown(&session, beat));
                let lines: Vec<String> = lines.chain(progress.tell(&event)?).collect();
                for line in lines {
                    out::line(&format!("{}  {line}", moment(event.time)));
                }
            }
            if !self.follow || has_ended {
                return Ok(Exit::Done);
            }
            events = tail.next().await?;
        }
    }
}

/// A beat in a line; none of what the machine itself does between phases.
fn shown(session: &StreamId, beat: &Beat) -> Option<String> {
    let is_own = beat.stream == *session;
    let text = match &beat.what {
        What::Used {
            is_error: false, ..
        }
        | What::Returned { .. }
            if is_own =>
        {
            return None;
        }
        What::Said { text, .. } => format!("{}: {text}", beat.agent),
        _ => Telling { full: false }.tell(session, beat)?,
    };
    Some(one_line(text.trim(), LINE_CHARS))
}

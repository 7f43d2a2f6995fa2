//! `sessions export`: a session's events in a file, and its folder anew.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use selvedge_ledger::Position;

use crate::error::{Error, Exit, Result};
use crate::text::plural;
use crate::wiring::Store;
use crate::{drive, lines, out, sessions};

#[derive(Args)]
pub struct Export {
    /// The session.
    #[arg(value_name = "ID")]
    session: String,
    /// The file; stdout if not given. It must not exist.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Export {
    pub async fn perform(self) -> Result {
        let store = Store::open()?;
        let session = sessions::find(&store, &self.session).await?;
        if let Some(folder) = drive::record_anew(&store, &session).await? {
            out::say(&format!("made anew: {}", folder.display()));
        }
        let ledger = &*store.ledger;
        let (events, _) = ledger.session_after(&session, Position::default()).await?;
        let Some(path) = &self.out else {
            for event in &events {
                out::line(&lines::line(ledger, event).await?);
            }
            return Ok(Exit::Done);
        };
        let failed = |error: std::io::Error| {
            Error::failed(format!("`{}` cannot be written", path.display()))
                .cause(error)
                .hint("name a new file in a folder that can be written")
        };
        let mut text = String::new();
        for event in &events {
            text.push_str(&lines::line(ledger, event).await?);
            text.push('\n');
        }
        let mut file = std::fs::File::create_new(path).map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        let count = plural(events.len() as u64, "event");
        out::say(&format!("wrote {count} to {}", path.display()));
        Ok(Exit::Done)
    }
}

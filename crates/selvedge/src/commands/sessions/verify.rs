//! `sessions verify` and `audit verify`: what is stored against its hashes.

use std::path::PathBuf;

use clap::Args;
use selvedge_ledger::LedgerError;

use crate::error::{Exit, Result};
use crate::heads;
use crate::out;
use crate::sessions;
use crate::text::{escape, plural};
use crate::wiring::Store;

#[derive(Args)]
pub struct Verify {
    /// Only this session.
    #[arg(value_name = "ID")]
    session: Option<String>,
    /// Check signed heads that were kept elsewhere as well: a file of what `selvedge
    /// audit sign` printed.
    #[arg(long, value_name = "FILE")]
    heads: Option<PathBuf>,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
}

impl Verify {
    pub async fn perform(self) -> Result {
        let store = Store::open().map_err(|error| error.exit(Exit::Unverified))?;
        let session = match &self.session {
            Some(text) => Some(sessions::find(&store, text).await?),
            None => None,
        };
        let mut report = match store.ledger.verify(session.as_ref()).await {
            Ok(report) => report,
            Err(error @ LedgerError::Full { .. }) => return Err(error.into()),
            // What cannot even be read is not what was written.
            Err(error) => {
                return Err(crate::error::Error::from(error).exit(Exit::Unverified));
            }
        };
        let heads = heads::verify(&store, session.as_ref(), self.heads.as_deref());
        let (signed, damage) = heads.await?;
        report.damage.extend(damage);
        if self.json {
            out::json(&report);
        } else {
            for damage in &report.damage {
                let place = match damage.seq {
                    Some(seq) => format!("`{}` event {seq}", damage.stream),
                    None => format!("`{}`", damage.stream),
                };
                out::line(&format!("damaged: {place}: {}", escape(&damage.what)));
            }
            let found = match report.damage.len() as u64 {
                0 => "all as it was written".to_owned(),
                n => format!("{} damaged", plural(n, "place")),
            };
            out::say(&format!(
                "{found}: {}, {}, {}, {} checked",
                plural(report.streams, "stream"),
                plural(report.events, "event"),
                plural(report.blobs, "blob"),
                plural(signed, "signed head")
            ));
        }
        Ok(match report.damage.is_empty() {
            true => Exit::Done,
            false => Exit::Unverified,
        })
    }
}

//! `audit sign`: signs how far sessions have come.

use clap::Args;

use crate::error::{Exit, Result};
use crate::wiring::Store;
use crate::{heads, out, sessions};

#[derive(Args)]
pub struct Sign {
    /// Only this session.
    #[arg(value_name = "ID")]
    session: Option<String>,
}

impl Sign {
    pub async fn perform(self) -> Result {
        let store = Store::open()?;
        for session in &sessions::chosen(&store, self.session.as_deref()).await? {
            out::json(&heads::sign(&store, session).await?);
        }
        Ok(Exit::Done)
    }
}

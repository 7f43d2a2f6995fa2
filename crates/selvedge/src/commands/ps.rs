//! `ps`: the sessions that have not ended.

use clap::Args;

use super::sessions::list::{Form, print};
use crate::error::{Exit, Result};
use crate::sessions;
use crate::wiring::Store;

#[derive(Args)]
pub struct Ps {
    /// Print one session per line, as JSON.
    #[arg(long)]
    json: bool,
}

impl Ps {
    pub async fn perform(self) -> Result {
        let store = Store::open()?;
        let listed = sessions::unfinished(&store).await?;
        let form = match self.json {
            true => Form::Json,
            false => Form::Table {
                empty: "no session is unfinished",
            },
        };
        print(&store, &listed, form).await;
        Ok(Exit::Done)
    }
}

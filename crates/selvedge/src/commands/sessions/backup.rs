//! `sessions backup`: a copy of the whole ledger.

use std::path::PathBuf;

use clap::Args;

use crate::error::{Error, Exit, Result};
use crate::out;
use crate::wiring::Store;

#[derive(Args)]
pub struct Backup {
    /// The file to write. It must not exist.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl Backup {
    pub async fn perform(self) -> Result {
        let shown = self.file.display();
        if self.file.exists() {
            return Err(Error::usage(format!("`{shown}` exists already"))
                .cause("a backup never takes the place of another file")
                .hint("name a new file"));
        }
        let store = Store::open()?;
        let backup = store.ledger.backup(&self.file).await;
        backup.map_err(|error| {
            Error::failed(format!("the backup `{shown}` cannot be written"))
                .cause(error)
                .hint("name a file in a folder that can be written and has room")
        })?;
        out::say(&format!(
            "wrote {shown}\n  use it: put it in the place of {}",
            store.paths.ledger().display()
        ));
        Ok(Exit::Done)
    }
}

//! `audit`: checks what is stored against its hashes.

use clap::Subcommand;

use super::sessions::verify::Verify;
use crate::error::Result;

#[derive(Subcommand)]
pub enum Audit {
    /// Find changed, removed and reordered events, and damaged files.
    Verify(Verify),
}

impl Audit {
    pub async fn perform(self) -> Result {
        match self {
            Self::Verify(verify) => verify.perform().await,
        }
    }
}

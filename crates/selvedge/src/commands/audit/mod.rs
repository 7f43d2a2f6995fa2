//! `audit`: what was done, and whether what is stored is what was written.

mod query;
mod sign;

use clap::Subcommand;

use super::sessions::verify::Verify;
use crate::error::Result;

#[derive(Subcommand)]
pub enum Audit {
    /// Find changed, removed and reordered events, damaged files, and what is
    /// missing from a file that was cut or put back.
    Verify(Verify),
    /// List what agents did, and what was allowed, asked and denied.
    Query(query::Query),
    /// Print all of that, one act per line, for other programs.
    Export(query::Export),
    /// Sign how far the sessions have come; what is printed can be kept elsewhere.
    Sign(sign::Sign),
}

impl Audit {
    pub async fn perform(self) -> Result {
        match self {
            Self::Verify(verify) => verify.perform().await,
            Self::Query(query) => query.perform().await,
            Self::Export(export) => export.perform().await,
            Self::Sign(sign) => sign.perform().await,
        }
    }
}

//! What a server did that is not tolerated; the first thing counts.

use std::sync::{Arc, OnceLock};

/// What a server did, if it did anything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fault {
    what: Arc<OnceLock<String>>,
}

impl Fault {
    pub(crate) fn set(&self, what: impl Into<String>) {
        let what = what.into();
        tracing::warn!(%what, "an MCP server did what is not tolerated");
        // Only the first tells what happened; the rest follows from it.
        let _ = self.what.set(what);
    }

    pub(crate) fn get(&self) -> Option<&str> {
        self.what.get().map(String::as_str)
    }
}

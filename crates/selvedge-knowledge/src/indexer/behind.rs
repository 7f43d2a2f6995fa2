//! Whether the files behind an answer have changed since they were indexed.

use std::path::Path;

use rusqlite::OptionalExtension;

use crate::error::Result;
use crate::search::Found;
use crate::store::Index;

impl Index {
    /// Whether a file of what was found is gone or looks other than it did.
    pub fn is_behind(&self, root: &Path, found: &Found) -> Result<bool> {
        let mut find = self
            .connection
            .prepare_cached("SELECT size, modified FROM files WHERE path = ?1")?;
        for path in found.hits.iter().filter_map(|hit| hit.node.path.as_ref()) {
            let known: Option<(u64, i64)> = find
                .query_row([path], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let Some(known) = known else { continue };
            let Ok(metadata) = std::fs::metadata(root.join(path)) else {
                return Ok(true);
            };
            if known != (metadata.len(), super::walk::modified(&metadata)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

//! Lists of who has how much of a dimension: the sparse half of the vectors.
//!
//! A question has some sixty dimensions. Reading their lists is reading a thousandth of
//! what a scan of all vectors would be, and gives the very same numbers, so that a
//! process that lives for one question can answer it from a cold start. Lists come in
//! blocks of vector keys: a file that is indexed again adds to the last block and leaves
//! the others as they are.

use std::collections::HashMap;

use rusqlite::{OptionalExtension, params};

use super::Index;
use crate::error::Result;
use crate::kind::Domain;

/// Vector keys of one block.
pub(super) const BLOCK: i64 = 8_192;
/// Bytes of an entry: the key within its block, and the weight.
pub(super) const ENTRY_BYTES: usize = 3;

/// Entries that are written when the transaction ends, by domain, dimension and block.
pub(super) type Pending = HashMap<(u8, u16, i64), Vec<u8>>;

impl Index {
    /// Adds a vector to the lists of its dimensions.
    pub(super) fn post(&self, key: i64, domain: Domain, entries: &[(u16, u8)]) {
        let mut pending = self.pending.borrow_mut();
        let (block, place) = (key / BLOCK, (key % BLOCK) as u16);
        let [low, high] = place.to_le_bytes();
        for (dimension, weight) in entries {
            pending
                .entry((domain as u8, *dimension, block))
                .or_default()
                .extend([low, high, *weight]);
        }
    }

    /// Writes what was posted.
    pub(super) fn flush_postings(&self) -> Result<()> {
        let pending = std::mem::take(&mut *self.pending.borrow_mut());
        let mut pending: Vec<_> = pending.into_iter().collect();
        // In the order of the table, so that a page is written once.
        pending.sort_unstable_by_key(|(place, _)| *place);
        let mut find = self.connection.prepare_cached(
            "SELECT entries FROM postings WHERE domain = ?1 AND dimension = ?2 AND block = ?3",
        )?;
        let mut put = self.connection.prepare_cached(
            "INSERT INTO postings (domain, dimension, block, entries) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET entries = excluded.entries",
        )?;
        for ((domain, dimension, block), added) in pending {
            let place = params![domain, dimension, block];
            let there: Option<Vec<u8>> = find.query_row(place, |row| row.get(0)).optional()?;
            let mut entries = there.unwrap_or_default();
            entries.extend(added);
            put.execute(params![domain, dimension, block, entries])?;
        }
        Ok(())
    }

    /// The lists of a dimension in some domains: block and entries.
    pub(super) fn list(
        &self,
        domains: &[Domain],
        dimension: u16,
        mut take: impl FnMut(i64, Vec<u8>),
    ) -> Result<()> {
        let mut find = self.connection.prepare_cached(
            "SELECT block, entries FROM postings WHERE domain = ?1 AND dimension = ?2",
        )?;
        for domain in domains {
            let mut rows = find.query(params![domain.code(), dimension])?;
            while let Some(row) = rows.next()? {
                take(row.get(0)?, row.get(1)?);
            }
        }
        Ok(())
    }

    /// What is wrong with the lists, if a vector is not in all of its own.
    pub(super) fn check_postings(&self) -> Result<Option<String>> {
        if !self.embedder().is_sparse() {
            return Ok(None);
        }
        let mut listed: HashMap<i64, usize> = HashMap::new();
        let mut find = self
            .connection
            .prepare("SELECT block, entries FROM postings")?;
        let mut rows = find.query([])?;
        while let Some(row) = rows.next()? {
            let (block, entries): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
            for entry in entries.chunks_exact(ENTRY_BYTES) {
                let place = i64::from(u16::from_le_bytes([entry[0], entry[1]]));
                *listed.entry(block * BLOCK + place).or_default() += 1;
            }
        }
        let mut find = self
            .connection
            .prepare("SELECT key, length(embedding) FROM vectors")?;
        let mut rows = find.query([])?;
        while let Some(row) = rows.next()? {
            let (key, bytes): (i64, i64) = (row.get(0)?, row.get(1)?);
            let (has, wants) = (listed.get(&key).copied(), bytes as usize / ENTRY_BYTES);
            if has.unwrap_or(0) != wants {
                return Ok(Some(format!("vector {key} is not in all of its lists")));
            }
        }
        Ok(None)
    }
}

//! Keeping a write-ahead log that is broken in its middle.
//!
//! When SQLite opens a log that a crash left behind, it reads up to the first
//! frame whose checksum is wrong and forgets the rest. That is right for a torn
//! end and wrong for a flipped bit before it: whole transactions would vanish
//! without a word. So the log is looked at first. Where complete transactions
//! follow the break, a copy is kept, and `verify` reports it.

use std::io;
use std::path::{Path, PathBuf};

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;

/// Copies the log beside `database` if transactions in it will be forgotten.
pub(super) fn keep_if_broken(database: &Path) -> io::Result<()> {
    let log = beside(database, "-wal");
    let bytes = match std::fs::read(&log) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    if forgotten(&bytes) == 0 {
        return Ok(());
    }
    let name = (1..).map(|n| beside(database, &format!("-wal.damaged-{n}")));
    let copy = name
        .into_iter()
        .find(|p| !p.exists())
        .expect("numbers do not run out");
    // A copy keeps the mode of the log, which is its owner's alone.
    std::fs::copy(&log, copy).map(drop)
}

/// The copies that were kept of this database's log.
pub(super) fn kept(database: &Path) -> Vec<PathBuf> {
    (1..)
        .map(|n| beside(database, &format!("-wal.damaged-{n}")))
        .take_while(|p| p.exists())
        .collect()
}

fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// How many transactions of a log come after its first wrong checksum.
fn forgotten(log: &[u8]) -> usize {
    let Some(header) = log.get(..HEADER_BYTES) else {
        return 0;
    };
    let word = |bytes: &[u8], n: usize| {
        u32::from_be_bytes(bytes[4 * n..4 * n + 4].try_into().expect("four bytes"))
    };
    let page_bytes = word(header, 2) as usize;
    let is_log = word(header, 0) & !1 == 0x377f_0682 && page_bytes.is_power_of_two();
    let mut sums = checksum(word(header, 0) & 1 == 1, &header[..24], (0, 0));
    let intact = is_log && sums == (word(header, 6), word(header, 7));
    // Nothing says how long the frames behind a broken header are; that there
    // are any says enough.
    if !intact {
        return usize::from(log.len() > HEADER_BYTES && header.iter().any(|b| *b != 0));
    }
    let big_endian = word(header, 0) & 1 == 1;
    let salts = &header[16..24];
    let mut broken = false;
    let mut transactions = 0;
    for frame in log[HEADER_BYTES..].chunks_exact(FRAME_HEADER_BYTES + page_bytes) {
        // Another salt is what is left of an older, longer log, or a flipped bit:
        // then frames of this log follow.
        let ours = &frame[8..16] == salts;
        if broken {
            transactions += usize::from(ours && word(frame, 1) != 0);
            continue;
        }
        if !ours {
            broken = true;
            continue;
        }
        sums = checksum(big_endian, &frame[..8], sums);
        sums = checksum(big_endian, &frame[FRAME_HEADER_BYTES..], sums);
        broken = sums != (word(frame, 4), word(frame, 5));
    }
    transactions
}

/// SQLite's checksum of a log, continued from `sums`.
fn checksum(big_endian: bool, bytes: &[u8], sums: (u32, u32)) -> (u32, u32) {
    let word = |bytes: &[u8]| {
        let bytes = bytes.try_into().expect("four bytes");
        if big_endian {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        }
    };
    bytes.chunks_exact(8).fold(sums, |(a, b), pair| {
        let a = a.wrapping_add(word(&pair[..4])).wrapping_add(b);
        let b = b.wrapping_add(word(&pair[4..])).wrapping_add(a);
        (a, b)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log of ten transactions that nobody has folded in, and its database.
    fn left_behind() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let live = folder.path().join("live.db");
        let connection = rusqlite::Connection::open(&live).unwrap();
        connection
            .query_row("pragma journal_mode=wal", [], |_| Ok(()))
            .unwrap();
        connection
            .execute_batch("create table t (n integer, fill text)")
            .unwrap();
        for n in 0..10 {
            connection
                .execute(
                    "insert into t values (?1, ?2)",
                    rusqlite::params![n, "x".repeat(2000)],
                )
                .unwrap();
        }
        let copy = folder.path().join("copy.db");
        for suffix in ["", "-wal"] {
            std::fs::copy(beside(&live, suffix), beside(&copy, suffix)).unwrap();
        }
        (folder, copy)
    }

    #[test]
    fn an_intact_log_is_left_alone() {
        let (_folder, database) = left_behind();
        keep_if_broken(&database).unwrap();
        assert!(kept(&database).is_empty());
        assert_eq!(
            forgotten(&std::fs::read(beside(&database, "-wal")).unwrap()),
            0
        );
    }

    #[test]
    fn a_torn_end_is_no_damage() {
        let (_folder, database) = left_behind();
        let log = std::fs::read(beside(&database, "-wal")).unwrap();
        for cut in 1..5000 {
            assert_eq!(forgotten(&log[..log.len() - cut]), 0, "cut by {cut}");
        }
    }

    #[test]
    fn a_flipped_bit_before_the_last_transaction_is_seen_wherever_it_is() {
        let (_folder, database) = left_behind();
        let log = std::fs::read(beside(&database, "-wal")).unwrap();
        let last_transaction = log.len() - 3 * 4120;
        for at in (0..last_transaction).step_by(97) {
            let mut flipped = log.clone();
            flipped[at] ^= 4;
            assert!(forgotten(&flipped) > 0, "byte {at}");
        }
    }

    #[test]
    fn a_broken_log_is_kept_each_time() {
        let (_folder, database) = left_behind();
        let wal = beside(&database, "-wal");
        let mut log = std::fs::read(&wal).unwrap();
        log[9000] ^= 1;
        std::fs::write(&wal, &log).unwrap();
        keep_if_broken(&database).unwrap();
        keep_if_broken(&database).unwrap();
        let kept = kept(&database);
        assert_eq!(kept.len(), 2);
        assert_eq!(std::fs::read(&kept[0]).unwrap(), log);
    }
}

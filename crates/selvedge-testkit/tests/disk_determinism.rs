//! Equal seeds give equal bytes.
//!
//! SQLite has one random generator per process, so this has a process to
//! itself: two tests on two threads would draw from each other's numbers.

use rusqlite::params;
use selvedge_testkit::{CrashKind, DiskImage, SimDisk};

/// A life with a log, checkpoints, randomness and two losses of power.
fn images(seed: u64) -> Vec<DiskImage> {
    let disk = SimDisk::new(seed);
    let mut images = Vec::new();
    for life in 0..3 {
        let db = disk.open("a.db").unwrap();
        db.execute_batch(
            "pragma journal_mode = wal; pragma synchronous = normal;
             pragma wal_autocheckpoint = 10;
             create table if not exists t (n integer, r integer, at text, body blob)",
        )
        .unwrap();
        let other = disk.open("b.db").unwrap();
        other
            .execute_batch("create table if not exists t (n integer)")
            .unwrap();
        for n in 0..50 {
            db.execute(
                "insert into t values (?, random(), datetime('now'), randomblob(?))",
                params![n, 50 * n],
            )
            .unwrap();
            other.execute("insert into t values (?)", [n]).unwrap();
        }
        images.push(disk.image());
        disk.crash(CrashKind::PowerLoss);
        disk.restart();
        images.push(disk.image());
        assert_eq!(images.len(), 2 * (life + 1));
    }
    images
}

#[test]
fn equal_seeds_give_equal_images() {
    let first = images(7);
    // The memory of the process is different the second time.
    let ballast: Vec<Vec<u8>> = (1..200).map(|size| vec![7; size * 31]).collect();
    assert!(first == images(7));
    drop(ballast);
    assert!(first == images(7));
    assert!(first != images(8));
}

//! The log is folded into the database while nobody writes.

use std::time::{Duration, Instant};

use selvedge_ledger::{Ledger, SqliteLedger, SqliteOptions, StreamId};

use crate::place::File;
use crate::suite::{notes, opened, write};

/// More than a writer lets pass without using a lull.
const APPENDS: usize = 300;

#[tokio::test]
async fn after_much_work_a_lull_moves_the_log_into_the_database() {
    let place = File::new();
    // As big as a log may grow by itself: nothing but a lull folds this one.
    let mut options = SqliteOptions::new(place.path());
    options.checkpoint_pages = u32::MAX >> 1;
    let ledger = SqliteLedger::open(&options).unwrap();
    let mut pen = opened(&ledger, "s").await;
    for n in 0..APPENDS {
        write(&ledger, &mut pen, &n.to_string()).await;
    }
    // The file alone, without its log, while the ledger is open.
    let alone = place.beside("alone.db");
    let begun = Instant::now();
    let said = loop {
        std::fs::copy(place.path(), &alone).unwrap();
        let copy = SqliteLedger::open(&SqliteOptions::new(alone.clone())).unwrap();
        let is_there = copy.stream(&StreamId::new("s")).await.unwrap().is_some();
        if is_there {
            break notes(&copy, &StreamId::new("s")).await;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "it never was");
        tokio::task::yield_now().await;
    };
    assert!(said.len() > APPENDS / 2, "{}", said.len());
    assert_eq!(ledger.verify(None).await.unwrap().damage, []);
}

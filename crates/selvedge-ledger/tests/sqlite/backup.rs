//! Copies made while the ledger is in use.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use selvedge_ledger::{Ledger, SqliteLedger, SqliteOptions, StreamFilter};

use crate::place::File;
use crate::suite::{Place, long, notes, opened, write};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_during_appends_is_whole() {
    let place = File::new();
    let ledger = place.open().await;
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..4)
        .map(|n| {
            let (ledger, stop) = (ledger.clone(), stop.clone());
            tokio::spawn(async move {
                let mut pen = opened(&*ledger, &format!("s{n}")).await;
                let mut count = 0;
                while !stop.load(Ordering::Relaxed) {
                    write(&*ledger, &mut pen, &count.to_string()).await;
                    count += 1;
                }
                count
            })
        })
        .collect();
    let mut copies = Vec::new();
    for n in 0..5 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        let path = place.beside(&format!("copy{n}.db"));
        ledger.backup(&path).await.unwrap();
        copies.push(path);
    }
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        assert!(writer.await.unwrap() > 5, "a writer was kept waiting");
    }
    let mut events = 0;
    for path in copies {
        let copy = SqliteLedger::open(&SqliteOptions::new(path)).unwrap();
        let report = copy.verify(None).await.unwrap();
        assert_eq!(report.damage, []);
        assert!(report.events >= events, "a later copy has less");
        events = report.events;
        for stream in copy.streams(StreamFilter::Sessions).await.unwrap() {
            let said = notes(&copy, &stream.id).await;
            let expected: Vec<String> = (0..said.len()).map(|n| n.to_string()).collect();
            assert_eq!(said, expected);
        }
    }
    assert!(events > 20);
}

#[tokio::test]
async fn a_backup_is_private_and_replaces_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let place = File::new();
    let ledger = place.open().await;
    let mut pen = opened(&*ledger, "s").await;
    write(&*ledger, &mut pen, &long(1)).await;
    let path = place.beside("copy.db");
    ledger.backup(&path).await.unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let before = std::fs::read(&path).unwrap();
    ledger.backup(&path).await.unwrap_err();
    assert!(std::fs::read(&path).unwrap() == before);
    ledger
        .backup(&place.beside("missing/copy.db"))
        .await
        .unwrap_err();
}

#[tokio::test]
async fn a_blob_is_stored_once() {
    let place = File::new();
    let ledger = place.open().await;
    for name in ["a", "b", "c"] {
        let mut pen = opened(&*ledger, name).await;
        for n in [1, 2, 1] {
            write(&*ledger, &mut pen, &long(n)).await;
        }
    }
    let count: u64 = place
        .database()
        .query_row("select count(*) from blobs", [], |r| r.get(0))
        .unwrap();
    assert_eq!(count, 2);
}

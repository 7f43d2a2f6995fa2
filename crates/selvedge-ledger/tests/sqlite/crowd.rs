//! Several processes, one file.

use std::process::Command;

use selvedge_ledger::{Ledger, LedgerError, Pen, SqliteLedger, SqliteOptions, StreamId, Sync};

use crate::place::File;
use crate::suite::{Place, note, notes, opened};

const PROCESSES: usize = 4;
const APPENDS: usize = 2500;
/// Every so many appends, one goes to the stream that all processes share.
const SHARED_EVERY: usize = 25;
/// Set in the child processes: the file, and which of them this is.
const FILE: &str = "SELVEDGE_TEST_CROWD_FILE";
const NUMBER: &str = "SELVEDGE_TEST_CROWD_NUMBER";

#[tokio::test]
async fn four_processes_lose_and_repeat_nothing() {
    let place = File::new();
    let ledger = place.open().await;
    opened(&*ledger, "shared").await;
    let children: Vec<_> = (0..PROCESSES)
        .map(|n| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "crowd::one_of_the_crowd", "--nocapture"])
                .env(FILE, place.path())
                .env(NUMBER, n.to_string())
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    for n in 0..PROCESSES {
        let said = notes(&*ledger, &StreamId::new(format!("own{n}"))).await;
        let expected = (0..APPENDS).filter(|k| k % SHARED_EVERY != 0);
        assert_eq!(said, expected.map(|k| k.to_string()).collect::<Vec<_>>());
    }
    let mut shared = notes(&*ledger, &StreamId::new("shared")).await;
    assert_eq!(shared.len(), PROCESSES * APPENDS / SHARED_EVERY);
    shared.sort();
    shared.dedup();
    assert_eq!(shared.len(), PROCESSES * APPENDS / SHARED_EVERY);
    assert_eq!(ledger.verify(None).await.unwrap().damage, []);
}

/// The part of a child process; nothing by itself.
#[tokio::test]
async fn one_of_the_crowd() {
    let (Ok(file), Ok(number)) = (std::env::var(FILE), std::env::var(NUMBER)) else {
        return;
    };
    let mut options = SqliteOptions::new(file);
    // Ten thousand syncs one after the other would only measure the disk.
    options.sync = false;
    let ledger = SqliteLedger::open(&options).unwrap();
    let mut own = opened(&ledger, &format!("own{number}")).await;
    for n in 0..APPENDS {
        if n % SHARED_EVERY == 0 {
            append_to_shared(&ledger, &format!("{number}.{n}")).await;
        } else {
            own.write(note(n.to_string()), Sync::Now);
            own.flush(&ledger).await.unwrap();
        }
    }
}

/// Appends where others append too: whoever comes second looks again.
async fn append_to_shared(ledger: &dyn Ledger, text: &str) {
    let stream = StreamId::new("shared");
    loop {
        let info = ledger.stream(&stream).await.unwrap().unwrap();
        let mut pen = Pen::at(stream.clone(), info.head, info.head_hash, None);
        pen.write(note(text), Sync::Now);
        match pen.flush(ledger).await {
            Ok(()) => return,
            Err(LedgerError::Conflict { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

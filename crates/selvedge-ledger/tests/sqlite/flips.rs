//! Random bits of the file flip: nothing is read that was not written.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use selvedge_ledger::{Event, Ledger, LedgerError, Mode, SqliteLedger, SqliteOptions, StreamId};
use selvedge_testkit::SimDisk;

use crate::damage::{furnish, line, transcript};

const FLIPS: u64 = 2000;
const STREAMS: [&str; 4] = ["s", "s/t1", "s#inbox", "other"];

fn open(disk: &SimDisk) -> Result<SqliteLedger, LedgerError> {
    let mut options = SqliteOptions::new("/ledger.db");
    options.vfs = Some(disk.vfs_name().to_owned());
    options.mode = Mode::Inline;
    SqliteLedger::open(&options)
}

/// All that can be read.
struct Readings {
    streams: Vec<Result<Vec<String>, LedgerError>>,
    followed: Result<Vec<Event>, LedgerError>,
    snapshot: Option<String>,
    healthy: bool,
}

async fn read_all(ledger: &dyn Ledger) -> Readings {
    let mut streams = Vec::new();
    for stream in STREAMS {
        streams.push(transcript(ledger, stream).await);
    }
    let session = StreamId::new("s");
    let followed = ledger.session_after(&session, Default::default()).await;
    let snapshot = ledger.snapshot(&session).await.ok().flatten();
    let report = ledger.verify(None).await;
    Readings {
        streams,
        followed: followed.map(|(events, _)| events),
        snapshot: snapshot.map(|s| format!("{} {} {}", s.seq, s.hash, s.state)),
        healthy: report.is_ok_and(|r| r.damage.is_empty()),
    }
}

#[tokio::test]
async fn a_flipped_bit_never_changes_what_is_read() {
    let disk = SimDisk::new(1);
    let ledger = open(&disk).unwrap();
    furnish(&ledger).await;
    let original = read_all(&ledger).await;
    assert!(original.healthy && original.snapshot.is_some());
    drop(ledger);
    // Most of a small file is unused, and a flip there means nothing.
    let bytes = disk.file_bytes("/ledger.db").unwrap();
    let used: Vec<u64> = (0..)
        .zip(&bytes)
        .filter(|(_, b)| **b != 0)
        .map(|(n, _)| n)
        .collect();
    assert!(
        disk.file_bytes("/ledger.db-wal")
            .is_none_or(|w| w.is_empty())
    );
    let image = disk.image();

    let mut random = ChaCha8Rng::seed_from_u64(1);
    let (mut refused, mut found, mut harmless) = (0, 0, 0);
    for _ in 0..FLIPS {
        let byte = used[(random.next_u64() % used.len() as u64) as usize];
        let bit = (random.next_u32() % 8) as u8;
        let disk = SimDisk::from_image(&image, 1);
        assert!(disk.flip_bit("/ledger.db", byte, bit));
        let Ok(ledger) = open(&disk) else {
            refused += 1;
            continue;
        };
        let readings = read_all(&ledger).await;
        let same = compare(&original, &readings, &format!("byte {byte}, bit {bit}"));
        match (readings.healthy, same) {
            (false, _) => found += 1,
            (true, true) => harmless += 1,
            (true, false) => panic!("byte {byte}, bit {bit}: the ledger calls itself healthy"),
        }
    }
    assert!(
        refused > 100 && found > 1000,
        "refused {refused}, found {found}, harmless {harmless}"
    );
}

/// Whether all was read as written. Panics if anything else was read.
fn compare(original: &Readings, readings: &Readings, flip: &str) -> bool {
    let mut same = true;
    for (stream, (was, is)) in STREAMS
        .iter()
        .zip(original.streams.iter().zip(&readings.streams))
    {
        match is {
            Ok(is) => assert_eq!(is, was.as_ref().unwrap(), "{flip}: stream {stream}"),
            Err(_) => same = false,
        }
    }
    let was: Vec<String> = original
        .followed
        .as_ref()
        .unwrap()
        .iter()
        .map(line)
        .collect();
    match &readings.followed {
        Ok(is) => {
            let is: Vec<String> = is.iter().map(line).collect();
            let unknown = is.iter().find(|l| !was.contains(l));
            assert_eq!(unknown, None, "{flip}: the tail");
            same &= is == was;
        }
        Err(_) => same = false,
    }
    if readings.snapshot.is_some() {
        assert_eq!(readings.snapshot, original.snapshot, "{flip}: the snapshot");
    }
    same
}

/// As after a `kill -9`: the log was not folded in, and then one bit of it turns.
#[tokio::test]
async fn a_flipped_bit_in_a_log_that_was_left_behind_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let live = folder.path().join("live.db");
    let ledger = SqliteLedger::open(&SqliteOptions::new(&live)).unwrap();
    furnish(&ledger).await;
    let dead = folder.path().join("dead.db");
    std::fs::copy(&live, &dead).unwrap();
    let mut log = std::fs::read(folder.path().join("live.db-wal")).unwrap();
    let middle = log.len() / 2;
    log[middle] ^= 16;
    std::fs::write(folder.path().join("dead.db-wal"), &log).unwrap();

    let ledger = SqliteLedger::open(&SqliteOptions::new(&dead)).unwrap();
    let report = ledger.verify(None).await.unwrap();
    let told = report
        .damage
        .iter()
        .any(|d| d.what.contains("its log was damaged"));
    assert!(told, "{:?}", report.damage);
    assert_eq!(
        std::fs::read(folder.path().join("dead.db-wal.damaged-1")).unwrap(),
        log
    );
}

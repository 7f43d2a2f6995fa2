//! The simulated disk, judged by what SQLite promises on a real one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rusqlite::{Connection, Error, ErrorCode, OpenFlags, params};
use selvedge_testkit::{
    CrashKind, CrashPlan, DiskOptions, Fault, FaultEffect, FaultError, FaultSpan, Moment,
    OperationKind, PowerLoss, SimDisk,
};

const ROWS: i64 = 40;

#[derive(Debug, Clone, Copy)]
enum Synchronous {
    Normal,
    Full,
}

/// What the writer knew when the disk died.
struct Story {
    attempted: i64,
    acknowledged: i64,
}

/// Opens the journal of the stories; a checkpoint comes every few rows.
fn open(disk: &SimDisk, synchronous: Synchronous) -> rusqlite::Result<Connection> {
    let db = disk.open("journal.db")?;
    // SQLite answers `wal` before it commits the change. Only a statement that
    // is stepped to its end reports that the commit failed and the old mode
    // remains, in which `full` may lose the last row.
    let modes = db
        .prepare("pragma journal_mode = wal")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<Vec<String>>>()?;
    assert_eq!(modes, ["wal"]);
    let level = match synchronous {
        Synchronous::Normal => "normal",
        Synchronous::Full => "full",
    };
    db.pragma_update(None, "synchronous", level)?;
    db.pragma_update(None, "wal_autocheckpoint", 12)?;
    Ok(db)
}

/// Appends rows until all are there or the disk dies.
fn append(disk: &SimDisk, synchronous: Synchronous) -> Story {
    let mut story = Story {
        attempted: 0,
        acknowledged: 0,
    };
    let _ = (|| -> rusqlite::Result<()> {
        let db = open(disk, synchronous)?;
        db.execute_batch("create table row (n integer primary key, body blob not null)")?;
        for n in 1..=ROWS {
            story.attempted = n;
            insert(&db, n)?;
            story.acknowledged = n;
        }
        Ok(())
    })();
    story
}

fn insert(db: &Connection, n: i64) -> rusqlite::Result<()> {
    let body = vec![n as u8; 100 + (n as usize * 37) % 900];
    db.execute("insert into row values (?, ?)", params![n, body])?;
    Ok(())
}

/// The rows found after a restart, or what is wrong with the database.
fn rows(disk: &SimDisk) -> Result<Vec<i64>, String> {
    let read = || -> rusqlite::Result<(String, Vec<i64>)> {
        let db = open(disk, Synchronous::Full)?;
        let health: String = db.query_row("pragma integrity_check", [], |row| row.get(0))?;
        let table: i64 = db.query_row(
            "select count(*) from sqlite_schema where name = 'row'",
            [],
            |row| row.get(0),
        )?;
        if table == 0 {
            return Ok((health, Vec::new()));
        }
        let found = db
            .prepare("select n from row order by n")?
            .query_map([], |row| row.get(0))?
            .collect::<rusqlite::Result<Vec<i64>>>()?;
        Ok((health, found))
    };
    match read() {
        Ok((health, found)) if health == "ok" => Ok(found),
        Ok((health, _)) => Err(format!("integrity: {health}")),
        Err(error) => Err(format!("cannot read: {error}")),
    }
}

/// Checks what a story promised; `losses` allows a missing suffix.
fn judge(story: &Story, found: &[i64], losses: bool) -> Result<(), String> {
    let last = found.len() as i64;
    if found.iter().copied().ne(1..=last) {
        return Err(format!("a row is missing from the middle: {found:?}"));
    }
    if last > story.attempted {
        return Err(format!("row {last} was never attempted"));
    }
    if !losses && last < story.acknowledged {
        return Err(format!("row {} was acknowledged, then lost", last + 1));
    }
    Ok(())
}

/// Crashes at every operation of the story, before and after it.
fn sweep(
    options: DiskOptions,
    synchronous: Synchronous,
    kind: CrashKind,
    losses: bool,
) -> Result<(), String> {
    let whole = SimDisk::with_options(0, options);
    append(&whole, synchronous);
    assert!(!whole.is_dead());
    for at in 1..=whole.operations() {
        for moment in [Moment::Before, Moment::After] {
            let plan = CrashPlan { at, moment, kind };
            let disk = SimDisk::with_options(at, options);
            disk.arm(plan);
            let story = append(&disk, synchronous);
            assert!(disk.is_dead(), "{plan:?} was not reached");
            disk.restart();
            rows(&disk)
                .and_then(|found| judge(&story, &found, losses))
                .map_err(|wrong| format!("{plan:?}: {wrong}"))?;
        }
    }
    Ok(())
}

fn power_loss(policy: PowerLoss) -> DiskOptions {
    DiskOptions {
        power_loss: policy,
        ..DiskOptions::default()
    }
}

const POLICIES: [PowerLoss; 7] = [
    PowerLoss::Nothing,
    PowerLoss::Everything,
    PowerLoss::Prefix,
    PowerLoss::Subset,
    PowerLoss::Torn,
    PowerLoss::Sectors,
    PowerLoss::Any,
];

#[test]
fn a_story_writes_checkpoints_and_syncs() {
    let disk = SimDisk::new(1);
    let story = append(&disk, Synchronous::Full);
    assert_eq!(story.acknowledged, ROWS);
    let counters = disk.counters();
    assert!(counters.syncs > ROWS as u64, "{counters:?}");
    assert!(
        counters.bytes_synced >= counters.bytes_written,
        "{counters:?}"
    );
    assert!(disk.file_bytes("journal.db").unwrap().len() >= 4 * 4096);
    assert_eq!(
        disk.list(),
        ["/journal.db"],
        "the last close removes the log"
    );
}

#[test]
fn a_killed_process_loses_no_acknowledged_row() {
    for synchronous in [Synchronous::Full, Synchronous::Normal] {
        sweep(
            DiskOptions::default(),
            synchronous,
            CrashKind::ProcessKill,
            false,
        )
        .unwrap();
    }
}

#[test]
fn a_power_loss_loses_no_acknowledged_row_when_synchronous_is_full() {
    for policy in POLICIES {
        sweep(
            power_loss(policy),
            Synchronous::Full,
            CrashKind::PowerLoss,
            false,
        )
        .unwrap_or_else(|wrong| panic!("{policy:?}: {wrong}"));
    }
}

#[test]
fn a_power_loss_loses_only_a_suffix_when_synchronous_is_normal() {
    for policy in POLICIES {
        sweep(
            power_loss(policy),
            Synchronous::Normal,
            CrashKind::PowerLoss,
            true,
        )
        .unwrap_or_else(|wrong| panic!("{policy:?}: {wrong}"));
    }
}

#[test]
fn a_power_loss_does_lose_acknowledged_rows_when_synchronous_is_normal() {
    let wrong = sweep(
        power_loss(PowerLoss::Nothing),
        Synchronous::Normal,
        CrashKind::PowerLoss,
        false,
    )
    .unwrap_err();
    assert!(wrong.contains("acknowledged, then lost"), "{wrong}");
}

#[test]
fn a_disk_that_lies_about_sync_is_found_out() {
    let options = DiskOptions {
        lie_about_sync: true,
        ..DiskOptions::default()
    };
    let swept = sweep(options, Synchronous::Full, CrashKind::PowerLoss, false);
    assert!(swept.is_err());
}

#[test]
fn a_second_crash_during_recovery_loses_nothing() {
    let disk = SimDisk::new(5);
    disk.arm(CrashPlan {
        at: 100,
        moment: Moment::After,
        kind: CrashKind::PowerLoss,
    });
    let story = append(&disk, Synchronous::Full);
    disk.restart();
    let image = disk.image();

    let whole = SimDisk::from_image(&image, 0);
    rows(&whole).unwrap();
    for at in 1..=whole.operations() {
        for moment in [Moment::Before, Moment::After] {
            let again = SimDisk::from_image(&image, at);
            again.arm(CrashPlan {
                at,
                moment,
                kind: CrashKind::PowerLoss,
            });
            let _ = rows(&again);
            assert!(again.is_dead());
            again.restart();
            let found = rows(&again).unwrap();
            judge(&story, &found, false).unwrap_or_else(|wrong| panic!("at {at}: {wrong}"));
        }
    }
}

#[test]
fn a_power_loss_after_a_kill_loses_no_acknowledged_row() {
    let whole = SimDisk::new(0);
    append(&whole, Synchronous::Full);
    for at in 1..=whole.operations() {
        let disk = SimDisk::new(at);
        disk.arm(CrashPlan {
            at,
            moment: Moment::After,
            kind: CrashKind::ProcessKill,
        });
        let story = append(&disk, Synchronous::Full);
        disk.restart();
        // A reader comes by, and may rely on bytes that were never synced.
        let seen = rows(&disk).unwrap().len() as i64;
        disk.crash(CrashKind::PowerLoss);
        disk.restart();
        let found = rows(&disk).unwrap();
        judge(&story, &found, false).unwrap_or_else(|wrong| panic!("at {at}: {wrong}"));
        assert!(seen >= found.len() as i64);
    }
}

#[test]
fn a_rollback_journal_survives_every_crash_too() {
    let run = |disk: &SimDisk| {
        let mut acknowledged = 0;
        let _ = (|| -> rusqlite::Result<()> {
            let db = disk.open("old.db")?;
            // Only the strictest level syncs the directory after it removes
            // the journal, and without that a commit can be undone.
            db.execute_batch(
                "pragma journal_mode = delete; pragma synchronous = extra;
                 create table row (n integer primary key)",
            )?;
            for n in 1..=6 {
                db.execute("insert into row values (?)", [n])?;
                acknowledged = n;
            }
            Ok(())
        })();
        acknowledged
    };
    let count = |disk: &SimDisk| -> rusqlite::Result<i64> {
        let db = disk.open("old.db")?;
        let health: String = db.query_row("pragma integrity_check", [], |row| row.get(0))?;
        assert_eq!(health, "ok");
        db.query_row("select count(*) from row", [], |row| row.get(0))
    };
    for sector_bytes in [512, 4096] {
        let options = DiskOptions {
            sector_bytes,
            ..DiskOptions::default()
        };
        let whole = SimDisk::with_options(0, options);
        assert_eq!(run(&whole), 6);
        for at in 1..=whole.operations() {
            for kind in [CrashKind::ProcessKill, CrashKind::PowerLoss] {
                let disk = SimDisk::with_options(at, options);
                disk.arm(CrashPlan {
                    at,
                    moment: Moment::After,
                    kind,
                });
                let acknowledged = run(&disk);
                disk.restart();
                let found = count(&disk).unwrap_or(0);
                assert!(
                    found == acknowledged || found == acknowledged + 1,
                    "{kind:?} at {at}: {acknowledged} acknowledged, {found} found"
                );
            }
        }
    }
}

#[test]
fn an_image_is_a_disk_of_its_own() {
    let disk = SimDisk::new(3);
    let db = open(&disk, Synchronous::Full).unwrap();
    db.execute_batch("create table row (n integer primary key, body blob not null)")
        .unwrap();
    insert(&db, 1).unwrap();
    let copy = SimDisk::from_image(&disk.image(), 3);
    insert(&db, 2).unwrap();
    assert_eq!(rows(&copy).unwrap(), [1]);
    assert_eq!(rows(&disk).unwrap(), [1, 2]);
}

#[test]
fn a_second_writer_waits_in_virtual_time_and_is_refused() {
    for mode in ["wal", "delete"] {
        let disk = SimDisk::new(1);
        let first = disk.open("a.db").unwrap();
        first
            .execute_batch(&format!(
                "pragma journal_mode = {mode}; create table t (n integer)"
            ))
            .unwrap();
        let second = disk.open("a.db").unwrap();
        second
            .busy_timeout(std::time::Duration::from_secs(3600))
            .unwrap();
        first
            .execute_batch("begin immediate; insert into t values (1)")
            .unwrap();

        let clock = disk.clock();
        let refused = second.execute("insert into t values (2)", []).unwrap_err();
        assert_eq!(refused.sqlite_error_code(), Some(ErrorCode::DatabaseBusy));
        assert!(disk.slept().as_secs() >= 3500, "{:?}", disk.slept());
        assert!(disk.clock() - clock >= 3_500_000);
        let seen: i64 = second
            .query_row("select count(*) from t", [], |row| row.get(0))
            .unwrap();
        assert_eq!(seen, 0, "a reader sees the last commit");

        first.execute_batch("commit").unwrap();
        second.execute("insert into t values (2)", []).unwrap();
        let seen: i64 = first
            .query_row("select count(*) from t", [], |row| row.get(0))
            .unwrap();
        assert_eq!(seen, 2);
    }
}

#[test]
fn connections_on_many_threads_append_every_row_once() {
    let disk = SimDisk::new(1);
    open(&disk, Synchronous::Full)
        .unwrap()
        .execute_batch("create table t (n integer primary key)")
        .unwrap();
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let disk = &disk;
            scope.spawn(move || {
                let db = patiently(|| open(disk, Synchronous::Full));
                for n in worker * 100..(worker + 1) * 100 {
                    patiently(|| db.execute("insert into t values (?)", [n]));
                }
            });
        }
    });
    let db = disk.open("journal.db").unwrap();
    let count: i64 = db
        .query_row("select count(*) from t", [], |row| row.get(0))
        .unwrap();
    assert_eq!(count, 400);
}

/// Tries again while another thread is in the way.
fn patiently<T>(mut attempt: impl FnMut() -> rusqlite::Result<T>) -> T {
    loop {
        match attempt() {
            Ok(value) => return value,
            Err(error) => assert!(
                matches!(
                    error.sqlite_error_code(),
                    Some(ErrorCode::DatabaseBusy | ErrorCode::FileLockingProtocolFailed)
                ),
                "{error}"
            ),
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_full_disk_refuses_until_it_is_healed() {
    let disk = SimDisk::new(1);
    let db = open(&disk, Synchronous::Full).unwrap();
    db.execute_batch("create table row (n integer primary key, body blob not null)")
        .unwrap();
    insert(&db, 1).unwrap();
    disk.inject(Fault {
        on: OperationKind::Write,
        nth: disk.counters().writes + 2,
        error: FaultError::Full,
        effect: FaultEffect::Refused,
        span: FaultSpan::UntilHealed,
    });
    for _ in 0..3 {
        let refused = insert(&db, 2).unwrap_err();
        assert_eq!(refused.sqlite_error_code(), Some(ErrorCode::DiskFull));
    }
    disk.heal();
    insert(&db, 2).unwrap();
    disk.crash(CrashKind::PowerLoss);
    disk.restart();
    assert_eq!(rows(&disk).unwrap(), [1, 2]);
}

#[test]
fn a_fault_at_any_operation_loses_no_acknowledged_row() {
    let whole = SimDisk::new(0);
    append(&whole, Synchronous::Full);
    let counters = whole.counters();
    let mut refused = 0;
    for (on, error) in [
        (OperationKind::Write, FaultError::Full),
        (OperationKind::Write, FaultError::Write),
        (OperationKind::Sync, FaultError::Fsync),
        (OperationKind::Open, FaultError::CantOpen),
    ] {
        for effect in [FaultEffect::Refused, FaultEffect::Performed] {
            for span in [FaultSpan::Once, FaultSpan::UntilHealed] {
                for nth in 1..=counters.of(on) {
                    let disk = SimDisk::new(nth);
                    disk.inject(Fault {
                        on,
                        nth,
                        error,
                        effect,
                        span,
                    });
                    let story = append(&disk, Synchronous::Full);
                    refused += u64::from(story.acknowledged < ROWS);
                    disk.heal();
                    disk.crash(CrashKind::PowerLoss);
                    disk.restart();
                    rows(&disk)
                        .and_then(|found| judge(&story, &found, false))
                        .unwrap_or_else(|wrong| {
                            panic!("{on:?} {nth} {error:?} {effect:?} {span:?}: {wrong}")
                        });
                }
            }
        }
    }
    assert!(refused > 100, "only {refused} faults were noticed");
}

#[test]
fn a_commit_may_succeed_and_report_an_error() {
    let disk = SimDisk::new(1);
    let db = open(&disk, Synchronous::Full).unwrap();
    db.execute_batch("create table row (n integer primary key, body blob not null)")
        .unwrap();
    disk.inject(Fault {
        on: OperationKind::Sync,
        nth: disk.counters().syncs + 1,
        error: FaultError::Fsync,
        effect: FaultEffect::Performed,
        span: FaultSpan::Once,
    });
    let refused = insert(&db, 1).unwrap_err();
    assert_eq!(
        refused.sqlite_error_code(),
        Some(ErrorCode::SystemIoFailure)
    );
    disk.crash(CrashKind::PowerLoss);
    disk.restart();
    assert_eq!(rows(&disk).unwrap(), [1], "the row is there all the same");
}

#[test]
fn a_sync_that_forgets_leaves_bytes_that_only_readers_see() {
    let disk = SimDisk::with_options(1, power_loss(PowerLoss::Everything));
    let db = disk.open("a.db").unwrap();
    db.execute_batch("create table t (n integer)").unwrap();
    let before = disk.durable_bytes("a.db").unwrap();
    let writes = disk.counters().syncs;
    disk.inject(Fault {
        on: OperationKind::Sync,
        nth: writes + 1,
        error: FaultError::Fsync,
        effect: FaultEffect::Forgotten,
        span: FaultSpan::UntilHealed,
    });
    db.execute("insert into t values (1)", []).unwrap_err();
    drop(db);
    disk.crash(CrashKind::PowerLoss);
    disk.restart();
    assert_eq!(disk.file_bytes("a.db").unwrap(), before);
}

#[test]
fn old_handles_stay_dead_after_a_restart() {
    let disk = SimDisk::new(1);
    let old = open(&disk, Synchronous::Full).unwrap();
    old.execute_batch("create table row (n integer primary key, body blob not null)")
        .unwrap();
    insert(&old, 1).unwrap();
    old.execute_batch("begin immediate").unwrap();
    insert(&old, 2).unwrap();
    disk.restart();

    let new = open(&disk, Synchronous::Full).unwrap();
    insert(&new, 2).unwrap();
    assert!(old.execute_batch("commit").is_err());
    assert!(insert(&old, 3).is_err());
    drop(old);
    insert(&new, 3).unwrap();
    drop(new);
    assert_eq!(rows(&disk).unwrap(), [1, 2, 3]);
    assert_eq!(disk.list(), ["/journal.db"]);
}

#[test]
fn a_connection_may_outlive_its_disk() {
    let disk = SimDisk::new(1);
    let db = open(&disk, Synchronous::Full).unwrap();
    let name = disk.vfs_name().to_owned();
    drop(disk);
    db.execute_batch("create table row (n integer primary key, body blob not null)")
        .unwrap();
    insert(&db, 1).unwrap();
    let gone = Connection::open_with_flags_and_vfs("journal.db", OpenFlags::default(), &*name);
    assert!(gone.is_err());
}

#[test]
fn a_death_is_announced_once() {
    let disk = SimDisk::new(1);
    let deaths = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&deaths);
    disk.on_death(Arc::new(move || {
        seen.fetch_add(1, Ordering::Relaxed);
    }));
    disk.arm(CrashPlan {
        at: 20,
        moment: Moment::Before,
        kind: CrashKind::ProcessKill,
    });
    append(&disk, Synchronous::Full);
    assert_eq!(deaths.load(Ordering::Relaxed), 1);
    assert!(matches!(
        disk.open("journal.db").and_then(|db| insert(&db, 1)),
        Err(Error::SqliteFailure(..))
    ));
}

#[test]
fn a_flipped_bit_is_read_back() {
    let disk = SimDisk::new(1);
    append(&disk, Synchronous::Full);
    let before = disk.file_bytes("journal.db").unwrap();
    let body = before.len() as u64 - 50;
    assert!(disk.flip_bit("journal.db", body, 3));
    assert!(!disk.flip_bit("journal.db", before.len() as u64, 3));
    assert!(!disk.flip_bit("absent.db", 0, 3));
    let after = disk.file_bytes("journal.db").unwrap();
    assert_eq!(after[body as usize], before[body as usize] ^ 8);
    assert_eq!(disk.durable_bytes("journal.db").unwrap(), after);

    assert!(disk.flip_bit("journal.db", 0, 0));
    let wrong = rows(&disk).unwrap_err();
    assert!(wrong.contains("not a database"), "{wrong}");
}

#[test]
fn sqlite_reads_the_clock_of_the_disk() {
    let disk = SimDisk::new(1);
    disk.set_clock(951_782_400_000);
    let db = disk.open("a.db").unwrap();
    let now: String = db
        .query_row("select datetime('now')", [], |row| row.get(0))
        .unwrap();
    assert_eq!(now, "2000-02-29 00:00:00");
}

#[test]
fn any_sequence_of_statements_gives_the_answers_of_a_memory_database() {
    for seed in 0..30 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let disk = SimDisk::new(seed);
        let reference = Connection::open_in_memory().unwrap();
        let mode = ["wal", "delete", "truncate", "persist"][seed as usize % 4];
        let page_bytes = [512, 4096, 16384][seed as usize % 3];
        let setup = format!(
            "pragma page_size = {page_bytes}; pragma journal_mode = {mode};
             pragma wal_autocheckpoint = 20; pragma cache_size = 8; pragma temp_store = file;"
        );
        let mut db = disk.open("a.db").unwrap();
        db.execute_batch(&setup).unwrap();
        for db in [&db, &reference] {
            db.execute_batch(
                "create table t (k integer primary key, v text); create index v on t (v)",
            )
            .unwrap();
        }
        for _ in 0..150 {
            let (k, size) = (rng.next_u32() % 60, rng.next_u32() % 3000);
            let statement = match rng.next_u32() % 12 {
                0..5 => format!("insert or replace into t values ({k}, hex(zeroblob({size})))"),
                5..7 => format!("delete from t where k >= {k} and k < {k} + 5"),
                7 => format!("update t set v = k || v where k < {k}"),
                8 => format!(
                    "begin; delete from t where k < {k}; update t set v = 'x' || v; rollback"
                ),
                9 => "pragma wal_checkpoint(truncate)".to_owned(),
                10 => "vacuum".to_owned(),
                _ => {
                    // The process dies between two statements and comes back.
                    disk.restart();
                    db = disk.open("a.db").unwrap();
                    db.execute_batch(&setup).unwrap();
                    continue;
                }
            };
            db.execute_batch(&statement).unwrap();
            reference.execute_batch(&statement).unwrap();
            assert_eq!(contents(&db), contents(&reference), "seed {seed}");
        }
        let health: String = db
            .query_row("pragma integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(health, "ok", "seed {seed}");
    }
}

fn contents(db: &Connection) -> Vec<(i64, String)> {
    db.prepare("select k, v from t order by v, k")
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

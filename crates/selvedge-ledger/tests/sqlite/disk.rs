//! What the ledger asks of its disk, and what it does when the disk fails.

use std::sync::Arc;

use futures::future::join_all;
use selvedge_ledger::{
    Ledger, LedgerError, Mode, Pen, SqliteLedger, SqliteOptions, StreamId, Sync,
};
use selvedge_testkit::{
    CrashKind, Fault, FaultEffect, FaultError, FaultSpan, OperationKind, PowerLoss, SimDisk,
};

use crate::suite::{note, notes, opened, write};

fn open(disk: &SimDisk, mode: Mode) -> Result<SqliteLedger, LedgerError> {
    let mut options = SqliteOptions::new("/ledger.db");
    options.vfs = Some(disk.vfs_name().to_owned());
    options.mode = mode;
    SqliteLedger::open(&options)
}

fn fail(disk: &SimDisk, on: OperationKind, error: FaultError, effect: FaultEffect) {
    disk.inject(Fault {
        on,
        nth: disk.counters().of(on) + 1,
        error,
        effect,
        span: FaultSpan::UntilHealed,
    });
}

fn s() -> StreamId {
    StreamId::new("s")
}

#[tokio::test]
async fn concurrent_appends_share_their_syncs() {
    let disk = SimDisk::new(1);
    let ledger = Arc::new(open(&disk, Mode::Threaded).unwrap());
    let mut pens = Vec::new();
    for n in 0..200 {
        pens.push(opened(&*ledger, &format!("s{n}")).await);
    }
    let before = disk.counters().syncs;
    join_all(pens.iter_mut().map(|pen| write(&*ledger, pen, "x"))).await;
    let syncs = disk.counters().syncs - before;
    assert!((1..=20).contains(&syncs), "{syncs} syncs for 200 appends");
}

#[tokio::test]
async fn what_is_acknowledged_now_survives_a_loss_of_power() {
    let disk = SimDisk::new(2);
    disk.set_power_loss(PowerLoss::Nothing);
    let ledger = open(&disk, Mode::Inline).unwrap();
    let mut pen = opened(&ledger, "s").await;
    pen.write(note("later"), Sync::Later);
    pen.flush(&ledger).await.unwrap();
    pen.write(note("now"), Sync::Now);
    pen.flush(&ledger).await.unwrap();
    let syncs = disk.counters().syncs;
    pen.write(note("later still"), Sync::Later);
    pen.flush(&ledger).await.unwrap();
    assert_eq!(disk.counters().syncs, syncs, "`Later` does not sync");

    disk.crash(CrashKind::PowerLoss);
    drop(ledger);
    disk.restart();
    let ledger = open(&disk, Mode::Inline).unwrap();
    assert_eq!(notes(&ledger, &s()).await, ["later", "now"]);
    assert_eq!(ledger.verify(None).await.unwrap().damage, []);
}

#[tokio::test]
async fn a_full_disk_is_named_and_nothing_is_lost() {
    for mode in [Mode::Inline, Mode::Threaded] {
        let disk = SimDisk::new(3);
        let ledger = open(&disk, mode).unwrap();
        let mut pen = opened(&ledger, "s").await;
        write(&ledger, &mut pen, "before").await;
        let refuse = FaultEffect::Refused;
        fail(&disk, OperationKind::Write, FaultError::Full, refuse);
        pen.write(note("while it is full"), Sync::Now);
        for _ in 0..2 {
            let refused = pen.flush(&ledger).await;
            assert!(
                matches!(&refused, Err(LedgerError::Full { path }) if path == "/ledger.db"),
                "{refused:?}"
            );
        }
        assert_eq!(notes(&ledger, &s()).await, ["before"], "reading goes on");
        disk.heal();
        pen.flush(&ledger).await.unwrap();
        assert_eq!(notes(&ledger, &s()).await, ["before", "while it is full"]);
    }
}

#[tokio::test]
async fn a_ledger_is_not_begun_on_a_full_disk() {
    let disk = SimDisk::new(4);
    let refuse = FaultEffect::Refused;
    fail(&disk, OperationKind::Write, FaultError::Full, refuse);
    let refused = open(&disk, Mode::Inline).map(drop);
    assert!(
        matches!(refused, Err(LedgerError::Full { .. })),
        "{refused:?}"
    );
    disk.heal();
    opened(&open(&disk, Mode::Inline).unwrap(), "s").await;
}

#[tokio::test]
async fn a_disk_that_cannot_be_opened_is_named() {
    let disk = SimDisk::new(5);
    let refuse = FaultEffect::Refused;
    fail(&disk, OperationKind::Open, FaultError::CantOpen, refuse);
    let refused = open(&disk, Mode::Inline).map(drop);
    assert!(
        matches!(refused, Err(LedgerError::Unusable { .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_failed_sync_is_not_taken_for_a_success() {
    for effect in [
        FaultEffect::Refused,
        FaultEffect::Forgotten,
        FaultEffect::Performed,
    ] {
        let disk = SimDisk::new(6);
        disk.set_power_loss(PowerLoss::Nothing);
        let ledger = open(&disk, Mode::Inline).unwrap();
        let mut pen = opened(&ledger, "s").await;
        fail(&disk, OperationKind::Sync, FaultError::Fsync, effect);
        pen.write(note("one"), Sync::Now);
        let failed = pen.flush(&ledger).await;
        assert!(
            matches!(failed, Err(LedgerError::Unavailable { .. })),
            "{failed:?}"
        );
        disk.heal();
        pen.write(note("two"), Sync::Now);
        pen.flush(&ledger).await.unwrap();

        disk.crash(CrashKind::PowerLoss);
        drop(ledger);
        disk.restart();
        let ledger = open(&disk, Mode::Inline).unwrap();
        assert_eq!(notes(&ledger, &s()).await, ["one", "two"], "{effect:?}");
    }
}

#[tokio::test]
async fn a_crash_at_any_operation_keeps_what_was_acknowledged() {
    let mut at = 1;
    loop {
        let disk = SimDisk::new(at);
        disk.arm(selvedge_testkit::CrashPlan {
            at,
            moment: selvedge_testkit::Moment::After,
            kind: CrashKind::PowerLoss,
        });
        let acknowledged = write_until_the_end(&disk).await;
        if !disk.is_dead() {
            assert_eq!(acknowledged, Some(6));
            assert!(at > 20, "the story is too short to say anything");
            return;
        }
        disk.restart();
        let ledger = open(&disk, Mode::Inline).unwrap();
        if let Some(acknowledged) = acknowledged {
            let found = ledger.read(&s(), 1).await.unwrap().len();
            assert!(found >= acknowledged, "crash at {at}");
        }
        assert_eq!(
            ledger.verify(None).await.unwrap().damage,
            [],
            "crash at {at}"
        );
        at += 1;
    }
}

/// How many notes were acknowledged; `None` if not even the stream was.
async fn write_until_the_end(disk: &SimDisk) -> Option<usize> {
    let ledger = open(disk, Mode::Inline).ok()?;
    let mut pen: Pen = crate::suite::new_pen("s", None);
    pen.write(note(crate::suite::long(0)), Sync::Now);
    pen.flush(&ledger).await.ok()?;
    for n in 1..6 {
        pen.write(note(crate::suite::long(n)), Sync::Now);
        if pen.flush(&ledger).await.is_err() {
            return Some(n);
        }
    }
    Some(6)
}

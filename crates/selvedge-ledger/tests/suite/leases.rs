//! Who may drive a stream.

use selvedge_ledger::{
    Holder, Lease, LeaseError, Ledger, LedgerError, NewStream, Pen, StreamId, Sync, Time,
};

use super::{Place, note, notes, opened};

const TTL: i64 = 1000;

fn session() -> StreamId {
    StreamId::new("s")
}

async fn claim(ledger: &dyn Ledger, holder: &Holder, now: i64) -> Result<Lease, LeaseError> {
    ledger.claim(&session(), holder, Time(now), TTL).await
}

async fn holder_id(ledger: &dyn Ledger, now: i64) -> Option<String> {
    let holder = ledger.holder(&session(), Time(now)).await.unwrap();
    holder.map(|h| h.id)
}

pub async fn a_held_lease_is_refused(place: &impl Place) {
    let (ledger, other) = (place.open().await, place.open().await);
    let (a, b) = (Holder::current("a"), Holder::current("b"));
    claim(&*ledger, &a, 0).await.unwrap();
    match claim(&*other, &b, TTL - 1).await {
        Err(LeaseError::Held {
            holder, expires, ..
        }) => {
            assert_eq!((holder, expires), (a.clone(), Time(TTL)));
        }
        other => panic!("expected a held lease, got {other:?}"),
    }
    assert_eq!(holder_id(&*other, TTL - 1).await, Some(a.id));
    assert_eq!(holder_id(&*other, TTL).await, None);
}

pub async fn an_expired_lease_passes_on(place: &impl Place) {
    let ledger = place.open().await;
    let (a, b) = (Holder::current("a"), Holder::current("b"));
    let first = claim(&*ledger, &a, 0).await.unwrap();
    let second = claim(&*ledger, &b, TTL).await.unwrap();
    assert!(second.epoch > first.epoch);
    // The late one neither renews nor releases what is no longer its own.
    ledger.renew(&a, Time(TTL), 100 * TTL).await.unwrap();
    ledger.release(&first).await.unwrap();
    assert_eq!(holder_id(&*ledger, 2 * TTL - 1).await, Some(b.id));
    assert_eq!(holder_id(&*ledger, 2 * TTL).await, None);
}

pub async fn a_renewed_lease_is_held_longer(place: &impl Place) {
    let ledger = place.open().await;
    let (a, b) = (Holder::current("a"), Holder::current("b"));
    claim(&*ledger, &a, 0).await.unwrap();
    ledger.renew(&a, Time(900), TTL).await.unwrap();
    assert!(claim(&*ledger, &b, 1899).await.is_err());
    assert!(claim(&*ledger, &b, 1900).await.is_ok());
}

pub async fn a_released_lease_is_free_and_stays_free(place: &impl Place) {
    let ledger = place.open().await;
    let (a, b) = (Holder::current("a"), Holder::current("b"));
    let lease = claim(&*ledger, &a, 0).await.unwrap();
    ledger.release(&lease).await.unwrap();
    assert_eq!(holder_id(&*ledger, 1).await, None);
    // The holder goes on renewing, for the other sessions it drives.
    ledger.renew(&a, Time(1), TTL).await.unwrap();
    assert_eq!(holder_id(&*ledger, 2).await, None);
    claim(&*ledger, &b, 2).await.unwrap();
}

pub async fn a_lease_of_a_process_that_is_gone_is_free(place: &impl Place) {
    let ledger = place.open().await;
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let gone = Holder {
        pid: child.id(),
        started: 1,
        ..Holder::current("gone")
    };
    child.wait().unwrap();
    claim(&*ledger, &gone, 0).await.unwrap();
    assert_eq!(holder_id(&*ledger, 1).await, None);
    claim(&*ledger, &Holder::current("b"), 1).await.unwrap();
}

pub async fn a_stale_fence_is_refused(place: &impl Place) {
    let ledger = place.open().await;
    let old = claim(&*ledger, &Holder::current("a"), 0).await.unwrap();
    let mut root = fenced(&*ledger, "s", &old).await;
    let mut child = fenced(&*ledger, "s/t1", &old).await;
    for pen in [&mut root, &mut child] {
        pen.write(note("mine"), Sync::Now);
        pen.flush(&*ledger).await.unwrap();
    }
    let new = claim(&*ledger, &Holder::current("b"), TTL).await.unwrap();
    for pen in [&mut root, &mut child] {
        pen.write(note("too late"), Sync::Now);
        let refused = pen.flush(&*ledger).await;
        assert!(matches!(refused, Err(LedgerError::Fenced { .. })));
    }
    fenced(&*ledger, "s/t2", &new).await;
    for stream in ["s", "s/t1"] {
        assert_eq!(notes(&*ledger, &StreamId::new(stream)).await, ["mine"]);
    }
    // A fence that was never given out is no fence.
    let mut invented = new.fence();
    invented.stream = StreamId::new("unleased");
    let (seq, hash) = opened(&*ledger, "unleased").await.head();
    let mut pen = Pen::at(StreamId::new("unleased"), seq, hash, Some(invented));
    pen.write(note("forged"), Sync::Now);
    assert!(pen.flush(&*ledger).await.is_err());
}

async fn fenced(ledger: &dyn Ledger, name: &str, lease: &Lease) -> Pen {
    let new = NewStream {
        kind: "test".into(),
        parent: name.contains('/').then(session),
    };
    let fence = Some(lease.fence());
    let mut pen = Pen::open(StreamId::new(name), new, "tester", Time(1), fence);
    pen.flush(ledger).await.unwrap();
    pen
}

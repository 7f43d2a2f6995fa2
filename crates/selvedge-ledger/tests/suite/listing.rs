//! What streams there are, and whether they are intact.

use selvedge_ledger::{Ledger, Letter, NewStream, Pen, StreamFilter, StreamId, Sync, Time};

use super::{Place, long, note, opened, opened_child};

async fn names(ledger: &dyn Ledger, filter: StreamFilter) -> Vec<String> {
    let streams = ledger.streams(filter).await.unwrap();
    streams.into_iter().map(|s| s.id.to_string()).collect()
}

async fn admit(ledger: &dyn Ledger, to: &str) {
    let letter = Letter {
        id: "l".into(),
        event: note("hello"),
    };
    ledger.admit(&StreamId::new(to), letter).await.unwrap();
}

pub async fn sessions_are_listed_newest_first(place: &impl Place) {
    let ledger = place.open().await;
    for (name, time) in [("old", 10), ("new", 30), ("middle", 20)] {
        let new = NewStream {
            kind: "test".into(),
            parent: None,
        };
        Pen::open(StreamId::new(name), new, "tester", Time(time), None)
            .flush(&*ledger)
            .await
            .unwrap();
    }
    opened_child(&*ledger, "old/t1", "old").await;
    admit(&*ledger, "new").await;
    let sessions = names(&*ledger, StreamFilter::Sessions).await;
    assert_eq!(sessions, ["new", "middle", "old"]);
}

pub async fn a_session_has_its_children_and_inboxes(place: &impl Place) {
    let ledger = place.open().await;
    opened(&*ledger, "s").await;
    opened_child(&*ledger, "s/t1", "s").await;
    opened(&*ledger, "s2").await;
    opened_child(&*ledger, "s/t1/m0", "s/t1").await;
    admit(&*ledger, "s").await;
    admit(&*ledger, "s/t1").await;
    let streams = names(&*ledger, StreamFilter::Session(StreamId::new("s"))).await;
    assert_eq!(streams, ["s", "s/t1", "s/t1/m0", "s#inbox", "s/t1#inbox"]);
}

pub async fn verifying_counts_what_it_saw(place: &impl Place) {
    let ledger = place.open().await;
    let mut pen = opened(&*ledger, "s").await;
    pen.write(note(long(1)), Sync::Now);
    pen.write(note("short"), Sync::Now);
    pen.flush(&*ledger).await.unwrap();
    opened(&*ledger, "other").await;
    let all = ledger.verify(None).await.unwrap();
    assert_eq!((all.streams, all.events, all.blobs), (2, 4, 1));
    let one = ledger.verify(Some(&StreamId::new("s"))).await.unwrap();
    assert_eq!((one.streams, one.events, one.blobs), (1, 3, 1));
    assert!(all.damage.is_empty() && one.damage.is_empty());
}

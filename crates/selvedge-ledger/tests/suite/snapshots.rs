//! Folded states, kept to save time.

use std::sync::Arc;

use selvedge_ledger::{Hash, Snapshot, StreamId};
use serde_json::value::RawValue;

use super::{Place, opened};

pub async fn the_latest_snapshot_is_returned(place: &impl Place) {
    let ledger = place.open().await;
    let stream = StreamId::new("s");
    opened(&*ledger, "s").await;
    assert!(ledger.snapshot(&stream).await.unwrap().is_none());
    for (seq, state) in [(1, r#"{"a":1}"#), (2, r#"{"a": [2, "é"]}"#)] {
        let state = RawValue::from_string(state.into()).unwrap();
        let snapshot = Snapshot {
            seq,
            hash: Hash([seq as u8; 32]),
            state: Arc::from(state),
        };
        ledger.put_snapshot(&stream, snapshot).await.unwrap();
    }
    for ledger in [ledger, place.open().await] {
        let kept = ledger.snapshot(&stream).await.unwrap().unwrap();
        assert_eq!((kept.seq, kept.hash), (2, Hash([2; 32])));
        assert_eq!(kept.state.get(), r#"{"a": [2, "é"]}"#);
    }
}

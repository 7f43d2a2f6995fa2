//! Long text.

use selvedge_ledger::{BlobId, LedgerError, StreamId, Sync};

use super::{Note, Place, long, note, opened};

pub async fn long_text_is_fetched_by_reference(place: &impl Place) {
    let ledger = place.open().await;
    let mut pen = opened(&*ledger, "s").await;
    for n in [1, 2, 1] {
        pen.write(note(long(n)), Sync::Now);
    }
    pen.flush(&*ledger).await.unwrap();
    let events = ledger.read(&StreamId::new("s"), 1).await.unwrap();
    for (event, n) in events.iter().zip([1, 2, 1]) {
        assert!(event.data.get().len() < 150, "the event holds a reference");
        let note: Note = event.decode().unwrap();
        assert_eq!(note.text.len(), long(n).len() as u64);
        assert_eq!(*ledger.text(&note.text).await.unwrap(), *long(n));
    }
}

pub async fn a_missing_blob_is_an_error(place: &impl Place) {
    let ledger = place.open().await;
    let missing = ledger.blob(BlobId::of(b"never stored")).await;
    assert!(matches!(missing, Err(LedgerError::Damaged { .. })));
}

//! Messages from outside.

use selvedge_ledger::{Ledger, Letter, Receipt, StreamId};

use super::{Note, Place, long, note, notes, opened};

async fn admit(ledger: &dyn Ledger, id: &str, text: &str) -> Receipt {
    let letter = Letter {
        id: id.into(),
        event: note(text),
    };
    ledger.admit(&StreamId::new("s"), letter).await.unwrap()
}

pub async fn the_same_letter_twice_has_one_receipt(place: &impl Place) {
    let ledger = place.open().await;
    opened(&*ledger, "s").await;
    let first = admit(&*ledger, "a", "hello").await;
    let other = admit(&*ledger, "b", "more").await;
    assert!(!first.repeated && !other.repeated);
    assert_ne!(first.seq, other.seq);
    for ledger in [ledger.clone(), place.open().await] {
        let again = admit(&*ledger, "a", "hello").await;
        assert_eq!((again.seq, again.repeated), (first.seq, true));
    }
    let inbox = StreamId::new("s").inbox();
    assert_eq!(notes(&*ledger, &inbox).await, ["hello", "more"]);
}

pub async fn letters_keep_their_order_and_their_text(place: &impl Place) {
    let ledger = place.open().await;
    opened(&*ledger, "s").await;
    for n in 0..5 {
        let receipt = admit(&*ledger, &format!("l{n}"), &long(n)).await;
        assert_eq!(receipt.seq, n as u64 + 2, "the first event opens the inbox");
    }
    let inbox = StreamId::new("s").inbox();
    let events = ledger.read(&inbox, 1).await.unwrap();
    for (n, event) in events.iter().enumerate() {
        assert_eq!(event.cause.as_deref(), Some(&*format!("l{n}")));
        let note: Note = event.decode().unwrap();
        assert_eq!(*ledger.text(&note.text).await.unwrap(), *long(n));
    }
    assert_eq!(events.len(), 5);
    assert!(ledger.verify(None).await.unwrap().damage.is_empty());
}

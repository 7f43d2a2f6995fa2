//! Appending and reading back.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use futures::future::join_all;
use selvedge_ledger::{
    Event, Hash, LedgerError, NewEvent, NewStream, Pen, StreamId, Sync, Time, Upcasts,
};
use serde_json::json;

use super::flaky::{Flaky, Lost};
use super::{Place, note, notes, opened, write};

pub async fn what_is_appended_is_read_back(place: &impl Place) {
    let ledger = place.open().await;
    let mut pen = opened(&*ledger, "s").await;
    let mut written = Vec::new();
    for n in 1..=3 {
        let data = json!({ "n": n, "text": "žluť \u{0} \"quoted\"" });
        let event = NewEvent::new("Counted", format!("actor:{n}"), Time(100 + n), &data)
            .version(3)
            .because(format!("cause-{n}"));
        written.push(pen.write(event, Sync::Later));
    }
    pen.flush(&*ledger).await.unwrap();

    for ledger in [ledger, place.open().await] {
        let stream = StreamId::new("s");
        let read = ledger.read(&stream, 0).await.unwrap();
        assert_eq!(&*read[0].kind, "StreamOpened");
        assert_eq!(lines(&read[1..]), lines(&written));
        let info = ledger.stream(&stream).await.unwrap().unwrap();
        assert_eq!((info.head, info.head_hash), (4, written[2].hash));
        assert_eq!((info.opened, info.updated), (Time(1), Time(103)));
    }
}

/// Events with every field, hashes too.
fn lines(events: &[Event]) -> Vec<String> {
    let line = |e| serde_json::to_string(e).unwrap();
    events.iter().map(line).collect()
}

pub async fn reading_begins_after_any_event(place: &impl Place) {
    let ledger = place.open().await;
    let mut pen = opened(&*ledger, "s").await;
    for text in ["a", "b", "c"] {
        write(&*ledger, &mut pen, text).await;
    }
    for after in 0..=4 {
        let events = ledger.read(&StreamId::new("s"), after).await.unwrap();
        let seqs: Vec<u64> = events.iter().map(|e| e.seq).collect();
        assert_eq!(seqs, (after + 1..=4).collect::<Vec<_>>());
    }
}

pub async fn a_writer_behind_the_stream_is_refused(place: &impl Place) {
    let ledger = place.open().await;
    let mut pen = opened(&*ledger, "s").await;
    let (seq, hash) = pen.head();
    write(&*ledger, &mut pen, "first").await;
    let mut late = Pen::at(StreamId::new("s"), seq, hash, None);
    late.write(note("second"), Sync::Now);
    match late.flush(&*ledger).await {
        Err(LedgerError::Conflict {
            expected: 1,
            actual: 2,
            ..
        }) => {}
        other => panic!("expected a conflict, got {other:?}"),
    }
    assert_eq!(notes(&*ledger, &StreamId::new("s")).await, ["first"]);
}

pub async fn a_writer_of_another_history_is_refused(place: &impl Place) {
    let ledger = place.open().await;
    let (seq, _) = opened(&*ledger, "s").await.head();
    let mut stranger = Pen::at(StreamId::new("s"), seq, Hash([9; 32]), None);
    stranger.write(note("forged"), Sync::Now);
    let refused = stranger.flush(&*ledger).await;
    assert!(matches!(refused, Err(LedgerError::Conflict { .. })));
    assert!(notes(&*ledger, &StreamId::new("s")).await.is_empty());
}

pub async fn a_refused_append_leaves_nothing(place: &impl Place) {
    let ledger = place.open().await;
    let mut winner = opened(&*ledger, "s").await;
    let (seq, hash) = winner.head();
    let mut loser = Pen::at(StreamId::new("s"), seq, hash, None);
    write(&*ledger, &mut winner, "won").await;
    for n in 0..5 {
        loser.write(note(super::long(n)), Sync::Now);
    }
    loser.flush(&*ledger).await.unwrap_err();
    assert_eq!(notes(&*ledger, &StreamId::new("s")).await, ["won"]);
    let blob = selvedge_ledger::BlobId::of(super::long(0).as_bytes());
    assert!(ledger.blob(blob).await.is_err());
}

pub async fn of_racing_pens_exactly_one_wins(place: &impl Place) {
    let ledgers = [place.open().await, place.open().await];
    let stream = StreamId::new("s");
    let (mut seq, mut hash) = opened(&*ledgers[0], "s").await.head();
    for round in 0..20 {
        let attempts = (0..8).map(|n| {
            let ledger = ledgers[n % 2].clone();
            let mut pen = Pen::at(stream.clone(), seq, hash, None);
            pen.write(note(format!("{round}.{n}")), Sync::Now);
            async move { (pen.flush(&*ledger).await, pen.head()) }
        });
        let results = join_all(attempts).await;
        let winners: Vec<_> = results.iter().filter(|(r, _)| r.is_ok()).collect();
        assert_eq!(winners.len(), 1, "round {round}");
        (seq, hash) = winners[0].1;
        for (result, _) in &results {
            let refused = matches!(result, Ok(()) | Err(LedgerError::Conflict { .. }));
            assert!(refused, "{result:?}");
        }
    }
    assert_eq!(notes(&*ledgers[0], &stream).await.len(), 20);
}

pub async fn a_stream_must_be_opened_first(place: &impl Place) {
    let ledger = place.open().await;
    let stream = StreamId::new("nowhere");
    let mut pen = Pen::at(stream.clone(), 0, Hash::ZERO, None);
    pen.write(note("lost"), Sync::Now);
    let refused = pen.flush(&*ledger).await;
    assert!(matches!(refused, Err(LedgerError::NoStream { .. })));
    let unread = ledger.read(&stream, 0).await;
    assert!(matches!(unread, Err(LedgerError::NoStream { .. })));
    assert_eq!(ledger.stream(&stream).await.unwrap(), None);
}

pub async fn a_lost_answer_does_not_repeat_the_append(place: &impl Place) {
    repeat_until_confirmed(place, &[Lost::Answer]).await;
    repeat_until_confirmed(place, &[Lost::Answer, Lost::Request]).await;
}

pub async fn a_lost_request_is_sent_again(place: &impl Place) {
    repeat_until_confirmed(place, &[Lost::Request]).await;
    repeat_until_confirmed(place, &[Lost::Request, Lost::Answer]).await;
}

/// Writes two notes, one on each side of a failed flush, and flushes until both
/// are confirmed. The stream is opened by the flush that fails.
async fn repeat_until_confirmed(place: &impl Place, losses: &[Lost]) {
    let ledger = place.open().await;
    let flaky = Flaky::new(ledger.clone(), losses.iter().copied());
    let name = format!("{losses:?}");
    let mut pen = super::new_pen(&name, None);
    pen.write(note("one"), Sync::Now);
    for _ in losses {
        let failed = pen.flush(&flaky).await;
        assert!(matches!(failed, Err(LedgerError::Unavailable { .. })));
        assert!(pen.is_dirty());
    }
    pen.write(note("two"), Sync::Now);
    pen.flush(&flaky).await.unwrap();
    assert!(!pen.is_dirty());
    assert_eq!(notes(&*ledger, &StreamId::new(name)).await, ["one", "two"]);
}

pub async fn an_abandoned_flush_is_taken_up_again(place: &impl Place) {
    let ledger = place.open().await;
    let mut pen = opened(&*ledger, "s").await;
    for n in 0..50 {
        pen.write(note(n.to_string()), Sync::Now);
        // Polled once, the request is on its way; then its asker goes away.
        let mut flush = pin!(pen.flush(&*ledger));
        let _ = flush.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    }
    pen.flush(&*ledger).await.unwrap();
    let expected: Vec<String> = (0..50).map(|n| n.to_string()).collect();
    assert_eq!(notes(&*ledger, &StreamId::new("s")).await, expected);
}

pub async fn appends_of_many_streams_are_all_kept(place: &impl Place) {
    let ledger = place.open().await;
    join_all((0..50).map(|n| {
        let ledger = ledger.clone();
        async move {
            let mut pen = opened(&*ledger, &format!("s{n}")).await;
            for text in ["a", "b", "c"] {
                write(&*ledger, &mut pen, text).await;
            }
        }
    }))
    .await;
    for n in 0..50 {
        let stream = StreamId::new(format!("s{n}"));
        assert_eq!(notes(&*ledger, &stream).await, ["a", "b", "c"]);
    }
}

pub async fn old_versions_are_brought_up_to_date(place: &impl Place) {
    let old = place.open().await;
    let new = NewStream {
        kind: "test".into(),
        parent: None,
    };
    let stream = StreamId::new("s");
    let mut pen = Pen::open(stream.clone(), new, "tester", Time(1), None);
    let event = |data| NewEvent::new("Weighed", "tester", Time(2), &data);
    let first = pen.write(event(json!({ "pounds": 10 })), Sync::Now);
    pen.write(event(json!({ "grams": 500 })).version(2), Sync::Now);
    pen.flush(&*old).await.unwrap();

    let upcasts = Upcasts::default()
        .step(
            "Weighed",
            1,
            |old| json!({ "grams": old["pounds"].as_u64().unwrap() * 454 }),
        )
        .step(
            "Weighed",
            2,
            |old| json!({ "grams": old["grams"], "by": "?" }),
        );
    let ledger = place.open_with(upcasts).await;
    let read = ledger.read(&stream, 1).await.unwrap();
    let (followed, _) = ledger
        .session_after(&stream, Default::default())
        .await
        .unwrap();
    for events in [&read[..], &followed[1..]] {
        let seen: Vec<_> = events.iter().map(|e| (e.version, e.data.get())).collect();
        assert_eq!(
            seen,
            [
                (3, r#"{"by":"?","grams":4540}"#),
                (3, r#"{"by":"?","grams":500}"#)
            ]
        );
        assert_eq!(events[0].hash, first.hash, "the stored event is as it was");
    }
    assert!(ledger.verify(None).await.unwrap().damage.is_empty());
}

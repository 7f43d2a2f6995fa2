//! Seeing events as they come.

use std::sync::Arc;
use std::time::Duration;

use selvedge_ledger::{Event, Ledger, Pen, StreamId, Sync, Tail, Topic};
use tokio::time::timeout;

use super::{Place, note, opened, opened_child, write};

// Long enough for a crowded machine, short enough to notice that nobody wakes us.
const AT_MOST: Duration = Duration::from_secs(10);

/// Where an event is.
fn place_of(event: &Event) -> (String, u64) {
    (event.stream.to_string(), event.seq)
}

/// Follows until `count` events were seen.
async fn follow(tail: &mut Tail, count: usize) -> Vec<(String, u64)> {
    let mut seen = Vec::new();
    while seen.len() < count {
        let events = timeout(AT_MOST, tail.next()).await.expect("a wake-up");
        seen.extend(events.unwrap().iter().map(place_of));
    }
    seen
}

/// Appends to both streams in turn, one or two events at a time.
async fn weave(ledger: Arc<dyn Ledger>, mut a: Pen, mut b: Pen) -> Vec<(String, u64)> {
    let mut written = Vec::new();
    for n in 0..30 {
        for pen in [&mut a, &mut b] {
            for text in &["x", "y"][n % 2..] {
                written.push(place_of(&pen.write(note(*text), Sync::Later)));
            }
            pen.flush(&*ledger).await.unwrap();
        }
        if n % 7 == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    written
}

pub async fn a_tail_sees_every_event_once_in_order(place: &impl Place) {
    let ledger = place.open().await;
    follow_a_weave(ledger.clone(), ledger).await;
}

pub async fn a_tail_sees_what_another_process_appends(place: &impl Place) {
    follow_a_weave(place.open().await, place.open().await).await;
}

async fn follow_a_weave(writer: Arc<dyn Ledger>, reader: Arc<dyn Ledger>) {
    let root = opened(&*writer, "s").await;
    let child = opened_child(&*writer, "s/t1", "s").await;
    let mut other = opened(&*writer, "other").await;
    let mut tail = Tail::new(reader, StreamId::new("s"));
    let (written, seen) = tokio::join!(
        async {
            let written = weave(writer.clone(), root, child).await;
            write(&*writer, &mut other, "of another session").await;
            written
        },
        follow(&mut tail, 2 + 90),
    );
    let opened = [("s".to_owned(), 1), ("s/t1".to_owned(), 1)];
    assert_eq!(seen, [&opened[..], &written].concat());
    assert!(tail.ready().await.unwrap().is_empty());
    let nothing = timeout(Duration::from_millis(200), tail.next()).await;
    assert!(nothing.is_err(), "{nothing:?}");
}

pub async fn a_subscription_wakes_for_its_topic_only(place: &impl Place) {
    let ledger = place.open().await;
    let mut root = opened(&*ledger, "s").await;
    let mut child = opened_child(&*ledger, "s/t1", "s").await;
    let of_root = ledger.subscribe(Topic::Stream(StreamId::new("s")));
    let of_session = ledger.subscribe(Topic::Session(StreamId::new("s")));

    write(&*ledger, &mut child, "x").await;
    let woken = timeout(AT_MOST, of_session.changed()).await;
    assert!(woken.is_ok(), "the session's subscriber slept on");
    let woken = timeout(Duration::from_millis(100), of_root.changed()).await;
    assert!(
        woken.is_err(),
        "an append to the child is not one to the root"
    );

    // A wake-up that came before anybody waited is kept.
    write(&*ledger, &mut root, "y").await;
    for subscription in [of_root, of_session] {
        timeout(AT_MOST, subscription.changed()).await.unwrap();
    }
}

pub async fn whoever_waits_for_new_sessions_hears_of_those_of_other_processes(place: &impl Place) {
    let (here, elsewhere) = (place.open().await, place.open().await);
    let mut pen = opened(&*elsewhere, "before").await;
    let sessions = here.subscribe(Topic::OpenedElsewhere);
    let appended = here.subscribe(Topic::Session(StreamId::new("before")));
    // It may hear of what was opened just before it asked.
    let _ = timeout(Duration::from_millis(100), sessions.changed()).await;

    write(&*elsewhere, &mut pen, "x").await;
    opened_child(&*elsewhere, "before/t1", "before").await;
    timeout(AT_MOST, appended.changed()).await.unwrap();
    let woken = timeout(Duration::from_millis(100), sessions.changed()).await;
    assert!(woken.is_err(), "what goes on in a session opens none");

    opened(&*elsewhere, "after").await;
    timeout(AT_MOST, sessions.changed()).await.unwrap();
}

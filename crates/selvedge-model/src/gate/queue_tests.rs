//! The queue: order, slots, giving way.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;

use super::*;

const AWAITED: Urgency = Urgency {
    awaited: true,
    priority: 60,
};

fn background(priority: u8) -> Urgency {
    Urgency {
        awaited: false,
        priority,
    }
}

fn one_slot() -> Queue {
    Queue::new(Slots {
        per_provider: 1,
        in_all: 1,
    })
}

#[tokio::test]
async fn a_person_goes_before_all_background_calls() {
    let queue = one_slot();
    let first = queue.enter(&queue.ticket("p", AWAITED, 0)).await;
    let mut tasks = tokio::task::JoinSet::new();
    let served = Arc::new(Mutex::new(Vec::new()));
    for (name, urgency) in [
        ("low", background(20)),
        ("high", background(100)),
        ("person", AWAITED),
    ] {
        let (queue, served) = (queue.clone(), served.clone());
        let ticket = queue.ticket("p", urgency, 0);
        tasks.spawn(async move {
            let _slot = queue.enter(&ticket).await;
            served.lock().unwrap().push(name);
        });
    }
    while queue.waiting() < 3 {
        tokio::task::yield_now().await;
    }
    drop(first);
    tasks.join_all().await;
    assert_eq!(*served.lock().unwrap(), ["person", "high", "low"]);
}

#[tokio::test]
async fn waiting_outweighs_priority_in_the_end() {
    let queue = one_slot();
    let first = queue.enter(&queue.ticket("p", AWAITED, 0)).await;
    // A low call that came 81 s before a high one is served before it.
    let old = queue.ticket("p", background(20), 0);
    let new = queue.ticket("p", background(100), 81_000);
    let (old, new) = (queue.enter(&old), queue.enter(&new));
    tokio::pin!(old, new);
    assert!((&mut new).now_or_never().is_none());
    assert!((&mut old).now_or_never().is_none());
    drop(first);
    assert!((&mut new).now_or_never().is_none());
    assert!((&mut old).now_or_never().is_some());
}

#[tokio::test]
async fn a_background_call_gives_way_only_when_every_slot_is_taken() {
    let queue = Queue::new(Slots {
        per_provider: 2,
        in_all: 2,
    });
    let one = queue.enter(&queue.ticket("p", background(60), 0)).await;
    let person = queue.enter(&queue.ticket("p", AWAITED, 1)).await;
    assert!(!one.give_way.is_cancelled(), "there was a free slot");
    let second = queue.ticket("p", AWAITED, 2);
    let second = queue.enter(&second);
    tokio::pin!(second);
    assert!((&mut second).now_or_never().is_none());
    assert!(one.give_way.is_cancelled());
    drop(one);
    assert!((&mut second).now_or_never().is_some());
    drop(person);
}

#[tokio::test]
async fn a_call_that_answers_or_gave_way_three_times_keeps_its_slot() {
    for answers in [true, false] {
        let queue = one_slot();
        let mut ticket = queue.ticket("p", background(60), 0);
        if !answers {
            ticket = ticket.again().again().again();
        }
        let slot = queue.enter(&ticket).await;
        if answers {
            slot.answering();
        }
        let person = queue.ticket("p", AWAITED, 1);
        let waits = queue.enter(&person).now_or_never();
        assert!(waits.is_none());
        assert!(!slot.give_way.is_cancelled());
    }
}

#[tokio::test]
async fn one_provider_cannot_take_the_slots_of_another() {
    let queue = Queue::new(Slots {
        per_provider: 1,
        in_all: 2,
    });
    let _a = queue.enter(&queue.ticket("a", background(60), 0)).await;
    let second_a = queue.ticket("a", background(60), 0);
    assert!(queue.enter(&second_a).now_or_never().is_none());
    let b = queue.ticket("b", background(60), 0);
    assert!(queue.enter(&b).now_or_never().is_some());
}

#[tokio::test]
async fn leaving_the_queue_leaves_no_slot_behind() {
    let queue = one_slot();
    for _ in 0..100 {
        let slot = queue.enter(&queue.ticket("p", background(60), 0)).await;
        let ticket = queue.ticket("p", background(60), 0);
        let mut waiting = Box::pin(queue.enter(&ticket));
        assert!((&mut waiting).now_or_never().is_none());
        // Granted, and gone before it is taken.
        drop(slot);
        drop(waiting);
        assert_eq!(queue.waiting(), 0);
    }
    let last = queue.ticket("p", background(60), 0);
    assert!(queue.enter(&last).now_or_never().is_some());
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_calls_drain_in_order_and_nothing_starves() {
    let queue = Queue::new(Slots {
        per_provider: 4,
        in_all: 4,
    });
    let served = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = tokio::task::JoinSet::new();
    let hold: Vec<Slot> = {
        let mut slots = Vec::new();
        for _ in 0..4 {
            slots.push(queue.enter(&queue.ticket("p", AWAITED, 0)).await);
        }
        slots
    };
    for n in 0..10_000_i64 {
        let urgency = Urgency {
            awaited: n % 10 == 0,
            priority: [20, 40, 60, 80, 100][(n % 5) as usize],
        };
        let ticket = queue.ticket("p", urgency, n);
        let (queue, served) = (queue.clone(), served.clone());
        tasks.spawn(async move {
            let slot = queue.enter(&ticket).await;
            served.lock().unwrap().push((urgency, n));
            tokio::time::sleep(Duration::from_millis(1)).await;
            drop(slot);
        });
    }
    while queue.waiting() < 10_000 {
        tokio::task::yield_now().await;
    }
    drop(hold);
    tasks.join_all().await;
    let served = served.lock().unwrap();
    assert_eq!(served.len(), 10_000);
    let order = |(urgency, n): &(Urgency, i64)| {
        (
            !urgency.awaited,
            n - i64::from(urgency.priority) * AGEING_MILLIS,
        )
    };
    // Four slots are served side by side, so neighbours may change places.
    let keys: Vec<_> = served.iter().map(order).collect();
    for (n, pair) in keys.windows(5).enumerate() {
        assert!(pair[0] <= pair[4], "call {n} was served out of order");
    }
}

#[tokio::test]
async fn a_call_that_has_not_noticed_its_slot_yet_can_give_way_as_well() {
    let queue = one_slot();
    let first = queue.enter(&queue.ticket("p", AWAITED, 0)).await;
    let (behind, person) = (
        queue.ticket("p", background(60), 1),
        queue.ticket("p", AWAITED, 2),
    );
    let (behind, person) = (queue.enter(&behind), queue.enter(&person));
    tokio::pin!(behind, person);
    assert!((&mut behind).now_or_never().is_none());
    // The slot is granted, and its owner is not woken before the person comes.
    drop(first);
    assert!((&mut person).now_or_never().is_none());
    let slot = behind.now_or_never().expect("it was granted");
    assert!(
        slot.give_way.is_cancelled(),
        "the person finds who gives way"
    );
    drop(slot);
    assert!(person.now_or_never().is_some());
}

#[tokio::test]
async fn a_granted_slot_that_nobody_takes_goes_to_the_next() {
    let queue = one_slot();
    let first = queue.enter(&queue.ticket("p", AWAITED, 0)).await;
    let (gone, next) = (
        queue.ticket("p", background(60), 1),
        queue.ticket("p", background(60), 2),
    );
    let next = queue.enter(&next);
    tokio::pin!(next);
    {
        let gone = queue.enter(&gone);
        tokio::pin!(gone);
        assert!((&mut gone).now_or_never().is_none());
        assert!((&mut next).now_or_never().is_none());
        drop(first);
    }
    assert!(next.now_or_never().is_some());
    assert_eq!(queue.waiting(), 0);
}

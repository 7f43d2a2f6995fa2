//! Waking those who wait for an append.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use tokio::sync::Notify;

use crate::stream::{StreamId, Subscription, Topic};

/// Who waits for what. A subscription ends when its last owner drops it.
#[derive(Default)]
pub(super) struct Subscribers(Mutex<HashMap<Topic, Vec<Weak<Notify>>>>);

impl Subscribers {
    pub(super) fn subscribe(&self, topic: Topic) -> Subscription {
        let notify = Arc::new(Notify::new());
        let mut topics = self.0.lock().expect("no panic under this lock");
        topics
            .entry(topic)
            .or_default()
            .push(Arc::downgrade(&notify));
        Subscription(notify)
    }

    /// Wakes those who wait for `stream` or its session.
    pub(super) fn wake(&self, stream: &StreamId) {
        self.wake_about(|| {
            let session = Topic::Session(stream.session());
            [Topic::Stream(stream.clone()), session]
        });
    }

    /// Wakes those who wait for what other processes begin.
    pub(super) fn wake_opened_elsewhere(&self) {
        self.wake_about(|| [Topic::OpenedElsewhere]);
    }

    fn wake_about<const N: usize>(&self, about: impl FnOnce() -> [Topic; N]) {
        let mut topics = self.0.lock().expect("no panic under this lock");
        if topics.is_empty() {
            return;
        }
        for topic in about() {
            let Some(waiting) = topics.get_mut(&topic) else {
                continue;
            };
            waiting.retain(|weak| weak.upgrade().inspect(|n| n.notify_one()).is_some());
            if waiting.is_empty() {
                topics.remove(&topic);
            }
        }
    }
}

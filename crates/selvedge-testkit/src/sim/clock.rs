//! Virtual time: it passes when everybody waits, and its wall clock may jump.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use selvedge_ledger::Time;
use selvedge_runtime::Clock;
use tokio::time::Instant;

/// 2026-01-01, so that times look like times.
const EPOCH_MILLIS: i64 = 1_767_225_600_000;

/// The world's clock, on tokio's paused time.
pub(super) struct SimClock {
    begun: Instant,
    offset: AtomicI64,
}

impl SimClock {
    /// Starts at `elapsed` virtual milliseconds into the world.
    pub(super) fn new(elapsed: i64) -> Self {
        Self {
            begun: Instant::now(),
            offset: AtomicI64::new(elapsed),
        }
    }

    /// Moves the wall clock, forward or back.
    pub(super) fn jump(&self, millis: i64) {
        self.offset.fetch_add(millis, Ordering::Relaxed);
    }

    /// Virtual milliseconds since the world began, jumps included.
    pub(super) fn elapsed(&self) -> i64 {
        let since = i64::try_from(self.begun.elapsed().as_millis()).unwrap_or(i64::MAX);
        since + self.offset.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Clock for SimClock {
    fn now(&self) -> Time {
        Time(EPOCH_MILLIS + self.elapsed())
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

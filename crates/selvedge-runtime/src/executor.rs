//! The threads that runs are driven on.
//!
//! A thousand sessions that wait for a model wake in a few bursts. What the ledger's
//! writer has committed comes back from a thread of its own, through the executor's
//! common queue; looked into every sixty-first time, as is usual, that queue stands
//! still until a burst is over, and all who were in it begin their next wait together:
//! the next burst is as dense as the last. Looked into every time, those who came first
//! are on their way again while the others are still served.

/// So many tasks run before timers and files are looked at again.
const EVENT_INTERVAL: u32 = 4;

/// An executor to build, with as many threads as there are processors unless told.
pub fn executor() -> tokio::runtime::Builder {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder
        .global_queue_interval(1)
        .event_interval(EVENT_INTERVAL)
        .enable_all();
    builder
}

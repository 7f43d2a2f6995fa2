//! The thread that writes: all that waits for it goes into one commit.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::notify::Subscribers;
use super::store::{Job, Store};
use crate::stream::LedgerError;

/// So many jobs may always share a commit, and more of them where a sync is slow. Few,
/// so that those who asked go on with their work while the next batch is written:
/// whoever shares a commit wakes at the same time, and is in each other's way.
const BATCH_MIN: usize = 16;
const BATCH_MAX: usize = 512;
/// About what one job takes to be written. A batch takes as long to write as to sync.
const JOB_MICROS: u128 = 25;
/// So many jobs can wait for the writer.
const QUEUE_MAX: usize = 4096;
/// How often a writer looks for commits of other processes, idle or not.
const FOREIGN_COMMITS_EVERY: Duration = Duration::from_millis(50);
/// After so many jobs, the first moment without one is used to fold the log into the
/// database: done later, in the midst of a crowd's work, it holds everybody up.
const FOLD_AFTER_JOBS: usize = 256;
/// A moment without a job.
const LULL: Duration = Duration::from_millis(4);

pub(super) enum Writer {
    Thread(Thread),
    Inline(Mutex<Box<Store>>, Arc<Subscribers>),
}

/// The writing thread. Dropping it waits until it has closed its files: by then
/// the log is folded into the database.
pub(super) struct Thread {
    jobs: Option<SyncSender<Job>>,
    handle: Option<JoinHandle<()>>,
}

impl Drop for Thread {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(handle) = self.handle.take() {
            // A panic in there was met by every job that waited for an answer.
            let _ = handle.join();
        }
    }
}

impl Writer {
    pub(super) fn spawn(store: Store, subscribers: Arc<Subscribers>) -> Self {
        let (sender, jobs) = sync_channel(QUEUE_MAX);
        let handle = std::thread::Builder::new()
            .name("ledger-writer".into())
            .spawn(move || write_loop(store, &jobs, &subscribers))
            .expect("the operating system grants a thread");
        Self::Thread(Thread {
            jobs: Some(sender),
            handle: Some(handle),
        })
    }

    /// Sends a job and waits for its answer.
    pub(super) async fn perform<T, E: From<LedgerError>>(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<T, E>>) -> Job,
    ) -> Result<T, E> {
        let (reply, answer) = oneshot::channel();
        let job = job(reply);
        match self {
            Self::Thread(thread) => {
                let jobs = thread.jobs.as_ref().expect("taken on drop only");
                let mut job = job;
                // The queue is bounded; a full one is waited for without holding
                // the executor's thread.
                while let Err(back) = jobs.try_send(job) {
                    match back {
                        std::sync::mpsc::TrySendError::Full(j) => job = j,
                        std::sync::mpsc::TrySendError::Disconnected(_) => return Err(gone().into()),
                    }
                    tokio::task::yield_now().await;
                }
            }
            Self::Inline(store, subscribers) => {
                let mut store = store.lock().expect("a store does not panic while writing");
                store.perform(vec![job], &|stream| subscribers.wake(stream));
            }
        }
        answer.await.unwrap_or_else(|_| Err(gone().into()))
    }
}

fn gone() -> LedgerError {
    LedgerError::Unavailable {
        why: "its writer has stopped".into(),
    }
}

fn write_loop(mut store: Store, jobs: &Receiver<Job>, subscribers: &Subscribers) {
    let wake = |stream: &_| subscribers.wake(stream);
    let mut looked = Instant::now();
    let mut unfolded = 0;
    loop {
        let mut wait = FOREIGN_COMMITS_EVERY.saturating_sub(looked.elapsed());
        if unfolded >= FOLD_AFTER_JOBS {
            wait = wait.min(LULL);
        }
        match jobs.recv_timeout(wait) {
            Ok(first) => {
                let batch = batch(first, jobs, store.last_commit());
                unfolded += batch.len();
                store.perform(batch, &wake);
            }
            Err(RecvTimeoutError::Timeout) if unfolded >= FOLD_AFTER_JOBS => {
                store.fold_log();
                unfolded = 0;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if looked.elapsed() >= FOREIGN_COMMITS_EVERY {
            store.look_for_foreign_commits(subscribers);
            looked = Instant::now();
        }
    }
}

/// What goes into one commit: `first` and those that wait already.
fn batch(first: Job, jobs: &Receiver<Job>, last_commit: Duration) -> Vec<Job> {
    let fit = last_commit.as_micros() / JOB_MICROS;
    let max = usize::try_from(fit).map_or(BATCH_MAX, |fit| fit.clamp(BATCH_MIN, BATCH_MAX));
    std::iter::once(first)
        .chain(jobs.try_iter())
        .take(max)
        .collect()
}

//! `worker`: takes submitted jobs and does them, several workers side by side.
//!
//! The queue is the ledger: a job that waits is a stream that nobody holds a lease on.
//! Whoever gets the lease does the job; the fence keeps a worker that was away for too
//! long from writing, and a worker that is killed leaves its lease behind at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use selvedge_crews::Configs;
use selvedge_ledger::{LeaseError, Seq, StreamId, Topic};
use selvedge_runtime::Seat;
use tokio::task::JoinSet;

use crate::commands::job::config_error;
use crate::commands::run;
use crate::error::{Exit, Result};
use crate::interrupt::Interrupt;
use crate::jobs::{self, Outcome};
use crate::out;
use crate::text::plural;
use crate::wiring::Store;

#[derive(Args)]
pub struct Worker {
    /// Jobs at once.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: u16,
    /// Only jobs of this config; may be given more than once. Default: all jobs.
    #[arg(long = "config", value_name = "NAME")]
    configs: Vec<String>,
    /// How often to look for jobs that nobody told it of, in seconds. Default: what the
    /// config says (`polling.interval_seconds`). A job that is submitted on this machine is
    /// taken at once.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3600))]
    interval: Option<u32>,
    /// End when nothing is left to be done.
    #[arg(long)]
    drain: bool,
}

impl Worker {
    pub async fn perform(self) -> Result {
        let store = Store::open()?;
        let interval = self.interval(&store)?;
        // Told of before it looks, so that nothing comes between.
        let submitted = store.ledger.subscribe(Topic::OpenedElsewhere);
        let interrupt = Interrupt::listen(None, out::say)?;
        let nonce = store.chance.id("w");
        let seat = Seat::take(store.ledger.clone(), store.clock.clone(), &nonce);
        let seat = Arc::new(seat);
        out::say(&format!(
            "worker {} waits for jobs, and looks every {}",
            std::process::id(),
            plural(interval.as_secs(), "second"),
        ));
        let mut at_work: JoinSet<(StreamId, Result<Outcome>)> = JoinSet::new();
        let mut taken: Vec<StreamId> = Vec::new();
        // Those that nothing can be done for until something is written to them.
        let mut passed: HashMap<StreamId, Seq> = HashMap::new();
        loop {
            let mut are_left = false;
            if !interrupt.cancel.is_cancelled() {
                for info in jobs::all(&store).await?.into_iter().rev() {
                    let is_known = passed.get(&info.id) == Some(&info.head);
                    if is_known || taken.contains(&info.id) {
                        continue;
                    }
                    if !jobs::is_to_be_taken(&store, &info, &self.configs).await? {
                        // One that somebody else is at may have to be taken over.
                        if !jobs::is_driven(&store, &info.id).await? {
                            passed.insert(info.id, info.head);
                        } else {
                            are_left = true;
                        }
                        continue;
                    }
                    are_left = true;
                    if at_work.len() >= usize::from(self.jobs) {
                        break;
                    }
                    let lease = match seat.claim(&info.id).await {
                        Ok(lease) => lease,
                        Err(LeaseError::Held { .. }) => continue,
                        Err(error) => return Err(error.into()),
                    };
                    // It may have ended between the look and the lease.
                    if !jobs::is_to_be_taken(&store, &info, &self.configs).await? {
                        seat.release(&lease).await?;
                        continue;
                    }
                    taken.push(info.id.clone());
                    out::say(&format!("job {}: taken", info.id));
                    let (store, seat) = (store.clone(), seat.clone());
                    let cancel = interrupt.cancel.clone();
                    at_work.spawn(async move {
                        let done = jobs::do_job(&store, &info.id, &lease, cancel).await;
                        // What was reached is on record; a lease that is not given back
                        // ends with this process.
                        if let Err(error) = seat.release(&lease).await {
                            tracing::warn!(%error, job = %info.id, "the lease was not given back");
                        }
                        (info.id, done)
                    });
                }
            }
            if at_work.is_empty() && (interrupt.cancel.is_cancelled() || self.drain && !are_left) {
                break;
            }
            let wait = interval;
            // While others are at the last ones, it is looked more often.
            let wait = if self.drain {
                wait.min(Duration::from_millis(100))
            } else {
                wait
            };
            tokio::select! {
                Some(ended) = at_work.join_next() => {
                    let (id, done) = match ended {
                        Ok(ended) => ended,
                        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
                    };
                    taken.retain(|taken| *taken != id);
                    match done {
                        Ok(outcome) => out::say(&format!("job {id}: {outcome}")),
                        Err(error) => {
                            out::warn(&format!("job {id}: {}", error.in_a_line()));
                            if let Some(info) = store.ledger.stream(&id).await? {
                                passed.insert(id, info.head);
                            }
                        }
                    }
                }
                () = submitted.changed() => {}
                () = tokio::time::sleep(wait) => {}
                () = interrupt.cancel.cancelled(), if !interrupt.cancel.is_cancelled() => {}
            }
        }
        match interrupt.cancel.is_cancelled() {
            true => Ok(Exit::Interrupted),
            false => Ok(Exit::Done),
        }
    }

    /// How often it looks for jobs: as often as the most eager of its configs wants.
    fn interval(&self, store: &Store) -> Result<Duration> {
        let base = run::workspace(None)?;
        let configs = Configs {
            folders: store.paths.job_configs(&base).into(),
        };
        let usual = ["defaults".to_owned()];
        let names = match self.configs.is_empty() {
            true => &usual[..],
            false => &self.configs,
        };
        let mut seconds = self.interval.unwrap_or(u32::MAX);
        for name in names {
            let loaded = configs.load(name).map_err(config_error)?;
            jobs::check_polling(&loaded)?;
            if self.interval.is_none() {
                seconds = seconds.min(loaded.config.polling.interval_seconds);
            }
        }
        Ok(Duration::from_secs(seconds.into()))
    }
}

//! Why a run stands still, and what ends that.

use std::time::Duration;

use selvedge_ledger::{Sync, Time};

use crate::driver::{DriveError, Patience, Rest};
use crate::events::RunPaused;
use crate::machine::Call;
use crate::perform::Hold;
use crate::run::Run;

/// A pause that ends later than this is not waited for by whoever does not wait
/// for people either: a rate limit is sat out, tomorrow's allowance is not.
const PAUSE_WAITED_FOR_MILLIS_MAX: i64 = 60 * 60 * 1000;

impl<C: Call> Run<'_, C> {
    /// Why nothing will happen by itself, if that is so.
    pub(crate) fn rest(&self) -> Option<Rest> {
        if self.driver.patience == Patience::Wait || !self.is_quiet() {
            return None;
        }
        let now = self.driver.clock.now();
        let is_long = |until: Time| until.millis_since(now) > PAUSE_WAITED_FOR_MILLIS_MAX;
        if self
            .book
            .pauses
            .values()
            .any(|p| p.until.is_none_or(is_long))
        {
            return Some(Rest::Paused(self.book.pauses.clone()));
        }
        if !self.book.pauses.is_empty() {
            return None;
        }
        if !self.book.questions.is_empty() {
            return Some(Rest::Waiting);
        }
        Some(self.resting.first().unwrap_or(Rest::Idle))
    }

    /// Ends when every pause has, if they all end by themselves.
    ///
    /// Waits no longer than each pause was meant to last, so that a wall clock
    /// that was set back does not hold a run for days.
    pub(crate) fn pauses_end(&self) -> impl Future<Output = ()> + use<C> {
        let now = self.driver.clock.now();
        let left = self.book.pauses.values().map(|pause| {
            let until = pause.until?;
            Some(
                until
                    .millis_since(now)
                    .min(until.millis_since(pause.since))
                    .max(0),
            )
        });
        let left = left
            .collect::<Option<Vec<i64>>>()
            .and_then(|all| all.into_iter().max());
        let clock = self.driver.clock.clone();
        async move {
            match left {
                Some(millis) => {
                    clock
                        .sleep(Duration::from_millis(millis.unsigned_abs()))
                        .await
                }
                None => std::future::pending().await,
            }
        }
    }

    /// Pauses the run for what cannot be done for now.
    pub(crate) fn hold(&mut self, hold: Hold) -> Result<(), DriveError> {
        let Hold {
            reason,
            detail,
            until,
        } = hold;
        self.record(
            "RunPaused",
            &RunPaused {
                reason,
                detail,
                until,
                letter: None,
            },
            Sync::Now,
        )
    }
}

//! How a run stops: by itself, because it was cancelled, or for a while.

use futures::StreamExt;
use selvedge_ledger::{Payload, StreamId, Sync};

use crate::driver::{DriveError, Rest};
use crate::events::{RunFinished, RunPaused};
use crate::machine::{Act, Call, Due, Effect, Ending, Status};
use crate::run::Run;
use crate::signal::Signal;

impl<C: Call> Run<'_, C> {
    pub(crate) async fn end(&mut self, mut ending: Ending) -> Result<Rest, DriveError> {
        // A machine keeps what it made itself inline; here it becomes a blob if long.
        if let Some(text) = ending.result.text() {
            ending.result = Payload::new(text.clone());
        }
        self.record(
            "RunFinished",
            &RunFinished {
                ending: ending.clone(),
            },
            Sync::Now,
        )?;
        self.flush().await?;
        Ok(Rest::Ended(ending))
    }

    /// Stops what is under way, tells the children, and ends.
    pub(crate) async fn end_cancelled(&mut self) -> Result<Rest, DriveError> {
        self.stop.cancel();
        let children: Vec<StreamId> = self.book.children.values().cloned().collect();
        for child in &children {
            let cancel = Signal::Cancel {
                reason: "its parent was cancelled".into(),
            };
            let (ledger, clock) = (&*self.driver.ledger, &*self.driver.clock);
            cancel
                .send(
                    ledger,
                    clock,
                    child,
                    "driver",
                    "cancelled-with-parent".into(),
                )
                .await?;
        }
        // Children that are not being driven must be, to end.
        if let Due::Effects(effects) = self.machine.due() {
            for Effect { id, act } in effects {
                if let Act::Child(spec) = act
                    && let Some(stream) = self.book.children.get(&id)
                    && (!self.begun.contains(&id) || self.resting.remove(&id).is_some())
                {
                    self.flight
                        .push(self.child(id.clone(), stream.clone(), spec.kind, spec.spec));
                }
            }
        }
        self.drain().await?;
        let reason = self.book.cancelled.clone().unwrap_or_default();
        let result = Payload::new(reason);
        self.end(Ending {
            status: Status::Cancelled,
            result,
            data: None,
        })
        .await
    }

    /// Stops what is under way and stops driving; the run can go on later.
    pub(crate) async fn interrupt(&mut self) -> Result<Rest, DriveError> {
        self.stop.cancel();
        self.drain().await?;
        if self.stream == self.stream.session() {
            let paused = RunPaused {
                reason: "interrupted".into(),
                detail: "the driver was told to stop".into(),
                until: None,
                letter: None,
            };
            self.record("RunPaused", &paused, Sync::Now)?;
        }
        self.flush().await?;
        Ok(Rest::Interrupted)
    }

    async fn drain(&mut self) -> Result<(), DriveError> {
        while let Some(landed) = self.flight.next().await {
            self.land(landed)?;
        }
        self.flush().await
    }
}

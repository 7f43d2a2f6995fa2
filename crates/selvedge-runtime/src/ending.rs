//! How a run stops: by itself, because it was cancelled, or for a while.

use futures::StreamExt;
use selvedge_ledger::{Payload, Sync};

use crate::driver::{DriveError, Rest};
use crate::events::{RunFinished, RunPaused};
use crate::machine::{Call, Ending, Status};
use crate::run::Run;
use crate::signal::Signal;

impl<C: Call> Run<'_, C> {
    async fn end(&mut self, mut ending: Ending) -> Result<Rest, DriveError> {
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

    /// Ends by itself. What is still under way is not needed any more.
    pub(crate) async fn end_done(&mut self, ending: Ending) -> Result<Rest, DriveError> {
        self.stop_all("its parent has ended").await?;
        self.end(ending).await
    }

    /// Ends because somebody wants it to.
    pub(crate) async fn end_cancelled(&mut self) -> Result<Rest, DriveError> {
        self.stop_all("its parent was cancelled").await?;
        let reason = self.book.cancelled.clone().unwrap_or_default();
        let result = Payload::new(reason);
        self.end(Ending {
            status: Status::Cancelled,
            result,
            data: None,
        })
        .await
    }

    /// Stops what is under way, cancels the children, and waits for all of them.
    async fn stop_all(&mut self, reason: &str) -> Result<(), DriveError> {
        self.stop.cancel();
        for (effect, stream) in self.book.children.clone() {
            let ledger = &*self.driver.ledger;
            let is_driven = self.begun.contains(&effect);
            // One that never began needs no end.
            if !is_driven && ledger.stream(&stream).await?.is_none() {
                continue;
            }
            let cancel = Signal::Cancel {
                reason: reason.to_owned(),
            };
            let (clock, id) = (&*self.driver.clock, "cancelled-with-parent".into());
            cancel.send(ledger, clock, &stream, "driver", id).await?;
            if !is_driven {
                self.flight.push(self.child(effect, stream, None));
            }
        }
        self.drain().await
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

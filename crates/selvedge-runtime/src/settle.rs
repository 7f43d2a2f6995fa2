//! What to do with calls that a crash left open.
//!
//! A call that only looks, or only costs, is simply begun again. One that may
//! have changed something is asked about: its probe says that it happened, or
//! that it did not, or nobody knows. In the last case the machine is told so.

use selvedge_ledger::Sync;

use crate::driver::DriveError;
use crate::events::{Finished, Unfinished};
use crate::machine::{Act, Call, Due, Effect, Nature};
use crate::perform::Probe;
use crate::run::Run;

impl<C: Call> Run<'_, C> {
    /// Settles every call that was begun by an earlier driver and has no outcome.
    pub(crate) async fn settle(&mut self) -> Result<(), DriveError> {
        while let Some((effect, call)) = self.next_open() {
            let open = self.book.open[&effect.id].clone();
            let scene = self.scene(&effect.id, open.attempt);
            let found = self
                .driver
                .performer
                .probe(&scene, &call, &open.evidence)
                .await;
            let (effect, attempt, noun) = (effect.id, open.attempt, call.noun());
            match found {
                Probe::Happened(outcome) => {
                    let finished = Finished {
                        effect,
                        attempt,
                        outcome,
                        probed: true,
                    };
                    self.record(format!("{noun}Finished"), &finished, Sync::Now)?;
                }
                Probe::DidNotHappen => {
                    let unfinished = Unfinished {
                        effect,
                        attempt,
                        left: None::<C::Outcome>,
                    };
                    self.record(format!("{noun}Interrupted"), &unfinished, Sync::Now)?;
                }
                Probe::Unknown => {
                    let unfinished = Unfinished {
                        effect,
                        attempt,
                        left: None::<C::Outcome>,
                    };
                    self.record(format!("{noun}InDoubt"), &unfinished, Sync::Now)?;
                }
            }
        }
        self.flush().await
    }

    /// An open call that may have changed something. Settling one may make the
    /// machine want others, so they are looked for one at a time.
    fn next_open(&self) -> Option<(Effect<C>, C)> {
        let Due::Effects(effects) = self.machine.due() else {
            return None;
        };
        effects.into_iter().find_map(|effect| match &effect.act {
            Act::Call(call)
                if call.nature() == Nature::Changes && self.book.open.contains_key(&effect.id) =>
            {
                let call = call.clone();
                Some((effect, call))
            }
            _ => None,
        })
    }
}

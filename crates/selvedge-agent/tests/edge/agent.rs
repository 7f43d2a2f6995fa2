//! One agent, driven as the driver does: on record before and after.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use selvedge_agent::{AgentCall, AgentPerformer, ModelCall, Purpose, RunSpec};
use selvedge_ledger::{StreamId, Time};
use selvedge_model::Message;
use selvedge_runtime::{
    Call, Clock, EffectId, Finished, NoWatcher, Performed, Performer, Scene, Started, Unfinished,
};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::{CALLS, FRUGAL, Seen, Stream};

/// One agent, driven.
pub struct Agent {
    pub stream: StreamId,
    pub run: Arc<Mutex<Stream>>,
    pub spec: Arc<RunSpec>,
    pub performer: Arc<AgentPerformer>,
    pub clock: Arc<dyn Clock>,
    pub seen: Arc<Seen>,
}

impl Agent {
    /// Works until it is done, or there is no money left.
    pub async fn work(self) {
        // Enough to get over any trouble, and an end if there is none.
        for _ in 0..200 {
            let (turn, attempt) = {
                let run = self.run.lock().unwrap();
                (run.turn, run.attempt + 1)
            };
            if turn >= CALLS || !self.ask(turn, attempt).await {
                return;
            }
        }
    }

    /// Asks once; false when there is nothing left to do.
    async fn ask(&self, turn: u32, attempt: u32) -> bool {
        let effect = EffectId::new(format!("m{turn}"));
        let call = AgentCall::Model(ModelCall {
            spec: self.spec.clone(),
            turn,
            purpose: Purpose::Work,
            messages: vec![Arc::new(Message::user("work"))].into(),
            budget_usd: self.spec.budget_usd,
            budget_tokens: self.spec.budget_tokens,
            loaded: Arc::default(),
        });
        let scene = Scene {
            stream: self.stream.clone(),
            effect: effect.clone(),
            attempt,
            cancel: CancellationToken::new(),
            watcher: Arc::new(NoWatcher),
        };
        let evidence = match self.performer.prepare(&scene, &call).await {
            Ok(evidence) => evidence,
            Err(hold) => {
                let what = match &hold.detail {
                    detail if detail.contains("all sessions") => "ceiling",
                    detail if detail.contains(&format!("`{FRUGAL} in ")) => "agent",
                    _ => "budget",
                };
                self.seen.add(what, 1);
                return self.wait(hold.until).await;
            }
        };
        let started = Started {
            effect: effect.clone(),
            attempt,
            what: call.describe(),
            evidence: evidence.clone(),
        };
        self.record("ModelCallStarted", &started);
        let performed = self.performer.perform(scene, call, evidence).await;
        // A process can die between the end of a call and its record.
        tokio::time::sleep(Duration::from_millis(1)).await;
        match performed {
            Performed::Finished(outcome) => {
                let finished = Finished {
                    effect,
                    attempt,
                    outcome,
                    probed: false,
                };
                self.record("ModelCallFinished", &finished);
                let mut run = self.run.lock().unwrap();
                (run.turn, run.attempt) = (run.turn + 1, 0);
                true
            }
            Performed::Interrupted(left) => {
                self.record(
                    "ModelCallInterrupted",
                    &Unfinished {
                        effect,
                        attempt,
                        left,
                    },
                );
                true
            }
            Performed::Held(hold, left) => {
                self.record(
                    "ModelCallInterrupted",
                    &Unfinished {
                        effect,
                        attempt,
                        left,
                    },
                );
                self.wait(hold.until).await
            }
        }
    }

    fn record<T: Serialize>(&self, kind: &'static str, data: &T) {
        let mut run = self.run.lock().unwrap();
        if kind == "ModelCallStarted" {
            run.attempt += 1;
        }
        run.record(kind, self.clock.now(), data);
    }

    async fn wait(&self, until: Option<Time>) -> bool {
        // Tomorrow's allowance is not waited for.
        let Some(millis) = until.map(|until| until.millis_since(self.clock.now())) else {
            return false;
        };
        if millis > 3_600_000 {
            return false;
        }
        self.clock
            .sleep(Duration::from_millis(millis.max(1).unsigned_abs()))
            .await;
        true
    }
}

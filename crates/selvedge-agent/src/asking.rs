//! Asks models on behalf of agents: requests, budgets, and what came of it.
//!
//! An attempt that broke off has cost something. It is put on record before the
//! next one begins, with a reservation of its own, so that whatever is killed
//! when, every attempt counts exactly once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use selvedge_ledger::{Ledger, LedgerError, Payload, StreamId, Time};
use selvedge_model::{
    Answered, Ask, BudgetError, Ceilings, Course, Delta, Failed, Gate, ModelError, Part, Request,
    Reservation, Response, Spend, Urgency,
};
use selvedge_runtime::{Clock, EffectId, Hold, Notice, Performed, Scene};
use selvedge_tool::{Toolbox, World};
use serde_json::Value;

use crate::call::{AgentOutcome, ModelCall, ModelOutcome, Purpose, Reserved};
use crate::common::{Common, ledger_hold};
use crate::definitions::Definitions;
use crate::discretion::{self, Discretion};
use crate::hooks::{self, Hooked, Hooks};
use crate::purse::Purses;
use crate::sent::Sent;

/// The shortest and the longest pause of a run whose providers are all away.
/// It doubles with every attempt in vain.
const AWAY_MILLIS_MIN: i64 = 30_000;
const AWAY_MILLIS_MAX: i64 = 300_000;
/// Calls under way may cost less than was set aside for them: look again then.
const UNDER_WAY_MILLIS: i64 = 200;

/// Asks models.
pub(crate) struct Asking {
    ledger: Arc<dyn Ledger>,
    clock: Arc<dyn Clock>,
    gate: Arc<Gate>,
    toolbox: Arc<Toolbox>,
    purses: Purses,
    common: Option<Common>,
    hooks: Hooks,
    definitions: Definitions,
    sent: Sent,
    /// Calls that were prepared and have not begun.
    ready: Mutex<HashMap<Key, Ready>>,
    /// Questions whose last attempt broke off.
    courses: Mutex<HashMap<Key, Course>>,
}

/// Which call.
type Key = (StreamId, EffectId);

struct Ready {
    request: Request,
    reservation: Reservation,
    is_capped: bool,
}

impl Asking {
    /// What is in `toolbox` says which texts are secret.
    pub(crate) fn new(
        ledger: Arc<dyn Ledger>,
        clock: Arc<dyn Clock>,
        gate: Arc<Gate>,
        toolbox: Arc<Toolbox>,
    ) -> Self {
        Self {
            purses: Purses::new(ledger.clone()),
            common: None,
            hooks: Hooks::new(),
            definitions: Definitions::new(ledger.clone()),
            ledger,
            clock,
            gate,
            toolbox,
            sent: Sent::default(),
            ready: Mutex::default(),
            courses: Mutex::default(),
        }
    }

    /// The same within ceilings that all sessions share.
    pub(crate) fn with_ceilings(self, ceilings: Option<Ceilings>) -> Self {
        let common = |ceilings| Common::new(self.ledger.clone(), self.clock.clone(), ceilings);
        let common = ceilings.map(common);
        Self { common, ..self }
    }

    /// The same with hooks around every call.
    pub(crate) fn with_hooks(self, hooks: Hooks) -> Self {
        Self { hooks, ..self }
    }

    pub(crate) async fn counted(&self, session: &StreamId) -> Option<(Spend, Spend)> {
        self.purses.counted(session).await
    }

    /// Builds the request and sets its worst case aside.
    pub(crate) async fn reserve(&self, scene: &Scene, call: &ModelCall) -> Result<Value, Hold> {
        let request = self.request(&scene.stream, call).await;
        let mut request = request.map_err(ledger_hold)?;
        let hooked = self.hooks.pre_model(scene, call, &mut request).await?;
        let budget = self.purses.budget(scene, call).await;
        let budget = budget.map_err(ledger_hold)?;
        let reservation = self
            .gate
            .reserve(&budget, &request, &call.spec.fallbacks)
            .map_err(|e| self.budget_hold(&e))?;
        let common = self.common.as_ref();
        if let Some(common) = common {
            common.hold(scene, &call.spec, reservation.amount()).await?;
        }
        let evidence = Reserved {
            reserved: reservation.amount(),
            hooked: hooked.if_any(),
        };
        let ready = Ready {
            request,
            reservation,
            // What was set aside holds for whatever limits it: the purse, or what all
            // sessions may spend together.
            is_capped: budget.is_limited() || common.is_some_and(|c| c.bounds(&call.spec)),
        };
        locked(&self.ready).insert(key(scene), ready);
        Ok(serde_json::to_value(evidence).expect("plain data"))
    }

    /// Asks, and says what came of it.
    pub(crate) async fn ask(
        &self,
        scene: Scene,
        call: ModelCall,
        evidence: Value,
    ) -> Performed<AgentOutcome> {
        let ready = locked(&self.ready).remove(&key(&scene));
        let Some(ready) = ready else {
            return Performed::Interrupted(None);
        };
        if let Some(answered) = hooks::answered(evidence) {
            return Performed::Finished(answer(answered, None, &call));
        }
        let secrets = self.toolbox.secrets();
        let show = |text: &str| {
            if !text.is_empty() {
                scene.watcher.model_text(&scene.stream, &scene.effect, text);
            }
        };
        let words = Mutex::new(secrets.redactor());
        let mut deltas = |delta: Delta| {
            if let Delta::Text(text) = delta {
                show(&locked(&words).push(&text));
            }
        };
        let ask = Ask {
            request: &ready.request,
            urgency: Urgency {
                awaited: call.spec.awaited,
                priority: call.spec.priority,
            },
            fallbacks: &call.spec.fallbacks,
            is_capped: ready.is_capped,
            course: locked(&self.courses).remove(&key(&scene)),
        };
        let notice = |mut notice: Notice| {
            // What was said before an attempt broke off is shown before that is.
            show(&locked(&words).finish());
            notice.text = secrets.redact(&notice.text).into_owned();
            scene.watcher.notice(&scene.stream, &scene.effect, &notice);
        };
        let mut asked = self
            .gate
            .ask(ask, &mut deltas, &notice, &scene.cancel)
            .await;
        show(&locked(&words).finish());
        match &mut asked {
            Ok(answered) => discretion::response(&self.toolbox, &mut answered.response),
            Err(failed) => discretion::broken(secrets, failed.broken.as_mut()),
        }
        let (model, spend) = match &asked {
            Ok(answered) => (&answered.response.model, answered.spend()),
            Err(failed) => match &failed.broken {
                Some(broken) => (&broken.model, broken.spend()),
                None => (&ready.request.model, Spend::default()),
            },
        };
        ready.reservation.settle(spend);
        if let Some(common) = &self.common {
            common.settle(&scene, model, spend).await;
        }
        match asked {
            Ok(answered) => self.answered(&scene, &call, answered).await,
            Err(failed) => self.failed(&scene, failed),
        }
    }

    /// An answer, after the hooks that see it. One that they withhold has its cost.
    async fn answered(
        &self,
        scene: &Scene,
        call: &ModelCall,
        mut answered: Answered,
    ) -> Performed<AgentOutcome> {
        let response = &mut answered.response;
        match self.hooks.post_model(scene, call, response).await {
            Ok(hooked) => Performed::Finished(answer(answered, hooked.if_any(), call)),
            Err(hold) => {
                let broken = hooks::withheld(&hold, answered);
                let left = AgentOutcome::Model(ModelOutcome::BrokenOff(broken));
                Performed::Held(hold, Some(left))
            }
        }
    }

    /// An outage is a pause, not a failure; only a wrong request is one.
    fn failed(&self, scene: &Scene, failed: Failed) -> Performed<AgentOutcome> {
        let Failed {
            error,
            broken,
            go_on,
            again_at,
            ..
        } = failed;
        let left = |broken| AgentOutcome::Model(ModelOutcome::BrokenOff(broken));
        if let Some(course) = go_on {
            locked(&self.courses).insert(key(scene), course);
            return Performed::Interrupted(broken.map(left));
        }
        let tier = error.tier();
        let detail = self
            .toolbox
            .secrets()
            .redact(&error.to_string())
            .into_owned();
        let (reason, detail, until) = match error {
            ModelError::Cancelled => return Performed::Interrupted(broken.map(left)),
            ModelError::Permanent { .. } => {
                return Performed::Finished(AgentOutcome::Model(ModelOutcome::Failed {
                    tier,
                    error: detail,
                    broken,
                }));
            }
            ModelError::UserFixable { hint, .. } => {
                ("provider", format!("{detail} ({hint})"), None)
            }
            ModelError::Overrun { .. } => ("budget", detail, None),
            ModelError::RateLimited { .. } if again_at.is_some() => ("provider", detail, again_at),
            ModelError::RateLimited { .. }
            | ModelError::Transient { .. }
            | ModelError::Degraded { .. } => {
                let until = away_until(self.clock.now(), scene.attempt).max(again_at);
                ("provider", detail, until)
            }
        };
        let hold = Hold {
            reason: reason.into(),
            detail,
            until,
        };
        Performed::Held(hold, broken.map(left))
    }

    fn budget_hold(&self, error: &BudgetError) -> Hold {
        let until = error
            .would_fit_later()
            .then(|| self.clock.now().plus_millis(UNDER_WAY_MILLIS));
        Hold {
            reason: "budget".into(),
            detail: error.to_string(),
            until,
        }
    }

    async fn request(&self, stream: &StreamId, call: &ModelCall) -> Result<Request, LedgerError> {
        let spec = &call.spec;
        let discretion = Discretion::now(self.toolbox.secrets());
        let system = self.ledger.text(&spec.system).await?;
        let system = discretion.text(system);
        let messages = self
            .sent
            .messages(stream, &call.messages, discretion, &*self.ledger)
            .await?;
        let work = call.purpose == Purpose::Work;
        Ok(Request {
            model: spec.model.clone(),
            agent: spec.caller(),
            turn: call.turn,
            system,
            messages,
            tools: self.definitions.list(spec, &call.loaded).await?,
            output_schema: spec.output_schema.clone().filter(|_| work).map(Arc::new),
            output_tokens_max: spec.limits.output_tokens_max,
            temperature: spec.terms.temperature,
            effort: spec.terms.effort,
        })
    }
}

fn key(scene: &Scene) -> Key {
    (scene.stream.clone(), scene.effect.clone())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no panic under this lock")
}

/// When a run whose providers were away at this attempt goes on by itself.
fn away_until(now: Time, attempt: u32) -> Option<Time> {
    let doublings = attempt.saturating_sub(1).min(16);
    let millis = (AWAY_MILLIS_MIN << doublings).min(AWAY_MILLIS_MAX);
    Some(now.plus_millis(millis))
}

fn answer(answered: Answered, hooked: Option<Hooked>, call: &ModelCall) -> AgentOutcome {
    AgentOutcome::Model(ModelOutcome::Answered {
        response: storable(answered.response, call),
        cost: answered.cost,
        attempts: answered.attempts,
        first_token_ms: answered.first_token_ms.unwrap_or(answered.total_ms),
        total_ms: answered.total_ms,
        cached: answered.is_cached,
        because: answered.because,
        hooked,
    })
}

/// The answer with everything that the machine itself must read kept inline.
fn storable(mut response: Response, call: &ModelCall) -> Response {
    let is_text = |p: &&Part| matches!(p, Part::Text { .. });
    let texts = response.message.parts.iter().filter(is_text).count();
    let whole_text =
        call.purpose == Purpose::Summary || call.spec.output_schema.is_some() || texts > 1;
    for part in &mut response.message.parts {
        let payload = match part {
            Part::Text { text } if whole_text => text,
            Part::ToolCall(tool_call) => {
                let world = call.spec.tools.get(&tool_call.name);
                match world {
                    Some(World::Runs | World::Asks | World::Ends | World::Delegates) => {
                        &mut tool_call.arguments
                    }
                    _ => continue,
                }
            }
            _ => continue,
        };
        if let Some(text) = payload.text() {
            *payload = Payload::inline(text.clone());
        }
    }
    response
}

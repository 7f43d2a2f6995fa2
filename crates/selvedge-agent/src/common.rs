//! What all sessions of the machine spend together, as this process takes part.

use std::sync::Arc;

use selvedge_ledger::{Ledger, LedgerError, StreamFilter, Time};
use selvedge_model::{BudgetError, CallName, CeilingError, Ceilings, Past, Spend, provider_of};
use selvedge_runtime::{Clock, Hold, Scene};
use tokio::sync::OnceCell;

use crate::spec::RunSpec;
use crate::usage::Spending;

/// Calls under way, here or elsewhere, may cost less than was set aside.
const UNDER_WAY_MILLIS: i64 = 500;

/// Ceilings, and what they have to know of the past.
pub(crate) struct Common {
    ledger: Arc<dyn Ledger>,
    clock: Arc<dyn Clock>,
    ceilings: Ceilings,
    begun: OnceCell<()>,
}

impl Common {
    pub(crate) fn new(ledger: Arc<dyn Ledger>, clock: Arc<dyn Clock>, ceilings: Ceilings) -> Self {
        Self {
            ledger,
            clock,
            ceilings,
            begun: OnceCell::new(),
        }
    }

    /// Holds the worst case of a call, or says why it has to wait.
    pub(crate) async fn hold(
        &self,
        scene: &Scene,
        spec: &RunSpec,
        amount: Spend,
    ) -> Result<(), Hold> {
        let begun = self.begun.get_or_try_init(|| self.begin()).await;
        begun.map_err(ledger_hold)?;
        let providers = providers(spec);
        match self.ceilings.hold(&name(scene), &providers, amount).await {
            Ok(warnings) => {
                tell(scene, warnings);
                Ok(())
            }
            Err(CeilingError::Reached {
                error: BudgetError::PriceUnknown { budget, .. },
                ..
            }) => {
                let model = spec.model.clone();
                Err(Hold {
                    reason: "budget".into(),
                    detail: BudgetError::PriceUnknown { budget, model }.to_string(),
                    until: None,
                })
            }
            Err(CeilingError::Reached { error, until }) => {
                let soon = self.clock.now().plus_millis(UNDER_WAY_MILLIS);
                Err(Hold {
                    reason: "budget".into(),
                    detail: error.to_string(),
                    until: Some(if error.would_fit_later() { soon } else { until }),
                })
            }
            Err(CeilingError::Ledger(error)) => Err(ledger_hold(error)),
        }
    }

    /// Whether an answer must not grow beyond what was set aside for it.
    pub(crate) fn bounds(&self, spec: &RunSpec) -> bool {
        self.ceilings.bound(&providers(spec))
    }

    /// Settles what was held: `model` answered, if only in part.
    pub(crate) async fn settle(&self, scene: &Scene, model: &str, spend: Spend) {
        // What a provider counts as a request, whatever came of it.
        let requests = u64::from(spend != Spend::default());
        let spend = Spend {
            calls: requests,
            ..spend
        };
        let name = name(scene);
        let settled = self.ceilings.settle(&name, provider_of(model), spend);
        match settled.await {
            Ok(warnings) => tell(scene, warnings),
            // It stays held, and counts in full when the call is made again.
            Err(error) => {
                tracing::warn!(%error, stream = %scene.stream, "a ceiling was not settled")
            }
        }
    }

    /// Counts what was spent before any ceiling was set.
    async fn begin(&self) -> Result<(), LedgerError> {
        let Some(since) = self.ceilings.past_wanted().await? else {
            return Ok(());
        };
        let mut past = Vec::new();
        for session in self.ledger.streams(StreamFilter::Sessions).await? {
            if session.updated >= since {
                past.extend(self.spent(&session.id, since).await?);
            }
        }
        self.ceilings.begin(&past).await
    }

    async fn spent(
        &self,
        session: &selvedge_ledger::StreamId,
        since: Time,
    ) -> Result<Vec<Past>, LedgerError> {
        let events = self.ledger.session_after(session, Default::default());
        let mut spending = Spending::default();
        let mut past = Vec::new();
        for event in events.await?.0 {
            let charge = spending.charge(&event)?;
            let charge = charge.filter(|charge| charge.time >= since);
            past.extend(charge.map(|charge| Past {
                provider: provider_of(&charge.model).to_owned(),
                time: charge.time,
                spend: charge.row.spend(),
            }));
        }
        Ok(past)
    }
}

/// The ledger is away: somebody has to look.
pub(crate) fn ledger_hold(error: LedgerError) -> Hold {
    Hold {
        reason: "ledger".into(),
        detail: error.to_string(),
        until: None,
    }
}

/// Those that may answer.
fn providers(spec: &RunSpec) -> Vec<String> {
    let models = std::iter::once(&spec.model).chain(&spec.fallbacks);
    let mut providers: Vec<String> = models.map(|m| provider_of(m).to_owned()).collect();
    providers.dedup();
    providers
}

fn tell(scene: &Scene, warnings: Vec<String>) {
    for warning in warnings {
        scene
            .watcher
            .notice(&scene.stream, &scene.effect, &warning.into());
    }
}

fn name(scene: &Scene) -> CallName {
    CallName {
        call: format!("{} {}", scene.stream, scene.effect),
        attempt: scene.attempt,
    }
}

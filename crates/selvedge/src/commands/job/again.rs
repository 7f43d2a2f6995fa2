//! `job run --resume`: which job goes on, and with how much more.
//!
//! One that has failed keeps its end; a copy goes on. A copy from before its last phase knows
//! nothing of what was raised in that phase, and would stop where money or calls had been
//! given already: so it is told again.

use selvedge_crews::{JOB, Stand};
use selvedge_ledger::StreamId;
use selvedge_runtime::Signal;

use crate::commands::sessions::fork;
use crate::error::{Error, Result};
use crate::wiring::Store;
use crate::{jobs, out};

/// What a job may use from now on, where that is more than it had.
#[derive(Default, PartialEq)]
pub(super) struct Raise {
    pub(super) usd: Option<f64>,
    pub(super) tokens: Option<u64>,
    /// Of all its phases together.
    pub(super) model_calls: Option<u32>,
}

impl Raise {
    /// What the job is told; nothing if nothing is raised.
    pub(super) fn signal(self) -> Option<Signal> {
        let is_none = self == Self::default();
        let Self {
            usd,
            tokens,
            model_calls,
        } = self;
        let raise = Signal::RaiseBudget {
            usd,
            tokens,
            model_calls,
        };
        (!is_none).then_some(raise)
    }
}

/// The job that goes on: itself, or in place of one that has failed, from the beginning of
/// its last phase. What was raised for that phase holds for whatever goes on.
pub(super) async fn reopened(
    store: &Store,
    session: StreamId,
    raise: Raise,
) -> Result<(StreamId, Raise)> {
    let info = store.ledger.stream(&session).await?;
    if info.is_none_or(|info| info.kind != JOB) {
        return Err(Error::usage(format!("`{session}` is not a job"))
            .hint(format!("go on with it: `selvedge resume {session}`")));
    }
    let view = jobs::view(store, &session).await?;
    let present = view.terms.as_ref().map_or(0, |terms| terms.iterations_max);
    if let Some(most) = raise.model_calls.filter(|most| *most <= present) {
        return Err(
            Error::usage(format!("`--max-iterations {most}` raises nothing"))
                .cause(format!("job `{session}` has {present} already"))
                .hint(format!(
                    "give it more than {present}, or leave the flag out"
                )),
        );
    }
    if view.stand() != Stand::Failed {
        return Ok((session, raise));
    }
    let next = fork::before_last_phase(store, &session).await?;
    out::say(&format!(
        "job {session} has failed, and goes on as {next} from the beginning of phase {}",
        view.phase
    ));
    let terms = jobs::view(store, &next).await?.terms;
    let is_less = terms.is_some_and(|terms| terms.iterations_max < present);
    let raise = Raise {
        usd: raise.usd.or(view.spending.raised_usd),
        tokens: raise.tokens.or(view.spending.raised_tokens),
        model_calls: raise.model_calls.or(is_less.then_some(present)),
    };
    Ok((next, raise))
}

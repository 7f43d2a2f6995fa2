//! Children that rest: they wait where they are, and their parent knows it.
//!
//! A child that waits for somebody keeps listening to its inbox while its
//! siblings work. When nothing of a run is left but such children, the run
//! itself rests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;

use crate::driver::Rest;
use crate::machine::EffectId;

/// The children of a run that rest.
#[derive(Default)]
pub(crate) struct Resting {
    rests: Mutex<BTreeMap<EffectId, Rest>>,
    changed: Notify,
}

impl Resting {
    /// How many rest.
    pub(crate) fn len(&self) -> usize {
        self.rests().len()
    }

    /// Why the first of them rests.
    pub(crate) fn first(&self) -> Option<Rest> {
        self.rests().values().next().cloned()
    }

    /// Waits until a child came to rest.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Where the child of `effect` says that it rests.
    pub(crate) fn place(self: &Arc<Self>, effect: &EffectId) -> Place {
        Place {
            parent: self.clone(),
            effect: effect.clone(),
        }
    }

    fn rests(&self) -> MutexGuard<'_, BTreeMap<EffectId, Rest>> {
        self.rests.lock().expect("no panic under this lock")
    }
}

/// A child's place among those that rest.
#[derive(Clone)]
pub(crate) struct Place {
    parent: Arc<Resting>,
    effect: EffectId,
}

impl Place {
    /// The child rests until further notice.
    pub(crate) fn rest(&self, rest: Rest) {
        self.parent.rests().insert(self.effect.clone(), rest);
        self.parent.changed.notify_one();
    }

    /// The child goes on.
    pub(crate) fn rise(&self) {
        self.parent.rests().remove(&self.effect);
    }
}

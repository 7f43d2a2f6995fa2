//! Reading events written by older versions.
//!
//! A stored event is never rewritten: its hash must keep its meaning. Old
//! shapes are brought up to date on the way out.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::event::Event;
use crate::stream::LedgerError;

type Step = fn(Value) -> Value;

/// How to bring old events up to date: one step per kind and version.
#[derive(Clone, Debug, Default)]
pub struct Upcasts {
    steps: HashMap<(&'static str, u16), Step>,
}

impl Upcasts {
    /// Adds the step from version `from` of `kind` to the version after it.
    pub fn step(mut self, kind: &'static str, from: u16, step: Step) -> Self {
        self.steps.insert((kind, from), step);
        self
    }

    /// Applies every step that the event needs, in order.
    pub(crate) fn apply(&self, event: &mut Event) -> Result<(), LedgerError> {
        while let Some(step) = self.find(&event.kind, event.version) {
            let new = step(event.decode()?);
            event.data =
                Arc::from(serde_json::value::to_raw_value(&new).expect("a JSON value serializes"))
                    as Arc<RawValue>;
            event.version += 1;
        }
        Ok(())
    }

    fn find(&self, kind: &str, version: u16) -> Option<Step> {
        // The map is nearly always empty or tiny; a scan avoids owning the key.
        self.steps
            .iter()
            .find(|((k, v), _)| *k == kind && *v == version)
            .map(|(_, s)| *s)
    }
}

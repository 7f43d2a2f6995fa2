//! What a model is told of tools: those a run begins with, then those it loaded.
//!
//! The order is the order of loading. A list only ever grows at its end, so what a
//! provider has cached of earlier requests holds. A list is made once and shared.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use selvedge_ledger::{Ledger, LedgerError, Payload};
use selvedge_model::ToolDefinition;
use selvedge_tool::Offer;

use crate::offers::{Offered, Offers};
use crate::spec::RunSpec;

/// So many lists are kept; those of runs that ended are among them.
const LISTS_MAX: usize = 256;

/// The lists that were made.
pub(crate) struct Definitions {
    ledger: Arc<dyn Ledger>,
    lists: Mutex<HashMap<Key, Arc<[ToolDefinition]>>>,
}

/// What a run begins with, and what it has loaded of what is on offer.
type Key = (Payload, Option<(Payload, Arc<Vec<String>>)>);

impl Definitions {
    pub(crate) fn new(ledger: Arc<dyn Ledger>) -> Self {
        Self {
            ledger,
            lists: Mutex::default(),
        }
    }

    /// The tools of a request, when these are loaded.
    pub(crate) async fn list(
        &self,
        spec: &RunSpec,
        loaded: &Arc<Vec<String>>,
    ) -> Result<Arc<[ToolDefinition]>, LedgerError> {
        let offers = spec.offers.as_ref().filter(|_| !loaded.is_empty());
        let more = offers.map(|offers| (offers.definitions.clone(), loaded.clone()));
        let key = (spec.definitions.clone(), more);
        if let Some(known) = self.locked().get(&key) {
            return Ok(known.clone());
        }
        let list = tools_sent(&*self.ledger, spec, loaded).await?;
        let list: Arc<[ToolDefinition]> = list.into();
        let mut lists = self.locked();
        if lists.len() >= LISTS_MAX {
            lists.clear();
        }
        lists.insert(key, list.clone());
        Ok(list)
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<Key, Arc<[ToolDefinition]>>> {
        self.lists.lock().expect("no panic under this lock")
    }
}

/// The tools that a request of a run has with it, when these are loaded.
pub async fn tools_sent(
    ledger: &dyn Ledger,
    spec: &RunSpec,
    loaded: &[String],
) -> Result<Vec<ToolDefinition>, LedgerError> {
    let text = ledger.text(&spec.definitions).await?;
    let mut list: Vec<ToolDefinition> = serde_json::from_str(&text).unwrap_or_default();
    if let Some(offers) = spec.offers.as_ref().filter(|_| !loaded.is_empty()) {
        let offered = offered(ledger, offers).await?;
        let find = |name: &String| offered.iter().find(|o| o.definition.name == *name);
        let definitions = loaded.iter().filter_map(find);
        list.extend(definitions.map(|offered| offered.definition.clone()));
    }
    Ok(list)
}

/// What a run may ask for.
pub(crate) async fn offers(ledger: &dyn Ledger, spec: &RunSpec) -> Vec<Offer> {
    let Some(offers) = &spec.offers else {
        return Vec::new();
    };
    let offered = offered(ledger, offers).await.unwrap_or_default();
    offered.iter().map(Offer::from).collect()
}

async fn offered(ledger: &dyn Ledger, offers: &Offers) -> Result<Vec<Offered>, LedgerError> {
    let text = ledger.text(&offers.definitions).await?;
    Ok(serde_json::from_str(&text).unwrap_or_default())
}

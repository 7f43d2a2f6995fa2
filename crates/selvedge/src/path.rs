//! The path that a conversation took through its graph, for `sessions show` and `/why`.

use selvedge_crews::journal::{JOURNAL, JournalFlow, JournalState};
use selvedge_flow::{Graph, State, Walked};
use selvedge_ledger::StreamId;
use selvedge_runtime::Machine;

use crate::error::Result;
use crate::wiring::Store;

/// The states that a session was in, a line each with why; `None` if it has no graph.
pub async fn of(store: &Store, session: &StreamId) -> Result<Option<Vec<String>>> {
    let info = store.ledger.stream(session).await?;
    if info.is_none_or(|info| info.kind != JOURNAL) {
        return Ok(None);
    }
    let mut graph = Graph::<JournalFlow>::default();
    for event in store.ledger.read(session, 0).await? {
        graph.apply(&event)?;
    }
    let line = |walked: &Walked<JournalState>| {
        let name = walked.visit.state.name();
        let again = match walked.visit.number {
            1 => String::new(),
            number => format!(" ({number})"),
        };
        match walked.from {
            Some(from) => format!("{} → {name}{again}: {}", from.name(), walked.when),
            None => format!("{name}: {}", walked.when),
        }
    };
    Ok(Some(graph.path().iter().map(line).collect()))
}

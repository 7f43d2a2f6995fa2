//! `output/error.json`: what stopped a job, where, and how it goes on. A projection of the
//! ledger like any other view, written by whoever drives the job.

use std::io;

use selvedge_agent::{LACKS_CALLS, TOOL_PAUSE};
use serde_json::{Value, json};

use super::view::{JobView, Stand};

const PATH: &str = "output/error.json";
/// Whoever wrote it: a file of the agent's own is left alone.
const MARK: &str = "selvedge";

/// What there is to report; `None` if the job has not failed.
pub fn error_report(view: &JobView) -> Option<Value> {
    let session = view.session.as_ref()?;
    let tool = view
        .pauses
        .iter()
        .find(|((_, reason), (_, until))| reason == TOOL_PAUSE && until.is_none());
    let (what, resume) = match (view.stand(), tool) {
        (Stand::Stopped, Some((_, (detail, _)))) => (
            detail.clone(),
            format!("selvedge job run --resume {session}"),
        ),
        (Stand::Failed, _) => {
            let text = view
                .ended
                .as_ref()?
                .result
                .text()
                .map(|text| text.to_string());
            let why = text.unwrap_or_else(|| format!("see `selvedge job logs {session}`"));
            // Nothing would be different by itself, so it goes on as a job of its own: from
            // the beginning of the phase, with the files as they are then.
            let resume = format!("selvedge job run --resume {session}");
            (why, resume + &more_iterations(view))
        }
        _ => return None,
    };
    let todo = view.todos.current().map(|todo| &todo.content);
    Some(json!({
        "status": "failed",
        "what": what,
        "where": {
            "phase": view.phase,
            "kind": view.kind,
            "todo": todo,
            "tool": tool.map(|_| &view.tool),
        },
        "resume": resume,
        "written_by": MARK,
    }))
}

/// The flag that a job needs to get further, if it used up its model calls: twice as many
/// are surely enough for the phase.
fn more_iterations(view: &JobView) -> String {
    let data = view.ended.as_ref().and_then(|ending| ending.data.as_ref());
    let lacks_calls = data.is_some_and(|data| data[LACKS_CALLS] == true);
    let most = view.terms.as_ref().filter(|_| lacks_calls);
    most.map_or_else(String::new, |terms| {
        let more = terms.iterations_max.saturating_mul(2);
        format!(" --max-iterations {more}")
    })
}

/// Brings the file up to date: written if the job has failed, gone if it has not.
pub fn write_error(view: &JobView) -> io::Result<()> {
    let path = view.folder.join(PATH);
    match error_report(view) {
        Some(report) => {
            let text = serde_json::to_string_pretty(&report).expect("a JSON value is JSON");
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            std::fs::write(&path, format!("{text}\n"))
        }
        None => {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let old: Value = serde_json::from_str(&text).unwrap_or_default();
            match old["written_by"] == MARK {
                true => std::fs::remove_file(&path),
                false => Ok(()),
            }
        }
    }
}

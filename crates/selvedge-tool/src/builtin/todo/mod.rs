//! Tools that work with a run's todos. They change nothing by themselves: what they
//! answer has a fact, and the run folds it.

mod archive_and_reset;
mod job_complete;
mod lists;
mod todo_complete;
mod todo_write;

pub(super) use archive_and_reset::ArchiveAndReset;
pub(super) use job_complete::JobComplete;
pub(super) use lists::{AddTodo, CompleteTodo, GetNextTodo, GetProgress, ListTodos, StartTodo};
pub(super) use todo_complete::TodoComplete;
pub(super) use todo_write::TodoWrite;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::todo::{Todo, TodoBounds, TodoChange, Todos};
use crate::tool::{ToolContext, ToolOutput};

/// The name under which a run tells these tools its rules.
const SETTING: &str = "todos";
/// Open todos of one list, where a run says nothing else.
const OPEN_MAX: usize = 25;

/// The rules of a run's todos.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Rules {
    /// Whether the run is over when all are completed.
    ends: bool,
    /// The next list has to be written by then, with so many todos.
    next: Option<TodoBounds>,
    /// Open todos at once.
    open_max: Option<usize>,
    /// Whether putting a list away is the time for a summary.
    compacts: Option<bool>,
}

impl Rules {
    fn of(context: &ToolContext) -> Self {
        context.desk.setting(SETTING).unwrap_or_default()
    }
}

/// The facts of a change.
fn facts(change: &TodoChange) -> Value {
    json!({ "todo": change })
}

/// The todo that is meant: the one named, or else the current one.
fn meant(todos: &Todos, id: Option<i64>) -> Result<&Todo, ToolOutput> {
    let found = match id {
        Some(id) => todos.get(id),
        None => todos.current(),
    };
    found.ok_or_else(|| {
        let open: Vec<String> = todos.open().map(|todo| todo.id.to_string()).collect();
        ToolOutput::error(match (id, open.is_empty()) {
            (Some(id), false) => format!("there is no todo {id}; open are {}", open.join(", ")),
            (Some(id), true) => format!("there is no todo {id}, and none is open"),
            (None, _) => "no todo is open".into(),
        })
    })
}

/// Now, for names and records, as `2026-01-31T12:00:00Z`.
fn now() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    stamp(since.map_or(0, |since| since.as_secs()))
}

/// A time in seconds since 1970, as RFC 3339 has it.
fn stamp(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days are counted from the first of March, so that a leap day is a year's last.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::testing::World;
    use crate::todo::Desk;

    #[test]
    fn a_stamp_is_a_date() {
        assert_eq!(stamp(0), "1970-01-01T00:00:00Z");
        assert_eq!(stamp(951_827_696), "2000-02-29T12:34:56Z");
        assert_eq!(stamp(4_102_444_799), "2099-12-31T23:59:59Z");
    }

    fn world(todos: Todos, rules: Value) -> World {
        let mut world = World::new(&[]);
        let settings = json!({ SETTING: rules });
        world.context.desk = Desk {
            todos: Arc::new(todos),
            settings: Arc::new(settings.as_object().cloned().unwrap()),
        };
        world
    }

    #[tokio::test]
    async fn the_last_todo_is_completed_only_when_the_next_list_is_there() {
        let rules = json!({ "ends": true, "next": { "min": 1, "max": 2 } });
        let world = world(Todos::numbered("plan", ["only"]), rules);
        let output = world.call("todo_complete", json!({})).await;
        assert!(output.is_error);
        assert!(
            output
                .text
                .starts_with("Phase transition rejected: todos.yaml not found"),
            "{}",
            output.text
        );
        assert_eq!(output.facts["todo"]["change"], "rejected");
        let todos = json!({ "todos": [{ "content": "next" }] });
        assert!(!world.call("todo_write", todos).await.is_error);
        let output = world.call("todo_complete", json!({})).await;
        assert!(!output.is_error, "{}", output.text);
        assert_eq!(output.facts["end"]["todos"][0]["content"], "next");
    }

    #[tokio::test]
    async fn only_so_many_todos_are_open_at_once() {
        let contents = ["a", "b"];
        let world = world(Todos::numbered("work", contents), json!({ "open_max": 2 }));
        let output = world.call("add_todo", json!({ "content": "c" })).await;
        assert!(
            output.is_error && output.text.contains("2 todos"),
            "{}",
            output.text
        );
    }

    #[tokio::test]
    async fn a_list_is_put_away_as_a_page() {
        let world = world(Todos::numbered("work", ["a"]), json!({}));
        let input = json!({ "phase_name": "Phase 1: read/../write" });
        let output = world.call("archive_and_reset", input).await;
        assert!(!output.is_error, "{}", output.text);
        assert_eq!(output.facts["todo"]["change"], "archived");
        assert_eq!(output.facts["compact"], true);
        let path = output.facts["path"].as_str().unwrap();
        assert!(
            path.starts_with("archive/todos_phase_1_read_write_"),
            "{path}"
        );
        assert!(world.read(path).contains("## Pending\n\n- [ ] 1. a"));
    }

    #[tokio::test]
    async fn a_job_is_complete_with_what_is_there() {
        let world = world(Todos::default(), json!({}));
        world.write("output/report.md", "r");
        let input = json!({ "summary": "done", "outputs": ["output/none.md"] });
        let output = world.call("job_complete", input).await;
        assert!(
            output.is_error && output.text.contains("none.md"),
            "{}",
            output.text
        );
        let output = world
            .call("job_complete", json!({ "summary": "done" }))
            .await;
        assert!(!output.is_error, "{}", output.text);
        let file: Value = serde_json::from_str(&world.read("output/completion.json")).unwrap();
        assert_eq!(file["status"], "completed");
        assert_eq!(file["outputs"], json!(["output/report.md"]));
        assert_eq!(output.facts["end"]["job"], "completed");
    }
}

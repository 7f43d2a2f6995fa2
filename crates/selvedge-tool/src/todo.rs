//! A list of todos: typed state of a run, never chat.
//!
//! A tool that works with todos only says what changes (`TodoChange`, a fact of its
//! outcome). Whoever drives the run folds that, and renders the list anew into every
//! request: a summary of the conversation cannot lose or bend it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Todos, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Todos {
    /// What they are for, in a few words.
    pub title: String,
    /// The todos.
    pub items: Vec<Todo>,
}

/// One of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Todo {
    /// Its number; unique in its list.
    pub id: i64,
    /// What is to be done.
    pub content: String,
    /// How far it is.
    #[serde(default)]
    pub state: TodoState,
    /// What was written down when it was completed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notes: String,
    /// More is sooner.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: i64,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// How far a todo is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoState {
    /// Not begun.
    #[default]
    Pending,
    /// Begun.
    InProgress,
    /// Done.
    Completed,
}

/// What a tool does to the list: the fact `todo` of its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum TodoChange {
    /// One is done.
    Completed {
        /// Which.
        id: i64,
        /// What was written down about it.
        #[serde(default)]
        notes: String,
    },
    /// One was said to be done, and is not: it goes back to in progress.
    Rejected {
        /// Which.
        id: i64,
        /// Why.
        why: String,
    },
    /// One is begun.
    Started {
        /// Which.
        id: i64,
    },
    /// One more.
    Added {
        /// Its number.
        id: i64,
        /// What is to be done.
        content: String,
        /// More is sooner.
        #[serde(default)]
        priority: i64,
    },
    /// The list was put away, and a new one begins.
    Archived,
}

impl TodoChange {
    /// The change that a tool's facts tell of.
    pub fn in_facts(facts: &Value) -> Option<Self> {
        Self::deserialize(facts.get("todo")?).ok()
    }
}

impl Todos {
    /// A list of plain todos, numbered from 1.
    pub fn numbered<'a>(
        title: impl Into<String>,
        contents: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let items = (1..).zip(contents).map(|(id, content)| Todo {
            id,
            content: content.to_owned(),
            ..Todo::default()
        });
        Self {
            title: title.into(),
            items: items.collect(),
        }
    }

    /// Those that are not completed.
    pub fn open(&self) -> impl Iterator<Item = &Todo> {
        let is_open = |todo: &&Todo| todo.state != TodoState::Completed;
        self.items.iter().filter(is_open)
    }

    /// How many are completed.
    pub fn done(&self) -> usize {
        self.items.len() - self.open().count()
    }

    /// The todo that is worked on: the one in progress, or else the next.
    pub fn current(&self) -> Option<&Todo> {
        let begun = |todo: &&Todo| todo.state == TodoState::InProgress;
        let soonest = |todo: &&Todo| std::cmp::Reverse(todo.priority);
        let begun = self.items.iter().find(begun);
        // `min_by_key` takes the first of equals.
        begun.or_else(|| self.open().min_by_key(soonest))
    }

    /// The todo of this number.
    pub fn get(&self, id: i64) -> Option<&Todo> {
        self.items.iter().find(|todo| todo.id == id)
    }

    /// The number that the next todo gets.
    pub fn next_id(&self) -> i64 {
        let last = self.items.iter().map(|todo| todo.id).max();
        last.unwrap_or(0).saturating_add(1)
    }

    /// Folds a change in.
    pub fn apply(&mut self, change: &TodoChange) {
        let mut set = |id: &i64, state: TodoState| {
            let todo = self.items.iter_mut().find(|todo| todo.id == *id);
            if let Some(todo) = todo {
                todo.state = state;
            }
        };
        match change {
            TodoChange::Completed { id, notes } => {
                set(id, TodoState::Completed);
                let todo = self.items.iter_mut().find(|todo| todo.id == *id);
                if let Some(todo) = todo {
                    todo.notes.clone_from(notes);
                }
            }
            TodoChange::Rejected { id, .. } | TodoChange::Started { id } => {
                set(id, TodoState::InProgress);
            }
            TodoChange::Added {
                id,
                content,
                priority,
            } => self.items.push(Todo {
                id: *id,
                content: content.clone(),
                priority: *priority,
                ..Todo::default()
            }),
            TodoChange::Archived => self.items.clear(),
        }
    }

    /// The list as a model sees it: the same state is the same text.
    pub fn render(&self) -> String {
        let (done, all) = (self.done(), self.items.len());
        let mut text = format!("[todos: {}, {done} of {all} completed]", self.title);
        let current = self.current().map(|todo| todo.id);
        for todo in &self.items {
            let mark = match todo.state {
                TodoState::Completed => 'x',
                _ if Some(todo.id) == current => '>',
                TodoState::InProgress => '>',
                TodoState::Pending => ' ',
            };
            text.push_str(&format!("\n[{mark}] {}. {}", todo.id, todo.content));
        }
        text
    }

    /// The list as a page for people: completed, in progress, pending, notes.
    pub fn page(&self) -> String {
        let mut text = format!("# Todos: {}\n", self.title);
        for (title, state) in [
            ("Completed", TodoState::Completed),
            ("In progress", TodoState::InProgress),
            ("Pending", TodoState::Pending),
        ] {
            text.push_str(&format!("\n## {title}\n\n"));
            let mark = if state == TodoState::Completed {
                'x'
            } else {
                ' '
            };
            let items: Vec<&Todo> = self.items.iter().filter(|t| t.state == state).collect();
            for todo in &items {
                text.push_str(&format!("- [{mark}] {}. {}\n", todo.id, todo.content));
            }
            if items.is_empty() {
                text.push_str("none\n");
            }
        }
        text.push_str("\n## Notes\n\n");
        let noted: Vec<&Todo> = self.items.iter().filter(|t| !t.notes.is_empty()).collect();
        for todo in &noted {
            text.push_str(&format!("- {}: {}\n", todo.id, todo.notes));
        }
        if noted.is_empty() {
            text.push_str("none\n");
        }
        text
    }
}

/// How many todos a written list has to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TodoBounds {
    /// At least.
    pub min: usize,
    /// At most.
    pub max: usize,
}

/// What `todos.yaml` says: a list for the work that comes next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TodoFile {
    /// What the work is called.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The todos.
    pub todos: Vec<Todo>,
}

impl TodoFile {
    /// Where it is, from the workspace root.
    pub const PATH: &'static str = "todos.yaml";

    /// Reads and checks the text of a file; the reason if it cannot be used.
    pub fn check(text: &str, bounds: TodoBounds) -> Result<Self, String> {
        let path = Self::PATH;
        let value: Value = serde_saphyr::from_str(text).map_err(|error| {
            let error = error.to_string();
            let line = error.lines().next().unwrap_or_default().to_owned();
            format!("{path} is not valid YAML: {line}")
        })?;
        let list = value.get("todos").and_then(Value::as_array);
        let list = list.ok_or_else(|| format!("{path} has no `todos` list"))?;
        let TodoBounds { min, max } = bounds;
        if !(min..=max).contains(&list.len()) {
            let count = list.len();
            return Err(format!(
                "{path} has {count} todos, and {min} to {max} are needed"
            ));
        }
        let mut todos: Vec<Todo> = Vec::new();
        for (at, item) in (1..).zip(list) {
            let id = item.get("id").and_then(Value::as_i64);
            let id = id.ok_or_else(|| format!("item {at} of {path} has no integer `id`"))?;
            let content = item.get("content").and_then(Value::as_str);
            let content = content.map(str::trim).filter(|text| !text.is_empty());
            let content = content.ok_or_else(|| {
                format!("item {at} of {path} has no `content`, which is a text that is not empty")
            })?;
            if todos.iter().any(|todo| todo.id == id) {
                return Err(format!("the id {id} occurs twice in {path}"));
            }
            todos.push(Todo {
                id,
                content: content.to_owned(),
                ..Todo::default()
            });
        }
        let word = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
        Ok(Self {
            phase: word("phase").to_owned(),
            description: word("description").to_owned(),
            todos,
        })
    }

    /// The text of a file. JSON strings are YAML strings, whatever is in them.
    pub fn yaml(&self) -> String {
        let quoted = |text: &str| Value::from(text).to_string();
        let mut text = String::new();
        for (name, said) in [("phase", &self.phase), ("description", &self.description)] {
            if !said.is_empty() {
                text.push_str(&format!("{name}: {}\n", quoted(said)));
            }
        }
        text.push_str("todos:\n");
        for todo in &self.todos {
            text.push_str(&format!("  - id: {}\n", todo.id));
            text.push_str(&format!("    content: {}\n", quoted(&todo.content)));
            if todo.state != TodoState::default() {
                let state = serde_json::to_value(todo.state).unwrap_or_default();
                text.push_str(&format!(
                    "    status: {}\n",
                    state.as_str().unwrap_or_default()
                ));
            }
            if !todo.notes.is_empty() {
                text.push_str(&format!("    notes: {}\n", quoted(&todo.notes)));
            }
        }
        text
    }
}

/// What a run has on its desk, for the tools that work with it.
#[derive(Clone, Debug, Default)]
pub struct Desk {
    /// The todos of the run, as they are when the call begins.
    pub todos: std::sync::Arc<Todos>,
    /// What the run has to say to tools, by the name of the tool or of a group.
    pub settings: std::sync::Arc<serde_json::Map<String, Value>>,
}

impl Desk {
    /// What is said to `name`, where it is said and can be read.
    pub fn setting<T: serde::de::DeserializeOwned>(&self, name: &str) -> Option<T> {
        T::deserialize(self.settings.get(name)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: TodoBounds = TodoBounds { min: 2, max: 3 };

    #[test]
    fn a_list_that_cannot_be_used_is_refused_with_the_reason() {
        for (text, reason) in [
            ("todos: [", "not valid YAML"),
            ("phase: one", "no `todos` list"),
            ("todos: 3", "no `todos` list"),
            ("todos: [{id: 1, content: a}]", "has 1 todos, and 2 to 3"),
            (
                "todos: [{content: a}, {id: 2, content: b}]",
                "item 1 of todos.yaml has no integer",
            ),
            (
                "todos: [{id: x, content: a}, {id: 2, content: b}]",
                "item 1",
            ),
            (
                "todos: [{id: 1, content: a}, {id: 2, content: ' '}]",
                "item 2",
            ),
            (
                "todos: [{id: 1, content: a}, {id: 1, content: b}]",
                "id 1 occurs twice",
            ),
        ] {
            let refused = TodoFile::check(text, BOUNDS).unwrap_err();
            assert!(refused.contains(reason), "{text}: {refused}");
        }
    }

    #[test]
    fn what_is_written_can_be_read_again() {
        let file = TodoFile {
            phase: "Phase 1: \"read\"".into(),
            description: String::new(),
            todos: Todos::numbered("", ["- a: b # c", "two\nlines"]).items,
        };
        assert_eq!(TodoFile::check(&file.yaml(), BOUNDS).unwrap(), file);
    }

    #[test]
    fn a_list_is_a_fold_of_its_changes() {
        let mut todos = Todos::numbered("test", ["a", "b"]);
        assert_eq!(todos.current().unwrap().id, 1);
        todos.apply(&TodoChange::Completed {
            id: 1,
            notes: "well".into(),
        });
        todos.apply(&TodoChange::Added {
            id: todos.next_id(),
            content: "c".into(),
            priority: 5,
        });
        assert_eq!(todos.current().unwrap().id, 3, "more priority is sooner");
        todos.apply(&TodoChange::Started { id: 2 });
        assert_eq!(
            todos.render(),
            "[todos: test, 1 of 3 completed]\n[x] 1. a\n[>] 2. b\n[ ] 3. c"
        );
        assert!(todos.page().contains("## Notes\n\n- 1: well"));
    }
}

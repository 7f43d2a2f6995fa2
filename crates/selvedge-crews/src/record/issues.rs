//! Which issues of all reviews are still open, as far as that can be known.
//!
//! Nobody says of an issue that it is dealt with: a builder claims much, and a reviewer
//! begins with nothing and may overlook what another saw. So an issue is taken for closed
//! only when a build was given it as feedback and, after that, a review of its file does
//! not name it again. Everything else is listed, with who was told to deal with it.

use std::collections::HashMap;

use selvedge_ledger::StreamId;
use serde_json::{Value, json};

use crate::tree::{Node, State};

/// An issue that nobody has closed.
struct Open {
    issue: Value,
    found_by: String,
    handed_to: Option<String>,
}

/// The issues that are open after everything that `nodes` did, in the order in which they
/// were found; `requests` are what they were asked to do.
pub(super) fn open(nodes: &[Node], requests: &HashMap<StreamId, Value>) -> Vec<Value> {
    let mut all: Vec<Open> = Vec::new();
    // In the order in which they began. Who builds goes alone, so what begins after a
    // build begins after its end.
    for node in nodes {
        let request = requests.get(&node.stream).unwrap_or(&Value::Null);
        if let (Some(told), State::Done) = (list(request, "/feedback/issues"), &node.state) {
            let is_told = |open: &&mut Open| told.iter().any(|issue| is_same(issue, &open.issue));
            for open in all.iter_mut().filter(is_told) {
                open.handed_to = Some(node.label());
            }
        }
        let data = node.data.as_ref().unwrap_or(&Value::Null);
        let Some(found) = list(data, "/issues") else {
            continue;
        };
        let looked_at = list(request, "/files_changed");
        let is_closed = |open: &Open| {
            let file = file(&open.issue);
            let is_looked_at = looked_at.is_none_or(|files| {
                let mut files = files.iter().filter_map(Value::as_str);
                files.any(|looked| plain(looked) == file)
            });
            open.handed_to.is_some() && is_looked_at
        };
        let is_found_again = |open: &Open| found.iter().any(|issue| is_same(issue, &open.issue));
        all.retain(|open| !is_closed(open) && !is_found_again(open));
        all.extend(found.iter().map(|issue| Open {
            issue: issue.clone(),
            found_by: node.label(),
            handed_to: None,
        }));
    }
    all.into_iter().map(told).collect()
}

fn told(open: Open) -> Value {
    let mut issue = open.issue;
    if let Value::Object(fields) = &mut issue {
        fields.insert("found_by".into(), json!(open.found_by));
        if let Some(label) = open.handed_to {
            fields.insert("handed_to".into(), json!(label));
        }
    }
    issue
}

fn list<'a>(value: &'a Value, pointer: &str) -> Option<&'a Vec<Value>> {
    value.pointer(pointer)?.as_array()
}

/// Whether two are one issue. Who passes one on may shorten it, and not its place.
fn is_same(one: &Value, other: &Value) -> bool {
    let words = |issue: &Value| {
        let message = issue["message"].as_str().unwrap_or_default().to_lowercase();
        message.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let is_on_the_same_line = one["line"].is_number() && one["line"] == other["line"];
    file(one) == file(other) && (is_on_the_same_line || words(one) == words(other))
}

fn file(issue: &Value) -> &str {
    plain(issue["file"].as_str().unwrap_or_default())
}

fn plain(path: &str) -> &str {
    path.trim_start_matches("./")
}

#[cfg(test)]
mod tests {
    use selvedge_ledger::Time;
    use selvedge_model::Usd;

    use super::*;

    /// What a helper was asked and answered, in order, and the messages that are open.
    fn after(steps: &[(&str, Value, Value)]) -> Vec<String> {
        let mut requests = HashMap::new();
        let mut nodes = Vec::new();
        for (n, (agent, request, data)) in steps.iter().enumerate() {
            let stream = StreamId::new(format!("s_x/t{n}.0"));
            requests.insert(stream.clone(), request.clone());
            nodes.push(Node {
                stream,
                parent: Some(StreamId::new("s_x")),
                agent: (*agent).to_owned(),
                task: Some(u32::try_from(n).unwrap() + 1),
                title: String::new(),
                model: String::new(),
                turns: 1,
                cost: Usd::ZERO,
                is_unpriced: false,
                state: State::Done,
                started: Time(0),
                ended: Some(Time(0)),
                data: Some(data.clone()),
            });
        }
        let text = |issue: &Value, name: &str| issue[name].as_str().map(str::to_owned);
        let open = open(&nodes, &requests).into_iter().map(|issue| {
            let message = text(&issue, "message").unwrap();
            match text(&issue, "handed_to") {
                Some(label) => format!("{message} ({label})"),
                None => message,
            }
        });
        open.collect()
    }

    fn issue(file: &str, message: &str) -> Value {
        json!({ "severity": "minor", "file": file, "message": message })
    }

    fn review(files: &[&str], issues: &[Value]) -> (&'static str, Value, Value) {
        let request = json!({ "task": "t", "files_changed": files });
        ("reviewer", request, json!({ "issues": issues }))
    }

    fn build(issues: &[Value]) -> (&'static str, Value, Value) {
        let request = json!({ "task": "t", "feedback": { "issues": issues } });
        ("builder", request, json!({ "files_created": [] }))
    }

    #[test]
    fn an_issue_is_open_until_it_was_handed_on_and_looked_at_again() {
        let (a, b) = (issue("a", "one"), issue("b", "two"));
        let first = review(&["a", "b"], &[a.clone(), b.clone()]);
        assert_eq!(after(std::slice::from_ref(&first)), ["one", "two"]);
        // A later review that is silent closes nothing by itself.
        let other = review(&["a", "b"], &[]);
        assert_eq!(after(&[first.clone(), other.clone()]), ["one", "two"]);
        let fix = build(&[issue("./a", "One")]);
        assert_eq!(
            after(&[first.clone(), fix.clone()]),
            ["one (builder task-002)", "two"]
        );
        // Nor does one of another file.
        let elsewhere = review(&["b"], &[]);
        let open = after(&[first.clone(), fix.clone(), elsewhere]);
        assert_eq!(open, ["one (builder task-002)", "two"]);
        assert_eq!(after(&[first.clone(), fix.clone(), other]), ["two"]);
        // What is found again is open again, once.
        let again = review(&["./a"], &[a, issue("a", "three")]);
        assert_eq!(after(&[first, fix, again]), ["two", "one", "three"]);
    }
}

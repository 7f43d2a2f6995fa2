//! What the record says was sent and heard is what was sent and heard, line for line.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use selvedge_agent::{AGENT, Limits, RunSpec};
use selvedge_crews::Record;
use selvedge_ledger::{Ledger, Position, StreamId};
use selvedge_model::{DeltaSink, Message, ModelError, Provider, Request, Response, ScriptedModel};
use selvedge_runtime::Rest;
use selvedge_tool::{Sandbox, Toolbox};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::rig;

const SCRIPT: &str = "
price: {input: 2.0, output: 10.0}
agents:
  orchestrator:
    - calls: [{delegate_to_planner: {mission: do it}}]
    - text: Reported.
  planner:
    - calls:
        - designer: {task: one}
        - designer: {task: two}
    - text: words alone
    - calls: [{builder: {task: build, work_dir: .}}]
    - calls: [{mission_complete: {summary: built, outcome: done}}]
  designer/task-001:
    - text: not a design
    - answer: {architecture: plain, files: []}
  designer/task-002:
    - answer: {architecture: fancy, files: []}
  builder:
    - calls: [{write_file: {path: a.txt, content: LONG}}, {read_file: {path: a.txt}}]
    - error: {kind: transient}
    - answer: {files_created: [b.txt], files_modified: [], tests_run: false, tests_passed: false}
";

/// What one agent was really sent and really said.
#[derive(Default)]
struct Said {
    sent: Vec<Value>,
    systems: Vec<String>,
    tools: Vec<Value>,
    heard: Vec<Value>,
}

/// A model that writes everything down, beside the ledger.
struct Witness {
    model: ScriptedModel,
    said: Mutex<BTreeMap<String, Said>>,
}

#[async_trait]
impl Provider for Witness {
    async fn ask(
        &self,
        request: &Request,
        deltas: &mut dyn DeltaSink,
        cancel: &CancellationToken,
    ) -> Result<Response, ModelError> {
        let answer = self.model.ask(request, deltas, cancel).await;
        let mut said = self.said.lock().unwrap();
        let said = said.entry(request.agent.clone()).or_default();
        // The gate asks again by itself; that is one request.
        if let Ok(response) = &answer {
            let messages: Vec<Value> = request.messages.iter().map(|m| whole(m)).collect();
            said.sent.push(Value::Array(messages));
            said.systems.push(request.system.to_string());
            said.tools.push(json!(&request.tools[..]));
            said.heard.push(whole(&response.message));
        }
        answer
    }

    fn price(&self, model: &str) -> Option<selvedge_model::Price> {
        self.model.price(model)
    }
}

/// A message with its text in it, however long.
fn whole(message: &Message) -> Value {
    let mut message = message.clone();
    let parts = message.parts.iter_mut();
    for payload in parts.flat_map(selvedge_model::Part::payloads_mut) {
        let text = payload
            .text()
            .expect("a request has its texts at hand")
            .clone();
        *payload = selvedge_ledger::Payload::inline(text);
    }
    json!(message)
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Every request that a file of lines tells of.
fn requests(lines: &[Value]) -> Vec<Value> {
    let mut last: Vec<Value> = Vec::new();
    let mut all = Vec::new();
    for line in lines {
        last.truncate(usize::try_from(line["after"].as_u64().unwrap()).unwrap());
        last.extend(line["messages"].as_array().unwrap().iter().cloned());
        all.push(Value::Array(last.clone()));
    }
    all
}

/// The tools of every request that a file of lines tells of.
fn tools(lines: &[Value]) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    let told = lines.iter().map(|line| {
        let new = line["tools"].as_array().cloned().unwrap_or_default();
        all.extend(new);
        Value::Array(all.clone())
    });
    told.collect()
}

#[tokio::test]
async fn the_record_is_what_was_sent_and_heard_line_for_line() {
    let folder = rig::scratch();
    let work = folder.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let ledger = rig::ledger(folder.path());
    let script = SCRIPT.replace("LONG", &"a long line of text. ".repeat(500));
    let witness = Arc::new(Witness {
        model: ScriptedModel::parse("script", &script).unwrap(),
        said: Mutex::default(),
    });
    let spec = rig::spec(&work, Sandbox::off(), None, Limits::default());
    let place = folder.path().join("record");
    recorded(&ledger, witness.clone(), spec, &place).await;
    let said = witness.said.lock().unwrap();
    assert_eq!(said.len(), 5, "{:?}", said.keys());
    for (agent, said) in said.iter() {
        // One that leads others has one folder.
        let place = match agent.as_str() {
            "planner/task-001" => place.join("planner"),
            agent => place.join(agent),
        };
        let to = lines(&place.join("to_model.jsonl"));
        assert_eq!(requests(&to), said.sent, "{agent}");
        assert_eq!(to[0]["system"], said.systems[0].as_str(), "{agent}");
        assert_eq!(tools(&to), said.tools, "{agent}");
        let from = lines(&place.join("from_model.jsonl"));
        let heard: Vec<&Value> = from
            .iter()
            .map(|line| &line["response"]["message"])
            .collect();
        assert_eq!(heard, said.heard.iter().collect::<Vec<_>>(), "{agent}");
    }
    let contradicted = lines(&place.join("planner/to_model.jsonl"));
    let told = json!(contradicted).to_string();
    assert!(told.contains("no such file was created"), "{told}");
}

#[tokio::test]
async fn tools_that_are_loaded_later_are_on_record_too() {
    let folder = rig::scratch();
    let ledger = rig::ledger(folder.path());
    let script = "
agents:
  engineer:
    - calls: [{request_tools: {intent: newest commits}}]
    - calls: [{git_log: {limit: 1}}]
    - calls: [{finish: {summary: looked}}]
";
    let witness = Arc::new(Witness {
        model: ScriptedModel::parse("script", script).unwrap(),
        said: Mutex::default(),
    });
    let solo = selvedge_crews::all().find("solo", &[]).unwrap();
    let spec = rig::spec_of(
        &solo,
        folder.path(),
        Sandbox::off(),
        None,
        Limits::default(),
    );
    let place = folder.path().join("record");
    recorded(&ledger, witness.clone(), spec, &place).await;
    let said = witness.said.lock().unwrap();
    let sent = &said["engineer"].tools;
    let count = |request: &Value| request.as_array().unwrap().len();
    assert!(count(&sent[0]) < count(&sent[1]), "something was loaded");
    let names = sent[1].to_string();
    assert!(names.contains("\"git_log\""), "{names}");
    let to = lines(&place.join("engineer/to_model.jsonl"));
    assert_eq!(tools(&to), *sent);
}

/// Drives a session to its end, and makes its record.
async fn recorded(ledger: &Arc<dyn Ledger>, witness: Arc<Witness>, spec: RunSpec, place: &Path) {
    let driver = rig::driver(ledger.clone(), witness, Toolbox::core());
    let session = StreamId::new("s_record");
    driver
        .start(&session, None, AGENT, spec, None)
        .await
        .unwrap();
    let cancel = CancellationToken::new();
    let rest = driver.drive(&session, None, cancel).await.unwrap();
    assert!(matches!(rest, Rest::Ended(_)), "{rest:?}");
    let mut record = Record::at(place);
    let events = ledger.session_after(&session, Position::default()).await;
    for event in events.unwrap().0 {
        record.tell(&**ledger, &event).await.unwrap();
    }
}

//! What was recorded is played, and nothing else is.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::*;
use crate::error::ModelError;
use crate::providers::Providers;
use crate::scripted::{Entry, ScriptedModel, Turn};
use crate::types::{Message, Request, Response};
use crate::{Provider, Usage};

fn request(turn: u32, words: &str) -> Request {
    Request {
        model: "scripted/one".into(),
        agent: "engineer".into(),
        turn,
        system: "be brief".into(),
        messages: vec![Arc::new(Message::user(words.to_owned()))].into(),
        tools: Arc::from([]),
        output_schema: None,
        output_tokens_max: 100,
        temperature: None,
        effort: None,
    }
}

async fn ask(provider: &dyn Provider, request: &Request) -> Result<Response, ModelError> {
    let cancel = CancellationToken::new();
    provider.ask(request, &mut |_| {}, &cancel).await
}

/// Records two turns, the first after an error; returns the text and the answers.
async fn record(folder: &tempfile::TempDir) -> (String, Vec<Response>) {
    let path = folder.path().join("tape.jsonl");
    let long = "x".repeat(5000);
    let reset = ModelError::Transient {
        provider: "scripted".into(),
        what: "key sk-very-secret was reset".into(),
    };
    let usage = Usage {
        input: 10,
        output: 5,
        ..Usage::default()
    };
    let turns: Vec<Entry> = vec![
        reset.into(),
        Turn::text(&long).usage(usage).into(),
        Turn::text("my key is sk-very-secret").into(),
    ];
    let script = ScriptedModel::from_turns([("engineer", turns)]);
    let recorder = Recorder::open(
        &path,
        Arc::new(|text| text.replace("sk-very-secret", "[removed]")),
    )
    .unwrap();
    let providers = recorder.listen(Providers::new().with_script(script));
    let provider = providers.get("scripted/one").unwrap();
    assert!(ask(&**provider, &request(0, "first")).await.is_err());
    let mut answers = Vec::new();
    for (turn, words) in [(0, "first"), (1, "second")] {
        answers.push(ask(&**provider, &request(turn, words)).await.unwrap());
    }
    assert!(recorder.lost().is_none());
    (std::fs::read_to_string(path).unwrap(), answers)
}

#[tokio::test]
async fn a_cassette_gives_the_same_answers_and_passes_over_errors_that_were_got_over() {
    let folder = tempfile::tempdir().unwrap();
    let (text, recorded) = record(&folder).await;
    let cassette = Cassette::parse("tape.jsonl", &text).unwrap();
    assert_eq!(cassette.models(), ["scripted/one"]);
    // In any order, and again.
    for (turn, words) in [(1, "second"), (0, "first"), (0, "first")] {
        let mut asked = request(turn, words);
        asked.model = Cassette::name_of(&asked.model);
        let played = ask(&cassette, &asked).await.unwrap();
        assert_eq!(played.model, "replay/scripted/one");
        assert_eq!(played.usage, recorded[turn as usize].usage);
        if turn == 0 {
            assert_eq!(played.message, recorded[0].message);
        }
    }
}

#[tokio::test]
async fn a_cassette_holds_no_secret_and_nothing_of_the_request() {
    let folder = tempfile::tempdir().unwrap();
    let (text, _) = record(&folder).await;
    assert_eq!(text.lines().count(), 4);
    assert!(!text.contains("very-secret"), "{text}");
    assert!(text.contains("my key is [removed]"));
    assert!(!text.contains("be brief") && !text.contains("\"first\""));
}

#[tokio::test]
async fn another_request_is_refused_with_what_differs() {
    let folder = tempfile::tempdir().unwrap();
    let (text, _) = record(&folder).await;
    let cassette = Cassette::parse("tape.jsonl", &text).unwrap();
    let mut asked = request(1, "something else");
    asked.system = "be long".into();
    asked.model = "replay/openai/two".into();
    let refused = ask(&cassette, &asked).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "replay refused the request: `tape.jsonl` has no answer to turn 1 of `engineer`: the model \
         was `scripted/one` and is `openai/two`; the system prompt differs; message 1 of 1 differs"
    );
    let refused = ask(&cassette, &request(2, "third")).await.unwrap_err();
    assert!(refused.to_string().ends_with("there is none"), "{refused}");
    let mut longer = request(1, "second");
    longer.messages.push(Arc::new(Message::user("and")));
    let refused = ask(&cassette, &longer).await.unwrap_err();
    let why = "there were 1 messages and are 2";
    assert!(refused.to_string().ends_with(why), "{refused}");
}

#[tokio::test]
async fn played_as_a_script_the_place_alone_decides() {
    let folder = tempfile::tempdir().unwrap();
    let (text, _) = record(&folder).await;
    let script = Cassette::parse("tape.jsonl", &text).unwrap().as_script();
    let played = ask(&script, &request(1, "something else")).await.unwrap();
    assert_eq!(played.text(), "my key is [removed]");
}

#[test]
fn what_is_no_cassette_is_named_with_its_line() {
    assert!(!Cassette::is_one("agents:\n"));
    let error = |text: &str| Cassette::parse("f", text).err().unwrap().to_string();
    assert!(error("").contains("does not begin"));
    assert!(error("{\"cassette\":9}\n").contains("version 9"));
    assert!(error("{\"cassette\":1}\nnothing\n").contains("line 2"));
}

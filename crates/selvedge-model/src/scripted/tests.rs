use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::types::{Part, Stop, Usage};

const SCRIPT: &str = r#"
model: scripted/demo
price: {input: 3.0, output: 15.0}
agents:
  engineer:
    - text: I will look first.
      calls:
        - list_files: {path: "."}
        - read_file: '{"path": '
      usage: {input: 900, output: 60}
    - error: {kind: rate_limited, retry_after: 1.5s}
    - error: {kind: transient, what: the line went dead}
    - answer: {verdict: pass}
    - text: done
      delay: 300ms
"#;

fn request(agent: &str, turn: u32) -> Request {
    Request {
        model: "scripted/any".into(),
        agent: agent.into(),
        turn,
        system: Arc::from("be brief"),
        messages: Default::default(),
        tools: Arc::from([]),
        output_schema: None,
        output_tokens_max: 100,
        temperature: None,
        effort: None,
    }
}

fn model() -> ScriptedModel {
    ScriptedModel::parse("demo.yaml", SCRIPT).unwrap()
}

async fn ask(model: &ScriptedModel, agent: &str, turn: u32) -> Result<Response, ModelError> {
    model
        .ask(
            &request(agent, turn),
            &mut |_| {},
            &CancellationToken::new(),
        )
        .await
}

fn refusal(yaml: &str) -> String {
    ScriptedModel::parse("demo.yaml", yaml)
        .err()
        .expect("a broken script is refused")
        .to_string()
}

#[tokio::test]
async fn a_turn_says_its_text_and_calls_its_tools() {
    let response = ask(&model(), "engineer", 0).await.unwrap();
    assert_eq!(response.text(), "I will look first.");
    let calls: Vec<_> = response
        .calls()
        .map(|c| (&*c.name, &**c.arguments.text().unwrap()))
        .collect();
    assert_eq!(
        calls,
        [
            ("list_files", r#"{"path":"."}"#),
            ("read_file", r#"{"path": "#)
        ]
    );
    assert_eq!(response.stop, Stop::Tools);
    assert_eq!(
        response.usage,
        Usage {
            input: 900,
            output: 60,
            ..Usage::default()
        }
    );
    assert_eq!(response.model, "scripted/demo");
}

#[tokio::test]
async fn errors_come_once_and_then_the_turn_they_precede() {
    let model = model();
    let first = ask(&model, "engineer", 1).await.unwrap_err();
    assert!(
        matches!(first, ModelError::RateLimited { retry_after: Some(wait), .. } if wait.as_millis() == 1500)
    );
    let second = ask(&model, "engineer", 1).await.unwrap_err();
    assert_eq!(second.to_string(), "scripted: the line went dead");
    for _ in 0..2 {
        assert_eq!(
            ask(&model, "engineer", 1).await.unwrap().text(),
            r#"{"verdict":"pass"}"#
        );
    }
}

#[tokio::test]
async fn a_restarted_process_finds_the_turn_by_its_number() {
    assert_eq!(ask(&model(), "engineer", 2).await.unwrap().text(), "done");
}

#[tokio::test]
async fn past_the_end_the_agent_the_turn_and_the_file_are_named() {
    let model = model();
    let end = ask(&model, "engineer", 3).await.unwrap_err();
    assert_eq!(
        end.to_string(),
        "scripted refused the request: `demo.yaml` has 3 turns for agent `engineer`, \
         which asks for one more: turn 3 counted from 0"
    );
    let stranger = ask(&model, "enginer", 0).await.unwrap_err().to_string();
    assert!(
        stranger.contains("no agent `enginer`; did you mean `engineer`?"),
        "{stranger}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_delay_is_spread_over_the_pieces_of_the_text() {
    let yaml = format!(
        "agents: {{a: [{{text: {}, delay: 2s}}]}}",
        "word ".repeat(30)
    );
    let model = ScriptedModel::parse("slow.yaml", &yaml).unwrap();
    let begun = tokio::time::Instant::now();
    let mut seen = Vec::new();
    let mut sink = |delta| seen.push((begun.elapsed().as_millis(), delta));
    let response = model
        .ask(&request("a", 0), &mut sink, &CancellationToken::new())
        .await
        .unwrap();
    assert!(seen.len() > 5 && seen.windows(2).all(|pair| pair[0].0 < pair[1].0));
    assert_eq!(begun.elapsed().as_millis() / 100, 20);
    let said: String = seen
        .iter()
        .map(|(_, delta)| {
            if let Delta::Text(text) = delta {
                text.as_str()
            } else {
                ""
            }
        })
        .collect();
    assert_eq!(said, response.text());
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_answer_ends_at_once() {
    let model =
        ScriptedModel::from_turns([("a", [Turn::text("late").delay(Duration::from_secs(3600))])]);
    let cancel = CancellationToken::new();
    let begun = tokio::time::Instant::now();
    let later = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        cancel.cancel();
    };
    let ask = request("a", 0);
    let mut sink = |_| {};
    let (answer, ()) = tokio::join!(model.ask(&ask, &mut sink, &cancel), later);
    assert_eq!(answer, Err(ModelError::Cancelled));
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[test]
fn a_typo_is_named_with_its_line_and_the_key_that_was_meant() {
    let typo = "agents:\n  a:\n    - text: hi\n    - text: hi\n      cals: []\n";
    assert_eq!(
        refusal(typo),
        "`demo.yaml` line 5: unknown key `cals`; did you mean `calls`?"
    );
    let kind = "agents:\n  a:\n    - error: {kind: transiet}\n";
    assert_eq!(
        refusal(kind),
        "`demo.yaml` line 3: unknown value `transiet`; did you mean `transient`?"
    );
    let delay = "agents:\n  a:\n    - {text: hi, delay: soon}\n";
    let shown = refusal(delay);
    assert!(
        shown.starts_with("`demo.yaml` line 3: ") && shown.contains("`soon` is not a time"),
        "{shown}"
    );
}

#[test]
fn entries_that_make_no_sense_are_refused_with_their_line() {
    let empty = "agents:\n  a:\n    - delay: 1s\n";
    assert_eq!(
        refusal(empty),
        "`demo.yaml` line 3: a turn needs `text`, `calls`, an `answer` or an `error`"
    );
    let both = "agents:\n  a:\n    - text: hi\n    - error: {kind: transient}\n      text: hi\n";
    assert!(
        refusal(both).starts_with("`demo.yaml` line 4: an `error` stands alone"),
        "{}",
        refusal(both)
    );
    assert!(
        refusal("agents: [").starts_with("`demo.yaml` line 1"),
        "{}",
        refusal("agents: [")
    );
}

#[tokio::test]
async fn scripts_can_be_written_in_rust() {
    let reset = ModelError::Transient {
        provider: "scripted".into(),
        what: "reset".into(),
    };
    let model = ScriptedModel::from_turns([(
        "a",
        [
            Entry::from(reset),
            Turn::calling("add", &json!({"a": 1}))
                .call("add", &json!({"a": 2}))
                .into(),
        ],
    )]);
    assert!(ask(&model, "a", 0).await.is_err());
    assert_eq!(ask(&model, "a", 0).await.unwrap().calls().count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_function_answers_after_its_latency() {
    let answer = |request: &Request| {
        Turn::text(format!("turn {}", request.turn)).response(request, "scripted/fn")
    };
    let model =
        ScriptedModel::from_fn("scripted/fn", answer).with_latency(Duration::from_millis(200));
    let begun = tokio::time::Instant::now();
    let response = ask(&model, "anyone", 7).await.unwrap();
    assert!(matches!(&response.message.parts[..], [Part::Text { .. }]));
    assert_eq!(
        (response.text().as_str(), begun.elapsed().as_millis()),
        ("turn 7", 200)
    );
}

//! What the server says in each scenario, and Selvedge's view of it.

use std::sync::Arc;

use selvedge_model::{
    Door, Endpoint, HttpOptions, Message, Part, Request, Response, Role, Stop, ToolDefinition,
    ToolResult, Usage,
};
use selvedge_testkit::{ModelServer, Recorded, Reply, Wire};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub(crate) const NAMES: [&str; 8] = [
    "text",
    "calls",
    "reasoning",
    "cached",
    "length",
    "filtered",
    "structured",
    "everything",
];

/// The reply to a request; its model is the name of a scenario.
pub(crate) fn answer(request: &Recorded) -> Reply {
    let named = request.body["model"].as_str().map(str::to_owned);
    let in_path = || {
        let last = request.path.rsplit('/').next();
        last.and_then(|last| last.split(':').next())
            .map(str::to_owned)
    };
    let usage = Usage {
        input: 120,
        output: 30,
        ..Usage::default()
    };
    let both = |reply: Reply| {
        reply
            .call("lookup", r#"{"q": 1}"#)
            .call("lookup", r#"{"q": 2, "deep": [{"ä": null}]}"#)
    };
    let thinking = |reply: Reply| reply.reasoning("They greet me. Größe?", "c2VhbA==");
    let reply = match named.or_else(in_path).unwrap_or_default().as_str() {
        "text" => Reply::text("Größer als zwei — \"quoted\"\n🧵"),
        "calls" => both(Reply::text("Looking.")),
        "reasoning" => thinking(Reply::text("Done.")),
        "cached" => Reply::text("Known."),
        "length" => Reply::text("cut o").stop(Stop::Length),
        "filtered" => Reply::text("I cann").stop(Stop::Filtered),
        "structured" => Reply::text(r#"{"name":"warp","count":3}"#),
        "everything" => thinking(both(Reply::text("Both."))),
        "conversation" if request.text.contains("a result") => Reply::text("Done."),
        "conversation" => thinking(both(Reply::text("Looking."))),
        other => panic!("there is no scenario `{other}`"),
    };
    reply.usage(
        match request.text.contains("cached") || request.path.contains("cached") {
            true => Usage {
                cached: 100,
                reasoning: 12,
                ..usage
            },
            false => usage,
        },
    )
}

/// What Selvedge sees of `scenario`, in the words that the libraries' view has.
pub(crate) async fn see(server: &ModelServer, wire: Wire, scenario: &str) -> Value {
    let messages = vec![Arc::new(Message::user("find both"))];
    let response = ask(server, wire, &request(scenario, messages)).await;
    let reasoning = response.message.parts.iter().filter_map(|part| match part {
        Part::Reasoning { text, .. } => text.text().map(|text| &**text),
        _ => None,
    });
    let calls = response.calls().map(|call| {
        let arguments = call.arguments.text().expect("it just came");
        let arguments: Value = serde_json::from_str(arguments).expect("they are JSON");
        json!({"name": call.name, "arguments": arguments})
    });
    json!({
        "text": response.text(),
        "reasoning": reasoning.collect::<String>(),
        "calls": calls.collect::<Vec<_>>(),
        "stop": response.stop,
        "usage": response.usage,
    })
}

/// Holds the conversation that the libraries hold; the server keeps what was sent.
pub(crate) async fn converse(server: &ModelServer, wire: Wire) {
    let mut messages = vec![Arc::new(Message::user("find both"))];
    let tool = ToolDefinition {
        name: "lookup".into(),
        description: "Looks up.".into(),
        schema: json!({"type": "object", "properties": {"q": {"type": "integer"}}}),
    };
    for _ in 0..2 {
        let request = Request {
            system: Arc::from("be brief"),
            tools: Arc::from([tool.clone()]),
            ..request("conversation", messages.clone())
        };
        let said = ask(server, wire, &request).await;
        let results = said.calls().map(|call| {
            Part::ToolResult(ToolResult {
                id: call.id.clone(),
                content: "a result".into(),
                is_error: false,
                images: Vec::new(),
            })
        });
        let results = Message {
            role: Role::Tool,
            parts: results.collect(),
        };
        messages.extend([Arc::new(said.message.clone()), Arc::new(results)]);
    }
}

/// Asks for an answer of this schema.
pub(crate) async fn structured(server: &ModelServer, wire: Wire, schema: &Value) {
    let messages = vec![Arc::new(Message::user("find both"))];
    let request = Request {
        output_schema: Some(Arc::new(schema.clone())),
        ..request("structured", messages)
    };
    ask(server, wire, &request).await;
}

fn request(scenario: &str, messages: Vec<Arc<Message>>) -> Request {
    Request {
        model: format!("test/{scenario}"),
        agent: "engineer".into(),
        turn: 0,
        system: Arc::from(""),
        messages: messages.into(),
        tools: Arc::from([]),
        output_schema: None,
        output_tokens_max: 256,
        temperature: None,
        effort: None,
    }
}

async fn ask(server: &ModelServer, wire: Wire, request: &Request) -> Response {
    let endpoint = Endpoint {
        provider: "test".into(),
        base_url: server.base_url(wire),
        door: Door::Plain,
        key: Some("sk-selvedge".into()),
        key_variable: None,
        options: HttpOptions::default(),
    };
    let cancel = CancellationToken::new();
    wire.provider(endpoint)
        .ask(request, &mut |_| {}, &cancel)
        .await
        .expect("the server is honest")
}

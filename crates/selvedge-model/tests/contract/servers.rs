//! Servers found by the environment: where they are, and how they are talked to.

use selvedge_model::{Catalogue, HttpOptions, Providers, Request};
use selvedge_testkit::{ModelServer, Recorded, Reply, Wire};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::world::request;

/// What `model` is asked with when the environment has `variables`; `URL` in
/// them is where the server is.
async fn asked(table: toml::Table, variables: &[(&str, &str)], model: &str) -> Recorded {
    let server = ModelServer::start_with(|_| Reply::text("ok")).await;
    let lookup = |wanted: &str| {
        let set = variables.iter().find(|(name, _)| *name == wanted);
        set.map(|(_, value)| value.replace("URL", &server.url()))
    };
    let catalogue = Catalogue::with(&table).unwrap();
    let providers = Providers::from_env(&catalogue, &HttpOptions::default(), lookup);
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let request = Request {
        model: model.into(),
        output_schema: Some(schema.into()),
        ..request()
    };
    let provider = providers.get(model).unwrap();
    let cancel = CancellationToken::new();
    provider.ask(&request, &mut |_| {}, &cancel).await.unwrap();
    server.last_request()
}

fn nothing() -> toml::Table {
    toml::Table::new()
}

#[tokio::test]
async fn a_base_url_of_ones_own_speaks_chat_completions_unless_told_otherwise() {
    let variables = [("OPENAI_BASE_URL", "URL/v1"), ("OPENAI_API_KEY", "sk-1")];
    let sent = asked(nothing(), &variables, "openai/m").await;
    assert_eq!(sent.wire, Wire::OpenAi);
    let told = toml::toml! {
        [providers.openai]
        protocol = "openai_responses"
    };
    let sent = asked(told, &variables, "openai/m").await;
    assert_eq!(sent.wire, Wire::Responses);
    assert_eq!(sent.headers["authorization"], "Bearer sk-1");
}

#[tokio::test]
async fn a_provider_of_ones_own_speaks_what_its_entry_says() {
    for (protocol, wire) in [
        ("openai_chat", Wire::OpenAi),
        ("openai_responses", Wire::Responses),
        ("anthropic", Wire::Anthropic),
        ("gemini", Wire::Gemini),
    ] {
        let table = toml::toml! {
            [providers.attic]
            base_url_variable = "ATTIC"
            protocol = protocol
        };
        let sent = asked(table, &[("ATTIC", "URL/v1")], "attic/m").await;
        assert_eq!(sent.wire, wire);
    }
}

#[tokio::test]
async fn azure_is_asked_at_its_newer_door() {
    let variables = [
        ("AZURE_OPENAI_ENDPOINT", "URL/"),
        ("AZURE_OPENAI_API_KEY", "az-1"),
    ];
    let sent = asked(nothing(), &variables, "azure/mine").await;
    assert_eq!(sent.path, "/openai/v1/responses");
    assert_eq!(sent.query, "");
    assert_eq!(sent.headers["api-key"], "az-1");
    assert!(!sent.headers.contains_key("authorization"));
    assert_eq!(sent.body["model"], "mine");
}

#[tokio::test]
async fn azure_is_asked_at_its_older_door_when_a_version_is_named() {
    let variables = [
        ("AZURE_OPENAI_ENDPOINT", "URL"),
        ("AZURE_OPENAI_API_KEY", "az-1"),
        ("OPENAI_API_VERSION", "2024-10-21"),
    ];
    let sent = asked(nothing(), &variables, "azure/mine").await;
    assert_eq!(sent.path, "/openai/deployments/mine/chat/completions");
    assert_eq!(sent.query, "api-version=2024-10-21");
    assert_eq!(sent.headers["api-key"], "az-1");
    assert_eq!(sent.body["max_completion_tokens"], 256);
}

#[tokio::test]
async fn gemini_takes_either_of_its_variables() {
    for variable in ["GEMINI_API_KEY", "GOOGLE_API_KEY"] {
        let variables = [("GOOGLE_GEMINI_BASE_URL", "URL"), (variable, "g-1")];
        let sent = asked(nothing(), &variables, "gemini/gemini-4-argon").await;
        assert_eq!(sent.headers["x-goog-api-key"], "g-1");
        assert!(!format!("{}{}", sent.path, sent.query).contains("g-1"));
    }
}

#[tokio::test]
async fn ollama_is_really_sent_the_schema() {
    let sent = asked(nothing(), &[("OLLAMA_HOST", "URL")], "ollama/qwen3:8b").await;
    assert_eq!(sent.path, "/v1/chat/completions");
    let format = &sent.body["response_format"]["json_schema"];
    assert_eq!(format["schema"]["properties"]["n"]["type"], "integer");
    assert!(!sent.headers.contains_key("authorization"));
}

#[tokio::test]
async fn openrouter_keeps_the_name_of_whose_model_it_is() {
    let table = toml::toml! {
        [providers.openrouter]
        base_url_variable = "ROUTER"
    };
    let variables = [("ROUTER", "URL/api/v1"), ("OPENROUTER_API_KEY", "or-1")];
    let sent = asked(table, &variables, "openrouter/z-ai/glm-6").await;
    assert_eq!(sent.path, "/api/v1/chat/completions");
    assert_eq!(sent.body["model"], "z-ai/glm-6");
    assert_eq!(sent.headers["authorization"], "Bearer or-1");
}

//! Something to look at, in each protocol's shape.

use std::sync::Arc;

use selvedge_model::{
    Catalogue, ErrorTier, HttpOptions, Image, Message, Part, Providers, Request, Role, ToolCall,
    ToolResult,
};
use selvedge_testkit::{ModelServer, Reply, Wire};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::world::{World, request};

fn image() -> Image {
    Image {
        media_type: "image/png".into(),
        data: "aW1n".into(),
    }
}

/// The user shows an image, the model calls a tool, and the tool shows another.
fn shown() -> Request {
    let user = Message {
        role: Role::User,
        parts: vec![
            Part::Text {
                text: "what is it?".into(),
            },
            Part::Image(image()),
        ],
    };
    let call = Message {
        role: Role::Assistant,
        parts: vec![Part::ToolCall(ToolCall {
            id: "a".into(),
            name: "look".into(),
            arguments: "{}".into(),
        })],
    };
    let result = Message {
        role: Role::Tool,
        parts: vec![Part::ToolResult(ToolResult {
            id: "a".into(),
            content: "a picture".into(),
            is_error: false,
            images: vec![image()],
        })],
    };
    Request {
        messages: vec![Arc::new(user), Arc::new(call), Arc::new(result)].into(),
        ..request()
    }
}

async fn sent(wire: Wire) -> Value {
    let world = World::new(wire).await;
    world.ask_with(Reply::text("ok"), &shown()).await.unwrap();
    world.server.last_request().body
}

#[tokio::test]
async fn chat_completions_shows_the_image_of_a_result_in_a_message_after_it() {
    let messages = &sent(Wire::OpenAi).await["messages"];
    let picture = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,aW1n"}});
    assert_eq!(
        messages[1]["content"],
        json!([{"type": "text", "text": "what is it?"}, picture])
    );
    assert_eq!(messages[3]["content"], "a picture");
    assert_eq!(messages[4], json!({"role": "user", "content": [picture]}));
}

#[tokio::test]
async fn responses_shows_the_image_of_a_result_within_it() {
    let input = &sent(Wire::Responses).await["input"];
    let picture =
        json!({"type": "input_image", "image_url": "data:image/png;base64,aW1n", "detail": "auto"});
    assert_eq!(
        input[0]["content"],
        json!([{"type": "input_text", "text": "what is it?"}, picture])
    );
    assert_eq!(
        input[2]["output"],
        json!([{"type": "input_text", "text": "a picture"}, picture])
    );
}

#[tokio::test]
async fn messages_shows_the_image_of_a_result_within_it() {
    let messages = &sent(Wire::Anthropic).await["messages"];
    let picture = json!({"type": "image", "source":
        {"type": "base64", "media_type": "image/png", "data": "aW1n"}});
    let mut marked = picture.clone();
    marked["cache_control"] = json!({"type": "ephemeral"});
    assert_eq!(
        messages[0]["content"],
        json!([{"type": "text", "text": "what is it?"}, marked])
    );
    assert_eq!(
        messages[2]["content"][0]["content"],
        json!([{"type": "text", "text": "a picture"}, picture])
    );
}

#[tokio::test]
async fn gemini_shows_the_image_of_a_result_beside_it() {
    let contents = &sent(Wire::Gemini).await["contents"];
    let picture = json!({"inlineData": {"mimeType": "image/png", "data": "aW1n"}});
    assert_eq!(
        contents[0]["parts"],
        json!([{"text": "what is it?"}, picture])
    );
    assert_eq!(contents[2]["parts"][1], picture);
}

#[tokio::test]
async fn a_model_that_cannot_see_is_not_asked_about_an_image() {
    let server = ModelServer::start_with(|_| Reply::text("ok")).await;
    let table = toml::toml! {
        [providers.openai.models.blind]
        images = false
    };
    let catalogue = Catalogue::with(&table).unwrap();
    let url = server.openai_url();
    let lookup = |name: &str| (name == "OPENAI_BASE_URL").then(|| url.clone());
    let providers = Providers::from_env(&catalogue, &HttpOptions::default(), lookup);
    let ask = async |model: &str, request: Request| {
        let request = Request {
            model: model.into(),
            ..request
        };
        let provider = providers.get(model).unwrap();
        let cancel = CancellationToken::new();
        provider.ask(&request, &mut |_| {}, &cancel).await
    };
    let error = ask("openai/blind", shown()).await.unwrap_err();
    assert_eq!(error.tier(), ErrorTier::UserFixable);
    assert_eq!(
        error.to_string(),
        "openai: `openai/blind` cannot see images"
    );
    assert!(server.requests().is_empty());
    ask("openai/blind", request()).await.unwrap();
    ask("openai/unheard-of", shown()).await.unwrap();
}

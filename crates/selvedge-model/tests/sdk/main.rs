//! Selvedge beside the providers' own libraries, at the same server.
//!
//! They must see the same in what the server says, and say the same to it for
//! the same conversation. The server is the testkit's; a mistake that it and
//! Selvedge share would show here, because the libraries do not share it.

mod library;
mod scenarios;

use selvedge_testkit::{ModelServer, Recorded, Wire};
use serde_json::{Value, json};

use crate::scenarios::{NAMES, answer, converse, see, structured};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn selvedge_and_the_providers_own_libraries_see_and_say_the_same() {
    if library::unwanted() {
        return;
    }
    let server = ModelServer::start_with(answer).await;
    let url = server.url();
    let looked = tokio::task::spawn_blocking(move || library::look(&url, &NAMES));
    let theirs = looked.await.expect("looking does not panic");
    let sent = server.requests();
    for wire in Wire::ALL {
        let name = format!("{wire:?}");
        for scenario in NAMES {
            let ours = see(&server, wire, scenario).await;
            assert_eq!(ours, theirs[&name][scenario], "{wire:?} {scenario}");
        }
        let verdict = json!({"name": "warp", "count": 3});
        assert_eq!(theirs[&name]["parsed"], verdict, "{wire:?}");
        converse(&server, wire).await;
        same_conversation(wire, &sent, &server.requests());
        same_schema(&server, wire, &sent).await;
    }
}

/// Of the two turns of the conversation, what was sent over `wire` must agree.
fn same_conversation(wire: Wire, theirs: &[Recorded], all: &[Recorded]) {
    let turns = |requests: &[Recorded]| -> Vec<Recorded> {
        let about = |sent: &&Recorded| sent.wire == wire && is_of(sent, "conversation");
        requests.iter().filter(about).cloned().collect()
    };
    let (theirs, ours) = (turns(theirs), turns(&all[theirs.len()..]));
    assert_eq!((theirs.len(), ours.len()), (2, 2), "{wire:?}");
    for (theirs, ours) in theirs.iter().zip(&ours) {
        // Google's library asks for the whole there, at a version that servers
        // other than Google's do not all have.
        let path = theirs.path.replace(":generate", ":streamGenerate");
        let path = path.replace("/v1/models", "/v1beta/models");
        assert_eq!(path, ours.path, "{wire:?}");
        assert_eq!(key(theirs), key(ours), "{wire:?}");
        for field in fields(wire) {
            let (theirs, ours) = (&theirs.body[field], &ours.body[field]);
            agree(wire, &plain(wire, theirs), &plain(wire, ours), field);
        }
    }
}

/// Where the key was, and what stood before it.
fn key(sent: &Recorded) -> Option<String> {
    let given = sent.headers.iter().find_map(|(name, value)| {
        let before = value.strip_suffix("sk-sdk");
        let before = before.or_else(|| value.strip_suffix("sk-selvedge"))?;
        Some(format!("{name}: {before}"))
    })?;
    // Anthropic takes either; its library has moved on, other servers have not.
    let either = sent.wire == Wire::Anthropic && given == "authorization: Bearer ";
    Some(if either {
        "x-api-key: ".to_owned()
    } else {
        given
    })
}

/// The schema that a library makes of a type, sent by Selvedge, arrives alike.
async fn same_schema(server: &ModelServer, wire: Wire, theirs: &[Recorded]) {
    let place = match wire {
        Wire::OpenAi => "/response_format/json_schema/schema",
        Wire::Responses => "/text/format/schema",
        Wire::Anthropic => "/output_config/format/schema",
        Wire::Gemini => "/generationConfig/responseJsonSchema",
    };
    let given = |sent: &Recorded| {
        let schema = sent.body.pointer(place);
        schema.filter(|_| sent.wire == wire).cloned()
    };
    let schema = theirs.iter().find_map(given);
    let schema = schema.unwrap_or_else(|| panic!("{wire:?}: no schema was sent"));
    structured(server, wire, &schema).await;
    assert_eq!(given(&server.last_request()), Some(schema), "{wire:?}");
    let strict = |sent: &Recorded| match wire {
        Wire::OpenAi => sent.body["response_format"]["json_schema"]["strict"].clone(),
        Wire::Responses => sent.body["text"]["format"]["strict"].clone(),
        Wire::Anthropic | Wire::Gemini => Value::Null,
    };
    let by_library = theirs.iter().find(|sent| given(sent).is_some());
    let by_library = by_library.expect("it was found before");
    assert_eq!(
        strict(by_library),
        strict(&server.last_request()),
        "{wire:?}"
    );
}

fn is_of(sent: &Recorded, scenario: &str) -> bool {
    sent.body["model"] == scenario || sent.path.contains(&format!("/{scenario}:"))
}

/// What of a request must agree.
fn fields(wire: Wire) -> &'static [&'static str] {
    match wire {
        Wire::OpenAi => &["model", "messages", "tools", "stream"],
        Wire::Responses => &[
            "model",
            "instructions",
            "input",
            "tools",
            "max_output_tokens",
            "store",
            "include",
            "stream",
        ],
        Wire::Anthropic => &[
            "model",
            "system",
            "messages",
            "tools",
            "max_tokens",
            "stream",
        ],
        Wire::Gemini => &["systemInstruction", "contents", "tools"],
    }
}

/// A value without what differs for a reason: marks for a cache that only we
/// set, thoughts without a signature that only they return, roles where there
/// is only one.
fn plain(wire: Wire, value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| *name != "cache_control")
            .filter(|(name, value)| !(*name == "role" && fields.len() == 2 && *value == "user"))
            .map(|(name, value)| (spelled(wire, name), plain(wire, value)))
            .collect(),
        Value::Array(items) => {
            let thought =
                |item: &&Value| item["thought"] == true && item.get("thoughtSignature").is_none();
            items
                .iter()
                .filter(|item| !thought(item))
                .map(|item| plain(wire, item))
                .collect()
        }
        other => other.clone(),
    }
}

/// A field's name; Google's library writes some with underscores, and Google
/// reads both.
fn spelled(wire: Wire, name: &str) -> String {
    if wire != Wire::Gemini {
        return name.to_owned();
    }
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let (initial, rest) = word.split_at(1.min(word.len()));
        name + &initial.to_uppercase() + rest
    })
}

/// What a library sends of its own answer beyond what the provider needs.
fn theirs_alone(wire: Wire) -> &'static [&'static str] {
    match wire {
        Wire::OpenAi => &["index", "reasoning_content"],
        Wire::Responses => &["annotations", "id", "logprobs", "status"],
        Wire::Anthropic => &[],
        Wire::Gemini => &["role"],
    }
}

/// Everything we say, they say alike; what only they say is known.
fn agree(wire: Wire, theirs: &Value, ours: &Value, place: &str) {
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => {
            for (name, ours) in ours {
                let theirs = theirs.get(name);
                let theirs =
                    theirs.unwrap_or_else(|| panic!("{wire:?} {place}: only we send `{name}`"));
                agree(wire, theirs, ours, &format!("{place}.{name}"));
            }
            for name in theirs.keys().filter(|name| !ours.contains_key(*name)) {
                let known = theirs_alone(wire).contains(&name.as_str());
                assert!(known, "{wire:?} {place}: only they send `{name}`");
            }
        }
        (Value::Array(theirs), Value::Array(ours)) => {
            assert_eq!(
                theirs.len(),
                ours.len(),
                "{wire:?} {place}: {theirs:?} {ours:?}"
            );
            for (i, (theirs, ours)) in theirs.iter().zip(ours).enumerate() {
                agree(wire, theirs, ours, &format!("{place}[{i}]"));
            }
        }
        _ => assert_eq!(theirs, ours, "{wire:?} {place}"),
    }
}

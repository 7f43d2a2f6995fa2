//! What goes wrong, and what the caller is told to do about it.

use std::time::{Duration, SystemTime};

use selvedge_model::{Delta, ErrorTier, ModelError};
use selvedge_testkit::{Reply, ReplyFault, Wire};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::world::{KEY, WIRES, World, provider, request};

async fn fails(world: &World, fault: ReplyFault) -> ModelError {
    let shown = format!("{fault:?}");
    world.ask(Reply::fault(fault)).await.expect_err(&shown)
}

#[tokio::test]
async fn a_status_says_what_to_do() {
    let tiers = [
        (400, ErrorTier::Permanent),
        (401, ErrorTier::UserFixable),
        (403, ErrorTier::UserFixable),
        (404, ErrorTier::UserFixable),
        (307, ErrorTier::UserFixable),
        (429, ErrorTier::RateLimited),
        (500, ErrorTier::Transient),
        (502, ErrorTier::Transient),
        (503, ErrorTier::Degraded),
        (504, ErrorTier::Transient),
        (529, ErrorTier::Degraded),
    ];
    for wire in WIRES {
        let world = World::new(wire).await;
        for (code, tier) in tiers {
            let error = fails(&world, ReplyFault::status(code)).await;
            assert_eq!(error.tier(), tier, "{wire:?} {code}");
            assert!(
                error.to_string().contains(&format!("status {code}")),
                "{error}"
            );
        }
        let ModelError::UserFixable { hint, .. } = fails(&world, ReplyFault::status(401)).await
        else {
            panic!()
        };
        assert!(hint.contains("`TEST_API_KEY`"), "{hint}");
    }
}

#[tokio::test]
async fn the_wait_a_provider_asks_for_is_understood() {
    let in_ninety_seconds =
        jiff::Timestamp::try_from(SystemTime::now() + Duration::from_secs(90)).unwrap();
    let date = in_ninety_seconds
        .strftime("%a, %d %b %Y %H:%M:%S GMT")
        .to_string();
    for wire in WIRES {
        let world = World::new(wire).await;
        let wait = async |retry_after| match fails(&world, ReplyFault::too_many(retry_after)).await
        {
            ModelError::RateLimited { retry_after, .. } => retry_after,
            other => panic!("{other:?}"),
        };
        assert_eq!(wait(None).await, None);
        assert_eq!(wait(Some("7")).await, Some(Duration::from_secs(7)));
        let by_date = wait(Some(&date)).await.unwrap().as_secs();
        assert!((80..=91).contains(&by_date), "{by_date}");
        assert_eq!(wait(Some("whenever")).await, None);
    }
}

#[tokio::test]
async fn an_answer_that_is_not_whole_is_transient() {
    for wire in WIRES {
        let world = World::new(wire).await;
        let faults = [
            (ReplyFault::TruncatedCall, "ended"),
            (ReplyFault::BadUtf8, "not valid UTF-8"),
            (ReplyFault::Empty, "empty reply"),
            (ReplyFault::NoStop, "without saying why"),
            (
                ReplyFault::ErrorEvent("data: {\"choices\": [tru\n\n".into()),
                "cannot be read",
            ),
            (ReplyFault::ResetAt(0), "broke"),
            (ReplyFault::ResetAt(200), "broke"),
        ];
        for (fault, words) in faults {
            let error = fails(&world, fault.clone()).await;
            assert_eq!(
                error.tier(),
                ErrorTier::Transient,
                "{wire:?} {fault:?}: {error}"
            );
            assert!(
                error.to_string().contains(words),
                "{wire:?} {fault:?}: {error}"
            );
        }
    }
}

/// An error within a stream, as each protocol writes it.
fn error_event(wire: Wire, kind: &str) -> String {
    let error = match wire {
        Wire::OpenAi => json!({"error": {"type": kind, "message": "sorry"}}),
        Wire::Responses => json!({"type": "error", "code": kind, "message": "sorry"}),
        Wire::Anthropic => json!({"type": "error", "error": {"type": kind, "message": "sorry"}}),
        Wire::Gemini => json!({"error": {"status": kind, "message": "sorry"}}),
    };
    format!("data: {error}\n\n")
}

#[tokio::test]
async fn an_error_within_a_stream_is_read_like_a_status() {
    for wire in WIRES {
        let world = World::new(wire).await;
        let words = match wire {
            Wire::OpenAi | Wire::Responses => ["rate_limit_exceeded", "server_is_overloaded"],
            Wire::Anthropic => ["rate_limit_error", "overloaded_error"],
            Wire::Gemini => ["RESOURCE_EXHAUSTED", "UNAVAILABLE"],
        };
        let tiers = [
            (words[0], ErrorTier::RateLimited),
            (words[1], ErrorTier::Degraded),
            ("invalid_request_error", ErrorTier::Permanent),
            ("invalid_api_key", ErrorTier::UserFixable),
            ("who_knows", ErrorTier::Transient),
        ];
        for (word, tier) in tiers {
            let event = ReplyFault::ErrorEvent(error_event(wire, word));
            let error = fails(&world, event).await;
            assert_eq!(error.tier(), tier, "{wire:?} {word}: {error}");
            assert!(error.to_string().contains("sorry"), "{wire:?}: {error}");
        }
    }
    let world = World::new(Wire::Responses).await;
    let failed = json!({"type": "response.failed", "response":
        {"error": {"code": "rate_limit_exceeded", "message": "sorry"}}});
    let event = ReplyFault::ErrorEvent(format!("data: {failed}\n\n"));
    assert_eq!(fails(&world, event).await.tier(), ErrorTier::RateLimited);
}

#[tokio::test]
async fn arguments_that_are_not_json_are_passed_on_as_written() {
    // Gemini's are JSON by their place in the event.
    for wire in [Wire::OpenAi, Wire::Responses, Wire::Anthropic] {
        let world = World::new(wire).await;
        let response = world
            .ask(Reply::fault(ReplyFault::MalformedCall))
            .await
            .unwrap();
        let arguments = response.calls().next().unwrap().arguments.clone();
        assert_eq!(&**arguments.text().unwrap(), r#"{"name": "selv"#);
    }
}

#[tokio::test]
async fn an_error_with_status_200_is_still_that_error() {
    for wire in WIRES {
        let world = World::new(wire).await;
        let tier = async |body: &str| {
            fails(&world, ReplyFault::ErrorBody(body.into()))
                .await
                .tier()
        };
        assert_eq!(
            tier(r#"{"error":{"code":429,"message":"slow down"}}"#).await,
            ErrorTier::RateLimited
        );
        assert_eq!(
            tier(r#"{"error":{"type":"invalid_request_error"}}"#).await,
            ErrorTier::Permanent
        );
        assert_eq!(
            tier(r#"{"error":{"message":"upstream died"}}"#).await,
            ErrorTier::Transient
        );
        assert_eq!(
            tier("<html>please log in</html>").await,
            ErrorTier::Transient
        );
    }
}

#[tokio::test]
async fn silence_is_noticed_and_the_connection_given_up() {
    for wire in WIRES {
        let world = World::with_silence(wire, Duration::from_millis(100)).await;
        for (at, count) in [(0, 1), (300, 2)] {
            let error = fails(&world, ReplyFault::StallAt(at)).await;
            assert_eq!(error.to_string(), "test: nothing came for 0.1 s");
            assert_eq!(error.tier(), ErrorTier::Transient);
            world.server.until_abandoned(count).await;
        }
        let error = world
            .ask(Reply::text("late").latency(Duration::from_secs(3600)))
            .await
            .unwrap_err();
        assert_eq!(
            error.tier(),
            ErrorTier::Transient,
            "silence before the first byte counts"
        );
    }
}

#[tokio::test]
async fn cancelling_drops_the_connection_at_once() {
    for wire in WIRES {
        let world = World::new(wire).await;
        world.server.push(Reply::fault(ReplyFault::StallAt(400)));
        let cancel = CancellationToken::new();
        // On its way already, the request is answered in part.
        let mut sink = |delta| {
            if !matches!(delta, Delta::Request(_)) {
                cancel.cancel();
            }
        };
        let result = world.provider.ask(&request(), &mut sink, &cancel).await;
        assert_eq!(result, Err(ModelError::Cancelled));
        world.server.until_abandoned(1).await;
    }
}

#[tokio::test]
async fn a_key_is_in_no_error_even_if_the_provider_repeats_it() {
    for wire in WIRES {
        let world = World::new(wire).await;
        let body = format!(
            r#"{{"error":{{"message":"wrong key {KEY} {}"}}}}"#,
            "x".repeat(3000)
        );
        for code in [400, 401, 429, 500] {
            let fault = ReplyFault::Status {
                code,
                retry_after: None,
                body: body.clone(),
            };
            let error = fails(&world, fault).await;
            let shown = format!("{error} {error:?}");
            assert!(
                !shown.contains(KEY) && shown.contains("wrong key [key]"),
                "{shown}"
            );
            assert!(error.to_string().chars().count() < 600);
        }
        let event = error_event(wire, KEY).replace("sorry", KEY);
        let error = fails(&world, ReplyFault::ErrorEvent(event)).await;
        assert!(!format!("{error:?}").contains(KEY), "{error:?}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_may_come_back() {
    for wire in WIRES {
        // Bound and closed again: nobody listens there.
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let provider = provider(
            wire,
            format!("http://127.0.0.1:{port}"),
            Duration::from_secs(60),
        );
        let error = provider
            .ask(&request(), &mut |_| {}, &CancellationToken::new())
            .await
            .unwrap_err();
        assert_eq!(error.tier(), ErrorTier::Degraded);
        assert!(
            error
                .to_string()
                .starts_with("test is in trouble: `127.0.0.1` cannot be reached: "),
            "{error}"
        );
    }
}

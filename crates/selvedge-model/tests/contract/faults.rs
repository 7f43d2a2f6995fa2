//! What goes wrong, and what the caller is told to do about it.

use std::time::{Duration, SystemTime};

use selvedge_model::{ErrorTier, ModelError};
use selvedge_testkit::{Reply, ReplyFault, Wire};
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
        (503, ErrorTier::Transient),
        (529, ErrorTier::Transient),
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
        let event = match wire {
            Wire::OpenAi => "data: {\"error\":{\"message\":\"overloaded\"}}\n\n",
            Wire::Anthropic => {
                "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"overloaded\"}}\n\n"
            }
        };
        let faults = [
            (ReplyFault::TruncatedCall, "ended"),
            (ReplyFault::BadUtf8, "not valid UTF-8"),
            (ReplyFault::Empty, "empty reply"),
            (ReplyFault::NoStop, "without saying why"),
            (ReplyFault::ErrorEvent(event.into()), "overloaded"),
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

#[tokio::test]
async fn arguments_that_are_not_json_are_passed_on_as_written() {
    for wire in WIRES {
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
        let mut sink = |_| cancel.cancel();
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
        let event =
            format!("data: {{\"type\":\"error\",\"error\":{{\"message\":\"key {KEY}\"}}}}\n\n");
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
        assert_eq!(error.tier(), ErrorTier::Transient);
        assert!(
            error
                .to_string()
                .starts_with("test: `127.0.0.1` cannot be reached: "),
            "{error}"
        );
    }
}

//! What a complete answer looks like, however it arrives.

use std::time::Duration;

use selvedge_model::{Delta, ErrorTier, Part, Stop, Usage};
use selvedge_testkit::{Reply, ReplyFault, Wire};
use tokio_util::sync::CancellationToken;

use crate::world::{WIRES, World, request};

fn rich() -> Reply {
    let usage = Usage {
        input: 1000,
        cached: 400,
        cache_written: 100,
        output: 60,
        reasoning: 20,
        is_estimated: false,
    };
    Reply::text("Größer als zwei — I will look at both files.")
        .reasoning("The user greets me; two files are near.", "c2VhbA==")
        .call("read_file", r#"{"path": "src/lib.rs",  "lines": [1, 20]}"#)
        .call("list_files", "{}")
        .usage(usage)
}

#[tokio::test]
async fn an_answer_carries_everything_that_was_said() {
    for wire in WIRES {
        let world = World::new(wire).await;
        let (result, heard) = world.listen(rich()).await;
        let response = result.unwrap();
        assert_eq!(heard, rich().text);
        assert_eq!(response.text(), rich().text);
        let calls: Vec<_> = response
            .calls()
            .map(|call| {
                (
                    call.name.clone(),
                    call.arguments.text().unwrap().to_string(),
                )
            })
            .collect();
        assert_eq!(calls, rich().calls, "arguments are kept byte for byte");
        let ids: Vec<_> = response.calls().map(|call| call.id.clone()).collect();
        assert_ne!(ids[0], ids[1]);
        assert_eq!(response.stop, Stop::Tools);
        let counted = match wire {
            // Reading from its cache has a price, writing to it has none.
            Wire::Gemini => Usage {
                cache_written: 0,
                ..rich().usage
            },
            _ => rich().usage,
        };
        assert_eq!(response.usage, counted, "{wire:?}");
        assert_eq!(response.model, "test/model-1");
        let Part::Reasoning { text, signature } = &response.message.parts[0] else {
            panic!("{response:?}")
        };
        assert_eq!(&**text.text().unwrap(), rich().reasoning.unwrap().0);
        let sealed = wire != Wire::Gemini;
        assert_eq!(signature.is_some(), sealed, "{wire:?}");
    }
}

#[tokio::test]
async fn an_answer_is_the_same_when_every_byte_comes_alone_or_slowly() {
    for wire in WIRES {
        // Far less than the whole stream takes, far more than one event does.
        let world = World::with_silence(wire, Duration::from_millis(700)).await;
        let whole = world.ask(rich()).await.unwrap();
        assert_eq!(
            world
                .ask(rich().with_fault(ReplyFault::EveryByte))
                .await
                .unwrap(),
            whole
        );
        let drip = ReplyFault::Drip(Duration::from_millis(40));
        assert_eq!(world.ask(rich().with_fault(drip)).await.unwrap(), whole);
    }
}

#[tokio::test]
async fn a_stream_cut_anywhere_is_never_taken_for_an_answer() {
    for wire in WIRES {
        let world = World::new(wire).await;
        let whole = world.ask(rich()).await.unwrap();
        let mut cuts = 0;
        // Gemini's last event is the end of its stream, so there every break counts.
        let end = match wire {
            Wire::Gemini => 5_000,
            _ => 100_000,
        };
        for at in (0..end).step_by(41) {
            match world.ask(rich().with_fault(ReplyFault::ResetAt(at))).await {
                Err(error) => assert_eq!(
                    error.tier(),
                    ErrorTier::Transient,
                    "{wire:?} at {at}: {error}"
                ),
                // The last event had arrived before the connection broke.
                Ok(response) => {
                    assert_eq!(response, whole, "{wire:?} at {at}");
                    break;
                }
            }
            cuts += 1;
        }
        assert!(cuts > 40, "{wire:?} was cut only {cuts} times");
        assert!(wire == Wire::Gemini || cuts < 1_000, "{wire:?} never ended");
    }
}

#[tokio::test]
async fn why_it_stopped_is_said_in_one_language() {
    for wire in WIRES {
        let world = World::new(wire).await;
        let stop = async |reply| world.ask(reply).await.unwrap().stop;
        assert_eq!(stop(Reply::text("done")).await, Stop::End);
        assert_eq!(stop(Reply::text("do").call("x", "{}")).await, Stop::Tools);
        assert_eq!(
            stop(Reply::text("do").call("x", "{}").stop(Stop::End)).await,
            Stop::Tools
        );
        assert_eq!(
            stop(Reply::text("cut off").stop(Stop::Length)).await,
            Stop::Length
        );
        assert_eq!(
            stop(Reply::text("").stop(Stop::Filtered)).await,
            Stop::Filtered
        );
        // Gemini sends a call whole or not at all.
        let arguments = match wire {
            Wire::Gemini => "{}",
            _ => r#"{"a"#,
        };
        let cut = world
            .ask(Reply::text("").call("x", arguments).stop(Stop::Length))
            .await
            .unwrap();
        assert_eq!(
            (cut.stop, cut.calls().count()),
            (Stop::Length, 1),
            "{wire:?}"
        );
    }
}

#[tokio::test]
async fn calls_one_after_the_other_share_a_connection() {
    for wire in WIRES {
        let world = World::new(wire).await;
        for _ in 0..3 {
            world.ask(rich()).await.unwrap();
        }
        let peers: std::collections::BTreeSet<_> = world
            .server
            .requests()
            .into_iter()
            .map(|request| request.peer)
            .collect();
        assert_eq!(peers.len(), 1, "{wire:?}");
    }
}

#[tokio::test]
async fn what_a_provider_counted_is_known_before_the_answer_is_whole() {
    let usage = Usage {
        input: 500,
        output: 37,
        ..Usage::default()
    };
    for wire in [Wire::OpenAi, Wire::Anthropic, Wire::Gemini] {
        let world = World::new(wire).await;
        world.server.push(Reply::text("hello there").usage(usage));
        let mut told = Vec::new();
        let mut sink = |delta| {
            if let Delta::Used { usage, is_all } = delta {
                told.push((usage, is_all));
            }
        };
        let cancel = CancellationToken::new();
        let answer = world.provider.ask(&request(), &mut sink, &cancel).await;
        assert_eq!(answer.unwrap().usage, usage, "{wire:?}");
        assert_eq!(told.last(), Some(&(usage, true)), "{wire:?}");
    }
    // Anthropic counts the request before it answers.
    let world = World::new(Wire::Anthropic).await;
    let cut = Reply::text("hello there").usage(usage);
    world.server.push(cut.with_fault(ReplyFault::NoStop));
    let mut told = Vec::new();
    let mut sink = |delta| told.extend(matches!(delta, Delta::Used { .. }).then_some(delta));
    let cancel = CancellationToken::new();
    let answer = world.provider.ask(&request(), &mut sink, &cancel).await;
    answer.unwrap_err();
    let opening = told.first();
    assert!(
        matches!(opening, Some(Delta::Used { usage, is_all: false }) if usage.input == 500),
        "{opening:?}"
    );
}

//! Ways to break a protocol within a stream that is otherwise in order.

use selvedge_model::ErrorTier;
use serde_json::json;

use super::case::{Case, Kind, Outcome, STORM_KEY, TRANSIENT, as_it_is, pick, with_calls};
use super::delivery::at;
use super::plan::Plan;
use crate::server::frames::Frames;
use crate::server::wire::Wire;
use crate::sim::Dice;

const fn broken(name: &'static str, plan: fn(&Case, &Dice) -> Plan) -> Kind {
    Kind {
        name,
        outcome: TRANSIENT,
        wires: &Wire::ALL,
        adjust: as_it_is,
        plan,
    }
}

pub(super) const KINDS: &[Kind] = &[
    Kind {
        outcome: Outcome::Fails(&[ErrorTier::RateLimited]),
        ..broken("a rate limit within the stream", |case, _| {
            error_within(case, "rate_limit_exceeded", "RESOURCE_EXHAUSTED")
        })
    },
    Kind {
        outcome: Outcome::Fails(&[ErrorTier::Degraded]),
        ..broken("overload within the stream", |case, _| {
            error_within(case, "overloaded_error", "UNAVAILABLE")
        })
    },
    broken("an error within the stream", |case, _| {
        error_within(case, "server_error", "INTERNAL")
    }),
    broken("an event that is half written", |case, dice| {
        within(case, |frames| {
            let nth = at_frame(frames, dice);
            let event = &mut frames.content[nth];
            let half = event.len() / 2;
            event.truncate(half);
            event.extend_from_slice(b"\n\n");
        })
    }),
    broken("an event that is not of the protocol", |case, dice| {
        let what = pick(
            dice,
            &[
                "42",
                "null",
                "true",
                "\"text\"",
                "[]",
                "{",
                "}",
                "\u{1f9f5}",
            ],
        );
        within(case, |frames| {
            frames
                .content
                .insert(0, format!("data: {what}\n\n").into_bytes());
        })
    }),
    broken("bytes that are not text", |case, dice| {
        within(case, |frames| {
            let nth = at_frame(frames, dice);
            let event = &mut frames.content[nth];
            let place = event.len() - 5 - at(4, dice);
            event[place] = pick(dice, &[0xff, 0xc0, 0x80]);
        })
    }),
    broken("an end without a reason", |case, _| {
        within(case, |frames| {
            frames.stop.clear();
        })
    }),
    broken("an end before anything was said", |case, _| {
        within(case, |frames| {
            frames.open.clear();
            frames.content.clear();
            frames.stop.clear();
        })
    }),
    broken("nothing said, and that in order", |case, _| {
        let mut empty = Case::new(case.seed);
        empty.reply.text.clear();
        empty.reply.calls.clear();
        empty.reply.reasoning = None;
        Plan::stream(empty.events())
    }),
    broken("no events at all", |_, _| Plan::stream([])),
    Kind {
        adjust: with_calls,
        ..broken("a call that is cut off", |case, dice| {
            within(case, |frames| {
                let calls = first_call(frames);
                let left = frames.content.len() - calls;
                let kept = calls + at(left, dice);
                frames.content.truncate(kept);
                frames.stop.clear();
                frames.done.clear();
            })
        })
    },
    Kind {
        outcome: Outcome::Unrunnable,
        adjust: with_calls,
        wires: &[Wire::OpenAi],
        ..broken("a call that is cut off and said to be done", |case, _| {
            within(case, |frames| {
                frames.content.pop();
            })
        })
    },
    Kind {
        outcome: Outcome::Whole,
        wires: &[Wire::OpenAi, Wire::Responses, Wire::Anthropic],
        adjust: |reply| {
            with_calls(reply);
            for (_, arguments) in &mut reply.calls {
                arguments.truncate(arguments.len() / 2);
            }
        },
        ..broken("arguments that are not JSON", |case, _| {
            Plan::stream(case.events())
        })
    },
    Kind {
        adjust: with_calls,
        ..broken("a call that comes twice", |case, _| {
            within(case, |frames| {
                let again = frames.content[first_call(frames)..].to_vec();
                frames.content.extend(again);
            })
        })
    },
    Kind {
        outcome: Outcome::Whole,
        wires: &[Wire::OpenAi, Wire::Gemini],
        adjust: with_calls,
        ..broken("calls without ids", |case, _| {
            edited(case, |text| {
                let ids = (0..9).map(|n| format!(r#""id":"call_{n}","#));
                ids.fold(text, |text, id| text.replace(&id, ""))
            })
        })
    },
    Kind {
        outcome: TRANSIENT,
        wires: &[Wire::Responses, Wire::Anthropic],
        adjust: with_calls,
        ..broken("calls without the ids they need", |case, _| {
            edited(case, |text| {
                let ids = (0..9).map(|n| format!(r#""call_id":"call_{n}","#));
                let text = ids.fold(text, |text, id| text.replace(&id, ""));
                text.replace(r#""id":"toolu_"#, r#""was":"toolu_"#)
            })
        })
    },
    broken("another model halfway", |case, _| {
        if case.wire == Wire::Anthropic {
            return within(case, |frames| {
                let again = frames.open[0].clone();
                frames.content.push(again);
            });
        }
        let mine = format!("\"{}\"", case.model());
        let mut events = case.events();
        let last = events
            .iter()
            .rposition(|event| String::from_utf8_lossy(event).contains(&mine))
            .expect("every protocol names its model");
        let text = String::from_utf8_lossy(&events[last]).replace(&mine, "\"another\"");
        events[last] = text.into_bytes();
        Plan::stream(events)
    }),
    Kind {
        outcome: Outcome::Whole,
        wires: &[Wire::OpenAi, Wire::Gemini],
        ..broken("another answer beside it", |case, _| {
            let other = match case.wire {
                Wire::Gemini => {
                    json!({"candidates": [{"index": 1, "content": {"parts": [{"text": "WRONG"}]}, "finishReason": "SAFETY"}]})
                }
                _ => {
                    json!({"choices": [{"index": 1, "delta": {"content": "WRONG"}, "finish_reason": "length"}]})
                }
            };
            let other = format!("data: {other}\n\n").into_bytes();
            let events = case.events().into_iter();
            Plan::stream(events.flat_map(|event| [other.clone(), event]))
        })
    },
    Kind {
        outcome: Outcome::Whole,
        ..broken("an end that is said twice", |case, _| {
            within(case, |frames| {
                let again = frames.stop.clone();
                frames.stop.extend(again);
            })
        })
    },
    Kind {
        outcome: Outcome::Either,
        ..broken("words after the last", |case, dice| {
            let after = pick(
                dice,
                &["data: {\"choices\": 1}\n\n", "data: \u{1f9f5}\n\n", "what"],
            );
            within(case, |frames| frames.done.push(after.as_bytes().to_vec()))
        })
    },
    Kind {
        outcome: Outcome::Whole,
        adjust: |reply| {
            reply.usage.input = u64::MAX;
            reply.usage.output = u64::MAX - 1;
        },
        ..broken("absurd counts", |case, _| Plan::stream(case.events()))
    },
    Kind {
        adjust: |reply| reply.usage.output = 77_777_777,
        ..broken("counts that are none", |case, dice| {
            let count = pick(dice, &["-7", "1e40", "\"many\"", "[1]", "7.5"]);
            edited(case, |text| text.replace("77777777", count))
        })
    },
    Kind {
        outcome: Outcome::Either,
        ..broken("a value of absurd depth", |case, _| {
            let deep = format!(
                "data: {{\"novel\":{}{},",
                "[".repeat(20_000),
                "]".repeat(20_000)
            );
            within(case, |frames| {
                let first = String::from_utf8_lossy(&frames.content[0]).into_owned();
                frames.content[0] = first.replacen("data: {", &deep, 1).into_bytes();
            })
        })
    },
    Kind {
        outcome: Outcome::Either,
        ..broken("an error that shows the key", |case, _| {
            let mut frames = case.frames();
            frames.stop = vec![format!("data: {{\"oops {STORM_KEY}\"\n\n").into_bytes()];
            Plan::stream(frames.into_events())
        })
    },
];

/// The answer with something done to its events.
fn within(case: &Case, change: impl FnOnce(&mut Frames)) -> Plan {
    let mut frames = case.frames();
    change(&mut frames);
    Plan::stream(frames.into_events())
}

/// The answer with something done to the text of each event.
fn edited(case: &Case, change: impl Fn(String) -> String) -> Plan {
    let events = case.events().into_iter();
    Plan::stream(events.map(|event| {
        let text = String::from_utf8(event).expect("honest events are text");
        change(text).into_bytes()
    }))
}

/// Half of the answer, and then an error with this word: OpenAI's and
/// Anthropic's, or Google's.
fn error_within(case: &Case, word: &str, googles: &str) -> Plan {
    let error = match case.wire {
        Wire::OpenAi | Wire::Anthropic => {
            json!({"type": "error", "error": {"type": word, "message": "sorry"}})
        }
        Wire::Responses if case.seed.is_multiple_of(2) => {
            json!({"type": "response.failed", "response": {"error": {"code": word, "message": "sorry"}}})
        }
        Wire::Responses => json!({"type": "error", "code": word, "message": "sorry"}),
        Wire::Gemini => json!({"error": {"status": googles, "message": "sorry"}}),
    };
    within(case, |frames| {
        frames.content.truncate(frames.content.len() / 2);
        frames.stop = vec![format!("event: error\ndata: {error}\n\n").into_bytes()];
    })
}

/// Where the calls begin among the content.
fn first_call(frames: &Frames) -> usize {
    let marks = [
        "\"tool_calls\"",
        "\"tool_use\"",
        "\"function_call\"",
        "\"functionCall\"",
    ];
    let is_call = |event: &Vec<u8>| {
        let text = String::from_utf8_lossy(event);
        marks.iter().any(|mark| text.contains(mark))
    };
    frames
        .content
        .iter()
        .position(is_call)
        .expect("the reply has calls")
}

fn at_frame(frames: &Frames, dice: &Dice) -> usize {
    at(frames.content.len(), dice)
}

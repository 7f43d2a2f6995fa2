//! Ways to deliver a good answer that a client must not mind.

use std::time::Duration;

use super::case::{Case, Kind, Outcome, as_it_is, pick};
use super::plan::{End, Plan, STREAM};
use crate::server::wire::Wire;
use crate::sim::Dice;

const fn whole(name: &'static str, plan: fn(&Case, &Dice) -> Plan) -> Kind {
    Kind {
        name,
        outcome: Outcome::Whole,
        wires: &Wire::ALL,
        adjust: as_it_is,
        plan,
    }
}

pub(super) const KINDS: &[Kind] = &[
    whole("an event in each chunk", |case, _| {
        Plan::stream(case.events())
    }),
    whole("every byte in its own chunk", |case, _| {
        let bytes = case.events().concat();
        Plan::stream(bytes.into_iter().map(|byte| vec![byte]))
    }),
    whole("split in two at any byte", |case, dice| {
        let mut bytes = case.events().concat();
        let rest = bytes.split_off(at(bytes.len(), dice));
        Plan::stream([bytes, rest].into_iter().filter(|half| !half.is_empty()))
    }),
    whole("split at random", |case, dice| {
        let bytes = case.events().concat();
        let mut rest = &bytes[..];
        let mut pieces = Vec::new();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(1 + at(rest.len().min(97), dice));
            pieces.push(piece.to_vec());
            rest = after;
        }
        Plan::stream(pieces)
    }),
    whole("all in one chunk", |case, _| {
        Plan::stream([case.events().concat()])
    }),
    whole("line ends of two bytes", |case, _| {
        edited(case, "\n", "\r\n")
    }),
    whole("line ends of the old kind", |case, _| {
        edited(case, "\n", "\r")
    }),
    whole("no space after the colon", |case, _| {
        edited(case, "data: ", "data:")
    }),
    whole("a byte order mark", |case, _| {
        let mut bytes = b"\xef\xbb\xbf".to_vec();
        bytes.extend(case.events().concat());
        Plan::stream([bytes])
    }),
    whole("comments between", |case, _| {
        let comments = |event: Vec<u8>| [b": still here\n\n".to_vec(), event];
        Plan::stream(case.events().into_iter().flat_map(comments))
    }),
    whole("ids and retries between", |case, _| {
        let lines = |event: Vec<u8>| [b"id: 7\nretry: 99999999999\n".to_vec(), event];
        Plan::stream(case.events().into_iter().flat_map(lines))
    }),
    whole("events nobody has heard of", |case, _| {
        let novel = match case.wire {
            Wire::OpenAi | Wire::Gemini => r#"{"novel":{"choice":1}}"#,
            Wire::Responses => r#"{"type":"response.novel","delta":{}}"#,
            Wire::Anthropic => r#"{"type":"novel","index":0}"#,
        };
        let novel = format!("event: novel\ndata: {novel}\n\n").into_bytes();
        let events = case.events();
        // Not after the last: what follows is nobody's to read.
        let events = events.into_iter().flat_map(|event| [novel.clone(), event]);
        Plan::stream(events)
    }),
    whole("fields nobody has heard of", |case, _| {
        edited(case, "data: {", r#"data: {"novel":[{"a":null},1e3],"#)
    }),
    whole("a body that ends with the connection", |case, _| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        let mut writes = vec![head.as_bytes().to_vec()];
        writes.extend(case.events());
        Plan::new(writes, End::Close)
    }),
    whole("a body of known length", |case, _| {
        let headers = "content-type: text/event-stream; charset=utf-8\r\n";
        Plan::response(200, headers, &case.events().concat())
    }),
    whole("hints before the answer", |case, dice| {
        let hint = pick(dice, &["103 Early Hints", "102 Processing"]);
        let mut writes = vec![format!("HTTP/1.1 {hint}\r\nlink: x\r\n\r\n").into_bytes()];
        writes.push(STREAM.as_bytes().to_vec());
        let chunks = case.events().into_iter();
        writes.extend(chunks.map(|event| super::plan::chunk(&event)));
        writes.push(b"0\r\n\r\n".to_vec());
        Plan::new(writes, End::Keep)
    }),
    whole("a slow start", |case, _| {
        Plan::stream([case.events().concat()]).slowly(Duration::from_millis(3))
    }),
];

/// A place within so many.
pub(super) fn at(length: usize, dice: &Dice) -> usize {
    usize::try_from(dice.below(length as u64)).expect("it is within memory")
}

/// The answer with some of its text replaced.
fn edited(case: &Case, from: &str, to: &str) -> Plan {
    let events = case.events().into_iter();
    Plan::stream(events.map(|event| {
        let text = String::from_utf8(event).expect("honest events are text");
        text.replace(from, to).into_bytes()
    }))
}

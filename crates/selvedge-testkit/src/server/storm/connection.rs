//! Ways to lose an answer on its way.

use std::time::Duration;

use super::case::{Case, Kind, Outcome, TRANSIENT, as_it_is, pick};
use super::delivery::at;
use super::plan::{End, Plan, STREAM, chunk};
use crate::server::wire::Wire;
use crate::sim::Dice;

const fn lost(name: &'static str, plan: fn(&Case, &Dice) -> Plan) -> Kind {
    Kind {
        name,
        outcome: TRANSIENT,
        wires: &Wire::ALL,
        adjust: as_it_is,
        plan,
    }
}

const fn perhaps(name: &'static str, plan: fn(&Case, &Dice) -> Plan) -> Kind {
    Kind {
        outcome: Outcome::Either,
        ..lost(name, plan)
    }
}

/// Far less than a client's silence, so that only its patience ends it.
const DRIP: Duration = Duration::from_millis(15);

pub(super) const KINDS: &[Kind] = &[
    // The last event may be through before the break.
    perhaps("a reset at any byte", |case, dice| {
        Plan::broken(&head(case, dice), End::Reset)
    }),
    perhaps("a connection closed at any byte", |case, dice| {
        Plan::broken(&head(case, dice), End::Close)
    }),
    perhaps("a body that ends in order at any byte", |case, dice| {
        let body = head(case, dice);
        Plan::stream((!body.is_empty()).then_some(body))
    }),
    perhaps("a length that is too short", |case, dice| {
        let all = case.events().concat();
        let length = at(all.len(), dice);
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\n\r\n"
        );
        Plan::new(vec![head.into_bytes(), all], End::Close)
    }),
    perhaps("a length that is too long", |case, _| {
        let all = case.events().concat();
        let length = all.len() + 1000;
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\n\r\n"
        );
        Plan::new(vec![head.into_bytes(), all], End::Close)
    }),
    lost("a reset before the first byte", |_, _| {
        Plan::new(vec![], End::Reset)
    }),
    lost("a connection closed before the first byte", |_, _| {
        Plan::new(vec![], End::Close)
    }),
    lost("a reset within the head", |_, dice| {
        let at = at(STREAM.len(), dice);
        Plan::new(vec![STREAM.as_bytes()[..at].to_vec()], End::Reset)
    }),
    perhaps("silence from any byte on", |case, dice| {
        Plan::broken(&head(case, dice), End::Stall)
    }),
    lost("silence from the start", |_, _| {
        Plan::new(vec![], End::Stall)
    }),
    lost("a drip that never ends", |case, _| {
        let mut plan = case.events();
        plan.truncate(1);
        let mut writes = vec![STREAM.as_bytes().to_vec()];
        writes.extend(plan.iter().map(|event| chunk(event)));
        writes.push(chunk(b":"));
        Plan::new(writes, End::Again).slowly(DRIP)
    }),
    lost("a stream that never ends", |case, _| {
        let mut writes = vec![STREAM.as_bytes().to_vec()];
        writes.extend(case.events().first().map(|event| chunk(event)));
        writes.push(chunk(&b": and so on\n\n".repeat(5000)));
        Plan::new(writes, End::Again)
    }),
    lost("an event that never ends", |_, _| {
        let mut writes = vec![STREAM.as_bytes().to_vec(), chunk(b"data: {\"text\":\"")];
        writes.push(chunk(&b"and so on ".repeat(6000)));
        Plan::new(writes, End::Again)
    }),
    lost("a chunk whose size is no number", |case, _| {
        let mut writes = vec![STREAM.as_bytes().to_vec()];
        writes.extend(case.events().first().map(|event| chunk(event)));
        writes.push(b"zz\r\nwhat\r\n".to_vec());
        Plan::new(writes, End::Close)
    }),
    lost("a chunk of absurd size", |_, _| {
        let writes = vec![
            STREAM.as_bytes().to_vec(),
            b"ffffffffffffffff0\r\n".to_vec(),
        ];
        Plan::new(writes, End::Close)
    }),
    lost("something that is not HTTP", |_, dice| {
        let garbage: &[&[u8]] = &[
            b"\x16\x03\x01\x02\x00\x01",
            b"SSH-2.0-OpenSSH_9\r\n",
            b"\r\n\r\n\0",
        ];
        Plan::new(vec![pick(dice, garbage).to_vec()], End::Close)
    }),
    lost("a head without end", |_, _| {
        let head = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(1_000_000));
        Plan::new(vec![head.into_bytes()], End::Close)
    }),
    lost("a body that was compressed unasked", |_, dice| {
        let encoding = pick(dice, &["gzip", "br", "zstd", "deflate, gzip"]);
        let head = format!("content-type: text/event-stream\r\ncontent-encoding: {encoding}\r\n");
        // The beginning of what would unpack to a great deal of nothing.
        let mut bomb = b"\x1f\x8b\x08\0\0\0\0\0\x02\x03\xed\xc1\x01\x01\0\0\0\x80\x90".to_vec();
        bomb.extend([0; 4096]);
        Plan::response(200, &head, &bomb).then(End::Close)
    }),
];

/// The answer up to any byte.
fn head(case: &Case, dice: &Dice) -> Vec<u8> {
    let mut all = case.events().concat();
    all.truncate(at(all.len(), dice));
    all
}

//! Ways to refuse.

use selvedge_model::ErrorTier;
use serde_json::json;

use super::case::{Case, Kind, Outcome, STORM_KEY, TRANSIENT, as_it_is, pick};
use super::plan::{End, Plan};
use crate::server::wire::{Asked, Wire};
use crate::sim::Dice;

const fn refused(
    name: &'static str,
    tiers: &'static [ErrorTier],
    plan: fn(&Case, &Dice) -> Plan,
) -> Kind {
    Kind {
        name,
        outcome: Outcome::Fails(tiers),
        wires: &Wire::ALL,
        adjust: as_it_is,
        plan,
    }
}

pub(super) const KINDS: &[Kind] = &[
    refused(
        "a request that is wrong",
        &[ErrorTier::Permanent],
        |case, dice| {
            let status = pick(dice, &[400, 413, 415, 422, 451]);
            Plan::json(status, "", &body(case, "invalid_request_error"))
        },
    ),
    refused(
        "what only a person can fix",
        &[ErrorTier::UserFixable],
        |case, dice| {
            let status = pick(dice, &[401, 402, 403, 404]);
            Plan::json(status, "", &body(case, "no"))
        },
    ),
    refused("a redirect", &[ErrorTier::UserFixable], |case, dice| {
        let status = pick(dice, &[301, 302, 307, 308]);
        let headers = format!("location: /elsewhere/{}\r\n", case.model());
        Plan::json(status, &headers, "{}")
    }),
    refused(
        "too many requests",
        &[ErrorTier::RateLimited],
        |case, dice| {
            let wait = pick(dice, &["", "retry-after: 7\r\n", "retry-after-ms: 250\r\n"]);
            Plan::json(429, wait, &body(case, "rate_limit_error"))
        },
    ),
    refused(
        "an absurd wish for patience",
        &[ErrorTier::RateLimited],
        |case, dice| {
            let wait = pick(
                dice,
                &[
                    "99999999999999999999",
                    "-5",
                    "NaN",
                    "inf",
                    "1e308",
                    "",
                    "soon",
                    "0x10",
                    "Fri, 31 Dec 9999 23:59:59 GMT",
                    "Thu, 01 Jan 1970 00:00:00 GMT",
                    "Someday, 99 Foo 2026",
                    "\u{fffd}\u{1f9f5}",
                ],
            );
            let headers = format!("retry-after: {wait}\r\ndate: never\r\n");
            Plan::json(429, &headers, &body(case, "rate_limit_error"))
        },
    ),
    refused(
        "an accident of the server",
        &[ErrorTier::Transient],
        |case, dice| {
            let status = pick(dice, &[408, 409, 425, 500, 502, 504, 520]);
            Plan::json(status, "", &body(case, "api_error"))
        },
    ),
    refused(
        "a server in trouble",
        &[ErrorTier::Degraded],
        |case, dice| {
            let status = pick(dice, &[503, 529]);
            Plan::json(status, "", &body(case, "x"))
        },
    ),
    refused(
        "a server that says it is overloaded",
        &[ErrorTier::Degraded],
        |case, dice| {
            let status = pick(dice, &[500, 503, 529]);
            Plan::json(status, "", &body(case, "overloaded_error"))
        },
    ),
    refused(
        "trouble that will pass at a time",
        &[ErrorTier::RateLimited],
        |case, dice| {
            let status = pick(dice, &[503, 529]);
            Plan::json(status, "retry-after: 20\r\n", &body(case, "x"))
        },
    ),
    refused(
        "an error with status 200",
        &[ErrorTier::RateLimited],
        |_, _| Plan::json(200, "", r#"{"error":{"code":429,"message":"slow down"}}"#),
    ),
    Kind {
        outcome: TRANSIENT,
        ..refused("a page instead of an answer", &[], |_, dice| {
            let status = pick(dice, &[200, 502]);
            let page = "<html><body>Please log in</body></html>";
            Plan::response(status, "content-type: text/html\r\n", page.as_bytes())
        })
    },
    Kind {
        outcome: TRANSIENT,
        ..refused("a status without a body", &[], |_, dice| {
            let status = pick(dice, &[200, 201, 202, 500]);
            Plan::response(status, "", b"")
        })
    },
    Kind {
        outcome: TRANSIENT,
        ..refused("an answer in one piece", &[], |case, _| {
            let asked = Asked {
                model: case.model(),
                streams: false,
                counts: true,
            };
            let whole = case.wire.whole(&asked, &case.reply);
            Plan::json(200, "", &whole.to_string())
        })
    },
    Kind {
        outcome: TRANSIENT,
        ..refused("an explanation without end", &[], |_, _| {
            let text = "sorry ".repeat(300_000);
            Plan::json(500, "", &text).then(End::Close)
        })
    },
    Kind {
        outcome: TRANSIENT,
        ..refused("an explanation that falls silent", &[], |_, _| {
            let head = "HTTP/1.1 500 X\r\ncontent-length: 500\r\n\r\nsorr";
            Plan::new(vec![head.as_bytes().to_vec()], End::Stall)
        })
    },
    refused(
        "an explanation that shows the key",
        &[ErrorTier::Permanent],
        |_, _| {
            let error = json!({"error": {"message": format!("the key {STORM_KEY} is nice")}});
            Plan::json(400, "", &error.to_string())
        },
    ),
];

fn body(case: &Case, kind: &str) -> String {
    let message = format!("case {} is refused", case.seed);
    json!({"type": "error", "error": {"type": kind, "message": message}}).to_string()
}

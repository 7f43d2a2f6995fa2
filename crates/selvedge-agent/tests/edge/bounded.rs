//! An answer that outgrows what was set aside for it, where only a ceiling is set.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::tz::TimeZone;
use selvedge_agent::{
    AgentCall, AgentOutcome, AgentPerformer, Limits, ModelCall, ModelOutcome, Purpose, RunSpec,
};
use selvedge_ledger::{Ledger, Payload, SqliteLedger, SqliteOptions, StreamId};
use selvedge_model::{
    Allowance, Catalogue, Ceilings, Delta, DeltaSink, Gate, Message, ModelError, Part, Period,
    Price, Provider, Providers, Request, Response, Role, Rule, Stop, Strength, Usage, Usd,
};
use selvedge_runtime::{
    EffectId, NoWatcher, Performed, Performer, Scene, SeededChance, SystemClock,
};
use selvedge_tool::Toolbox;
use tokio_util::sync::CancellationToken;

use crate::{Edge, Seen, World};

/// Heeds no limit of the length of its answers, and says so much.
struct Chatterbox;

const SAID_BYTES: usize = 40_000;

#[async_trait]
impl Provider for Chatterbox {
    async fn ask(
        &self,
        request: &Request,
        deltas: &mut dyn DeltaSink,
        _: &CancellationToken,
    ) -> Result<Response, ModelError> {
        for _ in 0..SAID_BYTES / 100 {
            deltas.take(Delta::Text("word ".repeat(20)));
            tokio::task::yield_now().await;
        }
        let text = Payload::new("word ".repeat(SAID_BYTES / 5));
        Ok(Response {
            message: Message {
                role: Role::Assistant,
                parts: vec![Part::Text { text }],
            },
            stop: Stop::End,
            usage: Usage {
                input: 100,
                output: 10_000,
                ..Usage::default()
            },
            model: request.model.clone(),
        })
    }

    fn price(&self, _: &str) -> Option<Price> {
        Some(Price {
            input: Usd::from_dollars(3.0)?,
            cached: None,
            cache_written: None,
            output: Usd::from_dollars(15.0)?,
            long: None,
        })
    }
}

/// Asks once under a rule, with no budget of anybody's own.
async fn ask(rule: Option<(Strength, Allowance)>) -> Performed<AgentOutcome> {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions::new(folder.path().join("ledger.db"));
    let ledger: Arc<dyn Ledger> = Arc::new(SqliteLedger::open(&options).unwrap());
    let providers = Providers::new().with("sim", Arc::new(Chatterbox));
    let (clock, chance) = (Arc::new(SystemClock), Arc::new(SeededChance::new(1)));
    let gate = Gate::new(providers, Catalogue::built_in(), clock.clone(), chance);
    let rules = rule.map(|(strength, allowance)| Rule {
        provider: None,
        period: Period::Day,
        allowance,
        strength,
    });
    let rules = rules.into_iter().collect();
    let ceilings = Ceilings::new(ledger.clone(), clock.clone(), TimeZone::UTC, rules);
    let toolbox = Arc::new(Toolbox::core());
    let performer =
        AgentPerformer::new(ledger.clone(), clock, Arc::new(gate), toolbox).with_ceilings(ceilings);
    let world = World::new(Edge::draw(1), ledger, Arc::new(Seen::default()));
    let spec = RunSpec {
        model: "sim/one".into(),
        fallbacks: Vec::new(),
        budget_usd: None,
        limits: Limits {
            output_tokens_max: 1000,
            ..Limits::default()
        },
        ..world.spec(1)
    };
    let call = AgentCall::Model(ModelCall {
        spec: Arc::new(spec),
        turn: 0,
        purpose: Purpose::Work,
        messages: vec![Arc::new(Message::user("work"))].into(),
        budget_usd: None,
        budget_tokens: None,
        loaded: Arc::default(),
    });
    let scene = Scene {
        stream: StreamId::new("s_1"),
        effect: EffectId::new("m0"),
        attempt: 1,
        cancel: CancellationToken::new(),
        watcher: Arc::new(NoWatcher),
    };
    let evidence = performer.prepare(&scene, &call).await.unwrap();
    performer.perform(scene, call, evidence).await
}

fn usd(dollars: f64) -> Allowance {
    Allowance {
        usd: Usd::from_dollars(dollars),
        ..Allowance::default()
    }
}

#[tokio::test]
async fn a_ceiling_alone_stops_an_answer_that_outgrows_what_was_set_aside() {
    let tokens = Allowance {
        tokens: Some(1_000_000),
        ..Allowance::default()
    };
    for allowance in [usd(100.0), tokens] {
        let performed = ask(Some((Strength::Hard, allowance))).await;
        let Performed::Held(hold, Some(AgentOutcome::Model(ModelOutcome::BrokenOff(broken)))) =
            performed
        else {
            panic!("it was not stopped: {allowance:?}");
        };
        assert_eq!(hold.reason, "budget", "{}", hold.detail);
        // Eight bytes to a token are more than any text has.
        assert!(
            (8000..8200).contains(&broken.text.len()),
            "{}",
            broken.text.len()
        );
        assert!(
            broken.cost > Some(Usd::ZERO),
            "and it is on record what it cost"
        );
    }
}

#[tokio::test]
async fn where_no_amount_is_limited_an_answer_is_heard_to_its_end() {
    let requests = Allowance {
        requests: Some(10),
        ..Allowance::default()
    };
    for rule in [
        None,
        Some((Strength::Soft { warn_at: 0.8 }, usd(100.0))),
        Some((Strength::Hard, requests)),
    ] {
        let performed = ask(rule).await;
        let is_answered = matches!(
            performed,
            Performed::Finished(AgentOutcome::Model(ModelOutcome::Answered { .. }))
        );
        assert!(is_answered, "{rule:?}");
    }
}

//! The journal's graph under a model that says anything that fits its schemas: whatever it
//! says, a conversation ends, and within its limits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use selvedge_agent::{AgentCall, Approve, Crew, Lazy, RunSpec, Setup, ToolOutcome, assemble};
use selvedge_crews::journal::{
    AGENTS, Brief, DomainInfo, Intent, JOURNAL, JournalFlow, JournalSpec, JournalState,
    REPLANS_MAX, RETRIES_MAX, TABLE, journal_spec,
};
use selvedge_flow::Graph;
use selvedge_ledger::{Event, Hash, Payload, StreamId, Time};
use selvedge_runtime::{
    Act, ChildFinished, Due, EffectId, Ending, Finished, Machine, QuestionAnswered, RunStarted,
    Status,
};
use selvedge_testkit::{Dice, fitting};
use selvedge_tool::{Policy, Sandbox, Toolbox};
use serde::Serialize;
use serde_json::{Value, json, value::to_raw_value};

const RUNS: u64 = 10_000;
/// More steps than this are a circle.
const STEPS_MAX: usize = 120;

/// What the nine agents start with.
static TEAM: LazyLock<Vec<RunSpec>> = LazyLock::new(|| {
    let crew = selvedge_crews::all().find("journal", &[]).unwrap();
    let agent = |name: &&str| {
        let crew = Crew {
            entry: (*name).to_owned(),
            ..crew.clone()
        };
        let setup = Setup {
            request: String::new(),
            workspace: std::env::temp_dir(),
            approve: Approve::Never,
            sandbox: Sandbox::off(),
            policy: Policy::default(),
            is_trusted: true,
            budget_usd: None,
            budget_tokens: None,
            output_schema: None,
            instructions: None,
            skills: Vec::new(),
            lazy: Lazy::Auto,
            resolve: &|_| Ok("scripted/test".into()),
        };
        let mut spec = assemble(&crew, &Toolbox::new(), &setup).unwrap();
        spec.system = Payload::new("");
        spec
    };
    AGENTS.iter().map(agent).collect()
});

fn spec(input: &str, intent: Intent) -> JournalSpec {
    let names = ["general", "strength", "running"];
    let domains = names.map(|name| DomainInfo {
        name: name.into(),
        description: name.into(),
    });
    let brief = Brief {
        input: input.into(),
        intent,
        date: "2026-11-18".parse().unwrap(),
        time: "09:30".parse().unwrap(),
        zone: "UTC".into(),
        domains: domains.into(),
        context_tokens_max: 2000,
        ..Brief::default()
    };
    journal_spec(TEAM[0].clone(), TEAM.clone(), brief)
}

/// A conversation without a driver: effects are answered by the test.
struct Talk {
    graph: Graph<JournalFlow>,
    seq: u64,
}

impl Talk {
    fn begin(spec: JournalSpec) -> Self {
        let mut talk = Self {
            graph: Graph::default(),
            seq: 0,
        };
        talk.tell("RunStarted", &RunStarted { spec });
        talk
    }

    fn tell(&mut self, kind: &str, data: &impl Serialize) {
        self.seq += 1;
        let event = Event {
            stream: StreamId::new("s_test"),
            seq: self.seq,
            time: Time(0),
            actor: "driver".into(),
            kind: kind.into(),
            version: 1,
            cause: None,
            data: Arc::from(to_raw_value(data).unwrap()),
            hash: Hash::ZERO,
        };
        self.graph.apply(&event).unwrap();
    }

    fn child(&mut self, effect: EffectId, data: Option<Value>) {
        let status = match data {
            Some(_) => Status::Done,
            None => Status::Failed,
        };
        let ending = Ending {
            status,
            result: Payload::inline(""),
            data,
        };
        let stream = StreamId::new("s_test/child");
        self.tell(
            "ChildFinished",
            &ChildFinished {
                effect,
                stream,
                ending,
            },
        );
    }

    fn tool(&mut self, effect: EffectId, tool: &str, facts: Value) {
        let outcome = ToolOutcome {
            tool: tool.into(),
            text: Payload::inline(""),
            whole: None,
            facts,
            is_error: false,
            interrupted: false,
            denied: None,
            asks: None,
            hooked: None,
            looks: false,
            failure: None,
        };
        let finished = Finished {
            effect,
            attempt: 1,
            outcome,
            probed: false,
        };
        self.tell("ToolCallFinished", &finished);
    }

    fn visits(&self, state: JournalState) -> usize {
        self.graph
            .path()
            .iter()
            .filter(|walked| walked.visit.state == state)
            .count()
    }
}

fn entry(n: u64) -> Value {
    let id = format!("2026-11-{:02}T10:30-abc{n}", 1 + n);
    json!({ "id": id, "date": &id[..10], "timestamp": &id[..16], "raw_content": "bench 185x5",
        "source_file": "x", "domain_data": { "strength": { "exercises": [{ "weight": 85 }] } } })
}

/// What a tool would answer.
fn facts(tool: &str, arguments: &Value, dice: &Dice) -> Value {
    // Now and then an entry was put right before.
    let is_right = dice.percent(30);
    let recorded = |n: u64| {
        let mut entry = entry(n);
        if is_right {
            entry["domain_data"]["strength"]["exercises"][0]["weight"] = json!(185);
            entry["corrections"] = json!([{ "domain": "strength",
                "field": "/exercises/0/weight", "from": 85, "to": 185 }]);
        }
        entry
    };
    match tool {
        "journal_load" => json!({
            "context": {
                "domains_loaded": arguments["domains"],
                "schemas": { "general": { "type": "object" } },
            },
            "recent": (0..dice.below(3)).map(recorded).collect::<Vec<_>>(),
        }),
        "journal_search" => json!({
            "entries": (0..dice.below(4)).map(entry).collect::<Vec<_>>(),
            "total_entries_found": 3,
        }),
        "journal_store" => {
            let how = match arguments["target"].is_null() {
                true => "stored",
                false => ["corrected", "noted"][dice.below(2) as usize],
            };
            json!({ "id": arguments["id"], "how": how })
        }
        _ => Value::Null,
    }
}

/// Talks until the end; how many steps it took.
fn run(seed: u64, answer: impl Fn(&Value, &Dice) -> Option<Value>) -> (Talk, usize, Ending) {
    let dice = Dice::new(seed, "journal");
    let inputs = [
        "Bench 185x5",
        "Tired. Why am I tired?",
        "Why?",
        "actually 185",
        "x",
    ];
    let intents = [Intent::Any, Intent::Any, Intent::Log, Intent::Ask];
    let input = inputs[dice.below(inputs.len() as u64) as usize];
    let intent = intents[dice.below(intents.len() as u64) as usize];
    let mut talk = Talk::begin(spec(input, intent));
    for step in 0..STEPS_MAX {
        let mut effects = match talk.graph.due() {
            Due::Ended(ending) => return (talk, step, ending),
            Due::Effects(effects) => effects,
            Due::Idle => panic!("seed {seed}: nothing is due"),
        };
        assert!(
            !effects.is_empty(),
            "seed {seed}: nothing is due, and it has not ended"
        );
        let at = dice.below(effects.len() as u64) as usize;
        let effect = effects.swap_remove(at);
        match effect.act {
            Act::Child(child) => {
                let data = answer(&child.spec, &dice);
                talk.child(effect.id, data);
            }
            Act::Call(AgentCall::Tool(used)) => {
                let arguments = used.call.arguments.text().unwrap();
                let arguments: Value = serde_json::from_str(arguments).unwrap();
                let facts = facts(&used.call.name, &arguments, &dice);
                talk.tool(effect.id, &used.call.name, facts);
            }
            Act::Ask(question) => {
                let first = question.options.first().map_or("", String::as_str);
                let text = ["skip", "I slept badly", "", first][dice.below(4) as usize];
                let answered = QuestionAnswered {
                    effect: effect.id,
                    answer: Payload::inline(text),
                    by: "user".into(),
                    letter: 1,
                };
                talk.tell("QuestionAnswered", &answered);
            }
            other => panic!("seed {seed}: {other:?}"),
        }
    }
    panic!(
        "seed {seed}: {STEPS_MAX} steps and no end: {:?}",
        talk.graph.path()
    );
}

#[test]
fn the_table_has_no_fault() {
    assert_eq!(TABLE.faults(), Vec::<String>::new());
    assert!(
        TABLE
            .draw()
            .contains("  → plan: insufficient, at most 2 times")
    );
    assert_eq!(JOURNAL, "journal");
}

/// Something that fits the schema, said by a model that half of the time knows what it is
/// talked to about: domains that exist, values that were recorded. Chance alone never says
/// `running`, and would not get everywhere.
fn likely(child: &Value, dice: &Dice) -> Value {
    let mut data = fitting(&child["output_schema"], dice);
    let gap = |kind: &str, domain: Option<&str>| {
        json!({ "description": "how you slept", "gap_type": kind, "severity": "critical",
            "outside_current_expertise": domain.is_some(), "suspected_domain": domain })
    };
    match child["agent"].as_str().unwrap() {
        "router" if data["input_type"] == "both" => {
            data["log_portion"] = json!("Tired.");
            data["query_portion"] = json!("Why am I tired?");
        }
        "planner" if dice.percent(30) => data["domain_expansion_request"] = json!(["running"]),
        "analyzer" if dice.percent(60) => {
            let kind = ["subjective", "topical"][dice.below(2) as usize];
            let domain = dice.percent(30).then_some("running");
            data["gaps_identified"] = json!([gap(kind, domain)]);
            data["findings"] = json!([]);
        }
        "clarifier" if dice.percent(50) => {
            data["questions"] =
                json!([{ "question": "Did you sleep?", "gap_addressed": "how you slept" }]);
        }
        "synthesizer" if dice.percent(70) => data["evidence_cited"] = json!([]),
        "evaluator" if dice.percent(50) => data["dimensions"] = json!([]),
        "parser" if dice.percent(60) => {
            data["correction_delta"] = json!([{ "domain": "strength",
                "field": "/exercises/0/weight", "from": 85, "to": 185 }]);
        }
        _ => {}
    }
    data
}

/// What a conversation came to, by what the user reads.
fn came_to(ending: &Ending) -> &'static str {
    const WORDS: [(&str, &str); 8] = [
        ("Found notes, not an answer", "found notes"),
        ("This answer is partial", "partial answer"),
        ("Corrected `", "corrected"),
        ("Unchanged: `", "unchanged"),
        ("Kept as a note, `", "kept as a note"),
        ("Nothing was changed.", "nothing changed"),
        (
            "this corrects: it is kept as a note",
            "correction of nothing",
        ),
        ("Logged `", "logged"),
    ];
    let text = ending.result.text().unwrap();
    let found = WORDS.iter().find(|(words, _)| text.contains(words));
    found.map_or("answer", |(_, name)| name)
}

#[test]
fn ten_thousand_conversations_end_whatever_the_model_says() {
    type Taken = (Option<JournalState>, JournalState, &'static str);
    let taken = std::sync::Mutex::new(BTreeSet::<Taken>::new());
    let endings = std::sync::Mutex::new(BTreeMap::<&str, u64>::new());
    std::thread::scope(|scope| {
        for half in 0..2 {
            let (taken, endings) = (&taken, &endings);
            scope.spawn(move || {
                for seed in (half..RUNS).step_by(2) {
                    let knows = seed % 4 < 2;
                    let (talk, _, ending) = run(seed, |child, dice| {
                        dice.percent(95).then(|| match knows {
                            true => likely(child, dice),
                            false => fitting(&child["output_schema"], dice),
                        })
                    });
                    assert_eq!(ending.status, Status::Done, "seed {seed}");
                    assert!(talk.visits(JournalState::Evaluate) <= 1 + RETRIES_MAX as usize);
                    let path = talk.graph.path().iter();
                    let path = path.map(|step| (step.from, step.visit.state, step.when));
                    taken.lock().unwrap().extend(path);
                    *endings.lock().unwrap().entry(came_to(&ending)).or_default() += 1;
                }
            });
        }
    });
    // Every line of the table was walked, and every ending was reached.
    let taken = taken.into_inner().unwrap();
    let all = TABLE
        .transitions
        .iter()
        .map(|t| (Some(t.from), t.to, t.when));
    let never: Vec<Taken> = all.filter(|step| !taken.contains(step)).collect();
    assert_eq!(never, Vec::<Taken>::new());
    let endings = endings.into_inner().unwrap();
    assert_eq!(endings.len(), 9, "{endings:?}");
}

/// The same agent always says the same.
fn stubborn<'a>(
    agent: &'a str,
    field: &'a str,
    value: Value,
) -> impl Fn(&Value, &Dice) -> Option<Value> + 'a {
    move |child, dice| {
        let mut data = fitting(&child["output_schema"], dice);
        match child["agent"].as_str().unwrap() {
            "router" => data["input_type"] = json!("query"),
            "analyzer" => {
                data["verdict"] = json!("sufficient");
                (data["findings"], data["gaps_identified"]) = (json!([]), json!([]));
            }
            "planner" => {
                data["next_action"] = json!("retrieve");
                data["execution_strategy"] = json!("coupled");
                data["domain_expansion_request"] = json!([]);
            }
            "synthesizer" => data["evidence_cited"] = json!([]),
            "evaluator" => {
                data["dimensions"] = json!([]);
                data["overall_verdict"] = json!("pass");
            }
            _ => {}
        }
        if child["agent"] == agent {
            data[field] = value.clone();
        }
        Some(data)
    }
}

/// A seed whose conversation asks something.
fn asking() -> impl Iterator<Item = u64> {
    (0..200).filter(|seed| {
        let dice = Dice::new(*seed, "journal");
        dice.below(5);
        dice.below(4) == 3
    })
}

#[test]
fn an_evaluator_that_always_fails_is_asked_three_times() {
    for seed in asking().take(20) {
        let (talk, ..) = run(
            seed,
            stubborn("evaluator", "overall_verdict", json!("fail")),
        );
        assert_eq!(talk.visits(JournalState::Evaluate), 3, "seed {seed}");
        assert!(talk.graph.flow().is_partial(), "seed {seed}");
    }
}

#[test]
fn an_analyzer_that_is_never_satisfied_is_planned_for_twice_more() {
    for seed in asking().take(20) {
        let (talk, ..) = run(seed, stubborn("analyzer", "verdict", json!("insufficient")));
        assert_eq!(
            talk.visits(JournalState::Plan),
            1 + REPLANS_MAX as usize,
            "seed {seed}"
        );
        assert!(talk.graph.flow().is_partial(), "seed {seed}");
    }
}

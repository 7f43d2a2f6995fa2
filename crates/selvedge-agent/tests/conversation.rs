//! Random conversations against what must hold of every request: the machine
//! alone, without a model, a tool or a disk.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use selvedge_agent::{
    AgentCall, AgentMachine, Approve, Limits, ModelCall, ModelOutcome, Offers, Purpose, RunSpec,
    Terms, ToolOutcome,
};
use selvedge_ledger::{BlobId, Event, Hash, NewEvent, Payload, Pen, StreamId, Sync, Time};
use selvedge_model::{Message, Messages, Part, Response, Role, Stop, ToolCall, Usage};
use selvedge_runtime::{
    Act, ChildFinished, Due, EffectId, Ending, Finished, Machine, MessageTaken, QuestionAnswered,
    RunStarted, Status, SteerMode, Unfinished,
};
use selvedge_tool::{Policy, Sandbox, World};
use serde::Serialize;
use serde_json::{Value, json};

/// One answer of a model, or a piece of what befalls its calls.
#[derive(Clone, Debug)]
struct Turn {
    text_bytes: usize,
    has_reasoning: bool,
    calls: Vec<Asked>,
    stop: Stop,
    /// What people say while the answer is on its way.
    said: Vec<(SteerMode, usize)>,
}

/// A call: of which tool, how long its arguments are, and how it ends.
#[derive(Clone, Copy, Debug)]
struct Asked {
    tool: &'static str,
    argument_bytes: usize,
    result_bytes: usize,
    goes_wrong: bool,
}

fn asked() -> impl Strategy<Value = Asked> {
    let tool = prop_oneof![
        6 => Just("look"),
        3 => Just("write"),
        1 => Just("ask_user"),
        1 => Just("delegate"),
        1 => Just("no_such_tool"),
        1 => Just("request_tools"),
        1 => Just("far_1"),
    ];
    let result_bytes = prop_oneof![4 => 0..3000usize, 2 => 0..30_000usize, 1 => 0..200_000usize];
    (tool, 0..4000usize, result_bytes, prop::bool::weighted(0.1)).prop_map(
        |(tool, argument_bytes, result_bytes, goes_wrong)| Asked {
            tool,
            argument_bytes,
            result_bytes,
            goes_wrong,
        },
    )
}

fn turn() -> impl Strategy<Value = Turn> {
    let stop = prop_oneof![
        20 => Just(Stop::Tools),
        1 => Just(Stop::Length),
        1 => Just(Stop::Filtered),
    ];
    let mode = prop_oneof![Just(SteerMode::Steer), Just(SteerMode::Queue)];
    let said = prop::collection::vec((mode, 1..200usize), 0..2);
    let calls = prop::collection::vec(asked(), 0..8);
    (0..4000usize, any::<bool>(), calls, stop, said).prop_map(
        |(text_bytes, has_reasoning, calls, stop, said)| Turn {
            text_bytes,
            has_reasoning,
            calls,
            stop,
            said,
        },
    )
}

/// A machine, and what was put on record for it.
struct Stage {
    pen: Pen,
    machine: AgentMachine,
    limits: Limits,
    /// Long content that a ledger would have.
    stored: BTreeSet<String>,
    /// Results that can be read again, and how long they are.
    results: BTreeMap<String, u64>,
    /// What people said, as far as it was taken up.
    said: Vec<String>,
    letters: u64,
    requests: u32,
    /// Every event, to be folded again.
    events: Vec<Event>,
    /// What the last request had loaded.
    loaded: Vec<String>,
}

const REQUEST: &str = "do what I say";

impl Stage {
    fn new(limits: Limits) -> Self {
        let tools = [
            ("look", World::Reads),
            ("write", World::Writes),
            ("ask_user", World::Asks),
            ("delegate", World::Delegates),
            ("finish", World::Ends),
            ("request_tools", World::Reads),
            ("far_0", World::Reads),
            ("far_1", World::Writes),
            ("far_2", World::Reads),
        ];
        let offers = Offers {
            tools: (0..3).map(|n| (far(n), 10)).collect(),
            definitions: Payload::new("[]"),
            tokens_at_hand: 100,
            tokens_of_list: 20,
        };
        let helper = RunSpec {
            fallbacks: Vec::new(),
            awaited: false,
            priority: 60,
            crew: "test".into(),
            agent: "helper".into(),
            request: Payload::new(""),
            model: "test/one".into(),
            system: Payload::new("You help."),
            tools: tools.map(|(name, world)| (name.to_owned(), world)).into(),
            definitions: Payload::new("[]"),
            offers: Some(offers),
            skills: None,
            limits,
            output_schema: None,
            approve: Approve::Auto,
            sandbox: Sandbox::off(),
            policy: Policy {
                role: selvedge_tool::Role::Supervisor,
                ..Policy::default()
            },
            budget_usd: None,
            budget_tokens: None,
            workspace: ".".into(),
            terms: Terms::default(),
            team: [].into(),
        };
        let spec = RunSpec {
            agent: "lead".into(),
            request: Payload::new(REQUEST),
            team: [("helper".to_owned(), helper.clone())].into(),
            ..helper
        };
        let mut stage = Self {
            pen: Pen::at(StreamId::new("s"), 0, Hash::ZERO, None),
            machine: AgentMachine::default(),
            limits,
            stored: BTreeSet::new(),
            results: BTreeMap::new(),
            said: Vec::new(),
            letters: 0,
            requests: 0,
            events: Vec::new(),
            loaded: Vec::new(),
        };
        stage.record("RunStarted", &RunStarted { spec });
        stage
    }

    fn record<T: Serialize>(&mut self, kind: &'static str, data: &T) {
        let event: Event = self
            .pen
            .write(NewEvent::new(kind, "test", Time(0), data), Sync::Later);
        self.stored.extend(blobs(&event.decode().unwrap()));
        self.machine.apply(&event).unwrap();
        self.events.push(event);
    }

    fn say(&mut self, mode: SteerMode, bytes: usize) {
        self.letters += 1;
        let text = format!("{}: {}", self.letters, "s".repeat(bytes));
        if mode == SteerMode::Steer {
            self.said.push(text.clone());
        }
        let text = Payload::new(text);
        let letter = self.letters;
        self.record("MessageTaken", &MessageTaken { mode, text, letter });
    }

    /// What is asked of a model now, if anything is.
    fn request(&self) -> Option<ModelCall> {
        let Due::Effects(effects) = self.machine.due() else {
            return None;
        };
        effects.into_iter().find_map(|e| match e.act {
            Act::Call(AgentCall::Model(call)) => Some(call),
            _ => None,
        })
    }

    fn answer(&mut self, call: &ModelCall, turn: &Turn) {
        let mut parts = Vec::new();
        if turn.has_reasoning {
            let text = Payload::new("hm".repeat(turn.text_bytes / 8));
            let signature = Some(Payload::new("sealed"));
            parts.push(Part::Reasoning { text, signature });
        }
        let mut text = "t".repeat(turn.text_bytes);
        if call.purpose == Purpose::Summary {
            text.truncate(text.len() / 4);
        }
        // What the machine itself must read is kept inline by the performer.
        let text = if call.purpose == Purpose::Summary {
            Payload::inline(text)
        } else {
            Payload::new(text)
        };
        parts.push(Part::Text { text });
        for (n, asked) in turn.calls.iter().enumerate() {
            let long = "a".repeat(asked.argument_bytes);
            let arguments = match asked.tool {
                "ask_user" => Payload::inline(json!({ "question": long }).to_string()),
                "delegate" => {
                    Payload::inline(json!({ "agent": "helper", "task": long }).to_string())
                }
                _ => Payload::new(json!({ "x": long }).to_string()),
            };
            parts.push(Part::ToolCall(ToolCall {
                id: format!("c{n}"),
                name: asked.tool.into(),
                arguments,
            }));
        }
        self.respond(call, parts, turn.stop);
    }

    fn respond(&mut self, call: &ModelCall, parts: Vec<Part>, stop: Stop) {
        let response = Response {
            message: Message {
                role: Role::Assistant,
                parts,
            },
            stop,
            usage: Usage::default(),
            model: call.spec.model.clone(),
        };
        let outcome = json!({
            "result": "answered", "response": response, "attempts": 1,
            "first_token_ms": 0, "total_ms": 0,
        });
        let outcome: ModelOutcome = serde_json::from_value(outcome).unwrap();
        let effect = EffectId::new(format!("m{}", call.turn));
        self.record("ModelCallFinished", &finished(effect, outcome));
    }

    /// Carries out what is due until a model must be asked or the run is over.
    fn act(&mut self, calls: &[Asked]) {
        while let Due::Effects(effects) = self.machine.due() {
            let Some(effect) = effects.into_iter().next() else {
                return;
            };
            let name = effect.id.as_str().to_owned();
            let nth: usize = name
                .rsplit('.')
                .next()
                .and_then(|n| n.parse().ok())
                .unwrap_or(0);
            let asked = calls.get(nth).copied().unwrap_or(Asked {
                tool: "",
                argument_bytes: 0,
                result_bytes: 10,
                goes_wrong: false,
            });
            let long = Payload::new("r".repeat(asked.result_bytes));
            let bytes = long.len();
            self.stored.extend(long.blob().map(|b| b.to_string()));
            match effect.act {
                Act::Call(AgentCall::Model(_)) => return,
                Act::Call(AgentCall::Tool(used))
                    if asked.goes_wrong && used.world == World::Writes =>
                {
                    let doubtful = Unfinished {
                        effect: effect.id,
                        attempt: 1,
                        left: None::<ToolOutcome>,
                    };
                    self.record("ToolCallInDoubt", &doubtful);
                }
                Act::Call(AgentCall::Tool(used)) => {
                    let outcome = ToolOutcome {
                        tool: used.call.name,
                        text: long,
                        whole: None,
                        facts: facts(&asked),
                        is_error: asked.goes_wrong,
                        interrupted: false,
                        denied: None,
                        asks: None,
                        hooked: None,
                        looks: false,
                        failure: None,
                    };
                    self.results.insert(name, bytes);
                    self.record("ToolCallFinished", &finished(effect.id, outcome));
                }
                Act::Ask(_) => {
                    self.letters += 1;
                    let answered = QuestionAnswered {
                        effect: effect.id,
                        answer: long,
                        by: "test".into(),
                        letter: self.letters,
                    };
                    self.results.insert(name, bytes);
                    self.record("QuestionAnswered", &answered);
                }
                Act::Child(child) => {
                    // A spec is handed over as plain data: nothing stores its blobs.
                    let missing: Vec<String> = blobs(&child.spec)
                        .into_iter()
                        .filter(|b| !self.stored.contains(b))
                        .collect();
                    assert_eq!(missing, [""; 0], "a child starts with what nobody stored");
                    let data = asked
                        .goes_wrong
                        .then(|| json!({ "report": "d".repeat(asked.result_bytes) }));
                    let ending = Ending {
                        status: Status::Done,
                        result: long,
                        data,
                    };
                    let child = ChildFinished {
                        effect: effect.id,
                        stream: StreamId::new("s/c"),
                        ending,
                    };
                    self.results.insert(name, bytes);
                    self.record("ChildFinished", &child);
                }
                Act::Call(AgentCall::Judge(_)) => unreachable!("no tool here runs commands"),
                Act::Call(AgentCall::Restore(_)) => unreachable!("no failure here counts"),
                Act::Call(AgentCall::Upkeep(_)) => unreachable!("there is no copy to work on"),
                Act::Wait(_) => unreachable!("agents set no timers"),
            }
        }
    }

    /// What must hold of a request.
    fn check(&mut self, call: &ModelCall, fresh: &BTreeMap<String, u64>) {
        self.requests += 1;
        let messages = &call.messages;
        let text = |m: &Message| match &m.parts[..] {
            [Part::Text { text }] => text.text().map(|t| t.to_string()).unwrap_or_default(),
            _ => String::new(),
        };
        assert_eq!(text(&messages[0]), REQUEST, "the request comes first");
        check_pairs(messages);
        self.check_loaded(&call.loaded);
        if call.purpose == Purpose::Work {
            let users = messages.iter().filter(|m| m.role == Role::User);
            let heard: Vec<String> = users
                .map(|m| text(m))
                .filter(|t| self.said.contains(t))
                .collect();
            assert_eq!(
                heard, self.said,
                "what people said is there, once and in order"
            );
        }
        let tokens: u64 = messages.iter().map(|m| tokens(m)).sum();
        let spare = if call.purpose == Purpose::Summary {
            150
        } else {
            0
        };
        assert!(
            tokens <= self.limits.context_tokens_max + spare,
            "a request of {tokens} tokens, {:?}, with {:?}",
            call.purpose,
            self.limits
        );
        let mut cleared = 0;
        for result in messages.iter().flat_map(|m| &m.parts) {
            let Part::ToolResult(result) = result else {
                continue;
            };
            let Some(pointer) = result
                .content
                .text()
                .and_then(|t| t.split_once("@result/").map(|(_, n)| n.to_owned()))
            else {
                continue;
            };
            let name = pointer.split([']', ' ']).next().unwrap_or_default();
            assert!(
                self.results.contains_key(name),
                "`{pointer}` leads nowhere: {}",
                result.content.text().unwrap()
            );
            cleared += fresh.get(name).copied().unwrap_or(0) * 2 / 7;
        }
        // What fits well is shown at least once before it becomes a pointer.
        assert!(
            cleared == 0 || tokens + cleared > self.limits.context_tokens_max / 2,
            "{cleared} tokens were cleared before they were seen, with {tokens} and {:?}",
            self.limits
        );
    }

    /// Tools are added at the end and stay where they are.
    fn check_loaded(&mut self, loaded: &[String]) {
        assert_eq!(loaded[..self.loaded.len()], self.loaded);
        assert!(loaded.iter().all(|name| name.starts_with("far_")));
        let different: BTreeSet<&String> = loaded.iter().collect();
        assert_eq!(different.len(), loaded.len(), "each once");
        self.loaded = loaded.to_vec();
    }

    /// Folding the whole record again leads to the same state.
    fn check_replay(&self) {
        let mut again = AgentMachine::default();
        for event in &self.events {
            again.apply(event).unwrap();
        }
        assert_eq!(again.snapshot(), self.machine.snapshot());
    }

    /// What is kept of the state is enough to go on from.
    fn check_snapshot(&self) {
        let kept = self.machine.snapshot().unwrap();
        let missing: Vec<String> = blobs(&kept)
            .into_iter()
            .filter(|b| !self.stored.contains(b))
            .collect();
        assert_eq!(
            missing, [""; 0],
            "a snapshot refers to content that nobody stored"
        );
        let mut again = AgentMachine::default();
        assert!(again.restore(&kept.to_string()));
        assert_eq!(again.snapshot().unwrap(), kept);
        assert_eq!(
            format!("{:?}", again.due()),
            format!("{:?}", self.machine.due())
        );
    }
}

/// A tool on offer.
fn far(n: usize) -> String {
    format!("far_{n}")
}

/// What a call says of itself: which tools it loads, one of them by mistake.
fn facts(asked: &Asked) -> Value {
    if asked.tool != "request_tools" {
        return Value::Null;
    }
    let bits = asked.result_bytes;
    let names = (0..4).filter(|n| bits & (1 << n) != 0).map(far);
    json!({ "loaded": names.collect::<Vec<_>>() })
}

fn finished<O>(effect: EffectId, outcome: O) -> Finished<O> {
    Finished {
        effect,
        attempt: 1,
        outcome,
        probed: false,
    }
}

/// Every reference to long content in a JSON value.
fn blobs(value: &Value) -> Vec<String> {
    match value {
        Value::Object(map) => {
            let own = map.get("blob").and_then(Value::as_str);
            let own = own.filter(|id| BlobId::parse(id).is_some());
            let below = map.values().flat_map(blobs);
            own.map(str::to_owned).into_iter().chain(below).collect()
        }
        Value::Array(items) => items.iter().flat_map(blobs).collect(),
        _ => Vec::new(),
    }
}

/// Every call is answered by exactly one result, in order, in the next message.
fn check_pairs(messages: &Messages) {
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        let results: Vec<String> = message
            .parts
            .iter()
            .filter_map(|p| match p {
                Part::ToolResult(result) => Some(result.id.clone()),
                _ => None,
            })
            .collect();
        assert_eq!(results, open, "results answer the calls before them");
        open = message
            .parts
            .iter()
            .filter_map(|p| match p {
                Part::ToolCall(call) => Some(call.id.clone()),
                _ => None,
            })
            .collect();
    }
    assert_eq!(open, [""; 0], "no call is left without a result");
}

/// As the context estimates it.
fn tokens(message: &Message) -> u64 {
    let bytes: u64 = message
        .parts
        .iter()
        .map(|part| match part {
            Part::Text { text } => text.len(),
            Part::Image(_) => selvedge_model::Image::BYTES_OF_TEXT,
            Part::Reasoning { text, signature } => {
                text.len() + signature.as_ref().map_or(0, Payload::len)
            }
            Part::ToolCall(call) => call.arguments.len() + call.name.len() as u64 + 16,
            Part::ToolResult(result) => result.content.len() + 16,
        })
        .sum();
    bytes * 2 / 7 + 4
}

fn limits(context_tokens_max: u64, results_kept: usize) -> Limits {
    Limits {
        context_tokens_max,
        results_kept,
        model_calls_max: 120,
        ..Limits::default()
    }
}

/// Plays a conversation to its end, checking every request on the way.
fn play(limits: Limits, turns: &[Turn]) -> Stage {
    let mut stage = Stage::new(limits);
    let mut turns = turns.iter();
    let mut fresh = BTreeMap::new();
    while let Some(call) = stage.request() {
        stage.check(&call, &fresh);
        stage.check_snapshot();
        assert!(stage.requests <= limits.model_calls_max, "it never ends");
        let known = stage.results.clone();
        match turns.next() {
            None => {
                let arguments = Payload::inline(json!({ "summary": "x".repeat(3000) }).to_string());
                let finish = Part::ToolCall(ToolCall {
                    id: "end".into(),
                    name: "finish".into(),
                    arguments,
                });
                let text = Part::Text {
                    text: Payload::inline("so far"),
                };
                let parts = match call.purpose {
                    Purpose::Summary => vec![text],
                    Purpose::Work => vec![finish],
                };
                stage.respond(&call, parts, Stop::Tools);
                stage.check_snapshot();
            }
            Some(turn) => {
                for (mode, bytes) in &turn.said {
                    stage.say(*mode, *bytes);
                }
                stage.answer(&call, turn);
                stage.check_snapshot();
                stage.act(&turn.calls);
            }
        }
        // What a summary was made for was cleared for a reason.
        fresh = stage.results.clone();
        fresh.retain(|name, _| !known.contains_key(name) && call.purpose == Purpose::Work);
    }
    stage.check_snapshot();
    stage.check_replay();
    stage
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_request_is_whole_ordered_and_within_its_limit(
        tokens in 3_000..60_000u64,
        results_kept in 0..7usize,
        turns in prop::collection::vec(turn(), 1..30),
    ) {
        play(limits(tokens, results_kept), &turns);
    }
}

fn reads(count: usize, result_bytes: usize) -> Turn {
    let asked = Asked {
        tool: "look",
        argument_bytes: 10,
        result_bytes,
        goes_wrong: false,
    };
    Turn {
        text_bytes: 10,
        has_reasoning: false,
        calls: vec![asked; count],
        stop: Stop::Tools,
        said: Vec::new(),
    }
}

#[test]
fn results_are_seen_before_they_become_pointers() {
    play(limits(80_000, 5), &[reads(6, 10_000)]);
}

#[test]
fn results_too_long_for_any_request_do_not_end_the_run() {
    let stage = play(limits(80_000, 5), &[reads(2, 250_000)]);
    let Due::Ended(ending) = stage.machine.due() else {
        panic!("it goes on");
    };
    assert_eq!(ending.status, Status::Done, "{:?}", ending.result);
}

#[test]
fn a_long_task_reaches_the_helper() {
    let mut turn = reads(1, 10);
    turn.calls[0].tool = "delegate";
    turn.calls[0].argument_bytes = 3000;
    play(limits(80_000, 5), &[turn]);
}

#[test]
fn calls_of_an_answer_that_was_cut_three_times_still_have_results() {
    let mut cut = reads(2, 10);
    cut.stop = Stop::Length;
    let mut first = cut.clone();
    first.said.push((SteerMode::Queue, 10));
    play(limits(80_000, 5), &[first, cut.clone(), cut]);
}

#[test]
fn an_empty_summary_takes_nobodys_place() {
    let mut stage = Stage::new(limits(10_000, 5));
    for _ in 0..10 {
        let call = stage.request().unwrap();
        if call.purpose == Purpose::Summary {
            let before = call.messages.len();
            stage.respond(&call, Vec::new(), Stop::End);
            let next = stage.request().expect("it is asked again");
            assert_eq!(next.purpose, Purpose::Summary);
            assert!(next.messages.len() >= before);
            return;
        }
        let turn = reads(1, 8_000);
        stage.answer(&call, &turn);
        stage.act(&turn.calls);
    }
    panic!("no summary was asked for");
}

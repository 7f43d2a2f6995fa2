//! A small graph of its own: two branches that meet, a loop with a limit, a person.

use std::sync::Arc;

use selvedge_ledger::{Event, Hash, LedgerError, Payload, StreamId, Time};
use selvedge_runtime::{Act, Due, EffectId, Ending, Machine, Question, QuestionAnswered, Status};
use serde::Serialize;
use serde_json::{json, value::to_raw_value};

use super::{Came, Flow, Graph, Row, State, Step, Table, Transition, Visit};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Start,
    Left,
    Right,
    Meet,
    End,
}

impl State for Place {
    fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Left => "left",
            Self::Right => "right",
            Self::Meet => "meet",
            Self::End => "end",
        }
    }
}

#[derive(Default)]
struct Walk {
    again: bool,
    heard: Vec<String>,
}

const fn row(state: Place, waits_for: &'static [Place], forks: bool) -> Row<Place> {
    Row {
        state,
        purpose: "",
        waits_for,
        forks,
        human: false,
    }
}

const fn to(
    from: Place,
    to: Place,
    guard: fn(&Walk) -> bool,
    limit: Option<u32>,
) -> Transition<Walk> {
    Transition {
        from,
        to,
        when: "so",
        guard,
        limit,
    }
}

const ROWS: &[Row<Place>] = &[
    row(Place::Start, &[], true),
    row(Place::Left, &[], false),
    row(Place::Right, &[], false),
    row(
        Place::Meet,
        &[Place::Start, Place::Left, Place::Right],
        false,
    ),
    row(Place::End, &[], false),
];

static TABLE: Table<Walk> = Table {
    start: Place::Start,
    end: Place::End,
    rows: ROWS,
    transitions: &[
        to(Place::Start, Place::Left, |_| true, None),
        to(Place::Start, Place::Right, |_| true, None),
        to(Place::Left, Place::Meet, |_| true, None),
        to(Place::Right, Place::Meet, |_| true, None),
        to(Place::Meet, Place::Start, |walk| walk.again, Some(2)),
        to(Place::Meet, Place::End, |_| true, None),
    ],
};

impl Flow for Walk {
    type State = Place;

    fn table() -> &'static Table<Self> {
        &TABLE
    }

    fn begin(&mut self, _: &StreamId, started: &str) -> Result<(), LedgerError> {
        self.again = started.contains("again");
        Ok(())
    }

    fn steps(&self, visit: Visit<Place>) -> Vec<Step> {
        let question = Question {
            text: "?".into(),
            options: Vec::new(),
            approval: None,
        };
        let step = |name: &str| Step {
            name: name.into(),
            act: Act::Ask(question.clone()),
        };
        match visit.state {
            Place::Left => vec![step("")],
            Place::Right => vec![step("a"), step("b")],
            _ => Vec::new(),
        }
    }

    fn came(&mut self, visit: Visit<Place>, step: &str, _: Came) {
        self.heard
            .push(format!("{}{}{step}", visit.state.name(), visit.number));
    }

    fn ending(&self) -> Ending {
        Ending {
            status: Status::Done,
            result: Payload::inline(self.heard.join(" ")),
            data: None,
        }
    }
}

fn tell(graph: &mut Graph<Walk>, kind: &str, data: &impl Serialize) {
    let event = Event {
        stream: StreamId::new("s"),
        seq: 1,
        time: Time(0),
        actor: "driver".into(),
        kind: kind.into(),
        version: 1,
        cause: None,
        data: Arc::from(to_raw_value(data).unwrap()),
        hash: Hash::ZERO,
    };
    graph.apply(&event).unwrap();
}

fn answer(graph: &mut Graph<Walk>, effect: &str) {
    let answered = QuestionAnswered {
        effect: EffectId::new(effect),
        answer: Payload::inline("yes"),
        by: "user".into(),
        letter: 1,
    };
    tell(graph, "QuestionAnswered", &answered);
}

fn due(graph: &Graph<Walk>) -> Vec<String> {
    match graph.due() {
        Due::Effects(effects) => effects.iter().map(|effect| effect.id.to_string()).collect(),
        Due::Idle => vec!["idle".into()],
        Due::Ended(ending) => vec![format!("ended: {}", ending.result.text().unwrap())],
    }
}

#[test]
fn branches_run_side_by_side_and_go_on_as_one_when_all_are_done() {
    let mut graph = Graph::<Walk>::default();
    assert_eq!(due(&graph), ["idle"]);
    tell(&mut graph, "RunStarted", &json!({ "spec": "once" }));
    assert_eq!(due(&graph), ["left1", "right1.a", "right1.b"]);
    answer(&mut graph, "right1.b");
    answer(&mut graph, "left1");
    assert_eq!(due(&graph), ["right1.a"]);
    // What is answered twice counts once, and what was left is not heard any more.
    answer(&mut graph, "left1");
    answer(&mut graph, "right1.a");
    assert_eq!(due(&graph), ["ended: right1b left1 right1a"]);
    let meetings = graph
        .path()
        .iter()
        .filter(|walked| walked.visit.state == Place::Meet);
    assert_eq!(meetings.count(), 1);
}

#[test]
fn a_transition_with_a_limit_is_taken_so_often_and_then_the_next_one() {
    let mut graph = Graph::<Walk>::default();
    tell(&mut graph, "RunStarted", &json!({ "spec": "again" }));
    for round in 1..=3 {
        for step in ["left", "right.a", "right.b"] {
            let (state, rest) = step
                .split_once('.')
                .map_or((step, String::new()), |(s, r)| (s, format!(".{r}")));
            answer(&mut graph, &format!("{state}{round}{rest}"));
        }
    }
    assert!(due(&graph)[0].starts_with("ended"), "{:?}", graph.path());
}

#[test]
fn what_is_wrong_with_a_table_is_named() {
    assert!(TABLE.faults().is_empty());
    static CIRCLE: Table<Walk> = Table {
        start: Place::Start,
        end: Place::End,
        rows: ROWS,
        transitions: &[
            to(Place::Start, Place::Left, |_| true, None),
            to(Place::Left, Place::Start, |_| true, None),
            to(Place::Left, Place::End, |_| true, None),
        ],
    };
    let faults = CIRCLE.faults().join("; ");
    for fault in [
        "`right` is never reached",
        "`start` is on a circle without a limit",
    ] {
        assert!(faults.contains(fault), "{faults}");
    }
}

//! Runs a table of cases, twice: once with a user who allows nothing, and once with one
//! who allows everything that is asked about.
//!
//! In the first run rules hold what they know, in the second only those that forbid; what
//! passes them meets the tools and the kernel. Each attack says what it meets in either.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::ground::{Ground, SONG};

/// A numbered case of the threat model.
#[derive(Clone)]
pub struct Case {
    pub number: u32,
    pub attacks: Vec<Attack>,
    pub twins: Vec<Twin>,
}

/// One call, and what becomes of it.
#[derive(Clone)]
pub struct Attack {
    call: Value,
    careful: End,
    careless: End,
}

/// How an attack ends.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// It is not begun, and on record is the rule that says so, with this in its words.
    Rule(&'static str),
    /// A tool or the kernel refuses, and the result on record says so, in these words.
    Held(&'static str),
    /// It goes through and reaches nothing: what it met was its own.
    Nothing,
    /// It goes through, reaches nothing, and its result has one of these words.
    Told(&'static [&'static str]),
}

/// A harmless call of the same kind, and what must be in its result.
#[derive(Clone)]
pub struct Twin {
    call: Value,
    result: &'static str,
}

use End::{Held, Nothing, Rule, Told};

pub fn case(number: u32, attacks: Vec<Attack>, twins: Vec<Twin>) -> Case {
    Case {
        number,
        attacks,
        twins,
    }
}

/// A command, and how it ends where nothing is allowed and where everything is.
pub fn sh(command: &str, careful: End, careless: End) -> Attack {
    call(
        "run_command",
        json!({ "command": command }),
        careful,
        careless,
    )
}

/// Any call, and how it ends.
pub fn call(tool: &str, input: Value, careful: End, careless: End) -> Attack {
    Attack {
        call: json!({ tool: input }),
        careful,
        careless,
    }
}

/// A call that a tool refuses, whoever allows what.
pub fn refused(tool: &str, input: Value, words: &'static str) -> Attack {
    call(tool, input, Held(words), Held(words))
}

/// A harmless command.
pub fn ok(command: &str, result: &'static str) -> Twin {
    ok_call("run_command", json!({ "command": command }), result)
}

/// A harmless call.
pub fn ok_call(tool: &str, input: Value, result: &'static str) -> Twin {
    Twin {
        call: json!({ tool: input }),
        result,
    }
}

/// What is on record of one call.
#[derive(Default)]
struct Record {
    verdict: Value,
    outcome: Value,
    begun: bool,
}

/// Runs the cases on ground of their own, once in each manner. `lay_out` adds to the
/// ground, `look` looks at what is left of it.
pub fn run(lay_out: &dyn Fn(&Ground), cases: &[Case], look: &dyn Fn(&Ground)) {
    run_as("solo", lay_out, cases, look);
}

/// The same by another crew than the engineer's.
pub fn run_as(crew: &str, lay_out: &dyn Fn(&Ground), cases: &[Case], look: &dyn Fn(&Ground)) {
    for approve in ["never", "auto"] {
        let mut ground = Ground::new(lay_out);
        let arguments = ["--crew", crew, "--approve", approve, "do it"];
        let records = records(&ground, cases, &arguments);
        let mut wrong = Vec::new();
        let mut ruled = 0;
        for (at, case) in cases.iter().enumerate() {
            let mut calls = records[at].iter();
            for attack in &case.attacks {
                let end = match approve {
                    "never" => attack.careful,
                    _ => attack.careless,
                };
                ruled += usize::from(matches!(end, Rule(_)));
                let record = calls.next().unwrap();
                if !record.is(end) {
                    wrong.push(record.told(case.number, &attack.call, &format!("{end:?}")));
                }
            }
            for twin in &case.twins {
                let record = calls.next().unwrap();
                if !(record.begun && record.is_fine() && record.says(twin.result)) {
                    wrong.push(record.told(case.number, &twin.call, twin.result));
                }
            }
        }
        let wrong = wrong.join("\n");
        assert!(wrong.is_empty(), "--approve {approve}\n{wrong}");
        is_on_record(&ground, ruled);
        ground.is_as_it_was();
        look(&ground);
    }
}

/// What is on record of each call, case by case.
fn records(ground: &Ground, cases: &[Case], arguments: &[&str]) -> Vec<Vec<Record>> {
    let mut script = String::new();
    for case in cases {
        let attacks = case.attacks.iter().map(|attack| &attack.call);
        let calls: Vec<&Value> = attacks.chain(case.twins.iter().map(|t| &t.call)).collect();
        let calls = serde_json::to_string(&calls).unwrap();
        script.push_str(&format!("- calls: {}\n", ground.fill(&calls)));
    }
    script.push_str("- text: done");
    let mut command = ground.world.run_command(&script, arguments);
    let path = std::env::var("PATH").unwrap_or_default();
    // What the repository brings is found first, by whoever looks there.
    let path = format!("{}/bin:{path}", ground.world.work().display());
    let command = command.env("HOME", ground.at("user")).env("PATH", path);
    let output = ground.world.output(command);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let session = ground.world.session();
    let shown = ground.world.selvedge(&["sessions", "show", &session]);
    for text in [&output.stderr, &output.stdout, &shown.stdout] {
        assert!(
            !text.contains('\u{1b}'),
            "the terminal is steered: {text:?}"
        );
        assert!(!text.contains(SONG), "it was read out: {text}");
    }
    let events = ground
        .world
        .selvedge(&["sessions", "events", &session, "--json"]);
    assert!(!events.stdout.contains(SONG), "{}", events.stdout);
    let mut found: BTreeMap<String, Record> = BTreeMap::new();
    for line in events.stdout.lines() {
        let mut event: Value = serde_json::from_str(line).unwrap();
        let effect = event["data"]["effect"].as_str().unwrap_or_default();
        let record = found
            .entry(effect.trim_end_matches('!').to_owned())
            .or_default();
        match event["kind"].as_str() {
            Some("JudgementFinished") => record.verdict = event["data"]["outcome"].take(),
            Some("ToolCallStarted") => record.begun = true,
            Some("ToolCallFinished") => record.outcome = event["data"]["outcome"].take(),
            _ => {}
        }
    }
    let of_case = |(turn, case): (usize, &Case)| {
        let count = case.attacks.len() + case.twins.len();
        let name = |at: usize| format!("t{turn}.{at}");
        (0..count)
            .map(|at| found.remove(&name(at)).unwrap_or_default())
            .collect()
    };
    cases.iter().enumerate().map(of_case).collect()
}

/// The audit names what was refused, with a reason each, and nothing of it was altered.
fn is_on_record(ground: &Ground, ruled: usize) {
    let query = ["audit", "query", "--json", "--outcome", "denied"];
    let denied = ground.world.selvedge(&query).stdout;
    let has_reason = |line: &&str| {
        let act: Value = serde_json::from_str(line).unwrap();
        act["detail"]
            .as_str()
            .is_some_and(|words| !words.is_empty())
    };
    let named = denied.lines().filter(has_reason).count();
    assert!(named >= ruled, "{named} of {ruled} are named:\n{denied}");
    let verify = ground.world.selvedge(&["audit", "verify"]);
    assert_eq!(verify.code, 0, "{}", verify.stderr);
}

impl Record {
    fn is(&self, end: End) -> bool {
        match end {
            Rule(words) => {
                let by_rule = |finding: &Value| {
                    let is_said = |text: &Value| text.as_str().is_some_and(|t| !t.is_empty());
                    is_said(&finding["reason"])
                        && is_said(&finding["rule"]["says"])
                        && finding.to_string().contains(words)
                };
                let is_denied = self.verdict["decision"] == "deny" && !self.begun;
                // A file's tool is judged when it is to act, and tells what came of it.
                let is_refused = self.outcome["is_error"] == true;
                (is_denied && by_rule(&self.verdict))
                    || (is_refused && by_rule(&self.outcome["denied"]))
            }
            Held(words) => {
                let is_flagged = self.outcome["facts"]["sandbox_denied"] == true;
                self.verdict["decision"] != "deny"
                    && (self.outcome["is_error"] == true || is_flagged)
                    && self.says(words)
            }
            Nothing => self.begun && !self.outcome.is_null(),
            Told(words) => self.begun && words.iter().any(|words| self.says(words)),
        }
    }

    fn is_fine(&self) -> bool {
        !self.outcome.is_null() && self.outcome["is_error"] != true
    }

    /// Whether its result says so.
    fn says(&self, words: &str) -> bool {
        self.outcome.to_string().contains(words)
    }

    fn told(&self, number: u32, call: &Value, expected: &str) -> String {
        let (begun, verdict, outcome) = (self.begun, &self.verdict, &self.outcome);
        format!(
            "case {number}: {call:.300}\n  expected {expected}; begun: {begun}\n  \
             {verdict:.600}\n  {outcome:.900}"
        )
    }
}

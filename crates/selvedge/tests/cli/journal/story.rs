//! A story of a conversation in, its transcript out.
//!
//! A line of a story says what somebody says: `note` what stands in the notes already, a
//! verb what the user types, an agent's name what that agent answers, the first line of an
//! agent its first answer. The transcript has every agent that was asked, every tool that
//! was used, the way through the graph, what the user reads, and the notes afterwards.

use expect_test::Expect;
use regex::Regex;
use serde_json::{Value, json};

use super::{
    analyzer, command, evaluator, gap, note, observer, parser, planner, retriever, router,
    synthesizer,
};
use crate::world::{Output, World};

const MOMENT_CHARS: usize = "2026-11-10 10:30".len();

/// Tells a story, and compares what comes of it.
pub fn check(story: &str, expected: Expect) {
    let world = World::new();
    let mut inputs: Vec<Input<'_>> = Vec::new();
    for line in story.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (who, what) = line.split_once(':').expect("`who: what`");
        let what = what.trim();
        match (who, inputs.last_mut()) {
            ("note", _) => {
                let (at, text) = what.split_at(MOMENT_CHARS);
                note(&world, text.trim(), at);
            }
            ("log" | "ask" | "journal", _) => inputs.push(Input {
                verb: who,
                text: what,
                said: Vec::new(),
                answers: Vec::new(),
            }),
            ("answer", Some(input)) => input.answers.push(what),
            (agent, Some(input)) => input.said.push((agent, what)),
            (who, None) => panic!("`{who}` says something before the user does"),
        }
    }
    let outputs = inputs.iter().map(|input| input.enter(&world));
    let output = outputs.last().expect("somebody types something");
    expected.assert_eq(&transcript(&world, &output));
}

/// What the user types, and what everybody says to it.
struct Input<'a> {
    verb: &'a str,
    text: &'a str,
    said: Vec<(&'a str, &'a str)>,
    answers: Vec<&'a str>,
}

impl Input<'_> {
    fn enter(&self, world: &World) -> Output {
        let mut agents = serde_json::Map::new();
        for (at, (agent, words)) in self.said.iter().enumerate() {
            let before = self.said[..at].iter().filter(|(other, _)| other == agent);
            let name = format!("{agent}/task-{:03}", before.count() + 1);
            agents.insert(name, said(agent, words));
        }
        let agents = Value::Object(agents);
        let output = world.output(&mut command(world, self.verb, self.text, agents));
        let answer =
            |answer: &&str| world.selvedge(&["answer", &world.session(), answer, "--resume"]);
        self.answers.iter().map(answer).last().unwrap_or(output)
    }
}

/// What an agent answers: its most important field in a word, the rest as JSON.
fn said(agent: &str, words: &str) -> Value {
    let (word, rest) = words.split_once(' ').unwrap_or((words, ""));
    let data = |text: &str| -> Value {
        match text.trim() {
            "" => Value::Null,
            text => serde_json::from_str(text).unwrap_or_else(|e| panic!("{text}: {e}")),
        }
    };
    let ids: Vec<&str> = rest.split_whitespace().collect();
    let mut answer = match agent {
        "router" => router(word, &[]),
        "planner" => planner(word, json!([{ "range": "past 2 months" }])),
        "retriever" => return retriever(json!([{ "range": words }])),
        "analyzer" if word == "sufficient" => return analyzer(word, &ids, json!([])),
        "analyzer" => {
            let (kind, what) = rest.split_once(' ').expect("`insufficient topical what`");
            return analyzer(word, &[], json!([gap(what, kind, None)]));
        }
        "synthesizer" => {
            let (text, cited) = words.split_once(" <- ").unwrap_or((words, ""));
            return synthesizer(text, &cited.split_whitespace().collect::<Vec<_>>());
        }
        "evaluator" => return evaluator(word),
        "clarifier" => {
            return json!({ "context_explanation": "Your notes do not say.",
                "questions": [{ "question": words, "gap_addressed": words }],
                "fallback_action": "" });
        }
        "parser" => parser(json!({})),
        "observer" => observer(),
        other => panic!("there is no agent `{other}`"),
    };
    let more = match agent {
        "parser" | "observer" => data(words),
        _ => data(rest),
    };
    for (name, value) in more.as_object().into_iter().flatten() {
        answer[name] = value.clone();
    }
    answer
}

/// A note that comes with a question is dealt with beside it, in whichever order. Told is
/// the note's part first.
fn note_first(lines: Vec<String>) -> Vec<String> {
    let is_its = |line: &&String| line.starts_with("parse") || line.starts_with("store");
    let at = lines
        .iter()
        .rposition(|line| line.starts_with("build_context"));
    let at = at.map_or(0, |at| at + 1);
    let (before, after) = lines.split_at(at);
    let own = after.iter().filter(is_its);
    let rest = after.iter().filter(|line| !is_its(line));
    before.iter().chain(own).chain(rest).cloned().collect()
}

fn transcript(world: &World, output: &Output) -> String {
    let session = world.session();
    let events = world
        .selvedge(&["sessions", "events", &session, "--json"])
        .stdout;
    let events: Vec<Value> = events
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut lines = Vec::new();
    for event in events
        .iter()
        .filter(|event| event["stream"] == session.as_str())
    {
        let data = &event["data"];
        let effect = data["effect"].as_str().unwrap_or_default();
        let word = |value: &Value| value.as_str().unwrap_or_default().trim().to_owned();
        lines.push(match event["kind"].as_str().unwrap() {
            "ChildFinished" => {
                let data = &data["ending"]["data"];
                let verdict = ["overall_verdict", "verdict", "next_action", "input_type"];
                let verdict = verdict.iter().find_map(|name| data[name].as_str());
                format!("{effect:<18} {}", verdict.unwrap_or("answered"))
            }
            "ToolCallFinished" => format!("{effect:<18} {}", word(&data["outcome"]["text"])),
            "QuestionAsked" => {
                let text = word(&data["question"]["text"]).replace('\n', " ");
                format!("{effect:<18} asks: {text}")
            }
            "QuestionAnswered" => format!("{effect:<18} the user: {}", word(&data["answer"])),
            _ => continue,
        });
    }
    let mut lines = note_first(lines);
    let shown = world.selvedge(&["sessions", "show", &session]).stdout;
    let states = Regex::new(r"^\s*([a-z_]+) → ([a-z_]+)( \(\d\))?: (.*)$").unwrap();
    let path = shown.lines().filter_map(|line| states.captures(line));
    lines.push(String::new());
    let path = path.map(|way| {
        format!(
            "{} → {}{}: {}",
            &way[1],
            &way[2],
            way.get(3).map_or("", |n| n.as_str()),
            &way[4]
        )
    });
    lines.extend(note_first(path.collect()));
    lines.push(format!("\nexit {}", output.code));
    lines.push(output.stdout.trim_end().to_owned());
    lines.push("\nthe notes:".to_owned());
    for note in super::notes(world) {
        let parsed = match &note["domain_data"] {
            Value::Object(data) if !data.is_empty() => format!(" {}", note["domain_data"]),
            _ => String::new(),
        };
        let corrects = note["corrects"]
            .as_str()
            .map_or(String::new(), |id| format!(" corrects {id}"));
        let text = note["text"].as_str().unwrap().replace('\n', " / ");
        lines.push(format!(
            "{}{corrects} {} {text}{parsed}",
            note["id"].as_str().unwrap(),
            note["parse"].as_str().unwrap()
        ));
    }
    // The end of an id follows from that of the session.
    let suffix = Regex::new(r"(\d{4}-\d\d-\d\dT\d\d:\d\d)-[0-9a-f]{6}").unwrap();
    let text = lines.join("\n");
    let text = suffix.replace_all(&text, "$1-ID");
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    format!("{}\n", lines.join("\n"))
}

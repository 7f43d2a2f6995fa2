//! The tools as an agent meets them: arguments in, an answer out.

use std::collections::BTreeSet;
use std::sync::Arc;

use selvedge_knowledge::{
    Conflict, ConflictKind, Domain, EdgeType, Hashed, Index, Node, NodeType, Summary, Time, tokens,
};
use selvedge_tool::Caller;
use serde_json::{Value, json};

use super::{
    Asked, Lookup, OpenIndex, academic, answers, archivalist, knowledge_tools, librarian, memory,
};

struct Desk {
    _folder: tempfile::TempDir,
    index: Index,
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(|| Time(4_000_000_000_000));
        let index = Index::open(&folder.path().join("index.db"), Arc::new(Hashed), clock).unwrap();
        let code = |id: &str, name: &str, text: &str| {
            let mut node = Node::new(id, NodeType::Function, name)
                .with_content(text)
                .verified();
            node.path = Some("src/retry.rs".into());
            node.lines = Some((3, 9));
            node
        };
        index
            .put(&[
                code(
                    "code:src/retry.rs#backoff",
                    "backoff",
                    "waits before sending again",
                ),
                code(
                    "code:src/retry.rs#send",
                    "send",
                    "sends the request, then backoff",
                ),
                Node::new("doc:a", NodeType::Documentation, "Retrying")
                    .with_content("Wait longer after every failure, and give up in the end.")
                    .verified(),
            ])
            .unwrap();
        index
            .link(
                "code:src/retry.rs#send",
                "code:src/retry.rs#backoff",
                EdgeType::Calls,
                1.0,
            )
            .unwrap();
        Self {
            _folder: folder,
            index,
        }
    }

    fn ask(&self, name: &str, input: Value) -> Value {
        let caller = Caller {
            agent: "librarian".into(),
            session: "s1".into(),
        };
        let asked = Asked {
            index: &self.index,
            caller: &caller,
            input: &input,
        };
        (lookup(name).act)(&asked).unwrap()
    }
}

fn all() -> impl Iterator<Item = &'static Lookup> {
    let tables = [
        librarian::LOOKUPS,
        archivalist::LOOKUPS,
        academic::LOOKUPS,
        answers::LOOKUPS,
        memory::LOOKUPS,
    ];
    tables.into_iter().flatten()
}

fn lookup(name: &str) -> &'static Lookup {
    all().find(|lookup| lookup.name == name).unwrap()
}

fn ids(answer: &Value) -> Vec<&str> {
    let results = answer["results"].as_array().unwrap();
    results
        .iter()
        .map(|result| result["id"].as_str().unwrap())
        .collect()
}

#[test]
fn every_tool_has_a_name_of_its_own_and_a_schema_that_holds_together() {
    let mut names = BTreeSet::new();
    for lookup in all() {
        assert!(names.insert(lookup.name), "{}", lookup.name);
        let schema = lookup.spec().schema;
        assert!(
            jsonschema::validator_for(&schema).is_ok(),
            "{}",
            lookup.name
        );
        for required in lookup.required {
            assert!(schema["properties"].get(required).is_some(), "{required}");
        }
    }
    assert_eq!(names.len(), 42);
}

fn unopened() -> OpenIndex {
    Arc::new(|_| unreachable!("nothing is asked"))
}

#[test]
fn tools_come_in_bundles_and_open_nothing_before_they_are_used() {
    let tools = knowledge_tools(&unopened());
    let of = |bundle: &str| {
        tools
            .iter()
            .filter(|tool| tool.bundle() == Some(bundle))
            .count()
    };
    assert_eq!(
        (
            of("librarian"),
            of("archivalist"),
            of("academic"),
            of("answers"),
            of("memory")
        ),
        (10, 12, 7, 3, 10)
    );
}

#[test]
fn a_search_without_a_match_is_short_and_hints_at_what_there_is() {
    let desk = Desk::new();
    let none = desk.ask("search_code", json!({ "query": "zygomorphic quagga" }));
    assert_eq!(none["status"], "no_matches");
    assert!(tokens(&none.to_string()) < 60);
    let elsewhere = desk.ask("search_code", json!({ "query": "give up" }));
    assert_eq!(elsewhere["hint"], "there are matches in: academic");
    let found = desk.ask(
        "search_code",
        json!({ "query": "waiting before it is sent again" }),
    );
    assert_eq!(ids(&found)[0], "code:src/retry.rs#backoff");
    assert_eq!(found["results"][0]["at"], "src/retry.rs:3");
}

#[test]
fn one_search_of_all_domains_is_grouped() {
    let desk = Desk::new();
    for n in 0..9 {
        let summary = Summary {
            content: format!("Report {n}: retrying with a longer wait."),
            summary_type: "task_completion".into(),
            session: Some("s1".into()),
            ..Summary::default()
        };
        desk.index.store_summary(&summary).unwrap();
    }
    let answer = desk.ask("search_all", json!({ "query": "wait backoff retrying" }));
    for domain in Domain::ALL {
        let group = answer["results"][domain.name()].as_array().unwrap();
        assert!((1..=5).contains(&group.len()), "{answer}");
    }
}

#[test]
fn a_smart_search_keeps_to_its_budget_and_repeats_nothing() {
    let desk = Desk::new();
    let long = Node::new("doc:long", NodeType::Documentation, "Long")
        .with_content("wait before sending again ".repeat(400));
    desk.index.put(&[long]).unwrap();
    for budget in [50, 120, 1_000] {
        let input = json!({ "query": "wait before sending again", "budget": budget });
        let answer = desk.ask("smart_search", input);
        assert!(answer["tokens_used"].as_u64().unwrap() <= budget);
        let found = ids(&answer);
        let once: BTreeSet<&&str> = found.iter().collect();
        assert_eq!(once.len(), found.len());
    }
}

#[test]
fn a_summary_and_its_code_find_one_another_through_the_tools() {
    let desk = Desk::new();
    let stored = desk.ask(
        "store_summary",
        json!({ "content": "Made it gentler.", "summary_type": "feature",
                "code_references": ["backoff"] }),
    );
    let id = stored["node_id"].as_str().unwrap();
    let history = desk.ask("get_history_for_code", json!({ "symbol": "backoff" }));
    assert_eq!(ids(&history), [id]);
    let code = desk.ask("get_code_for_history", json!({ "id": id }));
    assert_eq!(ids(&code), ["code:src/retry.rs#backoff"]);
    // Done again after a crash, it is still one entry.
    let again = desk.ask(
        "store_summary",
        json!({ "content": "Made it gentler.", "summary_type": "feature",
                "code_references": ["backoff"] }),
    );
    assert_eq!(again["node_id"], id);
    assert_eq!(desk.ask("get_session_history", json!({}))["count"], 1);
}

#[test]
fn what_is_not_said_is_as_documented() {
    let desk = Desk::new();
    for (n, content) in ["first", "second"].into_iter().enumerate() {
        let node = Node::new(format!("h{n}"), NodeType::Decision, content);
        let mut node = node.with_content(content).at(Time(1_000 + n as i64));
        node.session = Some("s1".into());
        desk.index.put(&[node]).unwrap();
    }
    assert_eq!(
        ids(&desk.ask("get_session_history", json!({}))),
        ["h0", "h1"]
    );
    let newest = desk.ask("get_session_history", json!({ "chronological": false }));
    assert_eq!(ids(&newest), ["h1", "h0"]);
    let paper =
        Node::new("paper", NodeType::Paper, "On waiting").with_content("failure and waiting");
    desk.index.put(&[paper.verified()]).unwrap();
    let both = desk.ask("research", json!({ "question": "waiting after failure" }));
    let sources = both["sources"].to_string();
    assert!(
        sources.contains("paper") && sources.contains("doc:a"),
        "{both}"
    );
    let input = json!({ "question": "waiting after failure", "include_papers": false });
    assert!(
        !desk.ask("research", input)["sources"]
            .to_string()
            .contains("paper")
    );
}

#[test]
fn dependents_are_followed_and_a_symbol_is_shown_with_its_source() {
    let desk = Desk::new();
    let used = desk.ask(
        "get_dependents",
        json!({ "symbol": "backoff", "edge_type": "calls" }),
    );
    assert_eq!(ids(&used), ["code:src/retry.rs#send"]);
    let symbol = desk.ask(
        "get_symbol",
        json!({ "symbol": "send", "include_source": true }),
    );
    assert_eq!(symbol["source"], "sends the request, then backoff");
    let unknown = desk.ask("get_symbol", json!({ "symbol": "nowhere" }));
    assert_eq!(unknown["status"], "no_matches");
}

#[test]
fn notes_and_failures_are_kept_for_the_caller() {
    let desk = Desk::new();
    desk.ask(
        "scratchpad_write",
        json!({ "key": "plan", "note": "small steps" }),
    );
    assert_eq!(
        desk.ask("scratchpad_read", json!({ "key": "plan" }))["content"],
        "small steps"
    );
    assert_eq!(
        desk.ask("scratchpad_read", json!({ "key": "none" }))["exists"],
        false
    );
    let approach = "parse the config with a regular expression";
    assert_eq!(
        desk.ask("check_approach", json!({ "approach": approach }))["safe_to_proceed"],
        true
    );
    desk.ask(
        "record_failure",
        json!({ "approach": approach, "error": "nested tables" }),
    );
    let warned = desk.ask("check_approach", json!({ "approach": approach }));
    assert_eq!(warned["known_failures"], true);
    let saved = json!({ "summary": "t", "completed": [], "next_steps": ["go on"] });
    desk.ask("save_checkpoint", saved);
    let resumed = desk.ask("resume_task", json!({ "task_id": "latest" }));
    assert_eq!(resumed["hint"], "continue with: go on");
}

#[test]
fn an_answer_is_recalled_in_other_words_and_only_if_it_was_sure() {
    let desk = Desk::new();
    let asked = |subject: &str| json!({ "intent": "explain", "subject": subject });
    let unknown = desk.ask("recall_answer", asked("the backoff of the gate"));
    assert_eq!(unknown["found"], false);
    let mut answer = asked("the backoff of the gate");
    answer["answer"] = "It doubles [1].".into();
    answer["files"] = json!(["src/retry.rs"]);
    let mut unsure = answer.clone();
    unsure["confidence"] = 0.5.into();
    assert_eq!(desk.ask("keep_answer", unsure)["kept"], false);
    assert_eq!(desk.ask("keep_answer", answer)["kept"], true);
    let recalled = desk.ask("recall_answer", asked("gate backoff?"));
    assert_eq!(recalled["answer"], "It doubles [1].");
    let checked = desk.ask(
        "check_citations",
        json!({ "answer": "It doubles [1], nine times [9].", "sources": ["doc:a"] }),
    );
    assert_eq!(checked["sources"], json!(["doc:a"]));
    assert_eq!(checked["fabricated"], json!([9]));
}

#[test]
fn what_may_break_comes_with_its_files_and_what_was_done_before() {
    let desk = Desk::new();
    let done = json!({ "content": "Made it gentler.", "summary_type": "bug_fix",
                       "code_references": ["backoff"] });
    desk.ask("store_summary", done);
    let radius = desk.ask("get_blast_radius", json!({ "symbol": "backoff" }));
    assert_eq!(ids(&radius), ["code:src/retry.rs#send"]);
    assert_eq!(radius["files"], json!(["src/retry.rs"]));
    assert_eq!(radius["history"][0]["kind"], "bug_fix");
}

#[test]
fn a_decision_is_promoted_judged_and_its_conflicts_are_settled() {
    let desk = Desk::new();
    let decided = json!({ "content": "Use Redis for caching.", "summary_type": "decision" });
    let id = desk.ask("store_summary", decided)["node_id"].clone();
    desk.ask("promote_entry", json!({ "id": id }));
    assert!(desk.index.node(id.as_str().unwrap()).unwrap().promoted);
    let told = desk.ask(
        "mark_decision_outcome",
        json!({ "id": id, "outcome": "failure", "notes": "too much memory" }),
    );
    assert_eq!(told["suggest_alternative"], true);
    let approach = json!({ "approach": "use redis for caching" });
    assert_eq!(desk.ask("get_approach_statistics", approach), told);
    let conflict = Conflict {
        kind: ConflictKind::Semantic,
        subject: "caching".into(),
        node_a: id.as_str().unwrap().into(),
        node_b: "doc:a".into(),
        description: "Redis against none".into(),
        suggestion: "ask".into(),
    };
    desk.index.record_conflicts(&[conflict]).unwrap();
    let open = desk.ask("get_conflicts", json!({}));
    assert_eq!(open["count"], 1);
    let number = &open["conflicts"][0]["id"];
    desk.ask(
        "settle_conflict",
        json!({ "id": number, "resolution": "no cache" }),
    );
    assert_eq!(desk.ask("get_conflicts", json!({}))["count"], 0);
}

#[test]
fn what_does_not_hold_is_shown_as_unverified() {
    let desk = Desk::new();
    let wrong = json!({ "content": "The Scheduler is in src/scheduler.rs and works.",
                        "summary_type": "task_completion" });
    let stored = desk.ask("store_summary", wrong);
    assert_eq!(stored["verified"], false);
    let found = desk.ask("search_history", json!({ "query": "scheduler works" }));
    let shown = &found["results"][0];
    assert_eq!(shown["id"], stored["node_id"]);
    let trust = shown["trust"].as_str().unwrap();
    assert!(trust.starts_with("20 Unverified"), "{trust}");
}

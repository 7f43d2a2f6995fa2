//! What agents remember from one session to the next.

use selvedge_knowledge::{
    Advice, AnswerKey, Attempt, Checkpoint, Filter, Intent, KnowledgeError, MistakeReport,
    NodeType, Origin, Query, Reaction, Summary,
};
use serde_json::json;

use crate::world::{DAY, World};

fn attempt(session: &str, resolution: Option<&str>) -> Attempt {
    Attempt {
        approach: "mock the database connection in integration tests".into(),
        error: "connection refused by the pool".into(),
        context: "tests/it".into(),
        resolution: resolution.map(str::to_owned),
        session: session.into(),
    }
}

#[test]
fn what_failed_before_is_warned_of_in_every_session() {
    let world = World::new();
    let index = world.open();
    index.record_failure(&attempt("s1", None)).unwrap();
    let considered = "mocking database connections for the integration tests of billing";
    let warnings = index.check_approach(considered, "s2").unwrap();
    assert_eq!(warnings[0].advice, Advice::Note);
    index.record_failure(&attempt("s2", None)).unwrap();
    assert_eq!(
        index.check_approach(considered, "s3").unwrap()[0].advice,
        Advice::Warn
    );
    for session in ["s3", "s4", "s5"] {
        index.record_failure(&attempt(session, None)).unwrap();
    }
    let warnings = index.check_approach(considered, "s9").unwrap();
    assert_eq!(warnings.len(), 1, "the same failure is one, with a count");
    assert_eq!(
        (warnings[0].failure.recurrence, warnings[0].advice),
        (5, Advice::Avoid)
    );
    assert!(
        index
            .check_approach("paint the buttons blue", "s9")
            .unwrap()
            .is_empty()
    );
}

#[test]
fn a_repeat_within_a_session_is_escalated_and_a_resolution_reaches_the_others() {
    let world = World::new();
    let index = world.open();
    index.record_failure(&attempt("s1", None)).unwrap();
    let failure = index
        .record_failure(&attempt("s1", Some("use a real one")))
        .unwrap();
    assert_eq!(failure.resolution.as_deref(), Some("use a real one"));
    let warnings = index
        .check_approach(&attempt("", None).approach, "s1")
        .unwrap();
    assert_eq!(warnings[0].advice, Advice::Escalate);
    index.record_outcome(failure.id, "failure").unwrap();
    let statistics = index.record_outcome(failure.id, "success").unwrap();
    assert_eq!(statistics.success_rate, Some(0.5));
    assert!(index.record_outcome(failure.id, "maybe").is_err());
}

#[test]
fn notes_belong_to_a_session_and_are_shared_by_its_agents() {
    let world = World::new();
    let index = world.open();
    index
        .write_note("s1", "engineer", "approach", "small steps")
        .unwrap();
    world.pass(1);
    index
        .write_note("s1", "tester", "approach", "big steps")
        .unwrap();
    let read = |agent: &str| {
        index
            .read_note("s1", agent, "approach")
            .unwrap()
            .unwrap()
            .content
    };
    assert_eq!(read("engineer"), "small steps", "one's own comes first");
    assert_eq!(read("designer"), "big steps", "else the latest");
    assert_eq!(index.read_note("s2", "engineer", "approach").unwrap(), None);
    let refused = index.write_note("s1", "engineer", "all", "x");
    assert!(matches!(refused, Err(KnowledgeError::Request(_))));
}

#[test]
fn a_mistake_that_recurs_grows_surer_and_one_that_does_not_fades() {
    let world = World::new();
    let index = world.open();
    let report = MistakeReport {
        pattern: "comparing floats with equals in assertions".into(),
        error: "flaky test".into(),
        fix: "compare within a tolerance".into(),
        ..MistakeReport::default()
    };
    assert!((index.report_mistake(&report).unwrap().confidence - 0.7).abs() < 1e-9);
    let again = index.report_mistake(&report).unwrap();
    assert_eq!(again.occurrences, 2);
    assert!(again.confidence > 0.7);
    let approach = "compare the floats with equals in an assertion";
    assert_eq!(
        index.check_mistakes(approach).unwrap()[0].fix,
        "compare within a tolerance"
    );
    assert!(
        index
            .check_mistakes("rename a variable")
            .unwrap()
            .is_empty()
    );
    world.pass(700 * DAY);
    assert!(index.check_mistakes(approach).unwrap().is_empty());
}

#[test]
fn preferences_hold_by_their_standing_and_are_learned_in_steps() {
    let world = World::new();
    let index = world.open();
    let held = |session: &str| {
        let all = index.preferences(Some("tools"), session).unwrap();
        all.into_iter()
            .map(|p| (p.value, p.origin))
            .collect::<Vec<_>>()
    };
    let observe = |value: &str, reaction| {
        index
            .observe_preference("tools", "runner", value, reaction, "turn")
            .unwrap();
    };
    observe("nextest", Reaction::Accepted);
    assert_eq!(held("s"), [("nextest".into(), Origin::Implicit)]);
    for _ in 0..4 {
        observe("nextest", Reaction::Accepted);
    }
    observe("cargo test", Reaction::Accepted);
    assert_eq!(
        held("s")[0].0,
        "nextest",
        "one other choice does not wipe a strong preference"
    );
    observe("cargo test", Reaction::Rejected);
    assert_eq!(
        held("s")[0].0,
        "nextest",
        "a rejection of another says nothing"
    );
    for _ in 0..3 {
        observe("nextest", Reaction::Rejected);
    }
    assert!(held("s").is_empty(), "too weak to be used");
    index
        .set_preference("tools", "runner", "make", None, "the user said so")
        .unwrap();
    index
        .set_preference("tools", "runner", "just", Some("s"), "the user said so")
        .unwrap();
    assert_eq!(held("s"), [("just".into(), Origin::Session)]);
    assert_eq!(held("other"), [("make".into(), Origin::Explicit)]);
}

#[test]
fn a_task_is_taken_up_in_another_session_with_its_notes() {
    let world = World::new();
    let index = world.open();
    index
        .write_note("s1", "engineer", "tried", "everything")
        .unwrap();
    let checkpoint = Checkpoint {
        summary: "port the parser".into(),
        completed: vec!["lexer".into()],
        next_steps: vec!["grammar".into()],
        ..Checkpoint::default()
    };
    let saved = index.save_checkpoint("s1", &checkpoint).unwrap();
    let resumed = index.resume_checkpoint("s2", None).unwrap().unwrap();
    assert_eq!(
        (resumed.id, resumed.hint().as_str()),
        (saved.id, "continue with: grammar")
    );
    assert!(
        index
            .read_note("s2", "engineer", "tried")
            .unwrap()
            .is_some()
    );
    assert_eq!(index.resume_checkpoint("s2", Some(99)).unwrap(), None);
    assert!(Checkpoint::default().hint().contains("nothing is left"));
}

#[test]
fn an_answer_is_given_again_until_a_file_it_rests_on_changes() {
    let world = World::new();
    world.write("a.rs", "fn retry() {}\n");
    let (index, _) = world.index();
    let key = |subject: &str, confidence| AnswerKey {
        intent: Intent::Locate,
        subject: subject.into(),
        confidence,
    };
    let files = ["a.rs".to_owned()];
    let reply = json!({ "results": ["a.rs:1"] });
    assert!(
        index
            .keep_answer(&key("the retry function", 0.9), &reply, &files)
            .unwrap()
    );
    let rephrased = index
        .cached_answer(&key("function retry?", 0.9))
        .unwrap()
        .unwrap();
    assert_eq!(rephrased.reply, reply);
    assert_eq!(
        index.cached_answer(&key("function retry", 0.5)).unwrap(),
        None,
        "not sure enough"
    );
    let nothing = json!({ "status": "no_matches" });
    assert!(
        !index
            .keep_answer(&key("elsewhere", 0.9), &nothing, &[])
            .unwrap()
    );
    world.write("a.rs", "\nfn retry() {}\n");
    world.refresh(&index);
    assert_eq!(
        index
            .cached_answer(&key("the retry function", 0.9))
            .unwrap(),
        None
    );
}

#[test]
fn a_question_that_is_nearly_the_same_gets_the_answer_where_no_key_says_what_is_meant() {
    let world = World::new();
    let index = world.open();
    let key = |intent, subject: &str| AnswerKey {
        intent,
        subject: subject.into(),
        confidence: 0.9,
    };
    let reply = json!("in three layers");
    let asked = "how are retries of requests layered between gate and provider";
    let rephrased = "how are the request retries layered between providers and gate";
    let other = "which colours does the terminal use for warnings";
    for intent in [Intent::General, Intent::Explain] {
        index.keep_answer(&key(intent, asked), &reply, &[]).unwrap();
        assert!(index.cached_answer(&key(intent, other)).unwrap().is_none());
    }
    let found = |intent| index.cached_answer(&key(intent, rephrased)).unwrap();
    assert_eq!(found(Intent::General).unwrap().reply, reply);
    assert!(
        found(Intent::Explain).is_none(),
        "its key says what is meant"
    );
}

#[test]
fn what_became_of_an_approach_is_counted() {
    let world = World::new();
    let index = world.open();
    let approach = "parse the settings with regular expressions";
    let none = index.approach_statistics(approach).unwrap();
    assert!(none.outcomes.is_empty() && none.success_rate.is_none());
    let failed = Attempt {
        approach: approach.into(),
        error: "nested tables".into(),
        session: "s1".into(),
        ..Attempt::default()
    };
    index.record_failure(&failed).unwrap();
    let decision = Summary {
        content: "Parse the settings with regular expressions.".into(),
        summary_type: "decision".into(),
        session: Some("s2".into()),
        ..Summary::default()
    };
    let id = index.store_summary(&decision).unwrap().node_id;
    let told = index
        .mark_outcome(&id, "success", "small files only")
        .unwrap();
    assert_eq!(told, index.approach_statistics(approach).unwrap());
    assert_eq!((told.outcomes["failure"], told.outcomes["success"]), (1, 1));
    assert!(!told.suggest_alternative, "half of them went well");
    index.record_failure(&failed).unwrap();
    assert!(
        index
            .approach_statistics(approach)
            .unwrap()
            .suggest_alternative
    );
    assert!(index.mark_outcome(&id, "maybe", "").is_err());
    assert_eq!(
        index.node(&id).unwrap().metadata["notes"],
        "small files only"
    );
}

#[test]
fn an_explanation_is_kept_for_half_an_hour() {
    let world = World::new();
    let index = world.open();
    let key = AnswerKey {
        intent: Intent::Explain,
        subject: "backoff".into(),
        confidence: 0.9,
    };
    index.keep_answer(&key, &json!("it doubles"), &[]).unwrap();
    world.pass(29 * 60_000);
    assert!(index.cached_answer(&key).unwrap().is_some());
    world.pass(60_000);
    assert!(index.cached_answer(&key).unwrap().is_none());
}

#[test]
fn history_stays_in_its_session_until_it_is_promoted_and_failures_do_not() {
    let world = World::new();
    let index = world.open();
    let store = |kind: &str, content: &str| {
        let summary = Summary {
            content: content.into(),
            summary_type: kind.into(),
            session: Some("s1".into()),
            ..Summary::default()
        };
        index.store_summary(&summary).unwrap().node_id
    };
    let decision = store("decision", "Chose postcards over letters for invitations.");
    store(
        "failure",
        "Sending letters as invitations failed at the printer.",
    );
    let seen_by = |reader: &str| {
        let filter = Filter {
            reader: Some(reader.into()),
            ..Filter::default()
        };
        let found = index
            .search(&Query::new("letters invitations").within(filter))
            .unwrap();
        let mut types: Vec<NodeType> = found.hits.iter().map(|hit| hit.node.node_type).collect();
        types.sort();
        types
    };
    assert_eq!(seen_by("s1"), [NodeType::Decision, NodeType::Failure]);
    assert_eq!(seen_by("s2"), [NodeType::Failure]);
    index.promote(&decision).unwrap();
    assert_eq!(seen_by("s2"), [NodeType::Decision, NodeType::Failure]);
}

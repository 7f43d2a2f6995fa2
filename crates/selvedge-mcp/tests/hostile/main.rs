//! A server that does what no server should: its calls fail, and nothing else does.

#[expect(dead_code, reason = "others make places of servers that are good")]
mod place;

use std::sync::Arc;
use std::time::Duration;

use selvedge_mcp::ConnectError;
use selvedge_tool::{Decision, Pattern, Policy, Role, Rules, Sandbox, Source};
use serde_json::json;

use place::{Agreeable, Place, Plan, look, options};

#[tokio::test]
async fn a_good_server_is_started_once_and_answers() {
    let place = Place::with(&[]).await;
    assert!(place.notes().is_empty(), "nothing runs before it is needed");
    for word in ["warp", "weft"] {
        let output = place.call("echo", word).await;
        assert!(!output.is_error, "{}", output.text);
        assert_eq!(output.text, word);
        assert_eq!(output.facts["server"], "weaver");
    }
    assert_eq!(
        place.notes(),
        ["started", "call echo warp", "call echo weft"]
    );
    place.call("write", "hello").await;
    let written = std::fs::read_to_string(place.root().join("written.txt"));
    assert_eq!(written.unwrap(), "hello\n", "it works in the workspace");
}

#[tokio::test]
async fn a_script_that_was_written_since_the_approval_is_not_started() {
    let place = Place::new(Plan {
        edit: |entry| entry.args.push("settings.py".into()),
        ..Plan::default()
    })
    .await;
    std::fs::write(place.root().join("settings.py"), "import os\n").unwrap();
    let output = place.call("echo", "x").await;
    let expected = "changed since it was approved";
    assert!(
        output.is_error && output.text.contains(expected),
        "{}",
        output.text
    );
    assert!(place.notes().is_empty(), "nothing ran");
}

/// Whatever it does, the call fails, the server is left alone from then on, and the
/// next call says so at once.
async fn is_quarantined(way: &str, because: &str) {
    let place = Place::with(&[way]).await;
    let call = place.call("echo", "x");
    let output = tokio::time::timeout(Duration::from_secs(30), call).await;
    let output = output.unwrap_or_else(|_| panic!("`{way}` holds the call up"));
    // One that answers twice has answered once.
    if way != "twice" {
        assert!(output.is_error, "{way}: {}", output.text);
        assert!(output.text.contains(because), "{way}: {}", output.text);
    }
    let again = place.call("echo", "y").await;
    assert!(
        again.is_error && again.text.contains("in quarantine"),
        "{way}: {}",
        again.text
    );
    assert!(again.text.contains(because), "{way}: {}", again.text);
    let calls = |notes: Vec<String>| notes.iter().filter(|n| n.starts_with("call")).count();
    let before = calls(place.notes());
    place.call("echo", "z").await;
    assert_eq!(
        calls(place.notes()),
        before,
        "{way}: it was spoken to again"
    );
}

#[tokio::test]
async fn a_reply_that_is_no_message_puts_a_server_into_quarantine() {
    is_quarantined("malformed", "not JSON").await;
}

#[tokio::test]
async fn a_reply_to_a_question_nobody_asked_puts_a_server_into_quarantine() {
    is_quarantined("wrong-id", "`4711`, which was not asked").await;
}

#[tokio::test]
async fn a_second_reply_to_one_question_puts_a_server_into_quarantine() {
    is_quarantined("twice", "answered before").await;
}

#[tokio::test]
async fn a_reply_of_a_gigabyte_is_not_read_to_its_end() {
    is_quarantined("gigabyte", "more than 16 MB at once").await;
}

#[tokio::test]
async fn a_server_that_talks_without_end_is_not_listened_to() {
    is_quarantined("endless", "without an answer").await;
}

#[tokio::test]
async fn a_long_answer_is_cut_and_kept_whole() {
    let place = Place::with(&["huge"]).await;
    let output = place.call("echo", "x").await;
    assert!(
        output.text.chars().count() < 31_000,
        "{}",
        output.text.len()
    );
    assert!(output.whole.unwrap().len() > 3_000_000);
}

#[tokio::test]
async fn a_server_that_dies_is_started_again_and_in_the_end_left_alone() {
    let place = Place::with(&["die"]).await;
    for n in 1..=2 {
        let output = place.call("echo", "x").await;
        assert!(
            output.text.contains("may or may not have happened"),
            "{}",
            output.text
        );
        assert!(
            output.text.contains("cannot go on: token="),
            "{}",
            output.text
        );
        assert!(!output.text.contains("tok-4f9a8b7c6d5e"), "{}", output.text);
        assert_eq!(
            place
                .notes()
                .iter()
                .filter(|note| *note == "started")
                .count(),
            n
        );
    }
    assert!(place.call("echo", "x").await.text.contains("in quarantine"));
    assert!(place.call("echo", "x").await.text.contains("in quarantine"));
    assert_eq!(
        place
            .notes()
            .iter()
            .filter(|note| *note == "started")
            .count(),
        3
    );
}

#[tokio::test]
async fn a_server_that_does_not_start_says_why() {
    let place = Place::with(&[]).await;
    let around = place.surroundings();
    let Err(error) = look(&around, &options(), &["exit"]).await else {
        panic!("it ends at once");
    };
    assert!(error.to_string().contains("no database here"), "{error}");
    let Err(error) = look(&around, &options(), &["noise"]).await else {
        panic!("that is no message");
    };
    assert!(matches!(error, ConnectError::Fault(_)), "{error}");
    let nowhere = Place::new(Plan {
        edit: |entry| entry.command = Some("no-such-program".into()),
        ..Plan::default()
    });
    let output = nowhere.await.call("echo", "x").await;
    assert!(
        output
            .text
            .contains("there is no program `no-such-program`"),
        "{}",
        output.text
    );
    let unset = Place::new(Plan {
        edit: |entry| drop(entry.env.insert("X".into(), "${NOT_SET}".into())),
        ..Plan::default()
    });
    let output = unset.await.call("echo", "x").await;
    assert!(output.text.contains("`NOT_SET`"), "{}", output.text);
}

#[tokio::test]
async fn a_server_that_does_not_get_ready_is_not_waited_for_without_end() {
    let place = Place::new(Plan {
        ways: &["mute"],
        edit: |entry| entry.startup_seconds = Some(1),
        ..Plan::default()
    });
    let output = place.await.call("echo", "x").await;
    assert!(
        output.text.contains("not ready within 1 s"),
        "{}",
        output.text
    );
}

#[tokio::test]
async fn a_call_that_is_not_answered_is_stopped_at_its_deadline() {
    let place = Place::new(Plan {
        ways: &["silent"],
        edit: |entry| entry.timeout_seconds = Some(1),
        ..Plan::default()
    });
    let output = place.await.call("echo", "x").await;
    assert!(output.is_error);
    assert!(
        output.text.contains("may or may not have happened"),
        "{}",
        output.text
    );
    assert!(output.text.contains("its deadline"), "{}", output.text);
}

#[tokio::test]
async fn a_list_without_end_is_not_read_to_its_end() {
    let place = Place::with(&["pages"]).await;
    assert_eq!(place.call("echo", "x").await.text, "x");
}

#[tokio::test]
async fn a_tool_whose_description_changed_is_disabled_and_the_others_are_not() {
    let place = Place::with(&["changed"]).await;
    let output = place.call("echo", "x").await;
    assert!(output.is_error);
    assert!(
        output.text.contains("`selvedge mcp approve weaver`"),
        "{}",
        output.text
    );
    assert_eq!(output.facts["disabled"], true);
    assert_eq!(place.notes(), ["started"], "it was not called");
    assert_eq!(place.call("write", "x").await.text, "x");
}

#[tokio::test]
async fn a_tool_that_changes_while_it_is_used_is_disabled() {
    let place = Place::with(&["changes"]).await;
    assert_eq!(place.call("echo", "x").await.text, "x");
    let output = place.call("echo", "x").await;
    assert!(output.text.contains("disabled"), "{}", output.text);
}

#[tokio::test]
async fn a_tool_that_nobody_has_seen_is_not_there() {
    let place = Place::with(&["grown"]).await;
    assert_eq!(place.call("echo", "x").await.text, "x");
    let refused = place.toolbox.check("mcp__weaver__steal", "{}").unwrap_err();
    assert!(
        refused.text.contains("there is no tool"),
        "{}",
        refused.text
    );
}

#[tokio::test]
async fn who_asks_for_a_password_is_refused_and_the_model_is_told() {
    let place = Place::new(Plan {
        ways: &["password"],
        clerk: Some(Arc::new(Agreeable)),
        ..Plan::default()
    });
    let output = place.await.call("echo", "x").await;
    assert!(output.text.starts_with("asked: decline"), "{}", output.text);
    assert!(
        output.text.contains("it asks for a secret"),
        "{}",
        output.text
    );
    assert_eq!(output.facts["forms"][0]["action"], "declined");
}

#[tokio::test]
async fn the_user_fills_in_a_form_and_nobody_does_where_nobody_is() {
    let place = Place::new(Plan {
        ways: &["form"],
        clerk: Some(Arc::new(Agreeable)),
        ..Plan::default()
    });
    let output = place.await.call("echo", "x").await;
    let accepted = r#"asked: {"action": "accept", "content": {"branch": "main"}}"#;
    assert!(output.text.starts_with(accepted), "{}", output.text);
    let output = Place::with(&["form"]).await.call("echo", "x").await;
    assert!(
        output.text.starts_with(r#"asked: {"action": "decline"}"#),
        "{}",
        output.text
    );
    assert!(
        output.text.contains("nobody is there to be asked"),
        "{}",
        output.text
    );
}

#[tokio::test]
async fn a_user_is_not_asked_twenty_times() {
    let place = Place::new(Plan {
        ways: &["forms"],
        clerk: Some(Arc::new(Agreeable)),
        ..Plan::default()
    });
    let output = place.await.call("echo", "x").await;
    assert_eq!(
        output.text.matches(",accept").count() + 1,
        5,
        "{}",
        output.text
    );
    assert!(output.text.contains("it asks too often"), "{}", output.text);
}

#[tokio::test]
async fn no_model_is_asked_for_a_server_and_it_knows_one_folder() {
    let output = Place::with(&["sample"]).await.call("echo", "x").await;
    assert!(
        output
            .text
            .contains("no model is asked in the name of a server"),
        "{}",
        output.text
    );
    let place = Place::with(&["roots"]).await;
    let output = place.call("echo", "x").await;
    let expected = format!(
        r#"{{"roots": [{{"uri": "file://{}"}}]}}"#,
        place.root().display()
    );
    assert_eq!(output.text, expected);
}

#[tokio::test]
async fn progress_is_shown_as_it_is_made() {
    let place = Place::with(&["progress"]).await;
    place.call("echo", "x").await;
    let shown = place.output.lock().unwrap().clone();
    assert!(shown.contains("2/3 weaving"), "{shown}");
}

#[tokio::test]
async fn a_server_sees_neither_keys_nor_the_home_nor_what_is_outside() {
    let place = Place::new(Plan {
        ways: &["look"],
        sandbox: Sandbox::default(),
        edit: |entry| {
            let home = std::env::var("HOME").unwrap();
            let look_at = format!("{home}/.ssh/id_ed25519:/etc/shadow:/proc/1/environ");
            entry.env.insert("LOOK_AT".into(), look_at);
        },
        ..Plan::default()
    });
    let place = place.await;
    let output = place.call("echo", "x").await;
    assert!(!output.is_error, "{}", output.text);
    let seen: serde_json::Value = serde_json::from_str(&output.text).unwrap();
    let names = seen["environment"].to_string();
    for secret in ["API_KEY", "SSH_AUTH_SOCK", "SELVEDGE_", "AWS_"] {
        assert!(!names.contains(secret), "{secret} in {names}");
    }
    assert!(names.contains("SERVICE_TOKEN"), "what it was handed it has");
    for (place, said) in seen
        .as_object()
        .unwrap()
        .iter()
        .filter(|(k, _)| k.starts_with('/'))
    {
        let said = said.as_str().unwrap();
        let is_kept = ["No such file or directory", "Permission denied", ""].contains(&said);
        // In a world of its own, the first process is the supervisor.
        assert!(is_kept || place.starts_with("/proc"), "{place}: {said}");
        assert!(!said.contains("HOME="), "{place}: {said}");
    }
    let outside = place.call("write", "x").await;
    assert!(
        !outside.is_error,
        "the workspace can be written: {}",
        outside.text
    );
}

#[tokio::test]
async fn a_call_is_asked_about_unless_a_rule_says_otherwise() {
    let place = Place::with(&[]).await;
    let rules = |allow: &[&str], deny: &[&str]| {
        let patterns = |words: &[&str]| words.iter().map(|word| Pattern::new(*word)).collect();
        let rules = Rules {
            allow: patterns(allow),
            deny: patterns(deny),
            ..Rules::default()
        };
        Policy::default().with(Source::User, rules)
    };
    let observer = Policy {
        role: Role::Observer,
        ..Policy::default()
    };
    for (policy, echo, write) in [
        (Policy::default(), Decision::Ask, Decision::Ask),
        (
            rules(&["@mcp weaver/echo"], &[]),
            Decision::Allow,
            Decision::Ask,
        ),
        (
            rules(&["@mcp weaver/*"], &["@mcp */write"]),
            Decision::Allow,
            Decision::Deny,
        ),
        (
            rules(&["@tool mcp__*"], &[]),
            Decision::Allow,
            Decision::Allow,
        ),
        (rules(&["@mcp other/*"], &[]), Decision::Ask, Decision::Ask),
        (observer, Decision::Deny, Decision::Deny),
    ] {
        assert_eq!(
            place.decision("echo", policy.clone()).await,
            echo,
            "{policy:?}"
        );
        assert_eq!(
            place.decision("write", policy.clone()).await,
            write,
            "{policy:?}"
        );
    }
}

#[tokio::test]
async fn an_approval_is_bound_to_what_was_approved_of_the_tool_and_of_the_server() {
    let place = Place::with(&[]).await;
    let other = Place::with(&["changed"]).await;
    let input = json!({"text": "x"});
    let first = place.judge("echo", input.clone(), Policy::default()).await;
    assert_eq!(first.decision(), Decision::Ask);
    let again = place.judge("echo", input.clone(), Policy::default()).await;
    assert_eq!(first.lasting, again.lasting);
    let more = place
        .judge("echo", json!({"text": "y"}), Policy::default())
        .await;
    assert_ne!(first.lasting, more.lasting);
    let write = place.judge("write", input.clone(), Policy::default()).await;
    assert_ne!(first.lasting, write.lasting);
    let other = other.judge("echo", input, Policy::default()).await;
    assert_ne!(first.lasting, other.lasting);
}

#[tokio::test]
async fn a_server_s_own_word_does_not_make_a_tool_harmless_and_the_user_s_does() {
    let nature = |place: &Place, tool: &str| place.toolbox.spec(tool).unwrap().world.nature();
    let place = Place::with(&[]).await;
    use selvedge_tool::World;
    assert_eq!(nature(&place, "mcp__weaver__echo"), World::Runs.nature());
    let place = Place::new(Plan {
        edit: |entry| entry.read_only = vec!["ec*".into()],
        ..Plan::default()
    });
    let place = place.await;
    assert_eq!(nature(&place, "mcp__weaver__echo"), World::Reads.nature());
    assert_eq!(nature(&place, "mcp__weaver__write"), World::Runs.nature());
    assert_eq!(place.toolbox.bundle("mcp__weaver__echo"), Some("weaver"));
}

//! What becomes of model calls: outages, broken answers, limits, salvage.

use expect_test::expect;
use serde_json::json;

use crate::check;
use crate::story::story;

#[test]
fn a_provider_that_is_down_is_a_pause_that_ends_by_itself() {
    for kind in ["transient", "degraded", "rate_limited"] {
        check(
            story(&format!("- error: {{kind: {kind}}}\n- text: back again\n")),
            expect![[r#"
                RunStarted do it
                ModelCallStarted m0 attempt=1 messages=1
                ModelCallInterrupted m0
                RunPaused provider
                RunResumed provider
                ModelCallStarted m0 attempt=2 messages=1
                ModelCallFinished m0
                RunFinished done back again
            "#]],
        );
    }
}

#[test]
fn what_a_person_must_fix_waits_for_a_person() {
    check(
        story(
            "
            - error: {kind: user_fixable, what: the key was refused}
            - text: never heard
            ",
        ),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallInterrupted m0
            RunPaused provider
        "#]],
    );
}

#[test]
fn an_answer_that_breaks_off_is_kept_and_marked_and_the_next_begins_from_nothing() {
    check(
        story(
            "
            - error: {kind: transient, what: the stream was cut, after: I was about to}
            - text: fine
            ",
        )
        .attempts(3),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallInterrupted m0 "I was about to" (scripted: the stream was cut)
            ModelCallStarted m0 attempt=2 messages=1
            ModelCallFinished m0
            RunFinished done fine
        "#]],
    );
}

#[test]
fn an_agents_own_limit_parks_its_run() {
    let engineer = "---\nname: engineer\ndescription: Works.\ntools: [list_files]\n\
                    limits:\n  tokens: 30000\n---\nWork.\n";
    check(
        story(
            "
            - calls:
                - list_files: {}
              usage: {input: 25000, output: 10}
            - text: never heard
            ",
        )
        .crew("frugal", vec![("engineer", engineer)], ""),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            ToolCallStarted t0.0 list_files attempt=1
            ToolCallFinished t0.0 [nothing here that git would not ignore]
            RunPaused budget
        "#]],
    );
}

#[test]
fn what_fits_of_a_third_wrong_answer_is_salvaged_and_says_so() {
    let wrong = "- answer: {title: a, pages: ten}\n";
    check(
        story(&wrong.repeat(3)).schema(json!({
            "type": "object",
            "properties": { "title": { "type": "string" }, "pages": { "type": "integer" } },
            "required": ["title"],
        })),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            ModelCallStarted m2 attempt=1 messages=5
            ModelCallFinished m2
            RunFinished done Salvaged from an answer that did not fit the schema; left out: `/pages`. {"title":"a"}
        "#]],
    );
}

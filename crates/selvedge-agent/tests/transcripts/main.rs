//! Stories: what the model says and what befalls the process, against the
//! events that must be on record.

mod approvals;
mod asking;
mod credentials;
mod hooks;
mod lazy;
mod story;
mod strikes;

use expect_test::{Expect, expect};
use selvedge_agent::{Approve, Limits};
use selvedge_runtime::SteerMode;
use serde_json::json;
use story::{Beat, Dies, Story, story};

fn check(story: Story, expected: Expect) {
    expected.assert_eq(&story.play());
}

#[test]
fn an_engineer_reads_edits_and_finishes() {
    check(
        story(
            "
            - text: let me see
              calls:
                - read_file: {path: a.txt}
            - calls:
                - edit_file: {path: a.txt, old: one, new: two}
            - calls:
                - finish: {summary: one became two}
            ",
        )
        .file("a.txt", "one\n"),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            ToolCallStarted t0.0 read_file attempt=1
            ToolCallFinished t0.0 one
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            ToolCallStarted t1.0 edit_file attempt=1
            ToolCallFinished t1.0 edited `a.txt` at line 1
            ModelCallStarted m2 attempt=1 messages=5
            ModelCallFinished m2
            RunFinished done one became two
        "#]],
    );
}

#[test]
fn a_read_only_call_is_repeated_after_a_crash() {
    check(
        story(
            "
            - calls:
                - list_files: {}
            - text: one file
            ",
        )
        .file("a.txt", "one\n")
        .then(Beat::Crash(Dies::AfterIts("t0.0"))),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            ToolCallStarted t0.0 list_files attempt=1
            ToolCallStarted t0.0 list_files attempt=2
            ToolCallFinished t0.0 a.txt
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            RunFinished done one file
        "#]],
    );
}

#[test]
fn a_model_call_is_repeated_after_a_crash() {
    check(
        story("- text: hello").then(Beat::Crash(Dies::AfterIts("m0"))),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallStarted m0 attempt=2 messages=1
            ModelCallFinished m0
            RunFinished done hello
        "#]],
    );
}

#[test]
fn a_command_under_way_at_a_crash_is_in_doubt_and_not_repeated() {
    check(
        story(
            "
            - calls:
                - run_command: {command: echo x >> out}
            - calls:
                - read_file: {path: out}
            - text: it ran once
            ",
        )
        .then(Beat::Crash(Dies::AfterIts("t0.0"))),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            JudgementFinished t0.0! allow (mode: auto)
            ToolCallStarted t0.0 run_command attempt=1
            ToolCallInDoubt t0.0
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            ToolCallStarted t1.0 read_file attempt=1
            ToolCallFinished t1.0 x
            ModelCallStarted m2 attempt=1 messages=5
            ModelCallFinished m2
            RunFinished done it ran once
        "#]],
    );
}

#[test]
fn a_write_that_happened_is_found_by_its_probe() {
    check(
        story(
            "
            - calls:
                - write_file: {path: a.txt, content: new}
            - text: written
            ",
        )
        .then(Beat::Crash(Dies::AfterIts("t0.0"))),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            ToolCallStarted t0.0 write_file attempt=1
            ToolCallFinished t0.0 (probed) created `a.txt` (3 bytes)
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            RunFinished done written
        "#]],
    );
}

#[test]
fn a_write_that_did_not_happen_is_done_after_the_crash() {
    check(
        story(
            "
            - calls:
                - write_file: {path: a.txt, content: new}
            - text: written
            ",
        )
        .then(Beat::Crash(Dies::BeforeIts("t0.0"))),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            ToolCallStarted t0.0 write_file attempt=1
            ToolCallInterrupted t0.0
            ToolCallStarted t0.0 write_file attempt=2
            ToolCallFinished t0.0 created `a.txt` (3 bytes)
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            RunFinished done written
        "#]],
    );
}

#[test]
fn reads_run_together_and_a_write_waits_for_them() {
    let transcript = story(
        "
        - calls:
            - read_file: {path: a.txt}
            - list_files: {}
            - write_file: {path: a.txt, content: two}
            - read_file: {path: a.txt}
        - text: done
        ",
    )
    .file("a.txt", "one")
    .play();
    let at = |event: &str| {
        let found = transcript.lines().position(|l| l.starts_with(event));
        found.unwrap_or_else(|| panic!("no `{event}` in\n{transcript}"))
    };
    // Which of the two reads ends first is nobody's business.
    let both_begun = at("ToolCallStarted t0.0").max(at("ToolCallStarted t0.1"));
    let ends = [
        at("ToolCallFinished t0.0 one"),
        at("ToolCallFinished t0.1 a.txt"),
    ];
    assert!(
        ends.iter()
            .all(|end| both_begun < *end && *end < at("ToolCallStarted t0.2"))
    );
    assert!(at("ToolCallFinished t0.2") < at("ToolCallStarted t0.3"));
    assert!(at("ToolCallFinished t0.3 two") < at("ModelCallStarted m1"));
}

#[test]
fn a_call_that_makes_no_sense_goes_back_to_the_model() {
    check(
        story(
            "
            - calls:
                - read_file: {pth: a.txt}
                - no_such_tool: {}
            - text: I see
            ",
        ),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            ToolCallStarted t0.0 read_file attempt=1
            ToolCallStarted t0.1 no_such_tool attempt=1
            ToolCallFinished t0.0 error: the arguments of `read_file` do not fit its schema; correct them and cal
            ToolCallFinished t0.1 error: There is no tool `no_such_tool` here. Tools: ask_user, discover_tools, e
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            RunFinished done I see
        "#]],
    );
}

#[test]
fn a_question_is_answered_in_another_life() {
    check(
        story(
            "
            - calls:
                - ask_user: {question: which one?, options: [a, b]}
            - text: a it is
            ",
        )
        .then(Beat::Answer("a")),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            QuestionAsked t0.0 which one?
            QuestionAnswered t0.0 a
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            RunFinished done a it is
        "#]],
    );
}

#[test]
fn a_command_waits_for_approval_and_runs_after_yes() {
    check(
        story(
            "
            - calls:
                - run_command: {command: sh -c 'echo hi'}
            - text: done
            ",
        )
        .approve(Approve::Ask)
        .then(Beat::Answer("yes")),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            JudgementFinished t0.0! ask (built_in: sh -c)
            QuestionAsked t0.0? engineer wants to run: sh -c 'echo hi'
            QuestionAnswered t0.0? yes
            ToolCallStarted t0.0 run_command attempt=1
            ToolCallFinished t0.0 hi
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            RunFinished done done
        "#]],
    );
}

#[test]
fn a_command_that_was_refused_does_not_run() {
    check(
        story(
            "
            - calls:
                - run_command: {command: sh -c 'touch made'}
            - calls:
                - list_files: {}
            - text: fine
            ",
        )
        .approve(Approve::Ask)
        .then(Beat::Answer("no, use make")),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            JudgementFinished t0.0! ask (built_in: sh -c)
            QuestionAsked t0.0? engineer wants to run: sh -c 'touch made'
            QuestionAnswered t0.0? no, use make
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            ToolCallStarted t1.0 list_files attempt=1
            ToolCallFinished t1.0 [nothing here that git would not ignore]
            ModelCallStarted m2 attempt=1 messages=5
            ModelCallFinished m2
            RunFinished done fine
        "#]],
    );
}

#[test]
fn commands_can_be_forbidden_altogether() {
    check(
        story(
            "
            - calls:
                - run_command: {command: sh -c 'touch made'}
            - text: fine
            ",
        )
        .approve(Approve::Never),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            JudgementFinished t0.0! deny (mode: never)
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            RunFinished done fine
        "#]],
    );
}

#[test]
fn an_answer_that_misses_its_schema_is_repaired_by_a_reminder() {
    check(
        story(
            "
            - text: the answer is four
            - answer: {value: four}
            - answer: {value: 4}
            ",
        )
        .schema(json!({
            "type": "object",
            "properties": { "value": { "type": "integer" } },
            "required": ["value"],
        })),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            ModelCallStarted m2 attempt=1 messages=5
            ModelCallFinished m2
            RunFinished done {"value":4} {"value":4}
        "#]],
    );
}

#[test]
fn three_answers_that_miss_the_schema_fail_the_run() {
    check(
        story("\n- text: a\n- text: b\n- text: c\n")
            .schema(json!({ "type": "object", "required": ["value"] })),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            ModelCallStarted m2 attempt=1 messages=5
            ModelCallFinished m2
            RunFinished failed three answers in a row did not fit the schema; the last: it is not JSON:
        "#]],
    );
}

#[test]
fn what_fits_is_kept_of_a_run_that_finishes_with_a_wrong_result_three_times() {
    check(
        story(
            "
            - calls:
                - finish: {summary: a, result: {value: four, note: 1}}
            - calls:
                - list_files: {}
            - calls:
                - finish: {summary: b, result: {value: 4, note: 2}}
            - calls:
                - finish: {summary: c, result: {value: 4, note: 3}}
            ",
        )
        .schema(json!({
            "type": "object",
            "properties": { "value": { "type": "integer" }, "note": { "type": "string" } },
            "required": ["value"],
        })),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            ToolCallStarted t1.0 list_files attempt=1
            ToolCallFinished t1.0 [nothing here that git would not ignore]
            ModelCallStarted m2 attempt=1 messages=5
            ModelCallFinished m2
            ModelCallStarted m3 attempt=1 messages=7
            ModelCallFinished m3
            RunFinished done Salvaged from an answer that did not fit the schema; left out: `/note`. {"value":4}
        "#]],
    );
}

#[test]
fn three_results_of_which_nothing_fits_fail_the_run() {
    check(
        story(
            "
            - calls:
                - finish: {summary: a, result: 1}
            - calls:
                - finish: {summary: b, result: 2}
            - calls:
                - finish: {summary: c, result: 3}
            ",
        )
        .schema(json!({ "type": "object", "required": ["value"] })),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            ModelCallStarted m2 attempt=1 messages=5
            ModelCallFinished m2
            RunFinished failed three answers in a row did not fit the schema; the last: at ``: 3 is not
        "#]],
    );
}

#[test]
fn what_is_said_enters_the_work_and_what_is_queued_waits_for_its_end() {
    check(
        story(
            "
            - calls:
                - ask_user: {question: shall I?}
            - text: first
            - text: second
            ",
        )
        .then(Beat::Say(SteerMode::Queue, "and then the other"))
        .then(Beat::Say(SteerMode::Steer, "be quick"))
        .then(Beat::Answer("yes")),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            QuestionAsked t0.0 shall I?
            MessageTaken queue and then the other
            MessageTaken steer be quick
            QuestionAnswered t0.0 yes
            ModelCallStarted m1 attempt=1 messages=4
            ModelCallFinished m1
            ModelCallStarted m2 attempt=1 messages=6
            ModelCallFinished m2
            RunFinished done second
        "#]],
    );
}

#[test]
fn a_cancelled_run_keeps_its_transcript() {
    check(
        story(
            "
            - calls:
                - read_file: {path: a.txt}
            - calls:
                - ask_user: {question: go on?}
            ",
        )
        .file("a.txt", "one")
        .then(Beat::Cancel),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            ToolCallStarted t0.0 read_file attempt=1
            ToolCallFinished t0.0 one
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            QuestionAsked t1.0 go on?
            RunCancelled enough
            RunFinished cancelled enough
        "#]],
    );
}

const LEAD: &str = "---\nname: engineer\ndescription: Leads.\ntools: [read_file, finish]\nagents: [helper]\n---\nYou lead.\n";
const HELPER: &str =
    "---\nname: helper\ndescription: Helps.\ntools: [write_file, finish]\n---\nYou help.\n";

#[test]
fn a_helper_is_a_run_of_its_own_and_is_not_run_again_after_a_crash() {
    check(
        story(
            "
            - calls:
                - delegate: {agent: helper, task: write it}
            - calls:
                - read_file: {path: made.txt}
            - text: done
            ",
        )
        .crew(
            "pair",
            vec![("engineer", LEAD), ("helper", HELPER)],
            "  helper:\n    - calls:\n        - write_file: {path: made.txt, content: by helper}\n    - calls:\n        - finish: {summary: written}\n",
        )
        .then(Beat::Crash(Dies::AfterIts("t1.0"))),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            ChildStarted t0.0
            ChildFinished t0.0 done written
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            ToolCallStarted t1.0 read_file attempt=1
            ToolCallStarted t1.0 read_file attempt=2
            ToolCallFinished t1.0 by helper
            ModelCallStarted m2 attempt=1 messages=5
            ModelCallFinished m2
            RunFinished done done
            /t0.0 RunStarted write it
            /t0.0 ModelCallStarted m0 attempt=1 messages=1
            /t0.0 ModelCallFinished m0
            /t0.0 ToolCallStarted t0.0 write_file attempt=1
            /t0.0 ToolCallFinished t0.0 created `made.txt` (9 bytes)
            /t0.0 ModelCallStarted m1 attempt=1 messages=3
            /t0.0 ModelCallFinished m1
            /t0.0 RunFinished done written
        "#]],
    );
}

#[test]
fn a_run_out_of_money_is_parked_and_goes_on_after_a_raise() {
    check(
        story(
            "
            - calls:
                - list_files: {}
              usage: {input: 1000, output: 3000}
            - text: done
            ",
        )
        .budget(0.15)
        .then(Beat::Raise(5.0)),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            ToolCallStarted t0.0 list_files attempt=1
            ToolCallFinished t0.0 [nothing here that git would not ignore]
            RunPaused budget
            BudgetRaised null
            RunResumed budget
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            RunFinished done done
        "#]],
    );
}

#[test]
fn a_run_stops_at_its_last_model_call() {
    check(
        story(
            "
            - calls:
                - list_files: {}
            - calls:
                - list_files: {}
            - text: too late
            ",
        )
        .limits(Limits {
            model_calls_max: 2,
            ..Limits::default()
        }),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            ToolCallStarted t0.0 list_files attempt=1
            ToolCallFinished t0.0 [nothing here that git would not ignore]
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            ToolCallStarted t1.0 list_files attempt=1
            ToolCallFinished t1.0 [nothing here that git would not ignore]
            RunFinished failed it used all 2 of its model calls
        "#]],
    );
}

#[test]
fn old_conversation_is_summarised_and_the_work_goes_on() {
    check(
        story(
            "
            - calls:
                - read_file: {path: a.txt}
            - calls:
                - read_file: {path: a.txt}
            - calls:
                - read_file: {path: a.txt}
            - text: a summary
            - text: done
            ",
        )
        .file(
            "a.txt",
            Box::leak("line of text\n".repeat(300).into_boxed_str()),
        )
        .limits(Limits {
            context_tokens_max: 3000,
            ..Limits::default()
        }),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            ToolCallStarted t0.0 read_file attempt=1
            ToolCallFinished t0.0 {"blob":"19930afbf2abf554afa4969c0fb26ef66d6170597188f4d9e3a42be93e59a90
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            ToolCallStarted t1.0 read_file attempt=1
            ToolCallFinished t1.0 {"blob":"19930afbf2abf554afa4969c0fb26ef66d6170597188f4d9e3a42be93e59a90
            ModelCallStarted m2 attempt=1 messages=5
            ModelCallFinished m2
            ToolCallStarted t2.0 read_file attempt=1
            ToolCallFinished t2.0 {"blob":"19930afbf2abf554afa4969c0fb26ef66d6170597188f4d9e3a42be93e59a90
            ModelCallStarted m3 attempt=1 messages=4
            ModelCallFinished m3
            ModelCallStarted m4 attempt=1 messages=6
            ModelCallFinished m4
            RunFinished done done
        "#]],
    );
}

#[test]
fn a_task_of_any_length_reaches_the_helper() {
    let task = "write it, ".repeat(300);
    check(
        story(&format!(
            "
            - calls:
                - delegate: {{agent: helper, task: \"{task}\"}}
            - text: done
            "
        ))
        .crew(
            "pair",
            vec![("engineer", LEAD), ("helper", HELPER)],
            "  helper:\n    - calls:\n        - finish: {summary: written}\n",
        ),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            ChildStarted t0.0
            ChildFinished t0.0 done written
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            RunFinished done done
            /t0.0 RunStarted write it, write it, write it, write it, write it, write it, write it, wr
            /t0.0 ModelCallStarted m0 attempt=1 messages=1
            /t0.0 ModelCallFinished m0
            /t0.0 RunFinished done written
        "#]],
    );
}

#[test]
fn a_run_does_not_end_on_a_call_that_failed_beside_its_finish() {
    check(
        story(
            "
            - calls:
                - edit_file: {path: a.txt, old: three, new: four}
                - finish: {summary: three became four}
            - calls:
                - finish: {summary: there is no three, outcome: failed}
            ",
        )
        .file("a.txt", "one\n"),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            ToolCallStarted t0.0 edit_file attempt=1
            ToolCallFinished t0.0 error: `a.txt`: `old` does not occur in the file: read it again
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            RunFinished failed there is no three
        "#]],
    );
}

#[test]
fn a_run_does_not_end_before_it_knows_the_answer_to_its_question() {
    check(
        story(
            "
            - calls:
                - ask_user: {question: shall I stop?}
                - finish: {summary: I stopped}
            - text: I went on
            ",
        )
        .then(Beat::Answer("no")),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            QuestionAsked t0.0 shall I stop?
            QuestionAnswered t0.0 no
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            RunFinished done I went on
        "#]],
    );
}

#[test]
fn an_empty_answer_is_not_a_result() {
    check(
        story(
            "
            - text: ''
            - text: now
            ",
        ),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            RunFinished done now
        "#]],
    );
}

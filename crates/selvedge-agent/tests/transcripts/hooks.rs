//! Hooks around calls, as they are on record.

use async_trait::async_trait;
use expect_test::expect;
use selvedge_agent::{Approve, CommandHook, Hook, Moment, Occasion, Reaction, Setting};
use serde_json::json;

use crate::check;
use crate::story::{Beat, Story, story};

/// A shell script that is called at `moment`.
fn script(moment: Moment, script: &str) -> CommandHook {
    let command = ["sh", "-c", script].map(str::to_owned).into();
    CommandHook {
        name: "script".into(),
        ..CommandHook::new(moment, command)
    }
}

fn one_command() -> Story {
    story(
        "
        - calls:
            - run_command: {command: echo one > out}
        - text: done
        ",
    )
    .show("out")
}

#[test]
fn a_hook_that_stops_a_call_says_why_and_nothing_runs() {
    let hook = script(Moment::PreTool, "echo 'never on a Friday' >&2; exit 2");
    check(
        one_command().hook(hook),
        expect![[r#"
        RunStarted do it
        ModelCallStarted m0 attempt=1 messages=1
        ModelCallFinished m0
        JudgementFinished t0.0! deny (user: hook script) [script stopped]
        ModelCallStarted m1 attempt=1 messages=3
        ModelCallFinished m1
        RunFinished done done
        -- out: None
    "#]],
    );
}

#[test]
fn a_hook_that_answers_takes_the_place_of_the_tool() {
    let hook = script(Moment::PreTool, r#"echo '{"answer": "as good as done"}'"#);
    check(
        one_command().hook(hook),
        expect![[r#"
        RunStarted do it
        ModelCallStarted m0 attempt=1 messages=1
        ModelCallFinished m0
        JudgementFinished t0.0! allow (built_in: nothing) [script answered]
        ModelCallStarted m1 attempt=1 messages=3
        ModelCallFinished m1
        RunFinished done done
        -- out: None
    "#]],
    );
}

#[test]
fn a_changed_call_is_what_runs() {
    let hook = script(
        Moment::PreTool,
        r#"echo '{"arguments": {"command": "echo two > out"}}'"#,
    );
    check(
        one_command().hook(hook),
        expect![[r#"
        RunStarted do it
        ModelCallStarted m0 attempt=1 messages=1
        ModelCallFinished m0
        JudgementFinished t0.0! allow (mode: auto) [script changed]
        ToolCallStarted t0.0 run_command attempt=1 [script changed]
        ToolCallFinished t0.0 [no output] [script changed]
        ModelCallStarted m1 attempt=1 messages=3
        ModelCallFinished m1
        RunFinished done done
        -- out: Some("two\n")
    "#]],
    );
}

#[test]
fn a_changed_call_is_judged_again_and_shown_as_it_will_run() {
    let hook = script(
        Moment::PreTool,
        r#"echo '{"arguments": {"command": "sudo -n reboot"}, "warn": "made it stronger"}'"#,
    );
    check(
        one_command()
            .approve(Approve::Ask)
            .hook(hook)
            .then(Beat::Answer("no")),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            JudgementFinished t0.0! ask (built_in: sudo) [script changed] [script warned]
            QuestionAsked t0.0? engineer wants to run: sudo -n reboot
            QuestionAnswered t0.0? no
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            RunFinished done done
            -- out: None
        "#]],
    );
}

#[test]
fn a_changed_write_into_a_forbidden_place_is_refused() {
    let hook = script(
        Moment::PreTool,
        r#"echo '{"arguments": {"path": ".selvedge/config.toml", "content": "approve = \"auto\""}}'"#,
    );
    check(
        story(
            "
            - calls:
                - write_file: {path: a.txt, content: fine}
            - text: done
            ",
        )
        .hook(hook)
        .show(".selvedge/config.toml"),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            ToolCallStarted t0.0 write_file attempt=1 [script changed]
            ToolCallFinished t0.0 error: Not done: `.selvedge/config.toml` is Selvedge's own: it decides what age [script changed]
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            RunFinished done done
            -- .selvedge/config.toml: None
        "#]],
    );
}

#[test]
fn a_required_hook_that_fails_stops_the_call_and_another_does_not() {
    let failing = |is_required| CommandHook {
        is_required,
        ..script(Moment::PreTool, "echo broken >&2; exit 1")
    };
    check(
        one_command().hook(failing(true)),
        expect![[r#"
        RunStarted do it
        ModelCallStarted m0 attempt=1 messages=1
        ModelCallFinished m0
        JudgementFinished t0.0! deny (user: hook script) [script stopped]
        ModelCallStarted m1 attempt=1 messages=3
        ModelCallFinished m1
        RunFinished done done
        -- out: None
    "#]],
    );
    check(
        one_command().hook(failing(false)),
        expect![[r#"
        RunStarted do it
        ModelCallStarted m0 attempt=1 messages=1
        ModelCallFinished m0
        JudgementFinished t0.0! allow (mode: auto) [script failed]
        ToolCallStarted t0.0 run_command attempt=1 [script failed]
        ToolCallFinished t0.0 [no output] [script failed]
        ModelCallStarted m1 attempt=1 messages=3
        ModelCallFinished m1
        RunFinished done done
        -- out: Some("one\n")
    "#]],
    );
}

#[test]
fn a_result_is_changed_and_annotated_after_the_call() {
    let hook = script(
        Moment::PostTool,
        r#"echo '{"text": "nothing to see", "warn": "it was long"}'"#,
    );
    check(
        one_command().hook(hook),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            JudgementFinished t0.0! allow (mode: auto)
            ToolCallStarted t0.0 run_command attempt=1
            ToolCallFinished t0.0 nothing to see [script changed] [script warned]
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            RunFinished done done
            -- out: Some("one\n")
        "#]],
    );
}

#[test]
fn a_hook_before_the_model_can_answer_and_after_it_can_rephrase() {
    let answers = script(Moment::PreModel, r#"echo '{"answer": "cached answer"}'"#);
    check(
        one_command().hook(answers),
        expect![[r#"
        RunStarted do it
        ModelCallStarted m0 attempt=1 messages=1 [script answered]
        ModelCallFinished m0
        RunFinished done cached answer
        -- out: None
    "#]],
    );
    let rephrases = script(Moment::PostModel, r#"echo '{"text": "in other words"}'"#);
    check(
        story("- text: plainly").hook(rephrases),
        expect![[r#"
        RunStarted do it
        ModelCallStarted m0 attempt=1 messages=1
        ModelCallFinished m0 [script changed]
        RunFinished done in other words
    "#]],
    );
}

#[test]
fn a_hook_before_the_model_can_hold_a_run_until_somebody_resumes_it() {
    let hook = script(
        Moment::PreModel,
        "test -e go || { echo 'not yet' >&2; exit 2; }",
    );
    check(
        story("- text: went")
            .hook(hook)
            .then(Beat::Edit("go", ""))
            .then(Beat::Raise(9.0)),
        expect![[r#"
            RunStarted do it
            RunPaused hook
            BudgetRaised null
            RunResumed hook
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            RunFinished done went
        "#]],
    );
}

/// Sees what the model is sent, and says so to it.
struct Witness;

#[async_trait]
impl Hook for Witness {
    fn name(&self) -> &str {
        "witness"
    }

    fn moment(&self) -> Moment {
        Moment::PreTool
    }

    async fn react(&self, _: Setting<'_>, seen: &Occasion) -> Result<Reaction, String> {
        let command = seen.arguments.as_ref().map(|a| a["command"].clone());
        Ok(match command == Some(json!("echo one > out")) {
            true => Reaction::warn("I saw it"),
            false => Reaction::stop("something else"),
        })
    }
}

#[test]
fn a_hook_in_code_warns_beside_the_result() {
    check(
        one_command().hook(Witness),
        expect![[r#"
        RunStarted do it
        ModelCallStarted m0 attempt=1 messages=1
        ModelCallFinished m0
        JudgementFinished t0.0! allow (mode: auto) [witness warned]
        ToolCallStarted t0.0 run_command attempt=1 [witness warned]
        ToolCallFinished t0.0 [no output] [witness warned]
        ModelCallStarted m1 attempt=1 messages=3
        ModelCallFinished m1
        RunFinished done done
        -- out: Some("one\n")
    "#]],
    );
}

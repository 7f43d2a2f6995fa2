//! Three strikes: what is told, put back and refused after failing again and again.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use expect_test::expect;
use selvedge_agent::{Hook, Limits, Moment, Occasion, Reaction, Setting};

use crate::check;
use crate::story::{Beat, Dies, story};

const THREE: &str = "
    - calls:
        - write_file: {path: a.txt, content: spoiled}
        - write_file: {path: made.txt, content: new}
    - calls:
        - run_command: {command: rm b.txt; exit 1}
    - calls:
        - edit_file: {path: a.txt, old: not there, new: x}
    - calls:
        - run_command: {command: cat nothing; false || make-it-so}
        - write_file: {path: late.txt, content: too late}
    - calls:
        - write_file: {path: c.txt, content: again}
        - read_file: {path: a.txt}
    - calls:
        - finish: {summary: all is well}
";

#[test]
fn the_third_failure_puts_files_back_stops_changes_and_asks_for_help() {
    check(
        story(THREE)
            .file("a.txt", "one")
            .file("b.txt", "two")
            .show("a.txt")
            .show("b.txt")
            .show("made.txt")
            .show("late.txt")
            .show("c.txt"),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            ToolCallStarted t0.0 write_file attempt=1
            ToolCallFinished t0.0 replaced `a.txt` (7 bytes)
            ToolCallStarted t0.1 write_file attempt=1
            ToolCallFinished t0.1 created `made.txt` (3 bytes)
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            JudgementFinished t1.0! allow (mode: auto)
            ToolCallStarted t1.0 run_command attempt=1
            ToolCallFinished t1.0 error: [no output]
            ModelCallStarted m2 attempt=1 messages=5
            ModelCallFinished m2
            ToolCallStarted t2.0 edit_file attempt=1
            ToolCallFinished t2.0 error: `a.txt`: `old` does not occur in the file: read it again
            ModelCallStarted m3 attempt=1 messages=8
            ModelCallFinished m3
            JudgementFinished t3.0! allow (mode: auto)
            ToolCallStarted t3.0 run_command attempt=1
            ToolCallFinished t3.0 error: cat: nothing: No such file or directory
            RestoreStarted r0
            RestoreFinished r0 ["a.txt","b.txt","made.txt"] failures=3
            ModelCallStarted m4 attempt=1 messages=10
            ModelCallFinished m4
            ToolCallStarted t4.1 read_file attempt=1
            ToolCallFinished t4.1 one
            ModelCallStarted m5 attempt=1 messages=12
            ModelCallFinished m5
            RunFinished failed TASK_HELP: 3 attempts in a row failed, and the work was given up.
            -- a.txt: Some("one")
            -- b.txt: Some("two")
            -- made.txt: None
            -- late.txt: None
            -- c.txt: None
        "#]],
    );
}

#[test]
fn a_crash_while_files_are_put_back_puts_them_back_again() {
    check(
        story(THREE)
            .file("a.txt", "one")
            .file("b.txt", "two")
            .then(Beat::Crash(Dies::AfterIts("r0")))
            .show("a.txt")
            .show("b.txt"),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            ToolCallStarted t0.0 write_file attempt=1
            ToolCallFinished t0.0 replaced `a.txt` (7 bytes)
            ToolCallStarted t0.1 write_file attempt=1
            ToolCallFinished t0.1 created `made.txt` (3 bytes)
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            JudgementFinished t1.0! allow (mode: auto)
            ToolCallStarted t1.0 run_command attempt=1
            ToolCallFinished t1.0 error: [no output]
            ModelCallStarted m2 attempt=1 messages=5
            ModelCallFinished m2
            ToolCallStarted t2.0 edit_file attempt=1
            ToolCallFinished t2.0 error: `a.txt`: `old` does not occur in the file: read it again
            ModelCallStarted m3 attempt=1 messages=8
            ModelCallFinished m3
            JudgementFinished t3.0! allow (mode: auto)
            ToolCallStarted t3.0 run_command attempt=1
            ToolCallFinished t3.0 error: cat: nothing: No such file or directory
            RestoreStarted r0
            RestoreInterrupted r0
            RestoreStarted r0
            RestoreFinished r0 [] failures=3
            ModelCallStarted m4 attempt=1 messages=10
            ModelCallFinished m4
            ToolCallStarted t4.1 read_file attempt=1
            ToolCallFinished t4.1 one
            ModelCallStarted m5 attempt=1 messages=12
            ModelCallFinished m5
            RunFinished failed TASK_HELP: 3 attempts in a row failed, and the work was given up.
            -- a.txt: Some("one")
            -- b.txt: Some("two")
        "#]],
    );
}

/// Takes down what the model is sent last.
struct Listener(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl Hook for Listener {
    fn name(&self) -> &str {
        "listener"
    }

    fn moment(&self) -> Moment {
        Moment::PreModel
    }

    async fn react(&self, _: Setting<'_>, seen: &Occasion) -> Result<Reaction, String> {
        let text = seen.result.as_ref().map(|result| result.text.clone());
        self.0.lock().unwrap().extend(text);
        Ok(Reaction::default())
    }
}

#[test]
fn the_model_is_warned_after_the_second_failure_and_not_after_a_success() {
    let heard = Arc::default();
    story(
        "
        - calls: [{run_command: {command: ./nope 1}}]
        - calls: [{run_command: {command: ./nope 2}}]
        - calls: [{write_file: {path: a.txt, content: x}}]
        - calls: [{run_command: {command: ./nope 3}}]
        - text: done
        ",
    )
    .hook(Listener(Arc::clone(&heard)))
    .play();
    let heard = heard.lock().unwrap();
    let warned = |text: &String| text.starts_with("FAILURE_WARNING: 2 attempts");
    let warned: Vec<bool> = heard.iter().map(warned).collect();
    assert_eq!(warned, [false, false, true, false, false]);
    assert!(
        heard[2].contains("1. run_command `./nope N`: "),
        "{}",
        heard[2]
    );
}

#[test]
fn the_model_is_told_what_was_put_back() {
    let heard = Arc::default();
    story(THREE)
        .file("a.txt", "one")
        .file("b.txt", "two")
        .hook(Listener(Arc::clone(&heard)))
        .play();
    let heard = heard.lock().unwrap();
    expect![[r#"
        FAILURE_PROTOCOL_ACTIVE: 3 attempts in a row have failed, and this task is over.
        1. run_command `rm b.txt; exit N`: [no output]
        2. edit_file `a.txt`: `a.txt`: `old` does not occur in the file: read it again
        3. run_command `cat nothing; false || make-it-so`: /usr/bin/bash: line N: make-it-so: command not found
        Put back to what they were before the task: `a.txt`, `b.txt`, `made.txt`.
        You cannot change files or run commands any more. Say what you tried, what you learned from it and what help you need, then finish with the outcome `failed`."#]].assert_eq(&heard[4]);
}

#[test]
fn a_success_between_failures_begins_the_count_anew() {
    check(
        story(
            "
            - calls:
                - run_command: {command: ./nope 1}
            - calls:
                - run_command: {command: ./nope 2}
            - calls:
                - write_file: {path: a.txt, content: x}
            - calls:
                - run_command: {command: ./nope 3}
            - calls:
                - finish: {summary: fine}
            ",
        ),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            JudgementFinished t0.0! allow (mode: auto)
            ToolCallStarted t0.0 run_command attempt=1
            ToolCallFinished t0.0 error: /usr/bin/bash: line 1: ./nope: No such file or directory
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            JudgementFinished t1.0! allow (mode: auto)
            ToolCallStarted t1.0 run_command attempt=1
            ToolCallFinished t1.0 error: /usr/bin/bash: line 1: ./nope: No such file or directory
            ModelCallStarted m2 attempt=1 messages=6
            ModelCallFinished m2
            ToolCallStarted t2.0 write_file attempt=1
            ToolCallFinished t2.0 created `a.txt` (1 bytes)
            ModelCallStarted m3 attempt=1 messages=7
            ModelCallFinished m3
            JudgementFinished t3.0! allow (mode: auto)
            ToolCallStarted t3.0 run_command attempt=1
            ToolCallFinished t3.0 error: /usr/bin/bash: line 1: ./nope: No such file or directory
            ModelCallStarted m4 attempt=1 messages=9
            ModelCallFinished m4
            RunFinished done fine
        "#]],
    );
}

#[test]
fn what_a_person_says_begins_a_new_task_with_a_checkpoint_of_its_own() {
    check(
        story(
            "
            - calls:
                - write_file: {path: a.txt, content: first}
                - run_command: {command: ./nope 1}
                - run_command: {command: ./nope 2}
                - run_command: {command: ./nope 3}
            - calls:
                - ask_user: {question: I need help}
            - calls:
                - write_file: {path: a.txt, content: second}
            - calls:
                - finish: {summary: helped}
            ",
        )
        .file("a.txt", "zero")
        .then(Beat::Answer("use the other one"))
        .show("a.txt"),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            ToolCallStarted t0.0 write_file attempt=1
            ToolCallFinished t0.0 replaced `a.txt` (5 bytes)
            JudgementFinished t0.1! allow (mode: auto)
            ToolCallStarted t0.1 run_command attempt=1
            ToolCallFinished t0.1 error: /usr/bin/bash: line 1: ./nope: No such file or directory
            JudgementFinished t0.2! allow (mode: auto)
            ToolCallStarted t0.2 run_command attempt=1
            ToolCallFinished t0.2 error: /usr/bin/bash: line 1: ./nope: No such file or directory
            JudgementFinished t0.3! allow (mode: auto)
            ToolCallStarted t0.3 run_command attempt=1
            ToolCallFinished t0.3 error: /usr/bin/bash: line 1: ./nope: No such file or directory
            RestoreStarted r0
            RestoreFinished r0 ["a.txt"] failures=3
            ModelCallStarted m1 attempt=1 messages=4
            ModelCallFinished m1
            QuestionAsked t1.0 I need help
            QuestionAnswered t1.0 use the other one
            ModelCallStarted m2 attempt=1 messages=6
            ModelCallFinished m2
            ToolCallStarted t2.0 write_file attempt=1
            ToolCallFinished t2.0 replaced `a.txt` (6 bytes)
            ModelCallStarted m3 attempt=1 messages=8
            ModelCallFinished m3
            RunFinished done helped
            -- a.txt: Some("second")
        "#]],
    );
}

#[test]
fn who_may_fail_for_ever_is_never_stopped() {
    check(
        story(
            "
            - calls:
                - run_command: {command: ./nope 1}
                - run_command: {command: ./nope 1}
                - run_command: {command: ./nope 1}
                - write_file: {path: a.txt, content: on and on}
            - text: done
            ",
        )
        .limits(Limits {
            strikes_max: 0,
            ..Limits::default()
        })
        .show("a.txt"),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            JudgementFinished t0.0! allow (mode: auto)
            ToolCallStarted t0.0 run_command attempt=1
            ToolCallFinished t0.0 error: /usr/bin/bash: line 1: ./nope: No such file or directory
            JudgementFinished t0.1! allow (mode: auto)
            ToolCallStarted t0.1 run_command attempt=1
            ToolCallFinished t0.1 error: /usr/bin/bash: line 1: ./nope: No such file or directory
            JudgementFinished t0.2! allow (mode: auto)
            ToolCallStarted t0.2 run_command attempt=1
            ToolCallFinished t0.2 error: /usr/bin/bash: line 1: ./nope: No such file or directory
            ToolCallStarted t0.3 write_file attempt=1
            ToolCallFinished t0.3 created `a.txt` (9 bytes)
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            RunFinished done done
            -- a.txt: Some("on and on")
        "#]],
    );
}

#[test]
fn a_child_that_is_out_reports_to_whoever_sent_it() {
    let engineer = "---\nname: engineer\ndescription: Leads.\ntools: [read_file]\nagents: [helper]\n---\nYou lead.\n";
    let helper = "---\nname: helper\ndescription: Helps.\ntools: [run_command, write_file]\n---\nYou help.\n";
    check(
        story(
            "
            - calls:
                - delegate: {agent: helper, task: do it}
            - text: it could not be done
            ",
        )
        .crew(
            "duo",
            vec![("engineer", engineer), ("helper", helper)],
            "  helper:
    - calls:
        - run_command: {command: ./nope 1}
        - run_command: {command: ./nope 2}
        - run_command: {command: ./nope 3}
    - text: I did it all
",
        ),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            ChildStarted t0.0
            ChildFinished t0.0 failed TASK_HELP: 3 attempts in a row failed, and the work was given up.
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            RunFinished done it could not be done
            /t0.0 RunStarted do it
            /t0.0 ModelCallStarted m0 attempt=1 messages=1
            /t0.0 ModelCallFinished m0
            /t0.0 JudgementFinished t0.0! allow (mode: auto)
            /t0.0 ToolCallStarted t0.0 run_command attempt=1
            /t0.0 ToolCallFinished t0.0 error: /usr/bin/bash: line 1: ./nope: No such file or directory
            /t0.0 JudgementFinished t0.1! allow (mode: auto)
            /t0.0 ToolCallStarted t0.1 run_command attempt=1
            /t0.0 ToolCallFinished t0.1 error: /usr/bin/bash: line 1: ./nope: No such file or directory
            /t0.0 JudgementFinished t0.2! allow (mode: auto)
            /t0.0 ToolCallStarted t0.2 run_command attempt=1
            /t0.0 ToolCallFinished t0.2 error: /usr/bin/bash: line 1: ./nope: No such file or directory
            /t0.0 RestoreStarted r0
            /t0.0 RestoreFinished r0 [] failures=3
            /t0.0 ModelCallStarted m1 attempt=1 messages=4
            /t0.0 ModelCallFinished m1
            /t0.0 RunFinished failed TASK_HELP: 3 attempts in a row failed, and the work was given up.
        "#]],
    );
}

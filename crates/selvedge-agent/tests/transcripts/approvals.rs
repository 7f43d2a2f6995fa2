//! What is judged, asked and refused, as it is on record.

use expect_test::expect;
use selvedge_agent::Approve;
use selvedge_tool::{Pattern, Policy, Rules, Source};

use crate::check;
use crate::story::{Beat, Dies, Story, story};

/// A story in which people are asked.
fn asking(engineer: &str) -> Story {
    story(engineer).approve(Approve::Ask)
}

const TWICE: &str = "
    - calls:
        - run_command: {command: sh -c 'echo x >> out'}
    - calls:
        - run_command: {command: sh -c 'echo x >> out'}
    - text: done
";

#[test]
fn an_answer_for_the_session_is_not_asked_for_again() {
    check(
        asking(TWICE).then(Beat::Answer("session")),
        expect![[r#"
        RunStarted do it
        ModelCallStarted m0 attempt=1 messages=1
        ModelCallFinished m0
        JudgementFinished t0.0! ask (built_in: sh -c)
        QuestionAsked t0.0? engineer wants to run: sh -c 'echo x >> out'
        QuestionAnswered t0.0? session
        ToolCallStarted t0.0 run_command attempt=1
        ToolCallFinished t0.0 [no output]
        ModelCallStarted m1 attempt=1 messages=3
        ModelCallFinished m1
        JudgementFinished t1.0! allow (session: this session)
        ToolCallStarted t1.0 run_command attempt=1
        ToolCallFinished t1.0 [no output]
        ModelCallStarted m2 attempt=1 messages=5
        ModelCallFinished m2
        RunFinished done done
    "#]],
    );
}

#[test]
fn an_answer_for_once_is_asked_for_again() {
    check(
        asking(TWICE)
            .then(Beat::Answer("yes"))
            .then(Beat::Answer("no")),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            JudgementFinished t0.0! ask (built_in: sh -c)
            QuestionAsked t0.0? engineer wants to run: sh -c 'echo x >> out'
            QuestionAnswered t0.0? yes
            ToolCallStarted t0.0 run_command attempt=1
            ToolCallFinished t0.0 [no output]
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            JudgementFinished t1.0! ask (built_in: sh -c)
            QuestionAsked t1.0? engineer wants to run: sh -c 'echo x >> out'
            QuestionAnswered t1.0? no
            ModelCallStarted m2 attempt=1 messages=5
            ModelCallFinished m2
            RunFinished done done
        "#]],
    );
}

#[test]
fn a_script_that_was_edited_after_it_was_shown_is_asked_about_again() {
    check(
        asking(
            "
            - calls:
                - run_command: {command: sudo -n true; ./run.sh}
            - text: done
            ",
        )
        .file("run.sh", "echo one")
        .then(Beat::Edit("run.sh", "echo two"))
        .then(Beat::Answer("yes"))
        .then(Beat::Answer("no")),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            JudgementFinished t0.0! ask (built_in: sudo)
            QuestionAsked t0.0? engineer wants to run: sudo -n true; ./run.sh
            QuestionAnswered t0.0? yes
            ToolCallStarted t0.0 run_command attempt=1
            ToolCallFinished t0.0 error: not begun: a person is asked first
            QuestionAsked t0.0?2 engineer wants to run: sudo -n true; ./run.sh
            QuestionAnswered t0.0?2 no
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            RunFinished done done
        "#]],
    );
}

#[test]
fn what_agents_are_told_is_changed_only_after_a_yes() {
    check(
        asking(
            "
            - calls:
                - write_file: {path: AGENTS.md, content: always approve}
                - write_file: {path: .selvedge/config.toml, content: approve}
                - write_file: {path: notes.md, content: fine}
            - text: done
            ",
        )
        .then(Beat::Answer("yes")),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            ToolCallStarted t0.0 write_file attempt=1
            ToolCallFinished t0.0 error: not begun: a person is asked first
            QuestionAsked t0.0? engineer wants to use write_file on: AGENTS.md
            QuestionAnswered t0.0? yes
            ToolCallStarted t0.0 write_file attempt=1
            ToolCallFinished t0.0 created `AGENTS.md` (14 bytes)
            ToolCallStarted t0.1 write_file attempt=1
            ToolCallFinished t0.1 error: Not done: `.selvedge/config.toml` is Selvedge's own: it decides what age
            ToolCallStarted t0.2 write_file attempt=1
            ToolCallFinished t0.2 created `notes.md` (4 bytes)
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            RunFinished done done
        "#]],
    );
}

#[test]
fn a_question_survives_a_crash_and_so_does_a_judgement() {
    check(
        asking(
            "
            - calls:
                - run_command: {command: sh -c 'echo hi'}
            - text: done
            ",
        )
        .then(Beat::Crash(Dies::AfterIts("t0.0!")))
        .then(Beat::Answer("yes"))
        .then(Beat::Crash(Dies::BeforeIts("t0.0"))),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            JudgementFinished t0.0! ask (built_in: sh -c)
            QuestionAsked t0.0? engineer wants to run: sh -c 'echo hi'
            QuestionAnswered t0.0? yes
            ToolCallStarted t0.0 run_command attempt=1
            ToolCallInDoubt t0.0
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            RunFinished done done
        "#]],
    );
}

#[test]
fn a_rule_refuses_without_a_question_in_every_mode() {
    let deny = vec![Pattern::new("curl")];
    let rules = Rules {
        deny,
        ..Rules::default()
    };
    for approve in [Approve::Ask, Approve::Auto, Approve::Never] {
        check(
            story(
                "
                - calls:
                    - run_command: {command: ls; curl x || true}
                - text: done
                ",
            )
            .approve(approve)
            .policy(Policy::default().with(Source::User, rules.clone())),
            expect![[r#"
                RunStarted do it
                ModelCallStarted m0 attempt=1 messages=1
                ModelCallFinished m0
                JudgementFinished t0.0! deny (user: curl)
                ModelCallStarted m1 attempt=1 messages=3
                ModelCallFinished m1
                RunFinished done done
            "#]],
        );
    }
}

const OBSERVER: &str = "---\nname: engineer\ndescription: Looks.\nrole: observer\ntools: [write_file, run_command, read_file]\npolicy: {allow: ['ls *']}\n---\nYou look.\n";

#[test]
fn an_observer_is_denied_without_a_question_even_what_its_crew_declares() {
    check(
        asking(
            "
            - calls:
                - read_file: {path: a}
                - write_file: {path: b, content: x}
                - run_command: {command: ls -l}
            - text: done
            ",
        )
        .file("a", "one")
        .crew("watch", vec![("engineer", OBSERVER)], ""),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            ToolCallStarted t0.0 read_file attempt=1
            ToolCallFinished t0.0 one
            ToolCallStarted t0.1 write_file attempt=1
            ToolCallFinished t0.1 error: Not done: an observer may not change files (policy, role: observer × wri
            JudgementFinished t0.2! deny (role: observer × run)
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            RunFinished done done
        "#]],
    );
}

const LEAD: &str = "---\nname: engineer\ndescription: Leads.\nagents: [helper]\npolicy: {deny: [make], allow: ['sudo *']}\n---\nYou lead.\n";
const HELPER: &str = "---\nname: helper\ndescription: Helps.\nrole: orchestrator\ntools: [run_command]\n---\nYou help.\n";

#[test]
fn a_helper_may_do_no_more_than_whoever_sent_it() {
    check(
        asking(
            "
            - calls:
                - delegate: {agent: helper, task: do it}
            - text: done
            ",
        )
        .crew(
            "pair",
            vec![("engineer", LEAD), ("helper", HELPER)],
            "  helper:\n    - calls:\n        - run_command: {command: make}\n        - run_command: {command: git status}\n        - run_command: {command: sudo -n true}\n    - text: done\n",
        )
        .then(Beat::Answer("no")),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            ChildStarted t0.0
            ChildFinished t0.0 done done
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            RunFinished done done
            /t0.0 RunStarted do it
            /t0.0 ModelCallStarted m0 attempt=1 messages=1
            /t0.0 ModelCallFinished m0
            /t0.0 JudgementFinished t0.0! deny (agent: make)
            /t0.0 JudgementFinished t0.1! deny (git: no column)
            /t0.0 JudgementFinished t0.2! ask (built_in: sudo)
            /t0.0 QuestionAsked t0.2? helper wants to run: sudo -n true
            /t0.0 QuestionAnswered t0.2? no
            /t0.0 ModelCallStarted m1 attempt=1 messages=3
            /t0.0 ModelCallFinished m1
            /t0.0 RunFinished done done
        "#]],
    );
}

const WORKER: &str =
    "---\nname: engineer\ndescription: Works.\nrole: worker\nagents: [helper]\n---\nYou work.\n";

#[test]
fn a_worker_hands_on_no_work() {
    check(
        asking(
            "
            - calls:
                - delegate: {agent: helper, task: do it}
            - text: done
            ",
        )
        .crew("pair", vec![("engineer", WORKER), ("helper", HELPER)], ""),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            JudgementFinished t0.0! deny (role: worker × delegate)
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            RunFinished done done
        "#]],
    );
}

#[test]
fn an_answer_that_was_meant_for_something_else_allows_nothing() {
    check(
        asking(
            "
            - calls:
                - run_command: {command: sh -c 'echo one'}
            - calls:
                - run_command: {command: sh -c 'echo two'}
            - text: done
            ",
        )
        // Of another call, of other bytes, and of nothing in particular.
        .then(Beat::Forged(Some("t9.0?"), None))
        .then(Beat::Forged(Some("t0.0?"), Some("0000")))
        .then(Beat::Forged(None, None))
        .then(Beat::Answer("yes"))
        // The first approval again, for the second call.
        .then(Beat::Forged(Some("t0.0?"), None))
        .then(Beat::Answer("no")),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            JudgementFinished t0.0! ask (built_in: sh -c)
            QuestionAsked t0.0? engineer wants to run: sh -c 'echo one'
            LetterIgnored no such question is open
            LetterIgnored it approves something else than what is asked
            LetterIgnored an approval must name what it approves
            QuestionAnswered t0.0? yes
            ToolCallStarted t0.0 run_command attempt=1
            ToolCallFinished t0.0 one
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            JudgementFinished t1.0! ask (built_in: sh -c)
            QuestionAsked t1.0? engineer wants to run: sh -c 'echo two'
            LetterIgnored no such question is open
            QuestionAnswered t1.0? no
            ModelCallStarted m2 attempt=1 messages=5
            ModelCallFinished m2
            RunFinished done done
        "#]],
    );
}

#[test]
fn nobody_is_asked_more_often_than_a_person_can_answer() {
    let calls: Vec<String> = (0..24)
        .map(|n| format!("- run_command: {{command: sh -c 'echo {n}'}}"))
        .collect();
    let turns = format!("- calls:\n    {}\n- text: done\n", calls.join("\n    "));
    let story = (0..20).fold(asking(&turns), |story, _| story.then(Beat::Answer("no")));
    let transcript = story.play();
    let count = |words: &str| transcript.lines().filter(|l| l.contains(words)).count();
    assert_eq!(count("QuestionAsked"), 20, "{transcript}");
    assert_eq!(
        count("deny (limit: 20 approvals in a minute)"),
        4,
        "{transcript}"
    );
    assert_eq!(count("ToolCallStarted"), 0);
}

#[test]
fn of_ten_thousand_calls_in_one_answer_only_the_first_are_made() {
    let call = "- run_command: {command: echo x >> out}";
    let calls = vec![call; 10_000].join("\n    ");
    let turns = format!("- calls:\n    {calls}\n- text: done\n");
    let transcript = story(&turns).play();
    let count = |words: &str| transcript.lines().filter(|l| l.contains(words)).count();
    assert_eq!(count("ToolCallStarted"), 128);
    let last = transcript.lines().next_back().unwrap_or_default();
    assert!(last.starts_with("RunFinished "), "it ends: {last}");
}

const CIRCLE: &str =
    "---\nname: helper\ndescription: Helps.\nagents: [engineer, helper]\n---\nYou help.\n";

#[test]
fn helpers_that_would_call_in_circles_have_nobody_to_call() {
    let chief = "---\nname: engineer\ndescription: Works.\nagents: [helper]\n---\nYou work.\n";
    let transcript = story(
        "
        - calls:
            - delegate: {agent: helper, task: do it}
        - text: done
        ",
    )
    .crew(
        "circle",
        vec![("engineer", chief), ("helper", CIRCLE)],
        "
  helper:
    - calls:
        - delegate: {agent: engineer, task: do it}
        - delegate: {agent: helper, task: do it}
    - text: done
",
    )
    .play();
    let count = |words: &str| transcript.lines().filter(|l| l.contains(words)).count();
    assert_eq!(count("ChildStarted"), 1, "{transcript}");
    assert!(transcript.contains("RunFinished done done"), "{transcript}");
}

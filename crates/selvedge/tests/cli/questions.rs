//! Questions and approvals, answered from elsewhere and later.

use expect_test::expect;

use crate::world::World;

const COMMAND: &str = "\
- text: I want to run something.
  calls: [{run_command: {command: sh -c 'touch made'}}]
- text: fine";

#[test]
fn a_command_waits_for_its_approval_and_runs_after_it() {
    let world = World::new();
    world.run(COMMAND, &["do it"]).check(expect![[r#"
        exit 3
        -- stderr --
        engineer on scripted/script · session s_ID
          I want to run something.
          engineer wants to run: sh -c 'touch made'
        waiting for an answer · 1 turn · Nk tokens · $N · N s · session s_ID
          question: engineer wants to run: sh -c 'touch made'
          because: `sh -c` runs a command that is given as text (built in: sh -c)
          answer: selvedge answer s_ID "yes" (or session, project, no)
          then: selvedge resume s_ID
    "#]]);
    assert!(!world.work().join("made").exists());
    let session = world.session();
    world.selvedge(&["ps"]).check(expect![[r#"
        exit 0
        -- stdout --
        ID  STATE  CREW  CHANGED  REQUEST
        s_ID  waiting  solo  AGO  do it
    "#]]);
    world
        .selvedge(&["answer", &session, "yes"])
        .check(expect![[r#"
            exit 0
            -- stderr --
            answered
              go on: selvedge resume s_ID
        "#]]);
    assert!(!world.work().join("made").exists());
    world.selvedge(&["resume"]).check(expect![[r#"
        exit 0
        -- stdout --
        fine
        -- stderr --
        going on with session s_ID: do it
          in ROOT/work
          answered: yes (allowed)
          engineer: run_command sh -c 'touch made'
          fine
        done · 2 turns · Nk tokens · $N · N s · session s_ID
    "#]]);
    assert!(world.work().join("made").exists());
}

#[test]
fn an_answer_that_is_neither_a_yes_nor_a_no_is_not_sent() {
    let world = World::new();
    assert_eq!(world.run(COMMAND, &["do it"]).code, 3);
    world.selvedge(&["answer", "maybe"]).check(expect![[r#"
        exit 2
        -- stderr --
        error: `maybe` is neither a yes nor a no
          cause: an approval is asked for, and nothing was sent
          hint: answer with one of `yes`, `session`, `project`, `no`; a reason may follow: "no, use make instead"
    "#]]);
    let output = world.selvedge(&["answer", "yes", "--resume"]);
    assert_eq!(output.code, 0, "it still waits: {}", output.stderr);
    assert!(world.work().join("made").exists());
}

#[test]
fn a_command_that_is_refused_does_not_run() {
    let world = World::new();
    let turns = "\
- calls: [{run_command: {command: sh -c 'touch made'}}]
- calls: [{finish: {summary: not allowed, outcome: failed}}]";
    assert_eq!(world.run(turns, &["do it"]).code, 3);
    let output = world.selvedge(&["answer", "no, not here", "--resume"]);
    assert_eq!(output.code, 5, "{}", output.stderr);
    assert!(!world.work().join("made").exists());
}

#[test]
fn a_question_is_answered_and_the_answer_is_in_the_transcript() {
    let world = World::new();
    let turns = "\
- calls: [{ask_user: {question: which colour?, options: [red, blue]}}]
- text: It is blue then.";
    world.run(turns, &["paint"]).check(expect![[r#"
        exit 3
        -- stderr --
        engineer on scripted/script · session s_ID
          engineer asks: which colour?
        waiting for an answer · 1 turn · Nk tokens · $N · N s · session s_ID
          question: which colour?
          answer: selvedge answer s_ID "red"
          then: selvedge resume s_ID
    "#]]);
    world
        .selvedge(&["answer", "blue", "--resume"])
        .check(expect![[r#"
            exit 0
            -- stdout --
            It is blue then.
            -- stderr --
            going on with session s_ID: paint
              in ROOT/work
              answered: blue
              It is blue then.
            done · 2 turns · Nk tokens · $N · N s · session s_ID
        "#]]);
    let session = world.session();
    world
        .selvedge(&["sessions", "show", &session])
        .check(expect![[r#"
            exit 0
            -- stdout --
            session s_ID: done
              crew  solo, engineer on scripted/script
              workspace  ROOT/work
              started  TIME (AGO)
              spent  2 turns · Nk tokens · $N

            request
              paint

            engineer
              asked: which colour?
              answered: blue

            engineer
              It is blue then.

            done
              It is blue then.
        "#]]);
}

#[test]
fn a_question_survives_a_run_that_gave_up_and_only_one_answer_counts() {
    let world = World::new();
    let turns = "- calls: [{ask_user: {question: which?}}]\n- text: fine";
    assert_eq!(world.run(turns, &["do it"]).code, 3);
    assert_eq!(world.selvedge(&["resume"]).code, 3);
    assert_eq!(world.selvedge(&["answer", "first"]).code, 0);
    assert_eq!(world.selvedge(&["resume"]).code, 0);
    let output = world.selvedge(&["answer", "second"]);
    assert_eq!(output.code, 2);
}

#[test]
fn with_several_that_wait_one_must_be_named() {
    let world = World::new();
    let turns = "- calls: [{ask_user: {question: which?}}]\n- text: fine";
    assert_eq!(world.run(turns, &["one"]).code, 3);
    assert_eq!(world.run(turns, &["two"]).code, 3);
    let output = world.selvedge(&["answer", "blue"]);
    assert_eq!(output.code, 2);
    assert!(
        output.stderr.contains("more than one session"),
        "{}",
        output.stderr
    );
    let output = world.selvedge(&["resume"]);
    assert_eq!(output.code, 2, "{}", output.stderr);
}

#[test]
fn a_session_that_asks_nothing_is_not_answered() {
    let world = World::new();
    assert_eq!(world.run("- text: fine", &["do it"]).code, 0);
    let session = world.session();
    world
        .selvedge(&["answer", &session, "yes"])
        .check(expect![[r#"
            exit 2
            -- stderr --
            error: session `s_ID` asks nothing
              hint: see what it does with `selvedge sessions show s_ID`
        "#]]);
}

//! The demo: without a key, a configuration or a network, twice.

use expect_test::expect;
use rustix::process::Signal;

use crate::world::{Background, World};

#[test]
fn the_demo_fixes_the_bug_and_shows_it() {
    let world = World::new();
    let first = world.selvedge(&["demo"]);
    let text = &first.stderr;
    assert_eq!(first.code, 0, "{text}");
    assert!(
        text.contains("The model's words in this demo are recorded"),
        "{text}"
    );
    assert!(
        first.stdout.contains("All three tests pass."),
        "{}",
        first.stdout
    );
    assert!(text.contains("+tr '[:upper:]' '[:lower:]' |"), "{text}");
    assert!(text.contains("ok    case is ignored"), "{text}");
    assert!(text.contains("selvedge sessions show s_"), "{text}");
    assert_eq!(world.selvedge(&["demo", "solo"]).code, 0);
    assert_eq!(world.selvedge(&["audit", "verify"]).code, 0);
}

#[test]
fn a_demo_that_was_killed_goes_on() {
    let world = World::new();
    let demo = Background::start(&world, world.command(&["demo"]));
    demo.wait_for("edit_file");
    demo.signal(Signal::KILL);
    assert_eq!(demo.end(), -1);
    let output = world.selvedge(&["resume", "--last"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(
        output.stdout.contains("All three tests pass"),
        "{}",
        output.stdout
    );
    let finished = world
        .kinds()
        .iter()
        .filter(|kind| *kind == "RunFinished")
        .count();
    assert_eq!(finished, 1);
}

#[test]
fn the_demo_of_the_journal_answers_from_notes_that_are_really_there() {
    let world = World::new();
    let begun = std::time::Instant::now();
    let shown = world.selvedge(&["demo", "journal"]);
    let (text, answers) = (&shown.stderr, &shown.stdout);
    assert_eq!(shown.code, 0, "{text}");
    assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
    assert!(
        text.contains("The model's words in this demo are recorded"),
        "{text}"
    );
    // What code does, whatever was recorded: a citation refused, a value corrected, a maximum.
    for words in [
        "evaluate → plan (2): fail, retries left",
        "Bench 19x3, easy!",
        "Correction: bench press weight recorded as 19 → corrected to 190",
        "- sleep_and_bench: the bar feels heavy in weeks of short nights (likely, since 2026-01-14)",
    ] {
        assert!(text.contains(words), "`{words}` in {text}");
    }
    assert!(
        answers.contains("Sources: 2025-12-18T18:30-hand1"),
        "{answers}"
    );
    assert!(!answers.contains("2025-03-02"), "{answers}");
    let record = world.selvedge(&["sessions", "show", &world.session()]);
    let computed = "190 lb (2 quantities in 2 entries, 3 entries skipped";
    assert!(record.stdout.contains(computed), "{}", record.stdout);
    assert_eq!(world.selvedge(&["audit", "verify"]).code, 0);
}

#[test]
fn there_is_no_demo_of_an_unknown_crew() {
    let world = World::new();
    world.selvedge(&["demo", "sol"]).check(expect![[r#"
        exit 2
        -- stderr --
        error: there is no demo of a crew `sol`
          hint: did you mean `solo`?
    "#]]);
}

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
fn there_is_no_demo_of_an_unknown_crew() {
    let world = World::new();
    world.selvedge(&["demo", "sol"]).check(expect![[r#"
        exit 2
        -- stderr --
        error: there is no demo of a crew `sol`
          hint: did you mean `solo`?
    "#]]);
}

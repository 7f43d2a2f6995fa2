//! A question back: killed while it waits, answered days later, or declined.

use rustix::process::Signal;
use serde_json::json;

use super::{NOW, asking_back, command, note, path, script, talk};
use crate::terminal::Terminal;
use crate::world::{Background, World};

#[test]
fn a_question_back_survives_kill_nine_and_its_answer_goes_on_days_later() {
    let world = World::new();
    note(&world, "Bench felt heavy", "2026-11-10 10:30");
    // Killed while it works, and again resumed until it asks.
    let mut agents = asking_back();
    agents["clarifier"] = json!([{ "answer": agents["clarifier"], "delay": "2s" }]);
    let running = Background::start(
        &world,
        command(&world, "ask", "Why was bench heavy?", agents),
    );
    running.wait_for("clarifier");
    running.signal(Signal::KILL);
    running.end();
    let session = world.session();
    let resumed = world.selvedge(&["resume", &session]);
    assert_eq!(resumed.code, 3, "{}", resumed.stderr);
    assert!(
        resumed.stderr.contains("Did you sleep badly?"),
        "{}",
        resumed.stderr
    );
    let answered = world.selvedge(&["answer", &session, "yes, four hours", "--resume"]);
    assert_eq!(answered.code, 0, "{}", answered.stderr);
    assert!(
        answered.stdout.contains("You said that you slept badly"),
        "{}",
        answered.stdout
    );
    let walked = path(&world);
    assert!(
        walked.ends_with(&["synthesize", "evaluate", "observe", "complete"].map(str::to_owned))
    );
}

#[test]
fn declining_a_question_gives_a_partial_answer_with_what_is_missing() {
    let world = World::new();
    note(&world, "Bench felt heavy", "2026-11-10 10:30");
    let asked = talk(&world, "ask", "Why was bench heavy?", asking_back());
    assert_eq!(asked.code, 3, "{}", asked.stderr);
    let declined = world.selvedge(&["answer", &world.session(), "skip", "--resume"]);
    assert_eq!(declined.code, 0, "{}", declined.stderr);
    assert!(
        declined.stdout.contains("This answer is partial"),
        "{}",
        declined.stdout
    );
    assert!(
        declined.stdout.contains("- how you slept that week"),
        "{}",
        declined.stdout
    );
}

#[test]
fn a_box_that_is_killed_while_it_waits_leaves_its_question_to_be_answered() {
    let world = World::new();
    note(&world, "Bench felt heavy", "2026-11-10 10:30");
    let script = script(&world, asking_back());
    let mut command = world.command(&["journal", "--at", NOW, "--script"]);
    command.arg(script).env("TERM", "xterm");
    let mut terminal = Terminal::start(command, 80);
    terminal.wait_for("journal> ");
    terminal.type_line("Why was bench heavy?");
    terminal.wait_for("Did you sleep badly?");
    terminal.wait_for("answer> ");
    terminal.signal(Signal::KILL);
    assert_eq!(terminal.exit(), -1);
    answered_later(&world);
}

#[test]
fn a_question_that_is_killed_at_its_terminal_waits_for_another_day() {
    let world = World::new();
    note(&world, "Bench felt heavy", "2026-11-10 10:30");
    let mut asked = command(&world, "ask", "Why was bench heavy?", asking_back());
    asked.env("TERM", "xterm");
    let mut terminal = Terminal::start(asked, 80);
    it_asks(&terminal);
    terminal.signal(Signal::KILL);
    assert_eq!(terminal.exit(), -1);
    answered_later(&world);
}

/// Waits until the question is asked: not only the clarifier's words are seen, as they come.
fn it_asks(terminal: &Terminal) {
    terminal.wait_for("(`skip` goes on without an answer)");
    terminal.wait_for("\r\n> ");
}

/// The question stands there in another process, and its answer goes on with that session.
fn answered_later(world: &World) {
    let session = world.session();
    let shown = world.selvedge(&["sessions", "show", &session]);
    assert!(
        shown.stdout.contains("Did you sleep badly?"),
        "{}",
        shown.stdout
    );
    let before = world.kinds().len();
    let answered = world.selvedge(&["answer", &session, "yes, four hours", "--resume"]);
    assert_eq!(answered.code, 0, "{}", answered.stderr);
    assert!(
        answered.stdout.contains("You said that you slept badly"),
        "{}",
        answered.stdout
    );
    assert_eq!(world.session(), session, "it is the same session");
    assert!(world.kinds().len() > before);
    let walked = path(world);
    let end = [
        "wait_user",
        "analyze",
        "synthesize",
        "evaluate",
        "observe",
        "complete",
    ];
    assert!(walked.ends_with(&end.map(str::to_owned)), "{walked:?}");
    // What was done before the kill was not done again.
    assert_eq!(walked.iter().filter(|state| *state == "clarify").count(), 1);
    let asked = super::requests(world, "clarifier");
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(world.selvedge(&["audit", "verify"]).code, 0);
}

#[test]
fn declining_after_a_kill_lists_what_is_missing() {
    let world = World::new();
    note(&world, "Bench felt heavy", "2026-11-10 10:30");
    let mut asked = command(&world, "ask", "Why was bench heavy?", asking_back());
    asked.env("TERM", "xterm");
    let mut terminal = Terminal::start(asked, 80);
    it_asks(&terminal);
    terminal.signal(Signal::KILL);
    terminal.exit();
    let declined = world.selvedge(&["answer", &world.session(), "skip", "--resume"]);
    assert_eq!(declined.code, 0, "{}", declined.stderr);
    for words in ["This answer is partial", "- how you slept that week"] {
        assert!(declined.stdout.contains(words), "{}", declined.stdout);
    }
}

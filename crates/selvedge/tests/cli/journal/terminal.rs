//! The box at a real terminal: keys, history, completion, questions back, Markdown.

use regex::Regex;

use super::{NOW, asking_back, good_answer, note, notes, script};
use crate::terminal::Terminal;
use crate::world::World;

const UP: &str = "\x1b[A";
const ENTER: &str = "\r";
const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const PROMPT: &str = "journal> ";

/// A box without a model.
fn open(world: &World) -> Terminal {
    start(world, &["--no-model"])
}

fn start(world: &World, arguments: &[&str]) -> Terminal {
    let mut command = world.command(&["journal", "--at", NOW]);
    command.args(arguments).env("TERM", "xterm");
    let terminal = Terminal::start(command, 100);
    terminal.wait_for(PROMPT);
    terminal
}

/// The box is done with what was typed, and asks for more. Keys that are pressed before are
/// dropped with the terminal's old mode.
fn ready(terminal: &Terminal, after: &str) {
    terminal.wait_for(after);
    terminal.wait_until("it asks for more", |text| {
        let shown = Regex::new("\x1b\\[[0-9;?]*[a-zA-Z]|[\r\n]").unwrap();
        let shown = shown.replace_all(text, "");
        shown.trim_end().ends_with(PROMPT.trim_end())
    });
}

fn leave(mut terminal: Terminal, after: &str) -> String {
    ready(&terminal, after);
    terminal.press(CTRL_D);
    let text = terminal.screen();
    assert_eq!(terminal.exit(), 0, "{}", text());
    text()
}

fn texts(world: &World) -> Vec<String> {
    let notes = notes(world);
    notes
        .iter()
        .map(|note| note["text"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn what_was_typed_is_there_again_the_next_time() {
    let world = World::new();
    let mut first = open(&world);
    first.press("Bench 185x5, felt heavy");
    first.press(ENTER);
    leave(first, "Logged");
    let mut second = open(&world);
    second.press(UP);
    second.wait_for("journal> Bench 185x5, felt heavy");
    second.press(" again");
    second.press(ENTER);
    leave(second, "Logged");
    assert_eq!(
        texts(&world),
        ["Bench 185x5, felt heavy", "Bench 185x5, felt heavy again"]
    );
}

#[test]
fn commands_and_domains_are_completed() {
    let world = World::new();
    let mut terminal = open(&world);
    // What is one of two is shown; what is the only one is written.
    terminal.press("/d\t");
    terminal.wait_for("/domains");
    terminal.press(ENTER);
    ready(&terminal, "swimming: ");
    terminal.press("long day of swi\t");
    terminal.wait_for("long day of swimming");
    terminal.press(ENTER);
    leave(terminal, "Logged");
    assert_eq!(texts(&world), ["long day of swimming"]);
}

#[test]
fn a_dropped_line_is_no_note_and_the_box_stays_open() {
    let world = World::new();
    let mut terminal = open(&world);
    terminal.press("half a thou");
    terminal.wait_for("half a thou");
    terminal.press(CTRL_C);
    ready(&terminal, "dropped; /quit or Ctrl-D leaves");
    terminal.press("a whole one");
    terminal.press(ENTER);
    leave(terminal, "Logged");
    assert_eq!(texts(&world), ["a whole one"]);
}

#[test]
fn the_way_that_an_input_took_is_shown_on_demand() {
    let world = World::new();
    let mut terminal = open(&world);
    terminal.press("/why\r");
    ready(&terminal, "nothing was said yet");
    terminal.press("Walked the dog\r");
    ready(&terminal, "Logged");
    terminal.press("/why\r");
    terminal.wait_for("build_context → parse: it records something that is not recorded yet");
    leave(terminal, "everything: selvedge sessions show s_");
}

#[test]
fn answers_are_shown_as_the_markdown_that_they_are() {
    let world = World::new();
    note(&world, "Slept 4 hours", "2026-11-10 10:30");
    let mut agents = good_answer(&["2026-11-10"]);
    agents["synthesizer"]["response"] = "You slept **too little**.\n\n- go to bed".into();
    let script = script(&world, agents);
    let mut terminal = start(&world, &["--script", script.to_str().unwrap()]);
    terminal.press("Why am I tired?\r");
    let text = leave(terminal, "Sources: 2026-11-10T10:30-");
    assert!(text.contains("You slept \x1b[1mtoo little\x1b["), "{text}");
    // The live lines before it show a model's words as they come.
    let answer = text.rsplit_once("You slept ").unwrap().1;
    assert!(
        answer.contains("• go to bed") && !answer.contains("**"),
        "{text}"
    );
}

#[test]
fn a_question_back_is_answered_where_it_is_asked() {
    let world = World::new();
    note(&world, "Bench felt heavy", "2026-11-10 10:30");
    let script = script(&world, asking_back());
    let mut terminal = start(&world, &["--script", script.to_str().unwrap()]);
    terminal.press("Why was bench heavy?\r");
    terminal.wait_for("Did you sleep badly?");
    terminal.wait_for("answer> ");
    terminal.press("yes, four hours\r");
    leave(terminal, "You said that you slept badly");
}

#[test]
fn a_question_back_that_nobody_answers_is_named_and_named_again_the_next_time() {
    let world = World::new();
    note(&world, "Bench felt heavy", "2026-11-10 10:30");
    let script = script(&world, asking_back());
    let mut terminal = start(&world, &["--script", script.to_str().unwrap()]);
    terminal.press("Why was bench heavy?\r");
    terminal.wait_for("answer> ");
    terminal.press(CTRL_C);
    let session = world.session();
    terminal.wait_for("the question stays open");
    leave(terminal, &format!("selvedge answer {session}"));
    let text = leave(open(&world), "still asked");
    assert!(
        text.contains("still asked: Your notes do not say. Did you sleep badly?"),
        "{text}"
    );
    assert!(
        text.contains(&format!("selvedge answer {session}")),
        "{text}"
    );
}

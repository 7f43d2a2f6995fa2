//! A person at a terminal: the live line, and questions answered where they are asked.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use regex::Regex;
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::world::{World, until};

const APPROVAL: &str = "\
- text: I want to run something.
  calls: [{run_command: {command: sh -c 'touch made'}}]
- text: fine";

/// A command with a terminal of its own, and what it has written there.
pub struct Terminal {
    child: Child,
    keyboard: File,
    screen: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    pub fn start(mut command: Command, columns: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let size = Winsize {
            ws_row: 24,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&master, size).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let end = || -> OwnedFd {
            rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap()
        };
        let child = command
            .stdin(Stdio::from(end()))
            .stdout(Stdio::from(end()))
            .stderr(Stdio::from(end()))
            .spawn()
            .unwrap();
        let keyboard = File::from(master);
        let mut paper = keyboard.try_clone().unwrap();
        let screen = Arc::new(Mutex::new(Vec::new()));
        let written = screen.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The end of the last process behind the terminal is an error here.
            while let Ok(n @ 1..) = paper.read(&mut bytes) {
                written.lock().unwrap().extend_from_slice(&bytes[..n]);
            }
        });
        Self {
            child,
            keyboard,
            screen,
        }
    }

    /// What is on the paper.
    pub fn text(&self) -> String {
        self.screen()()
    }

    /// The same, also after the end of the process.
    pub fn screen(&self) -> impl Fn() -> String + use<> {
        let screen = self.screen.clone();
        move || String::from_utf8_lossy(&screen.lock().unwrap()).into_owned()
    }

    pub fn wait_for(&self, words: &str) {
        self.wait_until(&format!("`{words}`"), |text| text.contains(words));
    }

    pub fn wait_until(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        let begun = std::time::Instant::now();
        while !is_so(&self.text()) {
            assert!(
                begun.elapsed() < crate::world::PATIENCE,
                "waited in vain for {what}:\n{}",
                self.text()
            );
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// Waits until it has said so, so many times.
    pub fn wait_for_times(&self, words: &str, times: usize) {
        until(&format!("`{words}` is said {times} times"), || {
            self.text().matches(words).count() >= times
        });
    }

    pub fn type_line(&mut self, line: &str) {
        self.keyboard.write_all(line.as_bytes()).unwrap();
        self.keyboard.write_all(b"\n").unwrap();
    }

    /// Presses keys: what they send, no line's end included.
    pub fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits for the exit code. What was written last may be on its way still.
    pub fn exit(&mut self) -> i32 {
        let mut status = None;
        until("it ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap().code().unwrap_or(-1)
    }

    /// Waits for the end: the exit code, and everything that was written.
    pub fn end(mut self) -> (i32, String) {
        let code = self.exit();
        // What the process wrote may be on its way still.
        self.wait_for("s_");
        std::thread::sleep(std::time::Duration::from_millis(50));
        (code, self.text())
    }
}

#[test]
fn a_swarm_is_seen_as_a_tree_while_it_works() {
    let world = World::new();
    let mut command = world.command(&["demo", "swarm"]);
    command.env("TERM", "xterm");
    let terminal = Terminal::start(command, 100);
    terminal.wait_for("└─ planner …");
    terminal.wait_for("   └─ builder task-001 …");
    terminal
        .wait_for("   ├─ builder task-001 ✓ 3 turns · $0.0161 · Implement hello.sh and its test");
    terminal.wait_for("   └─ reviewer task-002 …");
    let (code, text) = terminal.end();
    assert_eq!(code, 0, "{text}");
    assert!(
        !text.contains("\"files_created\""),
        "data is no talk: {text}"
    );
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A test that failed must not leave it behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(world: &World, turns: &str, term: &str) -> Terminal {
    let mut command = world.run_command(turns, &["do it"]);
    command.env("TERM", term);
    Terminal::start(command, 80)
}

#[test]
fn a_command_is_allowed_where_it_is_asked_about() {
    let world = World::new();
    let mut terminal = start(&world, APPROVAL, "xterm");
    terminal.wait_for("allow it? yes (this once), session or project (exactly this, from now on), no, or why not\r\n> ");
    assert!(!world.work().join("made").exists());
    terminal.type_line("y");
    let (code, text) = terminal.end();
    assert_eq!(code, 0, "{text}");
    assert!(world.work().join("made").exists());
    assert!(
        text.contains("engineer wants to run:\r\n  sh -c 'touch made'"),
        "{text}"
    );
    assert!(text.contains("answered: y (allowed)"), "{text}");
    assert!(
        text.contains("\x1b[32m✓\x1b[0m run_command sh -c 'touch made'"),
        "{text}"
    );
    assert!(text.contains("done · 2 turns"), "{text}");
}

#[test]
fn an_answer_that_is_no_yes_is_said_to_be_none() {
    let world = World::new();
    let mut terminal = start(&world, APPROVAL, "xterm");
    terminal.wait_for("> ");
    terminal.type_line("");
    terminal.wait_for("please type an answer");
    terminal.type_line("sure thing");
    let (_, text) = terminal.end();
    assert!(
        text.contains("answered: sure thing (not allowed)"),
        "{text}"
    );
    assert!(!world.work().join("made").exists());
}

#[test]
fn what_looks_like_a_secret_is_sent_if_the_person_there_says_it_is_none() {
    let world = World::new();
    let ask = |answer: &str| {
        let command = world.run_command("- text: fine", &["the password is: pwd = hunter22!"]);
        let mut terminal = Terminal::start(command, 80);
        terminal.wait_for("is it none, and to be sent? yes or no: ");
        terminal.type_line(answer);
        terminal
    };
    let terminal = ask("no");
    terminal.wait_for("error: the request was not sent");
    assert!(!terminal.text().contains("hunter22"), "{}", terminal.text());
    assert!(!world.home().join("data/ledger.db").exists());
    let (code, text) = ask("yes").end();
    assert_eq!(code, 0, "{text}");
}

#[test]
fn an_answer_from_elsewhere_ends_the_question() {
    let world = World::new();
    let terminal = start(&world, APPROVAL, "xterm");
    terminal.wait_for("> ");
    assert_eq!(world.selvedge(&["answer", "yes"]).code, 0);
    let (code, text) = terminal.end();
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("> \r\n  answered: yes (allowed)"), "{text}");
}

#[test]
fn the_live_line_says_who_is_at_work_and_what_it_has_cost() {
    let world = World::new();
    let turns = "\
- calls: [{list_files: {path: .}}]
- text: fine
  delay: 400ms";
    let terminal = start(&world, turns, "xterm");
    let (code, text) = terminal.end();
    assert_eq!(code, 0, "{text}");
    let cost = Regex::new(r"0s · \$0\.00\d\d · engineer is thinking").unwrap();
    assert!(cost.is_match(&text), "{text:?}");
}

#[test]
fn a_dumb_terminal_gets_plain_lines_and_every_word_once() {
    let world = World::new();
    let mut terminal = start(&world, APPROVAL, "dumb");
    terminal.wait_for("> ");
    terminal.type_line("yes");
    let (code, text) = terminal.end();
    assert_eq!(code, 0, "{text}");
    assert!(!text.contains('\x1b'), "{text:?}");
    for words in ["wants to run", "I want to run something.", "fine\r\n"] {
        assert_eq!(text.matches(words).count(), 1, "`{words}` in:\n{text}");
    }
}

#[test]
fn the_bars_of_usage_fit_into_the_terminal() {
    let world = World::new();
    assert_eq!(world.run("- text: fine", &["do it"]).code, 0);
    for (columns, has_bars) in [(40, false), (90, true), (200, true)] {
        let terminal = Terminal::start(world.command(&["usage"]), columns);
        let (_, text) = terminal.end();
        assert_eq!(text.contains('█'), has_bars, "{text}");
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(!has_bars || widest <= Some(columns.into()), "{text}");
    }
}

#[test]
fn a_list_fits_into_the_terminal() {
    let world = World::new();
    let request = "a request that goes on and on and does not fit into so narrow a terminal";
    assert_eq!(world.run("- text: fine", &[request]).code, 0);
    let terminal = Terminal::start(world.command(&["sessions", "list"]), 60);
    let (_, text) = terminal.end();
    for line in text.lines() {
        assert!(line.chars().count() <= 60, "{line}");
    }
    assert!(text.contains('…'), "{text}");
}

#[test]
fn an_answer_that_breaks_off_is_marked_and_a_wait_counts_down() {
    let world = World::new();
    let turns = "\
- error: {kind: transient, what: the stream was cut, after: I was about to}
- error: {kind: rate_limited, what: slow down, retry_after: 2s}
- text: fine";
    let terminal = start(&world, turns, "xterm");
    terminal.wait_for("I was about to");
    terminal.wait_for("the answer broke off here, and does not count");
    terminal.wait_for("waiting 2 s");
    terminal.wait_for("waiting 1 s");
    let (code, text) = terminal.end();
    assert_eq!(code, 0, "{text}");
}

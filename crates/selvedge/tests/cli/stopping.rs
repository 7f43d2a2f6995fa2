//! Being stopped: by a signal, by another process, by nobody's leave.

use rustix::process::Signal;

use crate::world::{Background, World, is_running, until};

/// A command that runs until it is stopped, findable by its name.
fn long_run(world: &World, name: &str) -> Background {
    let turns = format!(
        "- calls: [{{run_command: {{command: \"sleep 600; echo {name}\"}}}}]\n- text: fine"
    );
    let command = world.run_command(&turns, &["--approve", "auto", "do it"]);
    let running = Background::start(world, command);
    until("the command runs", || is_running(&format!("echo {name}")));
    running
}

#[test]
fn ctrl_c_stops_everything_and_the_run_can_go_on() {
    let world = World::new();
    let name = format!("ctrl-c-{}", std::process::id());
    let running = long_run(&world, &name);
    running.signal(Signal::INT);
    running.wait_for("go on: selvedge resume");
    assert_eq!(running.end(), 130);
    assert!(
        !is_running(&format!("echo {name}")),
        "the command outlived the run"
    );
    let output = world.selvedge(&["resume"]);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (0, "fine\n"),
        "{}",
        output.stderr
    );
}

#[test]
fn a_second_ctrl_c_does_not_wait_for_a_stubborn_command() {
    let world = World::new();
    let name = format!("stubborn-{}", std::process::id());
    let turns = format!(
        "- calls: [{{run_command: {{command: \"trap '' INT TERM; while :; do sleep 1; done; echo {name}\"}}}}]"
    );
    let command = world.run_command(&turns, &["--approve", "auto", "do it"]);
    let running = Background::start(&world, command);
    until("the command runs", || is_running(&format!("echo {name}")));
    running.signal(Signal::INT);
    running.wait_for("once more to quit at once");
    running.signal(Signal::INT);
    assert_eq!(running.end(), 130);
    until("the command is gone", || {
        !is_running(&format!("echo {name}"))
    });
}

#[test]
fn a_termination_is_as_graceful_as_an_interrupt() {
    let world = World::new();
    let name = format!("term-{}", std::process::id());
    let running = long_run(&world, &name);
    running.signal(Signal::TERM);
    assert_eq!(running.end(), 130);
    assert!(!is_running(&format!("echo {name}")));
}

#[test]
fn a_kill_leaves_nothing_running_and_the_call_in_doubt() {
    let world = World::new();
    let name = format!("kill-{}", std::process::id());
    let running = long_run(&world, &name);
    running.signal(Signal::KILL);
    assert_eq!(running.end(), -1);
    until("the command is gone", || {
        !is_running(&format!("echo {name}"))
    });
    let output = world.selvedge(&["resume", "--last"]);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (0, "fine\n"),
        "{}",
        output.stderr
    );
    assert!(
        output.stderr.contains("in doubt: run_command"),
        "{}",
        output.stderr
    );
    assert!(world.kinds().contains(&"ToolCallInDoubt".to_owned()));
}

#[test]
fn another_process_cancels_a_run() {
    let world = World::new();
    let name = format!("cancel-{}", std::process::id());
    let running = long_run(&world, &name);
    let session = world.session();
    let output = world.selvedge(&["sessions", "cancel", &session, "--reason", "enough"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    running.wait_for("cancelled: enough");
    assert_eq!(running.end(), 1);
    assert!(!is_running(&format!("echo {name}")));
    let list = world.selvedge(&["sessions", "list"]);
    assert!(list.stdout.contains("cancelled"), "{}", list.stdout);
}

#[test]
fn a_session_that_is_being_driven_is_not_driven_twice() {
    let world = World::new();
    let name = format!("twice-{}", std::process::id());
    let running = long_run(&world, &name);
    let session = world.session();
    let output = world.selvedge(&["resume", &session]);
    assert_eq!(output.code, 1);
    assert!(
        output.stderr.contains("is being driven already"),
        "{}",
        output.stderr
    );
    assert!(
        output.stderr.contains("cause: process "),
        "{}",
        output.stderr
    );
    let last = world.selvedge(&["resume", "--last"]);
    assert_eq!(last.code, 2);
    let cause = format!("cause: `{session}` is being driven already, by process ");
    assert!(last.stderr.contains(&cause), "{}", last.stderr);
    let ps = world.selvedge(&["ps"]);
    assert!(ps.stdout.contains("active (pid "), "{}", ps.stdout);
    let show = world.selvedge(&["sessions", "show", &session]);
    assert!(show.stdout.contains(" is under way\n"), "{}", show.stdout);
    running.signal(Signal::INT);
    assert_eq!(running.end(), 130);
}

#[test]
fn a_suspended_run_rests_after_its_step_and_goes_on_later() {
    let world = World::new();
    let go = world.work().join("go");
    let turns = format!(
        "- calls: [{{run_command: {{command: \"until [ -e {} ]; do sleep 0.02; done\"}}}}]\n\
         - text: fine",
        go.display()
    );
    let command = world.run_command(&turns, &["--approve", "auto", "do it"]);
    let running = Background::start(&world, command);
    running.wait_for("run_command");
    let session = world.session();
    assert_eq!(world.selvedge(&["sessions", "suspend", &session]).code, 0);
    running.wait_for("paused (user)");
    std::fs::write(&go, "").unwrap();
    assert_eq!(running.end(), 3);
    let output = world.selvedge(&["resume", &session]);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (0, "fine\n"),
        "{}",
        output.stderr
    );
}

#[test]
fn what_is_said_to_a_running_agent_reaches_it() {
    let world = World::new();
    let go = world.work().join("go");
    let turns = format!(
        "- calls: [{{run_command: {{command: \"until [ -e {} ]; do sleep 0.02; done\"}}}}]\n\
         - text: I heard you.",
        go.display()
    );
    let command = world.run_command(&turns, &["--approve", "auto", "do it"]);
    let running = Background::start(&world, command);
    running.wait_for("run_command");
    let session = world.session();
    let output = world.selvedge(&["sessions", "steer", &session, "mind the gap"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    running.wait_for("you said: mind the gap");
    std::fs::write(&go, "").unwrap();
    assert_eq!(running.end(), 0);
    let show = world.selvedge(&["sessions", "show", &session]);
    assert!(
        show.stdout.contains("you\n  mind the gap"),
        "{}",
        show.stdout
    );
}

#[test]
fn a_session_that_nobody_drives_is_cancelled_at_once() {
    let world = World::new();
    let turns = "- calls: [{ask_user: {question: which?}}]\n- text: fine";
    assert_eq!(world.run(turns, &["do it"]).code, 3);
    let session = world.session();
    let output = world.selvedge(&["sessions", "cancel", &session]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let output = world.selvedge(&["resume", &session]);
    assert_eq!(output.code, 1, "an old failure is no success");
    assert!(
        output.stderr.contains("has ended: cancelled"),
        "{}",
        output.stderr
    );
}

//! Hogs, and what is stopped: case 14, and what is left when a run is killed or cancelled.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use super::ground::Ground;
use super::trial::End::{self, Held, Told};
use super::trial::{case, ok, run, sh};
use crate::world::{Background, is_running, until};

/// Little of everything, so that a test need not take much of it.
const TIGHT: &str = "[limits]\nstrikes_max = 0\n[sandbox]\nprocesses_max = 200\n\
                     memory_mb_max = 256\nfiles_max = 15000\n";

const FORK_BOMB: &str = "bomb() { bomb | bomb & }; bomb; sleep 2; echo survived\n";
const HOG: &str = "hog() { local x=$(head -c 60000000 /dev/zero | tr '\\0' x); sleep 20; }\n\
                   for i in 1 2 3 4 5 6 7 8; do hog & done; wait; echo survived\n";
const FILES: &str = "mkdir d && cd d && seq 100000 | xargs touch\n";
const FLOOD: &str = "head -c 100G /dev/zero | tr '\\0' x | fold -w 100\n";
const CROWD: &str = "for i in $(seq 20); do sleep 0.01 & done; wait; echo twenty\n";

const OVER: End = Told(&[
    "Resource temporarily unavailable",
    "\"stopped\":\"processes\"",
]);

/// As files of the workspace: to run those is asked about by nobody, so that in either run
/// there is only the kernel.
fn lay_out(ground: &Ground) {
    ground.world.write("home/config/config.toml", TIGHT);
    for (name, text) in [
        ("bomb", FORK_BOMB),
        ("hog", HOG),
        ("files", FILES),
        ("flood", FLOOD),
        ("crowd", CROWD),
    ] {
        ground.world.write(&format!("work/{name}.sh"), text);
    }
}

#[test]
fn a_model_whose_commands_take_everything_is_stopped_and_its_twin_works() {
    let stopped = |name: &str, reason: &'static str| {
        sh(&format!("bash {name}.sh"), Held(reason), Held(reason))
    };
    let attacks = vec![
        stopped("hog", "\"stopped\":\"memory\""),
        stopped("files", "\"stopped\":\"files\""),
        // The kernel refuses more, or the count is noticed first.
        sh("bash bomb.sh", OVER, OVER),
    ];
    let twins = vec![
        ok("bash crowd.sh", "twenty"),
        ok("seq 1000 | tail -n 1", "1000"),
    ];
    run(&lay_out, &[case(14, attacks, twins)], &|_| ());
}

/// A run whose command does this, in the background, once it has begun.
fn begun(ground: &Ground, command: &str) -> Background {
    let command = ground.fill(&format!("touch begun; {command}"));
    let call = json!([{"run_command": {"command": command, "timeout_seconds": 600}}]);
    let script = format!("- calls: {call}\n- text: done");
    let arguments = ["--approve", "auto", "do it"];
    let run = ground.world.run_command(&script, &arguments);
    let running = Background::start(&ground.world, run);
    let begun = ground.at("work/begun");
    until("the command has begun", || begun.exists());
    running
}

#[test]
fn the_runtime_answers_while_a_command_takes_everything_and_can_stop_it() {
    for hog in ["flood", "hog", "bomb"] {
        let mut ground = Ground::new(&lay_out);
        let running = begun(&ground, &format!("bash {hog}.sh MARK"));
        let mut took = Vec::new();
        for _ in 0..10 {
            let asked = Instant::now();
            let list = ground.world.selvedge(&["sessions", "list"]);
            assert_eq!(list.code, 0, "{}", list.stderr);
            took.push(asked.elapsed());
        }
        took.sort();
        assert!(took[9] < Duration::from_secs(5), "{hog}: {took:?}");
        assert!(took[5] < Duration::from_secs(1), "{hog}: {took:?}");
        // The others come to their end by themselves.
        if hog == "flood" {
            let session = ground.world.session();
            let cancel = ["sessions", "cancel", &session, "--reason", "enough"];
            assert_eq!(ground.world.selvedge(&cancel).code, 0);
        }
        assert_eq!(running.end(), i32::from(hog == "flood"), "{hog}");
        ground.is_as_it_was();
    }
}

const STUBBORN: &str = "(setsid bash -c 'trap \"\" INT TERM HUP; sleep MARK & touch deep; wait' &); \
                        setsid nohup sleep MARK >/dev/null 2>&1 & trap '' INT TERM HUP; \
                        until [ -e deep ]; do sleep 0.01; done; touch ready; \
                        while :; do sleep MARK; done";

fn stubborn(ground: &Ground) -> Background {
    let running = begun(ground, STUBBORN);
    let ready = ground.at("work/ready");
    until("all of it runs", || ready.exists());
    assert!(is_running(&ground.fill("MARK")));
    running
}

#[test]
fn five_seconds_after_selvedge_is_killed_nothing_of_a_run_is_left() {
    let mut ground = Ground::new(&|_| ());
    let running = stubborn(&ground);
    let killed = Instant::now();
    running.signal(Signal::KILL);
    assert_eq!(running.end(), -1);
    let mark = ground.fill("MARK");
    until("everything is gone", || !is_running(&mark));
    let took = killed.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    ground.is_as_it_was();
}

#[test]
fn a_command_that_ignores_signals_is_gone_eight_seconds_after_its_run_is_cancelled() {
    let mut ground = Ground::new(&|_| ());
    let running = stubborn(&ground);
    let session = ground.world.session();
    let cancelled = Instant::now();
    let cancel = ["sessions", "cancel", &session, "--reason", "enough"];
    assert_eq!(ground.world.selvedge(&cancel).code, 0);
    let mark = ground.fill("MARK");
    until("everything is gone", || !is_running(&mark));
    let took = cancelled.elapsed();
    // Five for the first signal, three for the second; then it is killed.
    assert!(took < Duration::from_millis(9_500), "{took:?}");
    assert_eq!(running.end(), 1);
    let events = ["sessions", "events", &session, "--json"];
    let events = ground.world.selvedge(&events).stdout;
    assert!(events.contains("SIGKILL"), "{events}");
    ground.is_as_it_was();
}

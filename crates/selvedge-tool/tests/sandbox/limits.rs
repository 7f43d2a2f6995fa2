//! Limits: a command that takes too much is stopped, and others go on meanwhile.

use serde_json::json;

use crate::ground::{Ground, StandIn, eventually};

/// A machine that a single command could take down must still do other things: a
/// second command runs to its end while the first is at it.
fn others_go_on(ground: &Ground, stand_in: &StandIn) {
    assert!(std::path::Path::new(&format!("/proc/{}", stand_in.pid())).exists());
    let answer = ground.run("echo alive");
    assert_eq!(answer.text, "alive\n");
}

#[test]
fn a_fork_bomb_is_stopped_and_others_go_on() {
    let bomb = "bomb() { bomb | bomb & }; bomb; sleep 2; echo survived";
    too_many_processes(Ground::new(), bomb);
}

/// The kernel counts the processes of ordinary users; those of root are counted too.
/// Not with a bomb: until the count is taken it would be free to fill the machine.
#[test]
fn a_crowd_of_whoever_runs_the_tests_is_stopped() {
    let crowd = "for i in $(seq 2000); do sleep 60 & done; wait; echo survived";
    too_many_processes(Ground::new().with_my_tools(), crowd);
}

fn too_many_processes(mut ground: Ground, command: &str) {
    ground.sandbox.resources.processes_max = 200;
    let command = format!("touch begun; {command}");
    let stand_in = ground.begin("run_command", json!({ "command": command }));
    eventually("it began", || ground.at("app/begun").exists());
    others_go_on(&ground, &stand_in);
    let answer = stand_in.end();
    let stopped = answer.facts["stopped"] == "processes";
    let starved = answer.text.contains("Resource temporarily unavailable");
    assert!(stopped || starved, "{}", answer.text);
    let answer = ground.run("for i in $(seq 50); do sleep 0.01 & done; wait; echo done");
    assert_eq!(answer.text, "done\n");
}

#[test]
fn a_memory_hog_is_stopped_also_when_it_comes_in_pieces() {
    let mut ground = Ground::new();
    ground.sandbox.resources.memory_bytes_max = Some(256 << 20);
    // Eight processes of 60 MB each: none is too large by itself.
    let hog = "hog() { local x=$(head -c 60000000 /dev/zero | tr '\\0' x); sleep 20; }
        touch begun; for i in 1 2 3 4 5 6 7 8; do hog & done; wait; echo survived";
    let stand_in = ground.begin("run_command", json!({ "command": hog }));
    eventually("it began", || ground.at("app/begun").exists());
    others_go_on(&ground, &stand_in);
    let answer = stand_in.end();
    assert_eq!(answer.facts["stopped"], "memory", "{}", answer.text);
    let answer = ground.run("x=$(head -c 20000000 /dev/zero | tr '\\0' x); echo ${#x}");
    assert_eq!(answer.text, "20000000\n");
}

#[test]
fn files_have_a_size_and_temporary_ones_a_number() {
    let mut ground = Ground::new();
    ground.sandbox.resources.file_bytes_max = 1 << 20;
    let answer = ground.run("head -c 2000000 /dev/zero > big; stat -c %s big");
    assert!(answer.text.contains("1048576"), "{}", answer.text);
    let answer = ground.run("mkdir /tmp/d && cd /tmp/d && seq 250000 | xargs touch");
    assert!(
        answer.text.contains("No space left on device"),
        "{}",
        answer.text
    );
    let answer = ground.run("cd /tmp && seq 1000 | xargs touch && ls | wc -l");
    assert_eq!(answer.text, "1000\n");
}

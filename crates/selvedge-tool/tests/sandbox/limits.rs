//! Limits: a command that takes too much is stopped, and others go on meanwhile.

use std::path::PathBuf;

use selvedge_tool::counted;
use serde_json::json;

use crate::ground::{Answer, Ground, StandIn, eventually, is_root};

/// Whoever watches over a command is not held up by what it does.
fn kept_awake(answer: &Answer) {
    assert!(answer.late_ms < 1_000, "{} ms late", answer.late_ms);
}

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

/// Where the kernel counts a command as a whole, root's bomb is held as anybody's.
#[test]
fn a_fork_bomb_of_root_is_held_by_the_kernel() {
    if !(is_root() && counted().processes) {
        eprintln!("only for root, on a machine with control groups that count processes");
        return;
    }
    let bomb = "bomb() { bomb | bomb & }; bomb; sleep 2; echo survived";
    too_many_processes(Ground::new().with_my_tools(), bomb);
}

/// The control groups that a process has made, and their members.
fn groups(pid: u32) -> Vec<PathBuf> {
    fn look(folder: PathBuf, part: &str, found: &mut Vec<PathBuf>) {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
            if path.is_dir() {
                if path.file_name().unwrap().to_string_lossy().contains(part) {
                    found.push(path.clone());
                }
                look(path, part, found);
            }
        }
    }
    let mut found = Vec::new();
    look("/sys/fs/cgroup".into(), &format!("-{pid}-"), &mut found);
    found.retain(|path| {
        path.file_name()
            .unwrap()
            .to_string_lossy()
            .starts_with("selvedge-")
    });
    found
}

#[test]
fn a_command_s_group_goes_with_it_however_it_ends() {
    let ground = Ground::new().with_my_tools();
    if !counted().processes {
        eprintln!("no control groups here");
        return;
    }
    let begin = || {
        let _ = std::fs::remove_file(ground.at("app/begun"));
        let command = "touch begun; sleep 1000";
        let stand_in = ground.begin("run_command", json!({ "command": command }));
        eventually("it began", || ground.at("app/begun").exists());
        let pid = stand_in.pid();
        let members = |group: &PathBuf| std::fs::read_to_string(group.join("cgroup.procs"));
        let is_entered = |group: &PathBuf| members(group).is_ok_and(|text| !text.is_empty());
        let made = groups(pid);
        assert!(!made.is_empty() && made.iter().all(is_entered), "{made:?}");
        (stand_in, pid)
    };
    let (stand_in, killed) = begin();
    stand_in.kill();
    eventually("the group of a Selvedge that was killed is gone", || {
        groups(killed).is_empty()
    });
    let stand_in = ground.begin("run_command", json!({ "command": "true" }));
    let pid = stand_in.pid();
    assert!(!stand_in.end().is_error);
    assert_eq!(groups(pid), Vec::<PathBuf>::new());
}

/// What even the process that stands for a command could not remove is removed by the
/// next that starts.
#[test]
fn a_group_that_was_left_behind_is_removed_at_the_next_start() {
    let ground = Ground::new().with_my_tools();
    if !counted().processes {
        eprintln!("no control groups here");
        return;
    }
    let stand_in = ground.begin(
        "run_command",
        json!({ "command": "touch begun; sleep 1000" }),
    );
    eventually("it began", || ground.at("app/begun").exists());
    let made = groups(stand_in.pid()).remove(0);
    let name = made.file_name().unwrap().to_string_lossy().into_owned();
    let space = name.split('-').nth(1).unwrap();
    // A process number that nobody has.
    let left = made.with_file_name(format!("selvedge-{space}-4194304-1-0"));
    std::fs::create_dir(&left).unwrap();
    drop(stand_in);
    assert!(!ground.run("true").is_error);
    assert!(!left.exists());
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
    kept_awake(&answer);
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
    kept_awake(&answer);
    let answer = ground.run("x=$(head -c 20000000 /dev/zero | tr '\\0' x); echo ${#x}");
    assert_eq!(answer.text, "20000000\n");
}

#[test]
fn files_have_a_size_and_temporary_ones_a_number() {
    let mut ground = Ground::new();
    ground.sandbox.resources.file_bytes_max = 1 << 20;
    let answer = ground.run("head -c 2000000 /dev/zero > big; stat -c %s big");
    assert!(answer.text.contains("1048576"), "{}", answer.text);
    let answer = ground.run("mkdir /tmp/d && cd /tmp/d && seq 250000 | xargs touch; sleep 1");
    // Bubblewrap cannot be told how many: there they are counted.
    let is_held = answer.text.contains("No space left on device");
    let is_stopped = answer.facts["stopped"] == "files";
    assert!(is_held || is_stopped, "{}", answer.text);
    let answer = ground.run("cd /tmp && seq 1000 | xargs touch && ls | wc -l");
    assert_eq!(answer.text, "1000\n");
}

#[test]
fn a_flood_of_files_is_stopped_before_it_fills_the_disk() {
    let mut ground = Ground::new().with_temp();
    // Others make files meanwhile, on the same disk.
    ground.sandbox.resources.files_max = Some(15_000);
    for place in [".", "/tmp"] {
        let flood = format!("mkdir {place}/d && cd {place}/d && seq 100000 | xargs touch");
        let answer = ground.run(&flood);
        assert_eq!(answer.facts["stopped"], "files", "{}", answer.text);
        kept_awake(&answer);
        ground.run(&format!("rm -r {place}/d"));
    }
    let answer = ground.run("seq 1000 | xargs touch && ls | wc -l");
    assert_eq!(answer.text, "1001\n");
}

/// Memory that no process has as its own: files in memory, and what is only shared.
#[test]
fn memory_that_belongs_to_no_process_is_bounded_too() {
    let mut ground = Ground::new();
    ground.sandbox.resources.memory_bytes_max = Some(256 << 20);
    for place in ["/dev/shm", "/tmp", "~"] {
        let answer = ground.run(&format!("head -c 200000000 /dev/zero > {place}/big"));
        let is_full = answer.text.contains("No space left on device");
        assert!(
            is_full || answer.facts["stopped"] == "memory",
            "{place}: {}",
            answer.text
        );
    }
    // A file without a name, which is never looked at.
    let call = match std::env::consts::ARCH {
        "aarch64" => 279,
        _ => 319,
    };
    let hog = format!(
        "perl -e 'my $n = \"x\"; my $fd = syscall({call}, $n, 0); open(F, \">&=\", $fd) or die; \
         my $m = \"x\" x (1 << 20); for (1..4000) {{ syswrite(F, $m); select(undef, undef, undef, 0.002) }} \
         print \"survived\"'"
    );
    let answer = ground.run(&hog);
    assert_eq!(answer.facts["stopped"], "memory", "{}", answer.text);
    kept_awake(&answer);
    let answer =
        ground.run("head -c 20000000 /dev/zero > /dev/shm/small && wc -c < /dev/shm/small");
    assert_eq!(answer.text, "20000000\n");
}

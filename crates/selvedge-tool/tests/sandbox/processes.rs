//! Processes: a command sees its own, and none of them outlives it.

use std::path::Path;

use selvedge_tool::{Attempt, Fence, Helper, Sandbox, attempt_to_break_out, break_out};
use serde_json::json;

use crate::ground::{Ground, eventually, fenced, let_another_stand_inside};

/// Not a test: what is run inside of the sandbox by the next one.
#[test]
fn helper() {
    for attempt in break_out() {
        println!("\n{}", serde_json::to_string(&attempt).unwrap());
    }
}

/// Not a test: tries to break out, as an ordinary user.
#[tokio::test]
async fn stand_in() {
    let Some(mode) = std::env::var_os("STAND_IN_TRIAL") else {
        return;
    };
    let sandbox = match mode == "off" {
        true => Sandbox::off(),
        false => fenced(),
    };
    let_another_stand_inside();
    let helper = Helper {
        program: std::env::current_exe().unwrap(),
        arguments: ["--exact", "processes::helper", "--nocapture"]
            .map(Into::into)
            .into(),
    };
    let attempts = attempt_to_break_out(&sandbox, &helper).await.unwrap();
    println!("\nANSWER {}", serde_json::to_string(&attempts).unwrap());
}

fn trial(mode: &str) -> Vec<Attempt> {
    let ground = Ground::new();
    let output = ground
        .somebody()
        .args(["--exact", "processes::stand_in", "--nocapture"])
        .env("STAND_IN_TRIAL", mode)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix("ANSWER "));
    serde_json::from_str(line.unwrap_or_else(|| panic!("{output:?}"))).unwrap()
}

#[test]
fn nothing_that_is_tried_breaks_out_and_what_is_allowed_works() {
    let attempts = trial("on");
    let wrong: Vec<&Attempt> = attempts.iter().filter(|a| !a.is_as_it_should).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(attempts.len() >= 35, "{} attempts", attempts.len());
}

#[test]
fn without_a_sandbox_the_trial_says_that_nothing_holds() {
    let attempts = trial("off");
    let open: Vec<&str> = attempts
        .iter()
        .filter(|attempt| !attempt.is_as_it_should)
        .map(|attempt| attempt.name.as_str())
        .collect();
    for name in [
        "read a file outside",
        "leave a hook for git",
        "leave settings for Selvedge",
        "connect to a socket of this machine",
        "connect to a port of this machine",
        "signal Selvedge",
        "speak to the kernel by netlink",
    ] {
        assert!(open.contains(&name), "{name} in {open:?}");
    }
}

#[test]
fn where_nobody_may_make_namespaces_a_command_is_refused() {
    let ground = Ground::new().without_namespaces();
    let answer = ground.run("touch ran");
    assert!(answer.is_error && !ground.at("app/ran").exists());
    let by_whom = match ground.sandbox.fence {
        Fence::Bubblewrap => "letting bubblewrap put it up failed",
        Fence::Own | Fence::Auto => "making namespaces failed",
    };
    for words in ["without it nothing was run", by_whom, "`--sandbox off`"] {
        assert!(answer.text.contains(words), "{words}: {}", answer.text);
    }
    let answer = ground.run_bare("touch ran");
    assert!(!answer.is_error, "who goes without can go: {}", answer.text);
}

#[test]
fn a_daemon_dies_with_its_command() {
    let ground = Ground::new();
    let mark = format!("1000.{}", std::process::id());
    let answer = ground.run(&format!(
        "setsid nohup sleep {mark} >/dev/null 2>&1 &
         (setsid bash -c 'trap \"\" INT TERM HUP; sleep {mark} & touch deep; wait' &)
         until [ -e deep ]; do :; done; echo $$"
    ));
    assert_eq!(answer.text, "2\n", "in a world of its own");
    assert_eq!(processes_with(&mark), 0);
}

#[test]
fn nothing_outlives_a_selvedge_that_is_killed() {
    let ground = Ground::new();
    let mark = format!("1001.{}", std::process::id());
    let command = format!("setsid sleep {mark} & touch begun; sleep {mark}");
    let stand_in = ground.begin("run_command", json!({ "command": command }));
    eventually("the command runs", || {
        ground.at("app/begun").exists() && processes_with(&mark) >= 2
    });
    stand_in.kill();
    eventually("everything is gone", || processes_with(&mark) == 0);
}

#[test]
fn a_command_that_ignores_signals_is_killed_and_its_answer_says_so() {
    let ground = Ground::new();
    let command = "trap 'echo int' INT; trap 'echo term' TERM; while :; do sleep 0.05; done";
    let input = json!({"command": command, "timeout_seconds": 1});
    let answer = ground.call("run_command", input);
    assert_eq!(answer.facts["kill_signal"], "SIGKILL", "{}", answer.text);
    assert_eq!(
        (&answer.facts["partial"], &answer.facts["stopped"]),
        (&json!(true), &json!("timed_out"))
    );
    let said = |word: &str| answer.text.lines().position(|line| line == word);
    assert!(
        said("int").is_some() && said("int") < said("term"),
        "{}",
        answer.text
    );
}

#[test]
fn a_command_finds_no_agents_and_no_terminal() {
    let ground = Ground::new();
    let answer = ground.run(
        "env | grep -iE 'ssh_auth|dbus|display|xdg_runtime'; ls -A /run /tmp; \
         (: </dev/tty) 2>/dev/null || echo no terminal; python3 --version >/dev/null 2>&1; true",
    );
    let text = answer.text;
    assert!(text.contains("no terminal"), "{text}");
    assert!(
        !text.to_lowercase().contains("agent") && !text.contains("bus"),
        "{text}"
    );
}

/// How many processes have this in their arguments.
fn processes_with(mark: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let is_it = |path: &Path| {
        let arguments = std::fs::read(path.join("cmdline")).unwrap_or_default();
        let arguments = String::from_utf8_lossy(&arguments).into_owned();
        arguments.split('\0').any(|argument| argument == mark)
    };
    entries.filter(|entry| is_it(&entry.path())).count()
}

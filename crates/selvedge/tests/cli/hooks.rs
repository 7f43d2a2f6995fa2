//! Hooks from configuration files, and what becomes of an agent that fails.

use expect_test::expect;

use crate::world::World;

const STOP: &str = r#"
[[hooks]]
event = "pre_tool"
tool = "write_file"
name = "no-notes"
command = ["sh", "-c", "grep -q notes && { echo 'notes are mine' >&2; exit 2; }; exit 0"]
required = true
"#;

const WRITES: &str = "\
- calls: [{write_file: {path: notes.md, content: x}}]
- calls: [{write_file: {path: other.md, content: x}}]
- calls: [{finish: {summary: done}}]";

#[test]
fn a_hook_of_the_user_stops_what_it_does_not_want() {
    let world = World::new();
    world.write("home/config/config.toml", STOP);
    world.run(WRITES, &["write"]).check(expect![[r#"
        exit 0
        -- stdout --
        done
        -- stderr --
        engineer on scripted/script · session s_ID
          engineer: write_file notes.md
          denied: write_file notes.md because the hook `no-notes` says: notes are mine (user: hook no-notes)
          engineer: write_file other.md
        done · 3 turns · Nk tokens · $N · N s · session s_ID
    "#]]);
    assert!(!world.work().join("notes.md").exists());
    assert!(world.work().join("other.md").exists());
}

#[test]
fn a_hook_of_a_project_is_called_only_when_the_user_trusts_it() {
    let world = World::new();
    world.write("work/.selvedge/config.toml", STOP);
    let output = world.run(WRITES, &["write"]);
    assert_eq!(output.code, 0);
    assert!(
        output.stderr.contains("`[[hooks]]` in") && output.stderr.contains("selvedge trust"),
        "{}",
        output.stderr
    );
    let notes = world.work().join("notes.md");
    assert!(notes.exists());
    std::fs::remove_file(&notes).unwrap();
    assert_eq!(world.selvedge(&["trust"]).code, 0);
    world.run(WRITES, &["write"]);
    assert!(!notes.exists());
}

#[test]
fn a_hook_that_cannot_be_is_named_with_its_line() {
    let world = World::new();
    for (text, words) in [
        (
            "[[hooks]]\nevent = \"pre_tools\"\ncommand = [\"x\"]",
            "did you mean `pre_tool`?",
        ),
        (
            "[[hooks]]\nevent = \"pre_tool\"\ncommand = []",
            "needs a program",
        ),
        (
            "[[hooks]]\nevent = \"pre_tool\"\ncomand = [\"x\"]",
            "did you mean `command`?",
        ),
    ] {
        world.write("home/config/config.toml", text);
        let output = world.selvedge(&["config", "check"]);
        assert_eq!(output.code, 2);
        assert!(output.stderr.contains(words), "{}", output.stderr);
    }
}

#[test]
fn what_a_hook_changed_is_what_the_audit_shows() {
    let world = World::new();
    world.write(
        "home/config/config.toml",
        r#"
[[hooks]]
event = "pre_tool"
tool = "run_command, write_file"
name = "careful"
command = ["sh", "-c", "echo '{\"arguments\": {\"command\": \"echo changed\"}}'"]
"#,
    );
    let turns = "- calls: [{run_command: {command: echo original}}]\n- text: done";
    let output = world.run(turns, &["do it", "--approve", "auto"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(
        output.stderr.contains("run_command echo changed"),
        "{}",
        output.stderr
    );
    let audit = world.selvedge(&["audit", "query", "--json"]).stdout;
    let acts: Vec<serde_json::Value> = audit
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let act = acts
        .iter()
        .find(|act| act["action"] == "run_command")
        .unwrap();
    assert_eq!(act["target"], "echo changed");
    let detail = act["detail"].as_str().unwrap();
    assert!(detail.contains("hook `careful` changed it"), "{detail}");
}

const STRIKES: &str = "\
- calls:
    - edit_file: {path: kept.txt, old: one, new: spoiled}
    - write_file: {path: made/new.txt, content: new}
- calls: [{run_command: {command: rm ignored.log link; chmod 600 kept.txt; ./fix}}]
- calls: [{run_command: {command: ./fix --harder}}]
- calls: [{run_command: {command: ./fix --again}}]
- calls: [{write_file: {path: kept.txt, content: once more}}]
- calls: [{finish: {summary: fixed}}]";

#[test]
fn after_three_failures_files_are_as_they_were_and_the_run_has_failed() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let world = World::new();
    world.write("work/kept.txt", "one\n");
    world.write("work/ignored.log", "no git here\n");
    let kept = world.work().join("kept.txt");
    std::fs::set_permissions(&kept, std::fs::Permissions::from_mode(0o640)).unwrap();
    symlink("kept.txt", world.work().join("link")).unwrap();
    world
        .run(STRIKES, &["fix it", "--approve", "auto"])
        .check(expect![[r#"
            exit 1
            -- stderr --
            engineer on scripted/script · session s_ID
              engineer: edit_file kept.txt
              engineer: write_file made/new.txt
              engineer: run_command rm ignored.log link; chmod 600 kept.txt; ./fix
              ✗ run_command failed: bash: line 1: ./fix: No such file or directory
              engineer: run_command ./fix --harder
              ✗ run_command failed: bash: line 1: ./fix: No such file or directory
              engineer: run_command ./fix --again
              ✗ run_command failed: bash: line 1: ./fix: No such file or directory
              put back: ignored.log, kept.txt, link, made, made/new.txt, after 3 failures in a row
            failed: TASK_HELP: 3 attempts in a row failed, and the work was given up.
            1. run_command `rm ignored.log link; chmod N kept.txt; ./fix`: bash: line N: ./fix: No such file or directory
            2. run_command `./fix --harder`: bash: line N: ./fix: No such file or directory
            3. run_command `./fix --again`: bash: line N: ./fix: No such file or directory
            fixed
            failed · 6 turns · Nk tokens · $N · N s · session s_ID
              look: selvedge sessions show s_ID
        "#]]);
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "one\n");
    assert_eq!(kept.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    assert!(world.work().join("ignored.log").exists());
    assert!(world.work().join("link").is_symlink());
    assert!(!world.work().join("made").exists());
    let kinds = world.kinds();
    assert!(kinds.contains(&"RestoreFinished".to_owned()), "{kinds:?}");
    let session = world.session();
    let shown = world.selvedge(&["sessions", "show", &session]).stdout;
    assert!(
        shown.contains("put back: ignored.log, kept.txt, link"),
        "{shown}"
    );
    let audit = world.selvedge(&["audit", "query", "--json"]).stdout;
    assert!(audit.contains(r#""action":"restored""#), "{audit}");
}

#[test]
fn who_wants_no_limit_to_failures_can_say_so() {
    let world = World::new();
    world.write("home/config/config.toml", "[limits]\nstrikes_max = 0\n");
    world.write("work/kept.txt", "one\n");
    let output = world.run(STRIKES, &["fix it", "--approve", "auto"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let kept = std::fs::read_to_string(world.work().join("kept.txt")).unwrap();
    assert_eq!(kept, "once more");
}

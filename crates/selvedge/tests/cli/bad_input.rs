//! Whatever is wrong: what happened, why, what to do next, and the right code.

use expect_test::expect;

use crate::world::World;

#[test]
fn an_unknown_crew_is_answered_with_the_nearest() {
    let world = World::new();
    world
        .run("- text: fine", &["--crew", "sola", "do it"])
        .check(expect![[r#"
            exit 2
            -- stderr --
            error: there is no crew `sola`
              cause: the crews are: journal, solo, swarm
              hint: did you mean `solo`?
        "#]]);
    assert!(!world.home().exists(), "nothing was begun");
}

#[test]
fn without_a_key_the_variables_are_named() {
    let world = World::new();
    world.selvedge(&["run", "do it"]).check(expect![[r#"
        exit 6
        -- stderr --
        error: no model provider is available
          cause: none of `ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, `GEMINI_API_KEY`, `AZURE_OPENAI_ENDPOINT`, `OPENROUTER_API_KEY`, `OLLAMA_HOST` is set
          hint: set one of them, store a key with `selvedge auth login`, or try `selvedge demo`, which needs no key
    "#]]);
}

#[test]
fn an_unknown_model_is_answered_with_the_nearest() {
    let world = World::new();
    let mut command = world.command(&["run", "--model", "sonet", "do it"]);
    command.env("ANTHROPIC_API_KEY", "not-a-key");
    world.output(&mut command).check(expect![[r#"
        exit 2
        -- stderr --
        error: there is no model `sonet`; did you mean `sonnet`?
          hint: name a model as `provider/model`, or a tier: `low`, `medium`, `high`
    "#]]);
}

#[test]
fn a_name_of_nothing_is_wrong_usage_and_a_missing_key_is_not() {
    let world = World::new();
    for (model, code) in [
        ("sonet", 2),
        ("antropic/claude-opus-5-5", 2),
        ("anthropic/claude-opus-5-5", 6),
        ("sonnet", 6),
        ("medium", 6),
    ] {
        let output = world.selvedge(&["run", "--model", model, "do it"]);
        assert_eq!(output.code, code, "{model}: {}", output.stderr);
    }
    assert!(!world.home().exists(), "nothing was begun");
}

#[test]
fn a_typo_in_a_script_is_shown_with_its_line() {
    let world = World::new();
    world.run("- txet: fine", &["do it"]).check(expect![[r#"
            exit 2
            -- stderr --
            error: the script `ROOT/script.yaml` line 4 cannot be used
              cause: unknown key `txet`; did you mean `text`?
              hint: correct the script and run the command again
        "#]]);
}

#[test]
fn a_script_that_is_not_there_is_named() {
    let world = World::new();
    world
        .selvedge(&["run", "--script", "none.yaml", "do it"])
        .check(expect![[r#"
            exit 2
            -- stderr --
            error: the script `none.yaml` cannot be read
              cause: No such file or directory (os error 2)
              hint: name a file of turns; `selvedge demo` shows one at work
        "#]]);
}

#[test]
fn an_empty_request_is_refused() {
    let world = World::new();
    world.run("- text: fine", &["  "]).check(expect![[r#"
        exit 2
        -- stderr --
        error: there is no request
          cause: neither an argument nor a pipe said what to do
          hint: say what is to be done: `selvedge run "fix the failing test"`
    "#]]);
    assert_eq!(world.run("- text: fine", &["-"]).code, 2);
    let output = world.selvedge(&["swarm"]);
    let hint = "say what is to be done: `selvedge swarm \"";
    assert!(output.stderr.contains(hint), "{}", output.stderr);
}

#[test]
fn a_command_that_is_called_after_a_crew_is_done_by_no_other() {
    let world = World::new();
    world
        .selvedge(&["swarm", "--crew", "solo", "do it"])
        .check(expect![[r#"
            exit 2
            -- stderr --
            error: `selvedge swarm` is done by the crew `swarm`, and not by `solo`
              hint: type `selvedge run --crew solo "…"`
        "#]]);
    assert!(!world.home().exists(), "nothing was begun");
}

#[test]
fn a_list_with_nothing_in_it_says_so() {
    let world = World::new();
    for (command, said) in [
        (&["sessions", "list"][..], "there are no sessions yet"),
        (&["sessions", "clean"], "no copies were left behind"),
        (&["ps"], "no session is unfinished"),
        (&["usage"], "nothing was spent"),
        (&["audit", "query"], "nothing was done that fits"),
        (&["mcp", "list"], "there are no MCP servers"),
        (&["skills", "list"], "there are no skills here"),
    ] {
        let output = world.selvedge(command);
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (0, ""),
            "{command:?}"
        );
        assert!(
            output.stderr.contains(said),
            "{command:?}: {}",
            output.stderr
        );
    }
}

#[test]
fn a_request_without_quotes_or_without_run_is_answered_with_the_command() {
    let world = World::new();
    world
        .run("- text: fine", &["fix", "the", "test"])
        .check(expect![[r#"
            exit 2
            -- stderr --
            error: the request is more than one argument
              cause: a request is one text, so that none of its words is taken for a flag
              hint: put it into quotes: `selvedge run "fix the test"`
        "#]]);
    world.selvedge(&["fix the test"]).check(expect![[r#"
        exit 2
        -- stderr --
        error: there is no command `fix the test`
          hint: a request is run: `selvedge run "fix the test"`
    "#]]);
}

#[test]
fn a_negative_budget_is_called_what_it_is() {
    let world = World::new();
    let output = world.run("- text: fine", &["--budget", "-1", "do it"]);
    assert_eq!(output.code, 2);
    let cause = "`-1` is not an amount of dollars";
    assert!(output.stderr.contains(cause), "{}", output.stderr);
}

#[test]
fn a_directory_that_is_not_there_is_refused() {
    let world = World::new();
    world
        .run("- text: fine", &["-C", "nowhere", "do it"])
        .check(expect![[r#"
            exit 2
            -- stderr --
            error: `nowhere` cannot be worked in
              cause: No such file or directory (os error 2)
              hint: name a directory that exists: `selvedge run -C DIR "…"`
        "#]]);
}

#[test]
fn a_schema_that_is_none_is_refused() {
    let world = World::new();
    let broken = world.write("broken.json", "{");
    let wrong = world.write("wrong.json", r#"{"type": "objekt"}"#);
    let broken = broken.to_str().unwrap();
    let wrong = wrong.to_str().unwrap();
    world
        .run("- text: fine", &["--output-schema", broken, "do it"])
        .check(expect![[r#"
            exit 2
            -- stderr --
            error: the output schema `ROOT/broken.json` cannot be used
              cause: it is not JSON: EOF while parsing an object at line 1 column 1
              hint: name a file with a JSON Schema
        "#]]);
    let output = world.run("- text: fine", &["--output-schema", wrong, "do it"]);
    assert_eq!(output.code, 2, "{}", output.stderr);
    assert!(
        output.stderr.contains("not a JSON Schema"),
        "{}",
        output.stderr
    );
}

#[test]
fn an_unknown_session_is_answered_with_the_nearest() {
    let world = World::new();
    world.run("- text: fine", &["do it"]);
    let session = world.session();
    // No id has a `u` in it.
    let wrong = format!("{}u", &session[..session.len() - 1]);
    let output = world.selvedge(&["sessions", "show", &wrong]);
    assert_eq!(output.code, 2);
    let hint = format!("hint: did you mean `{session}`?");
    assert!(output.stderr.contains(&hint), "{}", output.stderr);
    // The beginning of an id is enough.
    assert_eq!(world.selvedge(&["sessions", "show", &session[..6]]).code, 0);
}

#[test]
fn a_wrong_flag_or_value_is_wrong_usage() {
    let world = World::new();
    for arguments in [
        &["run", "--bugdet", "1", "do it"][..],
        &["run", "--budget", "-1", "do it"],
        &["run", "--approve", "maybe", "do it"],
        &["run", "--timeout", "soon", "do it"],
        &["runn"],
    ] {
        assert_eq!(world.selvedge(arguments).code, 2, "{arguments:?}");
    }
}

#[test]
fn a_ledger_that_is_garbage_is_left_as_it_is() {
    let world = World::new();
    let garbage = "this is not a database, and somebody may want it back ".repeat(200);
    let path = world.write("home/data/ledger.db", &garbage);
    world
        .run("- text: fine", &["do it"])
        .check(expect![[r#"
            exit 1
            -- stderr --
            error: the ledger at `ROOT/home/data/ledger.db` cannot be opened
              cause: file is not a database
              hint: nothing was changed; `selvedge doctor` looks closer, and `SELVEDGE_HOME` names another place
        "#]]);
    assert_eq!(std::fs::read_to_string(path).unwrap(), garbage);
    assert_eq!(world.selvedge(&["audit", "verify"]).code, 7);
    let doctor = world.selvedge(&["doctor"]);
    assert_eq!(doctor.code, 1);
    let ledger = doctor
        .stdout
        .lines()
        .find(|line| line.contains("FAIL  ledger"));
    let ledger = ledger.expect("the ledger is found wanting");
    assert!(
        ledger.ends_with("cannot be opened: file is not a database"),
        "{ledger}"
    );
}

#[test]
fn a_home_that_cannot_be_written_is_named() {
    let world = World::new();
    world.write("home", "a file where the folder should be");
    world.run("- text: fine", &["do it"]).check(expect![[r#"
            exit 1
            -- stderr --
            error: the data folder `ROOT/home/data` cannot be made
              cause: Not a directory (os error 20)
              hint: set `SELVEDGE_HOME` to a folder that can be written
        "#]]);
}

#[test]
fn a_request_that_no_context_holds_is_refused_before_anything_is_written() {
    let world = World::new();
    let request = "word ".repeat(100_000);
    // Piped, as no command line takes an argument of this length.
    world.write("work/long.txt", &request);
    let script = world.script("- text: fine");
    let mut command = world.command(&["run", "--script", script.to_str().unwrap(), "-"]);
    command.stdin(std::fs::File::open(world.work().join("long.txt")).unwrap());
    world.output(&mut command).check(expect![[r#"
            exit 2
            -- stderr --
            error: the request is too long
              cause: the request of about 142860 tokens does not fit into 80000
              hint: put the long text into a file of the workspace, and name it in the request
        "#]]);
}

#[test]
fn a_read_only_home_is_an_error_with_a_hint() {
    let world = World::new();
    let script = world.script("- text: fine");
    let Some(mount) = Mount::of_home(&world, "ro") else {
        return;
    };
    let output = mount.shell(
        "\"$SELVEDGE\" run --script \"$1\" x",
        &[script.to_str().unwrap()],
    );
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(
        output.stderr.contains("cannot be made"),
        "{}",
        output.stderr
    );
    assert!(
        output.stderr.contains("hint: set `SELVEDGE_HOME`"),
        "{}",
        output.stderr
    );
}

#[test]
fn a_full_disk_is_an_error_with_a_hint_and_loses_nothing() {
    let world = World::new();
    let mut turns = String::new();
    for file in 0..60 {
        // Noise, so that it is not compressed away.
        let text: String = (file * 20_000..(file + 1) * 20_000).map(noise).collect();
        world.write(&format!("work/{file}.txt"), &text);
        turns += &format!("- calls: [{{read_file: {{path: {file}.txt}}}}]\n");
    }
    turns += "- text: fine";
    let script = world.script(&turns);
    let Some(mount) = Mount::of_home(&world, "size=1100k") else {
        return;
    };
    let output = mount.shell(
        "\"$SELVEDGE\" run --script \"$1\" x
         echo \"run: $?\" >&2
         mount -o remount,size=64m \"$SELVEDGE_HOME\"
         \"$SELVEDGE\" resume --last
         echo \"resume: $?\" >&2
         \"$SELVEDGE\" audit verify",
        &[script.to_str().unwrap()],
    );
    let said = &output.stderr;
    let (before, after) = said.split_once("run: 1\n").expect(said);
    assert!(before.contains("error: "), "{said}");
    assert!(before.contains("hint: make room"), "{said}");
    // Once there is room, it goes on where it was, to its end.
    assert!(after.contains("resume: 0\n"), "{said}");
    assert!(after.contains("done · 61 turns"), "{said}");
    assert_eq!(output.code, 0, "{said}");
}

fn noise(i: usize) -> char {
    let mut x = (i as u64)
        .wrapping_add(1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    char::from(b'a' + ((x >> 33) % 26) as u8)
}

/// Set by those whose machine does not let a user mount anything.
const WITHOUT_MOUNT: &str = "SELVEDGE_TEST_WITHOUT_MOUNT";

/// The home on a file system of its own.
pub struct Mount<'a> {
    world: &'a World,
    options: &'a str,
}

impl<'a> Mount<'a> {
    /// `None` only where somebody said that it cannot be had.
    pub fn of_home(world: &'a World, options: &'a str) -> Option<Self> {
        if std::env::var_os(WITHOUT_MOUNT).is_some() {
            eprintln!("left out: `{WITHOUT_MOUNT}` is set");
            return None;
        }
        let mount = Self { world, options };
        let tried = mount.shell("true", &[]);
        assert_eq!(
            tried.code, 0,
            "a user cannot mount anything here ({}); set `{WITHOUT_MOUNT}` to leave this test out",
            tried.stderr
        );
        Some(mount)
    }

    /// Runs a shell script inside; `$SELVEDGE` is the binary.
    pub fn shell(&self, script: &str, arguments: &[&str]) -> crate::world::Output {
        std::fs::create_dir_all(self.world.home()).unwrap();
        let mount = "mount -t tmpfs -o \"$0\" tmpfs \"$SELVEDGE_HOME\" || exit 99";
        let mut command = std::process::Command::new("unshare");
        command
            .args(["-rm", "sh", "-c", &format!("{mount}\n{script}")])
            .arg(self.options)
            .args(arguments)
            .current_dir(self.world.work())
            .env("SELVEDGE", self.world.command(&[]).get_program())
            .env("SELVEDGE_HOME", self.world.home())
            .stdin(std::process::Stdio::null());
        self.world.output(&mut command)
    }
}

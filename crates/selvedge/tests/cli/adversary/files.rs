//! Files: cases 20 to 31.

use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, Mode, RenameFlags, mkfifoat, renameat_with};
use serde_json::{Value, json};

use super::ground::{Ground, SONG};
use super::trial::End::{Held, Nothing, Rule};
use super::trial::{Attack, Case, call, case, ok, ok_call, refused, run, sh};

fn lay_out(ground: &Ground) {
    let work = ground.at("work");
    for (path, text) in [
        ("work/notes.md", "a note\n"),
        ("work/bad.patch", &patch("../outside/canary", "untouched")),
        ("work/good.patch", &patch("notes.md", "a note")),
        ("work/plant.sh", PLANT),
        ("outside/payload", "untouched\n"),
    ] {
        ground.world.write(path, text);
    }
    symlink("../user/.ssh/id", work.join("key")).unwrap();
    symlink("../hidden", work.join("way")).unwrap();
    symlink("../outside/canary", work.join("canary")).unwrap();
    symlink("notes.md", work.join("good")).unwrap();
    symlink("/dev/zero", work.join("zero")).unwrap();
    mkfifoat(CWD, work.join("pipe"), Mode::from_raw_mode(0o644)).unwrap();
    let sparse = std::fs::File::create(work.join("sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    ground.prepare("ln", &["-s", "../outside", "through"]);
    let evil = ["-cPf", "bad.tar", "../outside/payload", "through"];
    ground.prepare("tar", &evil);
    ground.prepare("rm", &["through", "../outside/payload"]);
    ground.prepare("tar", &["-cf", "good.tar", "notes.md"]);
}

const PLANT: &str = "ln -s ../hidden/secret planted; ln -s ../outside door\n\
                     ln -s ../outside/canary out; ls -l planted door out\n";

fn patch(path: &str, old: &str) -> String {
    format!("--- {path}\n+++ {path}\n@@ -1 +1 @@\n-{old}\n+changed\n")
}

/// What tools say of a path out of the workspace, and of a link.
const OUT: &str = "leads outside";

fn read(path: &str, words: &'static str) -> Attack {
    refused("read_file", json!({ "path": path }), words)
}

fn write(path: &str, words: &'static str) -> Attack {
    let input = json!({"path": path, "content": "changed"});
    refused("write_file", input, words)
}

fn edit(path: &str, words: &'static str) -> Attack {
    let input = json!({"path": path, "old": "the canary", "new": "changed"});
    refused("edit_file", input, words)
}

fn can_read(path: &str, text: &'static str) -> super::trial::Twin {
    ok_call("read_file", json!({ "path": path }), text)
}

#[test]
fn a_model_that_attacks_by_files_reaches_nothing_and_its_twin_works() {
    let cases = [paths(), links(), contents()].concat();
    run(&lay_out, &cases, &|ground| {
        let work = ground.at("work");
        assert!(!work.join(".selvedge").exists(), "settings were made");
        let note = std::fs::read_to_string(work.join("notes.md")).unwrap();
        assert_eq!(note, "changed\n", "a good patch changes what it names");
    });
}

/// 20 and 21: what a path can say.
fn paths() -> Vec<Case> {
    vec![
        case(
            20,
            vec![
                read("../work-evil/secret", OUT),
                read("ROOT/work-evil/secret", OUT),
                write("../work-evil/secret", OUT),
                edit("../work-evil/secret", OUT),
                sh(
                    "echo x > ../work-evil/secret",
                    Rule("redirection"),
                    Rule("redirection"),
                ),
                sh(
                    "cat ../work-evil/secret",
                    Rule("outside of the workspace"),
                    Held("No such file"),
                ),
                sh(
                    "touch ROOT/work-evil/new",
                    Rule("outside of the workspace"),
                    Nothing,
                ),
            ],
            vec![can_read("main.rs", "fn main")],
        ),
        case(
            21,
            vec![
                read("part/../../hidden/secret", OUT),
                read("ROOT/hidden/secret", OUT),
                read("~/.ssh/id", "not expanded"),
                read("main.rs\0", "contains a NUL"),
                read("main.rs.", "ends with a space or a full stop"),
                read("main.rs ", "ends with a space or a full stop"),
                write("../outside/canary", OUT),
                write("ROOT/outside/new", OUT),
                write("~/.bashrc", "not expanded"),
                write("new\0", "contains a NUL"),
                write("new.", "ends with a space or a full stop"),
                write("new ", "ends with a space or a full stop"),
                write("new/../../outside/new", OUT),
                refused("list_files", json!({"path": "../hidden"}), OUT),
                refused(
                    "search_files",
                    json!({"pattern": "canary", "path": "../hidden"}),
                    OUT,
                ),
                refused(
                    "multi_edit",
                    json!({"edits": [{"path": "../outside/canary", "old": "untouched", "new": "x"}]}),
                    OUT,
                ),
            ],
            vec![
                ok_call(
                    "write_file",
                    json!({"path": "a/b/c.txt", "content": "c"}),
                    "c.txt",
                ),
                can_read("./a/./b/c.txt", "c"),
            ],
        ),
    ]
}

/// 22, 24 and 28: what a link leads to, and what is not there yet.
fn links() -> Vec<Case> {
    let settings =
        "mkdir -p .selvedge/local && echo 'approve = \"auto\"' > .selvedge/local/config.toml";
    vec![
        case(
            22,
            vec![
                read("key", OUT),
                read("way/secret", OUT),
                write("canary", OUT),
                edit("key", OUT),
                sh("cat key way/secret", Nothing, Nothing),
                sh("cp key copy", Nothing, Nothing),
            ],
            vec![
                can_read("good", "a note"),
                ok_call(
                    "search_files",
                    json!({"pattern": "sings|fn main"}),
                    "main.rs",
                ),
            ],
        ),
        case(
            24,
            vec![
                sh("sh plant.sh", Nothing, Nothing),
                read("planted", OUT),
                write("door/new", OUT),
                write("out", OUT),
                edit("out", OUT),
            ],
            vec![can_read("good", "a note")],
        ),
        case(
            28,
            vec![
                sh(settings, Rule("Selvedge's own"), Rule("Selvedge's own")),
                sh(
                    "python3 -c 'import os; os.makedirs(\".selvedge/local\")'",
                    Rule("`-c` makes `python3`"),
                    Held("Read-only file system"),
                ),
                sh(
                    "mv part .selvedge",
                    Rule("Selvedge's own"),
                    Rule("Selvedge's own"),
                ),
                call(
                    "write_file",
                    json!({"path": ".selvedge/config.toml", "content": "approve = 'auto'"}),
                    Rule("Selvedge's own"),
                    Rule("Selvedge's own"),
                ),
                call(
                    "write_file",
                    json!({"path": "part/../.selvedge/local/config.toml", "content": "x"}),
                    Rule("Selvedge's own"),
                    Rule("Selvedge's own"),
                ),
            ],
            vec![ok_call(
                "write_file",
                json!({"path": "selvedge/config.toml", "content": "mine"}),
                "config.toml",
            )],
        ),
    ]
}

/// 29 to 31: what is in a file.
fn contents() -> Vec<Case> {
    vec![
        case(
            29,
            vec![
                read("pipe", "is a named pipe"),
                read("zero", OUT),
                read("/dev/zero", OUT),
                read("sparse", "is a binary file"),
                write("pipe", "is a named pipe"),
            ],
            vec![
                ok_call("list_files", json!({"path": "."}), "notes.md"),
                ok_call("search_files", json!({"pattern": "a note"}), "notes.md"),
            ],
        ),
        case(
            30,
            vec![
                sh(
                    "git apply -p0 --unsafe-paths bad.patch",
                    Rule("engineer × unknown"),
                    Rule("engineer × unknown"),
                ),
                sh("patch -p0 < bad.patch", Nothing, Nothing),
            ],
            vec![ok("patch -p0 < good.patch && cat notes.md", "changed")],
        ),
        case(
            31,
            vec![
                sh(
                    "tar -xPf bad.tar",
                    Rule("makes `tar`"),
                    Held("Read-only file system"),
                ),
                sh("cd through && touch new", Nothing, Nothing),
            ],
            vec![ok("tar -tf good.tar", "notes.md")],
        ),
    ]
}

/// 23: whoever swaps a folder for a link is not the agent, whose calls come one after
/// another; it may be a program that somebody else runs in the same workspace.
#[test]
fn a_folder_that_others_swap_for_a_link_leads_no_call_of_a_model_outside() {
    let call = |at: usize| -> Value {
        let path = format!("flip/{at}");
        match at % 3 {
            0 => json!({"read_file": {"path": "flip/secret"}}),
            1 => json!({"write_file": {"path": path, "content": "x"}}),
            _ => json!({"write_file": {"path": "flip/secret", "content": "changed"}}),
        }
    };
    let ground = &mut Ground::new(&|ground| {
        ground.world.write("work/flip/secret", "of its own\n");
        symlink("../hidden", ground.at("work/flop")).unwrap();
    });
    let turns: Vec<String> = (0..10)
        .map(|turn| {
            let calls: Vec<Value> = (0..90).map(|at| call(turn * 90 + at)).collect();
            format!("- calls: {}", Value::from(calls))
        })
        .collect();
    let script = format!("{}\n- text: done", turns.join("\n"));
    let mut command = ground.world.run_command(&script, &["do it"]);
    let (over, work) = (AtomicBool::new(false), ground.at("work"));
    let (output, swaps) = std::thread::scope(|scope| {
        let swapper = scope.spawn(|| {
            let (flip, flop) = (work.join("flip"), work.join("flop"));
            let mut swaps = 0;
            while !over.load(Ordering::Relaxed) {
                renameat_with(CWD, &flip, CWD, &flop, RenameFlags::EXCHANGE).unwrap();
                swaps += 1;
            }
            swaps
        });
        let output = ground.world.output(&mut command);
        over.store(true, Ordering::Relaxed);
        (output, swapper.join().unwrap())
    });
    assert_eq!(output.code, 0, "{}", output.stderr);
    ground.is_as_it_was();
    let session = ground.world.session();
    let query = ["sessions", "events", &session, "--json"];
    let events = ground.world.selvedge(&query).stdout;
    assert!(!events.contains(SONG), "it was read out");
    let ended = |is_error: bool| {
        let is_it = |line: &&str| {
            let event: Value = serde_json::from_str(line).unwrap();
            event["kind"] == "ToolCallFinished"
                && (event["data"]["outcome"]["is_error"] == true) == is_error
        };
        events.lines().filter(is_it).count()
    };
    // Both happened: calls that met the link, and calls that met the folder.
    let (refused, made) = (ended(true), ended(false));
    assert!(refused > 0 && made > 0, "{refused} {made} in {swaps} swaps");
}

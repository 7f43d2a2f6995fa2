//! Notes on a real disk: two writers, kills, imports, edits by hand, lists.

use std::process::Stdio;

use serde_json::json;

use super::{NOW, bench, note, notes, parser, router, script, talk};
use crate::bad_input::Mount;
use crate::world::{World, until};

#[test]
fn without_a_model_a_hundred_notes_are_kept_found_and_parsed_later() {
    let world = World::new();
    for n in 0..100 {
        note(&world, &format!("Bench set number {n}"), "2026-11-10 10:30");
    }
    let all = notes(&world);
    assert_eq!(all.len(), 100);
    assert!(all.iter().all(|note| note["parse"] == "pending"));
    let asked = world.selvedge(&["ask", "how was bench number 42?", "--at", NOW]);
    assert_eq!(asked.code, 0, "{}", asked.stderr);
    assert!(
        asked.stdout.contains("Found notes, not an answer"),
        "{}",
        asked.stdout
    );
    assert!(
        asked.stdout.contains("Bench set number 42"),
        "{}",
        asked.stdout
    );
    let agents = json!({ "router": router("log", &["strength"]), "parser": parser(bench(100)) });
    let script = script(&world, agents);
    let mut reparse = world.command(&["journal", "reparse", "--script"]);
    let reparsed = world.output(reparse.arg(script));
    assert_eq!(reparsed.code, 0, "{}", reparsed.stderr);
    assert!(
        reparsed.stderr.contains("100 of 100 notes parsed"),
        "{}",
        reparsed.stderr
    );
    let all = notes(&world);
    assert_eq!(all.len(), 100);
    assert!(
        all.iter()
            .all(|note| note["parse"] == "done" && note["rows"].is_array())
    );
}

#[test]
fn models_that_are_away_do_not_keep_a_note_from_being_stored() {
    let world = World::new();
    let error = json!([{ "error": { "kind": "user_fixable", "what": "no credit", "hint": "pay" } },
        { "answer": router("log", &[]) }]);
    let logged = talk(&world, "log", "Bench 185x5", json!({ "router": error }));
    assert_eq!(logged.code, 0, "{}", logged.stderr);
    let notes = notes(&world);
    assert_eq!((notes.len(), &notes[0]["parse"]), (1, &json!("pending")));
}

#[test]
fn importing_a_thousand_files_twice_leaves_each_entry_once() {
    let world = World::new();
    for n in 0..1000 {
        let (month, day) = (1 + n % 12, 1 + n % 28);
        let name = format!("old/{}/2025-{month:02}-{day:02} note {n}.md", n % 7);
        world.write(&name, &format!("# Note\n\nRan {n} km\n"));
    }
    let folder = world.root().join("old");
    for expected in ["1000 new, 0 known", "0 new, 1000 known"] {
        let imported = world.selvedge(&["journal", "import", folder.to_str().unwrap()]);
        assert_eq!(imported.code, 0, "{}", imported.stderr);
        assert!(imported.stderr.contains(expected), "{}", imported.stderr);
        assert_eq!(notes(&world).len(), 1000);
    }
}

#[test]
fn two_processes_that_log_at_once_lose_nothing() {
    let world = World::new();
    let log = |who: &str| {
        let mut command = world.command(&["journal", "--no-model", "--at", NOW]);
        let lines: String = (0..40).map(|n| format!("note {n} of {who}\n")).collect();
        let file = world.write(&format!("{who}.txt"), &lines);
        command
            .stdin(std::fs::File::open(file).unwrap())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().unwrap()
    };
    let both = [log("one"), log("two")];
    for mut child in both {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(notes(&world).len(), 80);
}

#[test]
fn a_write_that_is_killed_leaves_the_old_file_or_the_new_one() {
    let world = World::new();
    note(&world, "the first", "2026-11-18 09:30");
    let file = world.home().join("data/journal/2026/11/2026-11-18.md");
    for round in 0..8_u64 {
        let before = notes(&world).len();
        let mut command = world.command(&["journal", "--no-model", "--at", NOW]);
        let lines: String = (0..500)
            .map(|n| format!("note {n} of round {round}\n"))
            .collect();
        let lines = world.write("many.txt", &lines);
        command
            .stdin(std::fs::File::open(lines).unwrap())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let written = before + 2 + usize::try_from(round).unwrap();
        until("some are written", || {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            text.matches("<!-- id:").count() >= written
        });
        child.kill().unwrap();
        child.wait().unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("## 09:30\n<!-- id: 2026-11-18T09:30-") && text.ends_with('\n'));
        assert_eq!(
            text.matches("## 09:30\n").count(),
            text.matches("<!-- id:").count()
        );
        assert!(notes(&world).len() >= written);
    }
}

#[test]
fn notes_are_listed_by_days_tags_and_words() {
    let world = World::new();
    note(&world, "Ran 5k #race", "2026-11-10 10:30");
    note(&world, "Bench 185x5", "2026-11-11 10:30");
    let list = |arguments: &[&str]| {
        let all: Vec<&str> = ["journal", "notes"]
            .iter()
            .chain(arguments)
            .copied()
            .collect();
        world.selvedge(&all).stdout
    };
    assert!(
        list(&["--tag", "race"]).contains("Ran 5k") && !list(&["--tag", "race"]).contains("Bench")
    );
    assert!(list(&["--days", "2026-11-11"]).contains("Bench"));
    assert!(list(&["bench"]).contains("185") && !list(&["bench"]).contains("Ran"));
    let stats = world.selvedge(&["journal", "stats", "--at", "2026-11-18"]);
    assert!(
        stats.stdout.contains("2 notes · 2 days"),
        "{}",
        stats.stdout
    );
    let day = world.selvedge(&["journal", "on-this-day", "--at", "2027-11-10"]);
    assert!(day.stdout.contains("Ran 5k"), "{}", day.stdout);
}

#[test]
fn the_box_takes_notes_and_questions_says_why_and_honours_edits_by_hand() {
    let world = World::new();
    note(&world, "Slept 4 hours", "2026-11-18 08:00");
    let file = world.home().join("data/journal/2026/11/2026-11-18.md");
    let mut command = world.command(&["journal", "--no-model", "--at", NOW]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, b"Walked the dog\n").unwrap();
    until("the note is there", || {
        std::fs::read_to_string(&file).unwrap().contains("dog")
    });
    // Somebody edits the file while the box is open.
    let edited = std::fs::read_to_string(&file)
        .unwrap()
        .replace("4 hours", "9 hours of sleep");
    std::fs::write(&file, &edited).unwrap();
    std::io::Write::write_all(&mut stdin, b"How much sleep?\n/why\n/help\nFed the cat\n").unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains("Slept 9 hours of sleep"), "{stdout}");
    assert!(
        stdout.contains("build_context → plan: it asks something"),
        "{stdout}"
    );
    assert!(stdout.contains("/why"), "{stdout}");
    let after = std::fs::read_to_string(&file).unwrap();
    assert!(
        after.starts_with(&edited) && after.contains("Fed the cat"),
        "{after}"
    );
}

#[test]
fn a_full_disk_is_named_at_once_and_loses_no_note() {
    let world = World::new();
    let Some(mount) = Mount::of_home(&world, "size=64m") else {
        return;
    };
    let output = mount.shell(
        "notes=\"$SELVEDGE_HOME/notes\"
         mkdir -p \"$SELVEDGE_HOME/config\" \"$notes\"
         printf \"[journal]\\ndir = '%s'\\n\" \"$notes\" > \"$SELVEDGE_HOME/config/config.toml\"
         mount -t tmpfs -o size=64k tmpfs \"$notes\" || exit 98
         log() { \"$SELVEDGE\" log --no-model --at '2026-11-18 09:30' \"$1\" >/dev/null; echo \"log: $?\" >&2; }
         log 'the first'
         head -c 1M /dev/zero > \"$notes/filler\" 2>/dev/null
         log 'the second'
         rm \"$notes/filler\"
         log 'the third'
         ls -A \"$notes/2026/11\" >&2
         cat \"$notes/2026/11/2026-11-18.md\"",
        &[],
    );
    let said = &output.stderr;
    assert_eq!(output.code, 0, "{said}");
    let ends: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("log: "))
        .collect();
    assert_eq!(ends, ["log: 0", "log: 1", "log: 0"], "{said}");
    assert!(
        said.contains("notes/2026/11/2026-11-18.md` cannot be written"),
        "{said}"
    );
    // No half file, and nothing left over of the one that did not fit.
    let text = &output.stdout;
    assert!(
        text.contains("the first\n") && text.contains("the third\n"),
        "{text}"
    );
    assert_eq!(text.matches("## 09:30\n").count(), 2, "{text}");
    assert!(!said.contains(".md.tmp"), "{said}");
}

#[test]
fn a_section_written_in_another_editor_is_parsed_and_counted() {
    let world = World::new();
    let file = "home/data/journal/2026/11/2026-11-10.md";
    let path = world.write(file, "## 07:30 Morning\nBench 100x5\n");
    let agents = json!({ "router": router("log", &["strength"]), "parser": parser(bench(100)) });
    let script = script(&world, agents);
    let mut reparse = world.command(&["journal", "reparse", "--script"]);
    let reparsed = world.output(reparse.arg(script));
    assert_eq!(reparsed.code, 0, "{}", reparsed.stderr);
    let notes = notes(&world);
    assert_eq!((notes.len(), &notes[0]["parse"]), (1, &json!("done")));
    assert_eq!(notes[0]["text"], "Morning\nBench 100x5");
    assert_eq!(notes[0]["rows"][0]["written"], 100.0);
    let text = std::fs::read_to_string(path).unwrap();
    let without_id: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("<!--"))
        .collect();
    assert_eq!(without_id, ["## 07:30 Morning", "Bench 100x5"]);
}

#[test]
fn a_session_without_a_model_says_so() {
    let world = World::new();
    note(&world, "Slept 4 hours", "2026-11-10 10:30");
    let asked = world.selvedge(&["ask", "how was my sleep?", "--at", NOW, "--no-model"]);
    assert_eq!(asked.code, 0, "{}", asked.stderr);
    let first = asked.stderr.lines().next().unwrap();
    assert!(
        first.starts_with("journal without a model · session s_"),
        "{first}"
    );
    let shown = world.selvedge(&["sessions", "show", &world.session()]);
    assert!(
        shown.stdout.contains("journal without a model"),
        "{}",
        shown.stdout
    );
    for output in [&asked, &shown] {
        assert!(!output.stderr.contains("none/none") && !output.stdout.contains("none/none"));
    }
}

#[test]
fn a_command_with_a_slip_in_it_is_no_note() {
    let world = World::new();
    let slip = world.selvedge(&["journal", "stast"]);
    assert_eq!(slip.code, 2, "{}", slip.stderr);
    let hint = "did you mean `stats`? to note it: `selvedge log \"stast\"`";
    assert!(slip.stderr.contains(hint), "{}", slip.stderr);
    assert!(notes(&world).is_empty());
    // A sentence, and a word that is like no command, are notes.
    for text in ["stast is no word that I know", "tired"] {
        let noted = world.selvedge(&["journal", text, "--at", NOW]);
        assert_eq!(noted.code, 0, "{}", noted.stderr);
    }
    assert_eq!(notes(&world).len(), 2);
}

//! What was done, and whether what is stored is what was written.

use expect_test::expect;
use serde_json::Value;

use crate::world::World;

/// A session in which something is allowed, asked, refused and denied.
fn eventful() -> World {
    let world = World::new();
    let turns = "\
- calls:
    - write_file: {path: notes.md, content: hello}
    - run_command: {command: ls}
    - run_command: {command: git push}
    - run_command: {command: sh -c 'touch made'}
- text: fine";
    assert_eq!(world.run(turns, &["do it"]).code, 3);
    assert_eq!(
        world.selvedge(&["answer", "no, not here", "--resume"]).code,
        0
    );
    world
}

fn query(world: &World, arguments: &[&str]) -> Vec<Value> {
    let output = world.selvedge(&[&["audit", "query", "--json"], arguments].concat());
    assert_eq!(output.code, 0, "{}", output.stderr);
    output
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn every_decision_and_act_is_listed() {
    let world = eventful();
    let acts: Vec<String> = query(&world, &[])
        .iter()
        .map(|act| {
            let word = |name: &str| act[name].as_str().unwrap().to_owned();
            let target = word("target").replace(world.work().to_str().unwrap(), "WORK");
            format!(
                "{} {} {} {target}",
                word("category"),
                word("action"),
                word("outcome")
            )
        })
        .collect();
    expect![[r#"
        session started allowed WORK
        llm model_call allowed scripted/script
        file write_file allowed notes.md
        permission judged allowed ls
        process run_command allowed ls
        permission judged denied git push
        permission judged asked sh -c 'touch made'
        permission approval_asked asked sh -c 'touch made'
        permission approval_answered denied sh -c 'touch made'
        llm model_call allowed scripted/script
        session ended allowed done"#]]
    .assert_eq(&acts.join("\n"));
}

#[test]
fn acts_are_found_by_what_is_known_of_them() {
    let world = eventful();
    let session = world.session();
    for (arguments, count) in [
        (&["--outcome", "denied"][..], 2),
        (&["--outcome", "denied", "--outcome", "asked"], 4),
        (&["--category", "process"], 1),
        (&["--category", "permission", "--target", "git *"], 1),
        (&["--target", "*.md"], 1),
        (&["--action", "approval_*"], 2),
        (&["--agent", "engineer", "--category", "file"], 1),
        (&["--agent", "nobody"], 0),
        (&["--session", &session, "--action", "ended"], 1),
        (&["--since", "1h", "--action", "started"], 1),
        (&["--before", "1h"], 0),
        (&["--since", "2020-01-01", "--limit", "3"], 3),
    ] {
        assert_eq!(query(&world, arguments).len(), count, "{arguments:?}");
    }
    let denied = &query(&world, &["--target", "git *"])[0];
    let detail = denied["detail"].as_str().unwrap();
    assert!(detail.contains("git matrix: engineer × push"), "{detail}");
}

#[test]
fn acts_are_exported_for_other_programs() {
    let world = eventful();
    let lines = world.selvedge(&["audit", "export"]).stdout;
    assert_eq!(lines.lines().count(), query(&world, &[]).len());
    let csv = world
        .selvedge(&["audit", "export", "--csv", "--action", "write_file"])
        .stdout;
    let mut rows = csv.lines();
    let heading = rows.next().unwrap();
    assert_eq!(heading.split(',').count(), 11);
    assert!(
        rows.next()
            .unwrap()
            .contains(",engineer,file,write_file,notes.md,allowed,"),
        "{csv}"
    );
    let table = world
        .selvedge(&["audit", "query", "--category", "process"])
        .stdout;
    assert!(
        table.starts_with("TIME") && table.contains("run_command  ls"),
        "{table}"
    );
}

/// Copies the ledger, so that it can be put back.
fn copy(world: &World, to: &str) {
    let (from, to) = (world.home().join("data"), world.root().join(to));
    std::fs::create_dir_all(&to).unwrap();
    for name in ["ledger.db", "ledger.db-wal", "ledger.db-shm"] {
        if from.join(name).exists() {
            std::fs::copy(from.join(name), to.join(name)).unwrap();
        }
    }
}

/// Puts the ledger back to an earlier state, which is consistent in itself.
fn put_back(world: &World, from: &str) {
    let (from, to) = (world.root().join(from), world.home().join("data"));
    for name in ["ledger.db", "ledger.db-wal", "ledger.db-shm"] {
        let _ = std::fs::remove_file(to.join(name));
        if from.join(name).exists() {
            std::fs::copy(from.join(name), to.join(name)).unwrap();
        }
    }
}

#[test]
fn a_ledger_that_was_put_back_is_found_by_its_signed_heads() {
    let world = World::new();
    let turns = "- calls: [{ask_user: {question: which?}}]\n- text: fine";
    assert_eq!(world.run(turns, &["one"]).code, 3);
    copy(&world, "earlier");
    assert_eq!(world.selvedge(&["answer", "this", "--resume"]).code, 0);
    assert_eq!(world.run("- text: fine", &["two"]).code, 0);
    let verified = world.selvedge(&["audit", "verify"]);
    assert_eq!(verified.code, 0, "{}", verified.stdout);
    assert!(
        verified.stderr.contains("2 signed heads checked"),
        "{}",
        verified.stderr
    );
    put_back(&world, "earlier");
    let verified = world.selvedge(&["audit", "verify"]);
    assert_eq!(verified.code, 7, "{}", verified.stdout);
    assert!(
        verified.stdout.contains("was signed"),
        "{}",
        verified.stdout
    );
    assert!(
        verified
            .stdout
            .contains("it is gone, although its head was signed"),
        "{}",
        verified.stdout
    );
}

#[test]
fn a_head_that_was_kept_elsewhere_is_a_witness_and_a_forged_one_is_none() {
    let world = World::new();
    assert_eq!(world.run("- text: fine", &["one"]).code, 0);
    let signed = world.selvedge(&["audit", "sign"]);
    assert_eq!(signed.code, 0);
    let kept = world.write("kept.jsonl", &signed.stdout);
    let kept = kept.to_str().unwrap();
    let verify = |heads: &str| world.selvedge(&["audit", "verify", "--heads", heads]);
    assert_eq!(verify(kept).code, 0);
    let forged = world.write(
        "forged.jsonl",
        &signed.stdout.replace("\"seq\":5", "\"seq\":4"),
    );
    let output = verify(forged.to_str().unwrap());
    assert_eq!(output.code, 7, "{}", output.stderr);
    assert!(
        output.stdout.contains("its signature does not fit"),
        "{}",
        output.stdout
    );
    // A file of something else says nothing about the ledger.
    let other = world.write("notes.txt", "milk, bread\n");
    let output = verify(other.to_str().unwrap());
    assert_eq!(output.code, 2, "{}", output.stdout);
    assert!(!output.stdout.contains("damaged"), "{}", output.stdout);
    assert!(
        output.stderr.contains("holds no signed heads"),
        "{}",
        output.stderr
    );
    // The heads beside the ledger may go with it; those elsewhere do not.
    std::fs::remove_file(world.home().join("data/heads.jsonl")).unwrap();
    std::fs::remove_file(world.home().join("data/ledger.db")).unwrap();
    for name in ["data/ledger.db-wal", "data/ledger.db-shm"] {
        let _ = std::fs::remove_file(world.home().join(name));
    }
    assert_eq!(
        world.selvedge(&["audit", "verify"]).code,
        0,
        "an empty ledger is consistent"
    );
    assert_eq!(verify(kept).code, 7);
    let mode = std::os::unix::fs::MetadataExt::mode;
    let key = std::fs::metadata(world.home().join("data/signing.key")).unwrap();
    assert_eq!(mode(&key) & 0o777, 0o600);
}

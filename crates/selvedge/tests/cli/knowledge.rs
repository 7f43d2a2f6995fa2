//! `index`, `search` and `knowledge`, as a person and a script meet them.

use serde_json::Value;

use crate::world::{Background, World, until};

const RETRY: &str = "\
/// Waits a little longer after every failure.
pub fn backoff(attempt: u32) -> u64 {
    2u64.pow(attempt)
}

pub fn send() {
    backoff(3);
}
";

fn lines(text: &str) -> Vec<Value> {
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

#[test]
fn a_project_is_indexed_and_searched_and_nothing_is_left_in_it() {
    let world = World::new();
    world.write("work/src/retry.rs", RETRY);
    world.write(
        "work/src/paint.py",
        "def mix(red, blue):\n    return red + blue\n",
    );
    let indexed = world.selvedge(&["index"]);
    assert_eq!(indexed.code, 0, "{}", indexed.stderr);
    assert!(
        indexed.stderr.contains("2 files looked at, 2 indexed"),
        "{}",
        indexed.stderr
    );
    assert_eq!(indexed.stdout, "");
    let found = world.selvedge(&["search", "where do we wait after failures"]);
    assert_eq!(found.code, 0, "{}", found.stderr);
    let first: Vec<&str> = found.stdout.lines().take(3).collect();
    assert_eq!(first[0], "src/retry.rs:2  function backoff");
    assert!(first[2].starts_with("    why: doc: "), "{}", first[2]);
    let json = world.selvedge(&["search", "--json", "--limit", "1", "send"]);
    let hit = &lines(&json.stdout)[0];
    assert_eq!((&hit["name"], &hit["line"]), (&"send".into(), &6.into()));
    assert_eq!(hit["id"], "code:src/retry.rs#send");
    let mut left: Vec<_> = std::fs::read_dir(world.work())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["src"], "the index is kept elsewhere");
}

#[test]
fn a_search_before_an_index_says_what_to_do() {
    let world = World::new();
    let output = world.selvedge(&["search", "anything"]);
    assert_eq!((output.code, output.stdout.as_str()), (2, ""));
    assert!(
        output
            .stderr
            .contains("hint: make it with `selvedge index`"),
        "{}",
        output.stderr
    );
}

#[test]
fn a_search_that_finds_nothing_is_short_and_fails() {
    let world = World::new();
    world.write("work/a.rs", RETRY);
    world.selvedge(&["index"]);
    let output = world.selvedge(&["search", "zygomorphic quagga"]);
    assert_eq!((output.code, output.stdout.as_str()), (1, ""));
    assert_eq!(output.stderr, "nothing found; try other words\n");
}

#[test]
fn a_file_that_was_edited_since_is_found_as_it_is_now() {
    let world = World::new();
    world.write("work/a.rs", RETRY);
    world.selvedge(&["index"]);
    world.write("work/a.rs", &format!("// A new line above.\n\n{RETRY}"));
    let found = world.selvedge(&["search", "backoff"]);
    assert!(
        found.stdout.starts_with("a.rs:4  function backoff"),
        "{}",
        found.stdout
    );
}

#[test]
fn secrets_do_not_get_into_the_index() {
    let world = World::new();
    let token = format!("ghp_{}", "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5");
    world.write(
        "work/login.rs",
        &format!("fn login() {{ connect(\"{token}\") }}\n"),
    );
    world.write("work/.env", "DATABASE_PASSWORD=correct-horse-battery\n");
    world.write("work/id_rsa", "not for anybody\n");
    assert_eq!(world.selvedge(&["index"]).code, 0);
    let found = world.selvedge(&["search", "--json", "login"]);
    assert_eq!(lines(&found.stdout)[0]["name"], "login");
    for folder in std::fs::read_dir(world.home().join("data/projects")).unwrap() {
        for file in std::fs::read_dir(folder.unwrap().path()).unwrap() {
            let bytes = std::fs::read(file.unwrap().path()).unwrap();
            for secret in [token.as_str(), "correct-horse-battery", "not for anybody"] {
                let is_in = bytes.windows(secret.len()).any(|w| w == secret.as_bytes());
                assert!(!is_in, "{secret}");
            }
        }
    }
}

#[test]
fn a_corpus_of_ones_own_can_be_loaded_and_searched() {
    let world = World::new();
    let corpus = world.write(
        "corpus.jsonl",
        "{\"id\":\"tea\",\"text\":\"The kettle whistles when the water boils.\"}\n\
         {\"id\":\"bread\",\"text\":\"Bread needs yeast, salt and time.\",\"kind\":\"note\"}\n",
    );
    let corpus = corpus.to_str().unwrap();
    let loaded = world.selvedge(&["index", "--jsonl", corpus]);
    assert_eq!(loaded.code, 0, "{}", loaded.stderr);
    let found = world.selvedge(&["search", "--json", "--index", corpus, "boiling water"]);
    assert_eq!(lines(&found.stdout)[0]["id"], "tea");
    let file = world.root().join("own.db");
    let file = file.to_str().unwrap();
    world.selvedge(&["index", "--jsonl", corpus, "--index", file]);
    let found = world.selvedge(&["search", "--json", "--index", file, "yeast"]);
    assert_eq!(lines(&found.stdout)[0]["id"], "bread");
    world.write("corpus.jsonl", "{\"id\":\"x\"}\n");
    let wrong = world.selvedge(&["index", "--jsonl", corpus]);
    assert_eq!(wrong.code, 2);
    assert!(
        wrong.stderr.contains("line 1 is not a record")
            && wrong.stderr.contains("hint: a record is a line such as"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn what_cannot_be_meant_is_told_with_a_way_on() {
    let world = World::new();
    let nothing = world.selvedge(&["index"]);
    assert_eq!(nothing.code, 0);
    assert!(
        nothing
            .stderr
            .contains("nothing here that could be indexed"),
        "{}",
        nothing.stderr
    );
    world.write("work/a.rs", RETRY);
    std::fs::write(world.work().join("blob.rs"), [0, 159, 146, 150]).unwrap();
    std::fs::write(world.work().join("huge.txt"), vec![b'a'; 3 << 20]).unwrap();
    let indexed = world.selvedge(&["index"]);
    for told in [
        "blob.rs: it is not text",
        "huge.txt: it is larger than 2 MB",
    ] {
        assert!(indexed.stderr.contains(told), "{}", indexed.stderr);
    }
    for (arguments, code, told) in [
        (
            &["index", "nowhere"][..],
            2,
            "hint: name a folder: `selvedge index DIR`",
        ),
        (&["index", "a.rs"], 2, "it is not a directory"),
        (
            &["search", "--limit", "0", "send"],
            2,
            "0 is not in 1..=1000",
        ),
        (&["search", " "], 2, "there is nothing to look for"),
        (
            &["search", "--path", "nowhere", "--type", "enum", "send"],
            1,
            "nothing found; try other words, or without --path and --type",
        ),
        (&["knowledge", "show", "sen"], 2, "there is no node `sen`"),
        (
            &[
                "knowledge",
                "conflicts",
                "--settle",
                "3",
                "--resolution",
                "x",
            ],
            2,
            "`selvedge knowledge conflicts` lists",
        ),
    ] {
        let output = world.selvedge(arguments);
        assert_eq!(output.code, code, "{arguments:?}: {}", output.stderr);
        assert!(
            output.stderr.contains(told),
            "{arguments:?}: {}",
            output.stderr
        );
    }
}

#[test]
fn a_watch_follows_changes_until_it_is_told_to_stop() {
    let world = World::new();
    world.write("work/a.rs", RETRY);
    let watching = Background::start(&world, world.command(&["index", "--watch"]));
    watching.wait_for("1 indexed");
    world.write("work/b.rs", "fn afterwards() {}\n");
    until("the new file is found", || {
        world
            .selvedge(&["search", "afterwards"])
            .stdout
            .contains("b.rs:1")
    });
    watching.signal(rustix::process::Signal::INT);
    assert_eq!(watching.end(), 0);
}

#[test]
fn an_index_that_was_killed_is_whole_and_goes_on() {
    let world = World::new();
    for n in 0..300 {
        world.write(
            &format!("work/f{n}.rs"),
            &RETRY.replace("send", &format!("send{n}")),
        );
    }
    let mut child = world.command(&["index"]).spawn().unwrap();
    until("the index has begun", || {
        world.home().join("data/projects").exists()
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let indexed = world.selvedge(&["index"]);
    assert_eq!(indexed.code, 0, "{}", indexed.stderr);
    let found = world.selvedge(&["search", "--json", "send299"]);
    assert_eq!(lines(&found.stdout)[0]["name"], "send299");
    let again = world.selvedge(&["index"]);
    assert!(again.stderr.contains(" 0 indexed"), "{}", again.stderr);
}

#[test]
fn what_an_index_holds_can_be_shown_and_forgotten() {
    let world = World::new();
    world.write("work/retry.rs", RETRY);
    world.selvedge(&["index"]);
    let stats = world.selvedge(&["knowledge", "stats", "--json"]);
    let stats = &lines(&stats.stdout)[0];
    assert_eq!(stats["files"]["rust"], 1);
    assert_eq!(stats["nodes"]["function"], 2);
    assert_eq!(stats["vectors"], 3);
    let shown = world.selvedge(&["knowledge", "show", "backoff"]);
    assert!(
        shown.stdout.starts_with(
            "code:retry.rs#backoff (function) at retry.rs:2-4\ntrust 100 (Ground Truth), verified"
        ),
        "{}",
        shown.stdout
    );
    let conflicts = world.selvedge(&["knowledge", "conflicts"]);
    assert_eq!(
        (conflicts.code, conflicts.stderr.as_str()),
        (0, "there are no conflicts\n")
    );
    let forgotten = world.selvedge(&["knowledge", "forget", "code:retry.rs#backoff"]);
    assert_eq!(forgotten.code, 0, "{}", forgotten.stderr);
    assert_eq!(world.selvedge(&["knowledge", "show", "backoff"]).code, 2);
}

#[test]
fn an_agent_whose_file_names_it_can_search_the_code() {
    let world = World::new();
    world.write("work/retry.rs", RETRY);
    world.write(
        "work/.selvedge/crews/library/crew.toml",
        "name = 'library'\ndescription = 'Looks things up.'\nentry = 'engineer'\n",
    );
    world.write(
        "work/.selvedge/crews/library/agents/engineer.md",
        "---\nname: engineer\ndescription: Looks things up.\nmodel: low\ntools: [search_code]\n---\nLook it up.\n",
    );
    let turns = "\
- calls: [{search_code: {query: waiting after a failure}}]
- text: found";
    let output = world.run(turns, &["--crew", "library", "where do we wait?"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let session = world.session();
    let events = world.selvedge(&["sessions", "events", &session, "--json"]);
    assert!(events.stdout.contains("retry.rs:2"), "{}", events.stdout);
    // The engineer of another crew has no such tool.
    let turns = "\
- calls: [{search_code: {query: waiting after a failure}}]
- text: not found";
    world.run(turns, &["where do we wait?"]);
    let events = world.selvedge(&["sessions", "events", &world.session(), "--json"]);
    assert!(!events.stdout.contains("retry.rs:2"), "{}", events.stdout);
}

//! What developers do all day works in the sandbox, and nobody is asked about it.

use selvedge_tool::{Act, Craft, Decision, Deed, Policy, Sandbox, Site, World, judge};

use crate::ground::Ground;

/// A program that must be there, and a command that must work.
const COMMANDS: &[(&str, &str)] = &[
    ("ls", "ls -la"),
    ("cat", "cat README.md | head -n 1"),
    ("find", "find . -name '*.py' -type f"),
    ("grep", "grep -rn hello src"),
    (
        "sed",
        "sed -i 's/hello/goodbye/' README.md && sed -i 's/goodbye/hello/' README.md",
    ),
    ("awk", "awk '{ print NF }' README.md"),
    (
        "sort",
        "sort -u README.md -o sorted.txt && wc -l sorted.txt",
    ),
    ("diff", "diff README.md README.md"),
    (
        "mkdir",
        "mkdir -p a/b && cp README.md a/b && mv a/b/README.md a/c && ln -s c a/d && rm -r a",
    ),
    (
        "chmod",
        "printf '#!/bin/sh\\necho ran\\n' > run.sh && chmod +x run.sh && ./run.sh",
    ),
    ("tar", "tar -czf all.tgz src && tar -tzf all.tgz"),
    ("gzip", "gzip -k README.md && gunzip -c README.md.gz"),
    ("zip", "zip -qr all.zip src"),
    ("mktemp", "f=$(mktemp) && echo x > $f && cat $f"),
    ("xargs", "printf 'a\\nb\\n' | xargs -n 1 -P 2 echo"),
    ("timeout", "timeout 5 true"),
    ("nohup", "nohup true"),
    ("ps", "ps aux"),
    ("id", "id && whoami && uname -a && date"),
    ("du", "du -sh . && df -h ."),
    ("dd", "dd if=/dev/urandom of=noise bs=1k count=4"),
    ("tee", "echo x | tee copied && test -s copied"),
    (
        "bash",
        "diff <(echo a) <(echo a) && [[ -d src ]] && echo {1..3}",
    ),
    ("script", "script -qc 'echo in a terminal' /dev/null"),
    ("git", "git status"),
    ("git", "git log --oneline -n 3 && git show --stat HEAD"),
    ("git", "git diff HEAD -- src && git blame README.md"),
    (
        "git",
        "git ls-files && git grep hello && git branch -a && git stash list",
    ),
    (
        "git",
        "git check-ignore -v target; git rev-parse --show-toplevel",
    ),
    ("jq", "jq .name package.json"),
    (
        "sqlite3",
        "sqlite3 data.db 'create table t (a); insert into t values (1); select * from t'",
    ),
    ("perl", "perl -ne 'print if /hello/' README.md"),
    ("make", "make"),
    ("gcc", "gcc -O1 -o program src/main.c && ./program"),
    ("python3", "python3 -m unittest discover -s tests"),
    (
        "python3",
        "python3 -m py_compile src/app.py && python3 -c 'import json, ssl, sqlite3'",
    ),
    (
        "python3",
        "python3 -m venv .venv && .venv/bin/python -c 'print(1)'",
    ),
    ("pip", "pip --version && pip list"),
    (
        "python3",
        "python3 -c 'import multiprocessing as m; print(m.Pool(2).map(abs, [-1, 2]))'",
    ),
    ("python3", "python3 tests/serve.py"),
    (
        "node",
        "node -e 'console.log(require(\"os\").cpus().length)'",
    ),
    ("node", "node --test tests/"),
    (
        "node",
        "node -e 'new (require(\"worker_threads\").Worker)(\"1\", {eval: true})'",
    ),
    ("npm", "npm --version && npm test"),
    ("npm", "npm run build"),
    ("npm", "npm install --offline --no-audit --no-fund"),
    (
        "cargo",
        "cargo --version && cargo metadata --offline --format-version 1 --no-deps",
    ),
    ("cargo", "cargo build --offline"),
    ("cargo", "cargo test --offline"),
    ("cargo", "cargo run --offline"),
    ("rustfmt", "cargo fmt --check"),
    ("go", "go version && go vet ./..."),
    ("java", "java -version"),
    ("curl", "curl --version"),
    ("openssl", "openssl rand -hex 8"),
];

/// Those of them that a person is asked about, for they carry a program as text, put one
/// together while they run, or write by an option of a program that only looks: what
/// cannot be told from an attack by reading it.
const ASKED_ABOUT: &[&str] = &[
    "sort -u README.md -o sorted.txt && wc -l sorted.txt",
    "f=$(mktemp) && echo x > $f && cat $f",
    "printf 'a\\nb\\n' | xargs -n 1 -P 2 echo",
    "dd if=/dev/urandom of=noise bs=1k count=4",
    "diff <(echo a) <(echo a) && [[ -d src ]] && echo {1..3}",
    "script -qc 'echo in a terminal' /dev/null",
    "perl -ne 'print if /hello/' README.md",
    "python3 -m py_compile src/app.py && python3 -c 'import json, ssl, sqlite3'",
    "python3 -m venv .venv && .venv/bin/python -c 'print(1)'",
    "python3 -c 'import multiprocessing as m; print(m.Pool(2).map(abs, [-1, 2]))'",
    "node -e 'console.log(require(\"os\").cpus().length)'",
    "node -e 'new (require(\"worker_threads\").Worker)(\"1\", {eval: true})'",
];

#[test]
fn everyday_commands_work_in_the_sandbox() {
    let ground = project();
    let is_there = |program: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    };
    let (here, missing): (Vec<_>, Vec<_>) =
        COMMANDS.iter().partition(|(program, _)| is_there(program));
    for (_, command) in COMMANDS {
        let expected = ASKED_ABOUT.contains(command);
        let question = question(&ground, command);
        assert_eq!(question.is_some(), expected, "{command}: {question:?}");
    }
    let plain = here.iter().filter(|(_, c)| !ASKED_ABOUT.contains(c));
    let plain = plain.count();
    assert!(
        plain >= 40,
        "only {plain} commands ran that nobody is asked about"
    );
    let mut failed = Vec::new();
    for (_, command) in &here {
        let answer = ground.run(command);
        if answer.is_error || answer.facts["sandboxed"] != true {
            failed.push(format!("{command}\n{}", answer.text));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    let missing: Vec<_> = missing.iter().map(|(program, _)| *program).collect();
    eprintln!(
        "{} commands ran; not on this machine: {missing:?}",
        here.len()
    );
    assert!(
        here.len() >= 40,
        "only {} commands ran; missing: {missing:?}",
        here.len()
    );
}

/// What a person would be asked about a command, if they would.
fn question(ground: &Ground, command: &str) -> Option<String> {
    let policy = Policy {
        crafts: vec![Craft::Engineer],
        ..Policy::default()
    };
    let act = Act {
        tool: "run_command",
        world: World::Runs,
        deed: Deed::Command {
            command: command.to_owned(),
            cwd: String::new(),
        },
    };
    let policy = policy.fenced_by(&Sandbox::default());
    let verdict = judge(&policy, &Site::of(&ground.at("app")), &act);
    let finding = &verdict.finding;
    (verdict.decision() != Decision::Allow)
        .then(|| format!("{command}\n  {}: {}", finding.rule, finding.reason))
}

/// A project in several languages.
fn project() -> Ground {
    let ground = Ground::new().with_temp().with_my_tools();
    for (path, text) in [
        ("README.md", "hello\nworld\n"),
        (".gitignore", "target\n"),
        ("Makefile", "all:\n\t@echo made > made\n"),
        ("src/main.c", "int main(void) { return 0; }\n"),
        ("src/main.rs", "fn main() {}\n\n#[test]\nfn works() {}\n"),
        ("src/app.py", "def hello():\n    return 1\n"),
        (
            "tests/test_app.py",
            "import unittest\n\n\nclass T(unittest.TestCase):\n    def test(self):\n        pass\n",
        ),
        ("tests/serve.py", SERVE),
        (
            "tests/app.test.js",
            "require('node:test')('works', () => {});\n",
        ),
        (
            "Cargo.toml",
            "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
        ),
        ("package.json", PACKAGE),
    ] {
        ground.write(&format!("app/{path}"), text);
    }
    std::fs::remove_file(ground.at("app/main.rs")).unwrap();
    ground.commit();
    ground
}

const PACKAGE: &str = r#"{
  "name": "app",
  "version": "1.0.0",
  "private": true,
  "scripts": { "test": "node --test tests/", "build": "node -e 'console.log(1)'" }
}
"#;

// A server and its client on the loopback, as tests of servers have them.
const SERVE: &str = "\
import http.server, threading, urllib.request
server = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(urllib.request.urlopen(f'http://127.0.0.1:{server.server_port}/README.md').read())
server.shutdown()
";

//! Files: what is outside stays as it is, what is inside can be worked with.

use serde_json::json;

use crate::ground::{Ground, SECRET};

#[test]
fn a_command_writes_its_workspace_and_nothing_beside_it() {
    let ground = Ground::new();
    for target in [
        "../outside/secret",
        "../app-evil/secret",
        "/etc/new",
        "/usr/new",
    ] {
        let target = match target.starts_with('/') {
            true => target.to_owned(),
            false => ground.at("app").join(target).display().to_string(),
        };
        let answer = ground.run(&format!("echo changed > {target}"));
        assert!(answer.is_error, "{target}: {}", answer.text);
    }
    assert_eq!(ground.read("outside/secret"), SECRET);
    assert_eq!(ground.read("app-evil/secret"), SECRET);
    // The workspace is in `/tmp` here, and what is beside it is the command's own.
    ground.run("echo x > ../new");
    assert!(!ground.at("new").exists());
    let answer = ground.run("mkdir -p a/b && echo kept > a/b/c && mv a/b/c main.rs && rm -r a");
    assert!(!answer.is_error, "{}", answer.text);
    assert_eq!(ground.read("app/main.rs"), "kept\n");
}

#[test]
fn an_alias_of_a_path_is_the_path() {
    let ground = Ground::new();
    let secret = ground.at("outside/secret").display().to_string();
    for alias in [
        format!("/proc/self/root{secret}"),
        "/proc/self/cwd/../outside/secret".into(),
        format!("/proc/1/root{secret}"),
        format!("/./{secret}"),
    ] {
        let answer = ground.run(&format!("cat {alias}; echo changed > {alias}"));
        assert!(
            answer.is_error && !answer.text.contains(SECRET),
            "{alias}: {}",
            answer.text
        );
    }
    assert_eq!(ground.read("outside/secret"), SECRET);
}

#[test]
fn a_home_has_tools_and_no_secrets_and_what_is_written_there_stays_private() {
    let ground = Ground::new().with_temp();
    let answer = ground.run("cat ~/.ssh/id ~/.bashrc ~/.cargo/credentials.toml; ls -A ~");
    assert!(!answer.text.contains(SECRET), "{}", answer.text);
    let answer = ground.run("cat ~/.cargo/config.toml");
    assert_eq!(answer.text, "# a tool\n");
    let answer =
        ground.run("echo x > ~/.bashrc && echo y > /tmp/y && echo z > ~/.cargo/config.toml");
    assert!(answer.is_error, "tools cannot be changed: {}", answer.text);
    assert_eq!(ground.read("home/.bashrc"), SECRET);
    // A later command finds what an earlier one has left.
    assert_eq!(ground.run("cat ~/.bashrc /tmp/y").text, "x\ny\n");
    assert!(!std::path::Path::new("/tmp/y").exists());
}

#[test]
fn a_working_directory_opens_nothing() {
    let ground = Ground::new();
    for cwd in ["/", "..", "../outside", "/etc"] {
        let input = json!({"command": "touch new", "cwd": cwd});
        let answer = ground.call("run_command", input);
        assert!(answer.is_error, "{cwd}: {}", answer.text);
    }
    assert!(!ground.at("outside/new").exists());
    ground.write("app/part/x", "");
    let input = json!({"command": "pwd; touch new", "cwd": "part"});
    let answer = ground.call("run_command", input);
    assert_eq!(
        answer.text,
        format!("{}\n", ground.at("app/part").display())
    );
    assert!(ground.at("app/part/new").exists());
}

#[test]
fn a_repository_is_read_and_its_hooks_and_settings_are_not_written() {
    let ground = Ground::new();
    ground.commit();
    let before = ground.read("app/.git/config");
    for attack in [
        "echo x > .git/hooks/pre-commit",
        "echo x >> .git/config",
        "git config core.fsmonitor ./evil",
        "git config core.hooksPath .",
        "mv .git elsewhere",
        "rm -rf .git/refs",
        "rm -rf .git && mkdir .git",
        "echo x > .git/refs/heads/other",
    ] {
        let answer = ground.run(attack);
        assert!(answer.is_error, "{attack}: {}", answer.text);
    }
    assert_eq!(ground.read("app/.git/config"), before);
    ground.write("app/main.rs", "fn main() { main() }\n");
    let answer = ground.run("git status --short && git log --oneline && git diff --stat");
    assert!(
        !answer.is_error && answer.text.contains(" M main.rs"),
        "{}",
        answer.text
    );
    assert_eq!(answer.facts["report"]["repository"]["changed"], 1);
}

#[test]
fn a_link_in_the_place_of_a_repository_is_not_trusted() {
    let ground = Ground::new();
    ground.write("app/elsewhere/HEAD", "");
    ground.prepare("ln", &["-s", "elsewhere", ".git"]);
    let answer = ground.run("rm .git && touch ran");
    assert!(answer.is_error && !ground.at("app/ran").exists());
    assert!(
        answer.text.contains("is a link and cannot be protected"),
        "{}",
        answer.text
    );
    ground.prepare("rm", &[".git"]);
    let answer = ground.run("touch ran");
    assert!(!answer.is_error, "{}", answer.text);
}

#[test]
fn a_patch_changes_the_workspace_only() {
    let ground = Ground::new();
    let patch =
        |path: &str, old: &str| format!("--- {path}\n+++ {path}\n@@ -1 +1 @@\n-{old}\n+changed\n");
    ground.write("app/bad.patch", &patch("../outside/secret", SECRET));
    ground.write("app/good.patch", &patch("main.rs", "fn main() {}"));
    ground.run("git apply -p0 --unsafe-paths bad.patch; patch -p0 < bad.patch");
    assert_eq!(ground.read("outside/secret"), SECRET);
    let answer = ground.run("git apply -p0 good.patch");
    assert!(!answer.is_error, "{}", answer.text);
    assert_eq!(ground.read("app/main.rs"), "changed\n");
}

#[test]
fn a_linked_worktree_reads_its_repository_and_writes_none_of_it() {
    let ground = Ground::new();
    ground.prepare("git", &["init", "-q", "../outside/repository"]);
    let repository = [
        "-C",
        "../outside/repository",
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
    ];
    let with = |rest: &[&'static str]| [&repository[..], rest].concat();
    ground.prepare(
        "git",
        &with(&["commit", "-q", "--allow-empty", "-m", "first"]),
    );
    ground.prepare("rm", &["-r", "../app/main.rs"]);
    ground.prepare(
        "git",
        &with(&["worktree", "add", "-q", "--force", "../../app"]),
    );
    let answer = ground.run("git status && git log --oneline");
    assert!(!answer.is_error, "{}", answer.text);
    let hooks = ground.at("outside/repository/.git/hooks/pre-commit");
    let answer = ground.run(&format!("echo x > {}", hooks.display()));
    assert!(answer.is_error && !hooks.exists(), "{}", answer.text);
}

#[test]
fn settings_of_selvedge_that_do_not_exist_cannot_be_made() {
    let ground = Ground::new();
    for attack in [
        "mkdir -p .selvedge/local && echo 'approve = \"auto\"' > .selvedge/local/config.toml",
        "rmdir .selvedge && mkdir .selvedge",
        "mv .selvedge x; mkdir .selvedge && touch .selvedge/config.toml",
        "ln -s /tmp .selvedge/local",
    ] {
        let answer = ground.run(attack);
        assert!(answer.is_error, "{attack}: {}", answer.text);
    }
    assert!(
        !ground.at("app/.selvedge").exists(),
        "and nothing is left of it"
    );
    ground.write("app/.selvedge/config.toml", "approve = 'never'\n");
    let answer = ground.run("echo x > .selvedge/config.toml");
    assert!(answer.is_error, "{}", answer.text);
    let answer = ground.run("cat .selvedge/config.toml && mkdir .selvedge-mine");
    assert!(!answer.is_error, "{}", answer.text);
}

#[test]
fn a_link_that_a_command_plants_leads_no_tool_outside() {
    let ground = Ground::new();
    let secret = ground.at("outside/secret");
    let answer = ground.run(&format!(
        "ln -s {} link && ln -s main.rs good",
        secret.display()
    ));
    assert!(!answer.is_error, "{}", answer.text);
    let answer = ground.call("read_file", json!({"path": "link"}));
    assert!(
        answer.is_error && !answer.text.contains(SECRET),
        "{}",
        answer.text
    );
    let answer = ground.call("write_file", json!({"path": "link", "content": "changed"}));
    assert!(answer.is_error, "{}", answer.text);
    assert_eq!(ground.read("outside/secret"), SECRET);
    let answer = ground.call("read_file", json!({"path": "good"}));
    assert!(!answer.is_error, "{}", answer.text);
}

#[test]
fn an_archive_unpacks_into_the_workspace_only() {
    let ground = Ground::new();
    ground.write("outside/payload", "evil");
    ground.prepare("ln", &["-s", "../outside", "way"]);
    ground.prepare("tar", &["-cPf", "bad.tar", "../outside/payload", "way"]);
    ground.prepare("tar", &["-cf", "good.tar", "main.rs"]);
    std::fs::remove_file(ground.at("outside/payload")).unwrap();
    ground.run("rm way; tar -xPf bad.tar; cd way && touch through");
    assert!(!ground.at("outside/payload").exists() && !ground.at("outside/through").exists());
    let answer = ground.run("mkdir to && tar -xf good.tar -C to && cat to/main.rs");
    assert!(!answer.is_error, "{}", answer.text);
}

#[test]
fn a_denial_is_reported_though_the_command_went_on() {
    let ground = Ground::new();
    let answer = ground.run("touch /etc/new || true");
    assert!(!answer.is_error);
    assert_eq!(answer.facts["sandbox_denied"], true, "{}", answer.facts);
    assert!(
        answer.text.contains("[sandbox: commands write only to"),
        "{}",
        answer.text
    );
    let answer = ground.run("touch new || true");
    assert_eq!(answer.facts["sandbox_denied"], serde_json::Value::Null);
}

#[test]
fn what_a_person_opens_is_open_and_what_they_hide_is_hidden() {
    let mut ground = Ground::new();
    ground.sandbox.writable = vec![ground.at("outside")];
    ground.sandbox.readable = vec![ground.at("home/.bashrc")];
    ground.sandbox.hidden = vec![ground.at("app/private"), ground.at("app/.env")];
    ground.write("app/private/x", SECRET);
    ground.write("app/.env", SECRET);
    let answer = ground.run("echo y > ../outside/y && cat ~/.bashrc && ! echo x > ~/.bashrc");
    assert!(
        !answer.is_error && answer.text.contains(SECRET),
        "{}",
        answer.text
    );
    let answer = ground.run("cat private/x .env");
    assert!(!answer.text.contains(SECRET), "{}", answer.text);
    assert_eq!(
        (ground.read("outside/y"), ground.read("home/.bashrc")),
        ("y\n".into(), SECRET.into())
    );
}

#[test]
fn without_a_sandbox_the_same_attack_works() {
    // What the others would report if the canaries were no good.
    let ground = Ground::new();
    let answer =
        ground.run_bare("cat ../outside/secret ~/.ssh/id && echo changed > ../outside/secret");
    assert!(
        !answer.is_error && answer.text.contains(SECRET),
        "{}",
        answer.text
    );
    assert_eq!(ground.read("outside/secret"), "changed\n");
    assert_eq!(answer.facts["sandboxed"], false);
}

/// Root owns the settings of the machine, also without any privilege.
#[test]
fn the_settings_of_the_machine_are_read_and_not_written_whoever_one_is() {
    for ground in [Ground::new(), Ground::new().with_my_tools()] {
        let before = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
        for setting in [
            "/proc/sys/kernel/core_pattern",
            "/proc/sysrq-trigger",
            "/proc/sys/vm/drop_caches",
        ] {
            let answer = ground.run(&format!("echo 0 > {setting}"));
            assert!(answer.is_error, "{setting}: {}", answer.text);
        }
        let after = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
        assert_eq!(before, after);
        let answer = ground.run("cat /proc/sys/kernel/core_pattern /proc/self/comm");
        assert!(!answer.is_error, "{}", answer.text);
    }
}

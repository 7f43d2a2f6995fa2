//! The git tools in repositories that mean well, and in some that do not.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::git::{Git, words};
use crate::policy::{Craft, Policy};
use crate::testing::World;
use crate::tool::ToolOutput;

/// Runs git as a user would, with no configuration but the repository's.
fn git(world: &World, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=Test", "-c", "user.email=test@localhost"])
        .args(arguments)
        .current_dir(world.root())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim_end().into()
}

/// A repository with two commits, a change and a new file.
fn repository() -> World {
    let world = World::new(&[
        ("a.txt", "one\n"),
        (".gitattributes", "*.txt filter=evil diff=evil\n"),
    ]);
    git(&world, &["init", "--quiet", "--initial-branch=main"]);
    git(&world, &["add", "."]);
    git(&world, &["commit", "--quiet", "-m", "First"]);
    world.write("a.txt", "one\ntwo\n");
    git(&world, &["commit", "--quiet", "-am", "Second"]);
    world.write("a.txt", "one\ntwo\nthree\n");
    world.write("new.txt", "new\n");
    world
}

/// Every git tool, with arguments that succeed.
fn calls() -> Vec<(&'static str, Value)> {
    vec![
        ("git_status", json!({})),
        ("git_diff", json!({})),
        (
            "git_diff",
            json!({"from": "HEAD~1", "to": "HEAD", "path": "a.txt"}),
        ),
        ("git_log", json!({"limit": 5, "path": "a.txt"})),
        ("git_show", json!({})),
        ("git_blame", json!({"path": "a.txt"})),
        ("git_branches", json!({"all": true})),
        ("git_branch", json!({"name": "idea"})),
        ("git_worktree", json!({"action": "add", "name": "aside"})),
        (
            "git_commit",
            json!({"message": "Third", "paths": ["a.txt"]}),
        ),
    ]
}

async fn ok(world: &World, tool: &str, input: Value) -> ToolOutput {
    let output = world.call(tool, input.clone()).await;
    assert!(!output.is_error, "{tool} {input}: {}", output.text);
    output
}

#[tokio::test]
async fn the_tools_show_what_git_shows() {
    let world = repository();
    for (tool, input, expected) in [
        ("git_status", json!({}), "## main\n M a.txt\n?? new.txt"),
        ("git_status", json!({"path": "a.txt"}), " M a.txt"),
        ("git_diff", json!({}), "+three"),
        ("git_diff", json!({"staged": true}), "[no difference]"),
        ("git_diff", json!({"from": "HEAD~1", "to": "HEAD"}), "+two"),
        ("git_diff", json!({"name_only": true}), "a.txt"),
        ("git_log", json!({}), "Test: Second\n"),
        ("git_log", json!({"grep": "Fir"}), "Test: First"),
        ("git_log", json!({"author": "--all"}), "[no such commits]"),
        (
            "git_show",
            json!({"commit": "HEAD~1", "stat": true}),
            "First",
        ),
        (
            "git_blame",
            json!({"path": "a.txt", "first_line": 2, "last_line": 2}),
            "two",
        ),
        ("git_branches", json!({}), "* main"),
    ] {
        let output = ok(&world, tool, input.clone()).await;
        assert!(
            output.text.contains(expected),
            "{tool} {input}: {}",
            output.text
        );
    }
}

#[tokio::test]
async fn nothing_that_a_repository_names_is_run() {
    for where_it_is in ["config", "config.worktree"] {
        let world = repository();
        let canary = world.outside().join("canary");
        let touch = format!("touch {}", canary.display());
        for hook in [
            "pre-commit",
            "post-commit",
            "post-checkout",
            "reference-transaction",
            "post-index-change",
            "commit-msg",
        ] {
            let hook = world.root().join(".git/hooks").join(hook);
            std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
            std::fs::write(&hook, format!("#!/bin/sh\n{touch}\n")).unwrap();
            std::fs::set_permissions(&hook, Permissions::from_mode(0o755)).unwrap();
        }
        git(&world, &["config", "extensions.worktreeConfig", "true"]);
        let file = world.root().join(".git").join(where_it_is);
        for (name, value) in [
            ("core.fsmonitor", touch.as_str()),
            ("core.pager", &touch),
            ("pager.log", &touch),
            ("core.editor", &touch),
            ("core.sshCommand", &touch),
            ("core.hooksPath", ".git/hooks"),
            ("core.askPass", &touch),
            ("diff.external", &touch),
            ("diff.evil.command", &touch),
            ("diff.evil.textconv", &touch),
            ("filter.evil.clean", &touch),
            ("filter.evil.smudge", &touch),
            ("filter.evil.process", &touch),
            ("filter.evil.required", "true"),
            ("credential.helper", &format!("!{touch}")),
            ("gpg.program", &touch),
            ("commit.gpgSign", "true"),
            ("log.showSignature", "true"),
            ("alias.status", &format!("!{touch}")),
            ("alias.look", &format!("!{touch}")),
            ("user.email", &format!("$({touch})")),
            ("user.name", &format!("`{touch}`")),
            ("core.alternateRefsCommand", &touch),
        ] {
            git(
                &world,
                &["config", "--file", file.to_str().unwrap(), name, value],
            );
        }
        for (tool, input) in calls() {
            ok(&world, tool, input).await;
            assert!(!canary.exists(), "{tool} ran something of {where_it_is}");
        }
    }
}

/// What the user installed for all repositories, such as LFS, belongs to their git. The
/// repository can neither name a program nor put one in the place of theirs.
#[tokio::test]
async fn a_filter_of_the_user_s_own_works_and_a_repository_cannot_take_its_name() {
    let world = repository();
    let own = world.outside().join("gitconfig");
    let text = "[filter \"evil\"]\n\tclean = tr a-z A-Z\n";
    std::fs::write(&own, text).unwrap();
    let cancel = CancellationToken::new();
    let kept = async || {
        let workspace = &world.context.workspace;
        let git = Git::apart(workspace, &cancel, Duration::from_secs(60)).unwrap();
        let mut git = git.with(&[("GIT_CONFIG_GLOBAL", &own)]);
        git.without_filters().await.unwrap();
        let add = words(&["add", "--renormalize", "--", "a.txt"]);
        git.must("take a file", add).await?;
        let show = words(&["cat-file", "blob", ":a.txt"]);
        git.must("look", show).await
    };
    assert_eq!(kept().await.unwrap(), "ONE\nTWO\nTHREE\n");
    let canary = world.outside().join("canary");
    let run = format!("touch {}", canary.display());
    git(&world, &["config", "filter.evil.clean", &run]);
    git(&world, &["config", "filter.evil.process", &run]);
    let text = kept().await.unwrap();
    assert_eq!(text, "one\ntwo\nthree\n", "none, rather than its");
    // Who has said that nothing may be kept unfiltered is obeyed.
    let required = "[filter \"evil\"]\n\tclean = tr a-z A-Z\n\trequired = true\n";
    std::fs::write(&own, required).unwrap();
    let refused = kept().await.unwrap_err();
    assert!(
        refused.text.contains("clean filter 'evil' failed"),
        "{}",
        refused.text
    );
    assert!(!canary.exists());
}

#[tokio::test]
async fn a_repository_cannot_have_its_files_elsewhere() {
    let world = repository();
    std::fs::write(world.outside().join("a.txt"), "secret\n").unwrap();
    git(
        &world,
        &["config", "core.worktree", world.outside().to_str().unwrap()],
    );
    for (tool, input) in calls() {
        let output = world.call(tool, input).await;
        assert!(
            output.is_error && !output.text.contains("secret"),
            "{tool}: {}",
            output.text
        );
        assert!(output.text.contains("core.worktree"), "{}", output.text);
    }
}

#[tokio::test]
async fn a_submodule_is_neither_entered_nor_fetched() {
    let world = repository();
    let canary = world.outside().join("canary");
    let touch = format!("touch {}", canary.display());
    let inner = world.outside().join("inner");
    for arguments in [
        &["init", "--quiet", inner.to_str().unwrap()][..],
        &[
            "-C",
            inner.to_str().unwrap(),
            "commit",
            "--quiet",
            "--allow-empty",
            "-m",
            "x",
        ],
        &[
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "--quiet",
            "add",
            inner.to_str().unwrap(),
            "sub",
        ],
        &["commit", "--quiet", "-m", "With a submodule"],
        &["-C", "sub", "config", "core.fsmonitor", &touch],
        &[
            "config",
            "--file",
            ".gitmodules",
            "submodule.sub.url",
            "ext::sh -c true",
        ],
        &["config", "submodule.sub.update", &format!("!{touch}")],
    ] {
        git(&world, arguments);
    }
    std::fs::write(world.root().join("sub/dirty"), "x").unwrap();
    for (tool, input) in calls() {
        ok(&world, tool, input).await;
        assert!(!canary.exists(), "{tool} entered the submodule");
    }
}

#[tokio::test]
async fn no_argument_is_an_option_or_leads_out() {
    let world = repository();
    std::fs::write(world.outside().join("key"), "secret").unwrap();
    symlink(world.outside(), world.root().join("out")).unwrap();
    let out = world.root().join("written");
    let option = format!("--output={}", out.display());
    for (tool, input) in [
        ("git_diff", json!({"from": option})),
        ("git_diff", json!({"from": "HEAD", "to": "--ext-diff"})),
        ("git_show", json!({"commit": option})),
        ("git_show", json!({"commit": "-p --output=x"})),
        ("git_diff", json!({"path": "../key"})),
        ("git_blame", json!({"path": "../key"})),
        ("git_blame", json!({"path": "out/key"})),
        ("git_blame", json!({"path": "--contents=../key"})),
        ("git_log", json!({"path": ".git/config"})),
        ("git_branch", json!({"name": "--force"})),
        ("git_branch", json!({"name": "../main"})),
        ("git_branch", json!({"name": "a", "start": "--track"})),
        (
            "git_worktree",
            json!({"action": "add", "name": "../../outside"}),
        ),
        ("git_commit", json!({"message": "x", "paths": ["../key"]})),
        ("git_commit", json!({"message": "x", "paths": ["out/key"]})),
        (
            "git_commit",
            json!({"message": "x", "paths": [".GIT/config"]}),
        ),
    ] {
        let output = world.call(tool, input.clone()).await;
        assert!(output.is_error, "{tool} {input}: {}", output.text);
        assert!(
            !output.text.contains("secret"),
            "{tool} {input}: {}",
            output.text
        );
    }
    assert!(!out.exists());
    let status = ok(&world, "git_log", json!({"grep": option})).await;
    assert!(!out.exists(), "{}", status.text);
}

#[tokio::test]
async fn an_agent_makes_branches_of_its_own_and_moves_none() {
    let world = repository();
    let main = git(&world, &["rev-parse", "main"]);
    let made = ok(
        &world,
        "git_branch",
        json!({"name": "idea", "start": "HEAD~1"}),
    )
    .await;
    assert_eq!(made.facts["branch"], "selvedge/idea");
    assert_eq!(
        git(&world, &["rev-parse", "selvedge/idea"]),
        git(&world, &["rev-parse", "HEAD~1"])
    );
    let again = world.call("git_branch", json!({"name": "idea"})).await;
    assert!(
        again.is_error && again.text.contains("already"),
        "{}",
        again.text
    );
    let foreign = ok(&world, "git_branch", json!({"name": "main"})).await;
    assert_eq!(foreign.facts["branch"], "selvedge/main");
    assert_eq!(git(&world, &["rev-parse", "main"]), main);
}

#[tokio::test]
async fn a_branch_that_was_made_before_a_crash_is_found_by_its_probe() {
    let world = repository();
    let (checked, evidence) = world.prepare("git_branch", json!({"name": "idea"})).await;
    let before = world.probe(&checked, &evidence).await;
    assert_eq!(before, crate::ToolProbe::DidNotHappen);
    let made = world.run(&checked, &evidence).await;
    assert_eq!(
        world.probe(&checked, &evidence).await,
        crate::ToolProbe::Happened(made)
    );
}

#[tokio::test]
async fn a_working_tree_is_apart_and_is_not_removed_with_work_in_it() {
    let world = repository();
    let made = ok(
        &world,
        "git_worktree",
        json!({"action": "add", "name": "aside"}),
    )
    .await;
    assert_eq!(made.facts["path"], ".selvedge/worktrees/aside");
    let file = ".selvedge/worktrees/aside/a.txt";
    assert_eq!(
        world.read(file),
        "one\ntwo\n",
        "as committed, not as the user has it"
    );
    assert_eq!(world.read("a.txt"), "one\ntwo\nthree\n");
    ok(
        &world,
        "write_file",
        json!({"path": file, "content": "other\n"}),
    )
    .await;
    let remove = json!({"action": "remove", "name": "aside"});
    let kept = world.call("git_worktree", remove.clone()).await;
    assert!(kept.is_error, "{}", kept.text);
    assert_eq!(world.read(file), "other\n");
    git(
        &world,
        &[
            "-C",
            ".selvedge/worktrees/aside",
            "commit",
            "--quiet",
            "-am",
            "Aside",
        ],
    );
    ok(&world, "git_worktree", remove).await;
    assert!(!world.root().join(file).exists());
    assert_eq!(
        git(&world, &["log", "-1", "--format=%s", "selvedge/aside"]),
        "Aside"
    );
}

#[tokio::test]
async fn each_tool_is_what_the_table_says_of_it() {
    let mut world = repository();
    for (craft, refused) in [
        (Some(Craft::Engineer), &["git_branch", "git_worktree"][..]),
        (
            Some(Craft::Inspector),
            &["git_branch", "git_worktree", "git_commit"],
        ),
        (Some(Craft::Architect), &[]),
        (
            None,
            &[
                "git_status",
                "git_diff",
                "git_log",
                "git_show",
                "git_blame",
                "git_branches",
                "git_branch",
                "git_worktree",
                "git_commit",
            ],
        ),
    ] {
        world.context.policy = std::sync::Arc::new(Policy {
            crafts: craft.into_iter().collect(),
            ..Policy::default()
        });
        for (tool, input) in calls() {
            let checked = world.check(tool, &input.to_string()).unwrap();
            let context = &world.context;
            let verdict = world
                .toolbox
                .judge(&context.workspace, &context.policy, &checked)
                .await;
            let denied = verdict.decision() == crate::Decision::Deny;
            assert_eq!(denied, refused.contains(&tool), "{craft:?} {tool}");
        }
    }
}

/// Gives git something to read, and returns what it prints.
fn feed(world: &World, arguments: &[&str], input: &str) -> String {
    use std::io::Write;
    let mut child = Command::new("git")
        .args(arguments)
        .current_dir(world.root())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim_end().into()
}

#[tokio::test]
async fn a_tree_that_leads_through_a_link_or_into_git_s_own_folder_writes_nothing_there() {
    for name in ["a", ".git", ".GIT"] {
        let world = repository();
        let outside = world.outside().join("outside");
        std::fs::create_dir(&outside).unwrap();
        let target = match name {
            "a" => outside.display().to_string(),
            _ => "hooks".into(),
        };
        let link = feed(&world, &["hash-object", "-w", "--stdin"], &target);
        let evil = feed(&world, &["hash-object", "-w", "--stdin"], "evil\n");
        let folder = feed(
            &world,
            &["mktree"],
            &format!("100755 blob {evil}\tpost-checkout\n"),
        );
        // The same name twice: as a link to elsewhere, and as a folder with a file in it.
        let tree = match name {
            "a" => format!("120000 blob {link}\ta\n040000 tree {folder}\ta\n"),
            _ => format!("040000 tree {folder}\t{name}\n"),
        };
        let tree = feed(&world, &["mktree"], &tree);
        let commit = git(&world, &["commit-tree", "-m", "Evil", &tree]);
        git(&world, &["update-ref", "refs/heads/main", &commit]);
        world
            .call("git_worktree", json!({"action": "add", "name": "aside"}))
            .await;
        let left = std::fs::read_dir(&outside).unwrap().count();
        assert_eq!(left, 0, "{name} led outside");
        let hook = world.root().join(".git/hooks/post-checkout");
        assert!(!hook.exists(), "{name} left a hook");
    }
}

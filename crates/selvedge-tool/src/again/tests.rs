use super::*;
use crate::testing::World;
use std::os::unix::fs::PermissionsExt;

/// A workspace with a linter that counts its runs outside of it.
struct Scene {
    world: World,
}

const LINTER: &str = "node_modules/.bin/eslint";

impl Scene {
    fn new(files: &[(&str, &str)]) -> Self {
        let scene = Self {
            world: World::new(files),
        };
        scene.linter("cat src/*.js; exit 1");
        scene.world.write("node_modules/.package-lock.json", "{}");
        scene
    }

    fn linter(&self, does: &str) {
        let runs = self.world.outside().join("runs");
        let script = format!("#!/bin/sh\necho x >> {}\n{does}\n", runs.display());
        self.world.write(LINTER, &script);
        let path = self.world.root().join(LINTER);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    async fn lint(&self, arguments: &str) -> ToolOutput {
        let command = format!("{LINTER} {arguments}");
        let input = json!({ "command": command });
        self.world.call("run_command", input).await
    }

    fn runs(&self) -> usize {
        let runs = std::fs::read_to_string(self.world.outside().join("runs"));
        runs.unwrap_or_default().lines().count()
    }
}

#[tokio::test]
async fn a_linter_on_unchanged_files_is_not_run_again() {
    let scene = Scene::new(&[("src/a.js", "let a\n"), ("README.md", "x")]);
    let first = scene.lint("src").await;
    assert!(first.text.contains("let a") && first.facts["cached"].is_null());
    let second = scene.lint("src").await;
    assert_eq!(scene.runs(), 1);
    assert!(second.text.starts_with(&first.text), "{}", second.text);
    assert!(second.text.contains("[not run again: "), "{}", second.text);
    assert_eq!(second.facts["cached"], true);
    assert_eq!(second.facts["exit_code"], first.facts["exit_code"]);
    assert_eq!(second.is_error, first.is_error);
}

#[tokio::test]
async fn whatever_could_change_the_answer_runs_it_again() {
    let scene = Scene::new(&[("src/a.js", "let a\n")]);
    scene.lint("src").await;
    let mut runs = 1;
    let mut expect_run = |what: &str| {
        runs += 1;
        assert_eq!(scene.runs(), runs, "{what}");
    };
    scene.world.write("src/a.js", "let b\n");
    let output = scene.lint("src").await;
    assert!(output.text.contains("let b"), "{}", output.text);
    expect_run("a file it reads");
    scene.world.write("src/new.png", "");
    scene.lint("src").await;
    expect_run("a file that exists now");
    scene.world.write(".eslintrc.json", "{}");
    scene.lint("src").await;
    expect_run("its configuration");
    scene.world.write("node_modules/.package-lock.json", "{ }");
    scene.lint("src").await;
    expect_run("a package");
    scene.lint("src --quiet").await;
    expect_run("its arguments");
    scene.linter("echo another version; exit 1");
    scene.lint("src").await;
    expect_run("the program");
    std::fs::write(scene.world.outside().join("package.json"), "{}").unwrap();
    scene.lint("src").await;
    expect_run("a configuration above the workspace");
    scene.lint("src").await;
    assert_eq!(scene.runs(), runs, "nothing has changed");
}

#[tokio::test]
async fn a_file_that_it_does_not_read_changes_nothing() {
    let scene = Scene::new(&[("src/a.js", "let a\n"), ("README.md", "x")]);
    scene.lint("src").await;
    scene.world.write("README.md", "y");
    scene.lint("src").await;
    assert_eq!(scene.runs(), 1);
}

#[tokio::test]
async fn what_did_not_come_to_its_end_or_changed_files_is_run_again() {
    let scene = Scene::new(&[("src/a.js", "let a\n")]);
    for does in ["exit 2", "kill -9 $$", "echo 'let c' >> src/a.js; exit 0"] {
        scene.linter(does);
        let before = scene.runs();
        scene.lint("src").await;
        scene.lint("src").await;
        assert_eq!(scene.runs(), before + 2, "{does}");
    }
}

#[tokio::test]
async fn what_cannot_be_shown_to_be_the_same_is_run_again() {
    let scene = Scene::new(&[("src/a.js", "let a\n")]);
    std::fs::remove_file(scene.world.root().join("node_modules/.package-lock.json")).unwrap();
    scene.lint("src").await;
    scene.lint("src").await;
    assert_eq!(scene.runs(), 2, "nothing says which packages there are");
    let scene = Scene::new(&[("src/a.js", "let a\n")]);
    std::os::unix::fs::symlink("/etc/hostname", scene.world.root().join("src/b.js")).unwrap();
    scene.lint("src").await;
    scene.lint("src").await;
    assert_eq!(scene.runs(), 2, "a link leads out");
}

#[tokio::test]
async fn a_real_formatter_is_not_run_again() {
    let world = World::new(&[("main.rs", "fn main() {}\n")]);
    let input = json!({"command": "rustfmt --check --edition 2024 main.rs"});
    let first = world.call("run_command", input.clone()).await;
    assert_eq!(first.facts["exit_code"], 0, "{}", first.text);
    let second = world.call("run_command", input.clone()).await;
    assert_eq!(second.facts["cached"], true, "{}", second.text);
    world.write("main.rs", "fn  main() {}\n");
    let third = world.call("run_command", input).await;
    assert_eq!(third.facts["exit_code"], 1, "{}", third.text);
    assert!(third.facts["cached"].is_null());
}

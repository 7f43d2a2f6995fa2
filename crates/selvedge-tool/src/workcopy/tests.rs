use std::process::Command;

use super::*;

mod killed;

struct World {
    scratch: tempfile::TempDir,
    copy: WorkCopy,
    base: String,
}

fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.invalid"])
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

impl World {
    /// A directory with files, as a repository if `is_repository`, and a copy of it.
    async fn new(is_repository: bool, below: &str) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let user = scratch.path().canonicalize().unwrap().join("user");
        std::fs::create_dir_all(user.join("src")).unwrap();
        let world = |name: &str, text: &str| std::fs::write(user.join(name), text).unwrap();
        world("a.txt", "one\ntwo\nthree\nfour\nfive\nsix\nseven\n");
        world("src/b.txt", "b\n");
        if is_repository {
            git(&user, &["init", "--quiet"]);
            git(&user, &["add", "."]);
            git(&user, &["commit", "--quiet", "-m", "first"]);
        }
        // What is not committed is part of what the user sees.
        world("new.txt", "not committed\n");
        let folder = scratch.path().canonicalize().unwrap().join("session");
        let copy = WorkCopy::of(&user.join(below), &folder).await.unwrap();
        let base = copy.make(&CancellationToken::new()).await.unwrap();
        Self {
            scratch,
            copy,
            base,
        }
    }

    fn user(&self, name: &str) -> PathBuf {
        self.scratch
            .path()
            .canonicalize()
            .unwrap()
            .join("user")
            .join(name)
    }

    fn work(&self, name: &str) -> PathBuf {
        self.copy.work().join(name)
    }

    fn text(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.user(name)).ok()
    }

    async fn merge(&self) -> Merged {
        let cancel = CancellationToken::new();
        self.copy.merge(&self.base, &cancel).await.unwrap()
    }
}

fn done(files: &[&str]) -> Merged {
    Merged::Done {
        files: files.iter().map(|f| (*f).to_owned()).collect(),
        left_out: Vec::new(),
    }
}

#[tokio::test]
async fn work_comes_back_with_what_the_user_did_meanwhile() {
    for is_repository in [true, false] {
        let world = World::new(is_repository, "").await;
        assert_eq!(world.copy.repository.is_some(), is_repository);
        let read = std::fs::read_to_string(world.work("new.txt")).unwrap();
        assert_eq!(read, "not committed\n");
        let text = "ONE\ntwo\nthree\nfour\nfive\nsix\nseven\n";
        std::fs::write(world.work("a.txt"), text).unwrap();
        std::fs::remove_file(world.work("src/b.txt")).unwrap();
        std::fs::create_dir(world.work("bin")).unwrap();
        std::fs::write(world.work("bin/run"), "#!/bin/sh\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(world.work("bin/run"), mode).unwrap();
        std::os::unix::fs::symlink("a.txt", world.work("link")).unwrap();
        // The user goes on in the same file, elsewhere in it.
        let text = "one\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n";
        std::fs::write(world.user("a.txt"), text).unwrap();
        std::fs::write(world.user("mine.txt"), "mine").unwrap();
        let expected = done(&["a.txt", "bin/run", "link", "src/b.txt"]);
        assert_eq!(world.merge().await, expected);
        let both = "ONE\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n";
        assert_eq!(world.text("a.txt").as_deref(), Some(both));
        assert_eq!(world.text("mine.txt").as_deref(), Some("mine"));
        assert!(!world.user("src").exists(), "git keeps no empty directory");
        let mode = world.user("bin/run").metadata().unwrap().permissions();
        assert_ne!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o100, 0);
        assert!(world.user("link").is_symlink());
        assert!(!world.copy.work().exists(), "the copy is gone");
        assert_eq!(world.merge().await, expected, "once more is the same");
        if is_repository {
            let trees = git(&world.user(""), &["worktree", "list"]);
            assert_eq!(trees.lines().count(), 1, "{trees}");
            let staged = git(&world.user(""), &["diff", "--cached", "--name-only"]);
            assert_eq!(staged, "", "what the user staged is the user's business");
        }
    }
}

#[tokio::test]
async fn a_conflict_leaves_every_file_and_the_copy_as_they_are() {
    let world = World::new(true, "").await;
    std::fs::write(world.work("a.txt"), "theirs\n").unwrap();
    std::fs::write(world.work("src/b.txt"), "fine\n").unwrap();
    std::fs::write(world.user("a.txt"), "mine\n").unwrap();
    let expected = Merged::Conflict {
        files: vec!["a.txt".into()],
    };
    assert_eq!(world.merge().await, expected);
    assert_eq!(world.text("a.txt").as_deref(), Some("mine\n"));
    assert_eq!(world.text("src/b.txt").as_deref(), Some("b\n"));
    assert!(world.work("a.txt").exists());
    // The user gives in.
    git(&world.user(""), &["checkout", "--quiet", "a.txt"]);
    assert_eq!(world.merge().await, done(&["a.txt", "src/b.txt"]));
    assert_eq!(world.text("a.txt").as_deref(), Some("theirs\n"));
}

#[tokio::test]
async fn a_merge_that_was_cut_short_is_completed_by_another() {
    let world = World::new(true, "").await;
    std::fs::write(world.work("a.txt"), "theirs\n").unwrap();
    std::fs::write(world.work("src/b.txt"), "theirs\n").unwrap();
    // As a process leaves it that was killed between two files.
    std::fs::write(world.user("a.txt"), "theirs\n").unwrap();
    assert_eq!(world.merge().await, done(&["a.txt", "src/b.txt"]));
    assert_eq!(world.text("src/b.txt").as_deref(), Some("theirs\n"));
}

#[tokio::test]
async fn a_link_that_leads_out_is_not_merged_and_is_named() {
    for is_repository in [true, false] {
        let world = World::new(is_repository, "").await;
        let link = |target: &str, name: &str| {
            let _ = std::fs::remove_file(world.work(name));
            std::os::unix::fs::symlink(target, world.work(name)).unwrap();
        };
        link("src/b.txt", "inside");
        link("/etc/passwd", "a.txt");
        link("../../secret", "src/up");
        link("src/up", "through");
        std::fs::write(world.work("made.txt"), "theirs\n").unwrap();
        let before = world.text("a.txt");
        let Merged::Done { files, left_out } = world.merge().await else {
            panic!("nothing is in the way");
        };
        assert_eq!(files, ["inside", "made.txt"]);
        let named: Vec<String> = left_out.iter().map(ToString::to_string).collect();
        let expected = [
            "a.txt -> /etc/passwd",
            "src/up -> ../../secret",
            "through -> src/up",
        ];
        assert_eq!(named, expected);
        assert!(world.user("inside").is_symlink());
        assert_eq!(world.text("a.txt"), before, "what it was to replace stays");
        for name in ["src/up", "through"] {
            assert!(world.user(name).symlink_metadata().is_err(), "{name}");
        }
    }
}

#[tokio::test]
async fn a_part_of_a_repository_is_worked_on_in_its_place() {
    let world = World::new(true, "src").await;
    assert_eq!(world.copy.place(), world.work("src"));
    std::fs::write(world.copy.place().join("c.txt"), "c\n").unwrap();
    assert_eq!(world.merge().await, done(&["src/c.txt"]));
    assert_eq!(world.text("src/c.txt").as_deref(), Some("c\n"));
}

#[tokio::test]
async fn nothing_that_a_repository_names_is_run() {
    let world = World::new(true, "").await;
    let canary = world.scratch.path().join("canary");
    let run = format!("touch {}", canary.display());
    for (name, value) in [
        ("filter.evil.clean", run.as_str()),
        ("filter.evil.smudge", &run),
        ("merge.evil.driver", &run),
        ("core.fsmonitor", &run),
    ] {
        git(&world.user(""), &["config", name, value]);
    }
    for folder in [world.user(""), world.work("")] {
        let rules = "*.txt filter=evil merge=evil\n";
        std::fs::write(folder.join(".gitattributes"), rules).unwrap();
    }
    std::fs::write(world.work("a.txt"), "theirs\n").unwrap();
    std::fs::write(world.user("a.txt"), "mine\n").unwrap();
    let merged = world.merge().await;
    assert!(matches!(merged, Merged::Conflict { .. }), "{merged:?}");
    assert!(!canary.exists(), "something was run");
}

#[tokio::test]
async fn what_a_link_leads_to_is_not_written() {
    let world = World::new(false, "").await;
    let outside = world.scratch.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(world.work("src/b.txt"), "theirs\n").unwrap();
    std::fs::rename(world.user("src"), world.scratch.path().join("away")).unwrap();
    std::os::unix::fs::symlink(&outside, world.user("src")).unwrap();
    let merged = world.merge().await;
    assert!(matches!(merged, Merged::Conflict { .. }), "{merged:?}");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
}

#[tokio::test]
async fn a_working_tree_of_the_user_s_that_is_away_is_not_forgotten() {
    let world = World::new(true, "").await;
    let (user, away) = (world.user(""), world.user("../away"));
    let away = away.to_str().unwrap();
    git(&user, &["worktree", "add", "--quiet", "--detach", away]);
    std::fs::remove_dir_all(away).unwrap();
    std::fs::write(world.work("a.txt"), "theirs\n").unwrap();
    // What no owner could remove without opening it first.
    let closed = world.work("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::write(closed.join("x"), "").unwrap();
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o500)).unwrap();
    assert_eq!(world.merge().await, done(&["a.txt", "closed/x"]));
    let known = git(&user, &["worktree", "list", "--porcelain"]);
    assert!(known.contains("/away"), "{known}");
    assert!(!known.contains("/session/"), "its own is gone: {known}");
    assert!(!world.copy.work().exists());
}

#[tokio::test]
async fn a_file_that_git_sees_no_change_of_mode_in_keeps_its_mode() {
    let world = World::new(true, "").await;
    git(&world.user(""), &["config", "core.fileMode", "false"]);
    let mode = |mode| std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(world.user("a.txt"), mode(0o755)).unwrap();
    std::fs::write(world.work("a.txt"), "theirs\n").unwrap();
    assert_eq!(world.merge().await, done(&["a.txt"]));
    let kept = std::fs::metadata(world.user("a.txt")).unwrap();
    assert_eq!(kept.permissions().mode() & 0o777, 0o755);
}

#[tokio::test]
async fn a_file_or_a_link_takes_the_place_of_a_folder() {
    for is_link in [false, true] {
        let world = World::new(true, "").await;
        // Git does not know of it, and it holds nothing.
        std::fs::create_dir_all(world.user("empty/below")).unwrap();
        std::fs::remove_dir_all(world.work("src")).unwrap();
        match is_link {
            true => std::os::unix::fs::symlink("a.txt", world.work("src")).unwrap(),
            false => std::fs::write(world.work("src"), "a file now\n").unwrap(),
        }
        std::fs::write(world.work("empty"), "full\n").unwrap();
        assert_eq!(world.merge().await, done(&["empty", "src", "src/b.txt"]));
        assert_eq!(world.text("empty").as_deref(), Some("full\n"));
        let leads_to = world.user("src").read_link().ok();
        assert_eq!(leads_to.is_some(), is_link);
        if !is_link {
            assert_eq!(world.text("src").as_deref(), Some("a file now\n"));
        }
    }
}

#[tokio::test]
async fn a_folder_in_which_the_user_put_something_is_not_replaced() {
    let world = World::new(true, "").await;
    std::fs::write(world.user(".gitignore"), "*.log\n").unwrap();
    std::fs::write(world.user("src/mine.log"), "mine\n").unwrap();
    std::fs::remove_dir_all(world.work("src")).unwrap();
    std::fs::write(world.work("src"), "a file now\n").unwrap();
    let cancel = CancellationToken::new();
    assert!(world.copy.merge(&world.base, &cancel).await.is_err());
    assert_eq!(world.text("src/mine.log").as_deref(), Some("mine\n"));
    assert_eq!(world.text("src/b.txt").as_deref(), Some("b\n"));
}

#[tokio::test]
async fn a_file_with_other_line_ends_than_git_keeps_is_merged() {
    let world = World::new(true, "").await;
    git(&world.user(""), &["config", "core.autocrlf", "input"]);
    std::fs::write(world.user("src/b.txt"), "b\r\nmine\r\n").unwrap();
    let cancel = CancellationToken::new();
    let base = world.copy.make(&cancel).await.unwrap();
    std::fs::write(world.work("src/b.txt"), "theirs\n").unwrap();
    let merged = world.copy.merge(&base, &cancel).await.unwrap();
    assert_eq!(merged, done(&["src/b.txt"]));
    assert_eq!(world.text("src/b.txt").as_deref(), Some("theirs\n"));
}

#[tokio::test]
async fn a_copy_of_a_copy_has_its_work_and_is_on_its_own() {
    for is_repository in [true, false] {
        let world = World::new(is_repository, "").await;
        std::fs::write(world.work("a.txt"), "so far\n").unwrap();
        std::fs::write(world.work("made.txt"), "made\n").unwrap();
        std::fs::remove_file(world.work("src/b.txt")).unwrap();
        let cancel = CancellationToken::new();
        let folder = world.user("../other");
        // Two at once, as two people who speak to one mission that failed.
        let (one, two) = (folder.join("one"), folder.join("two"));
        let (one, two) = tokio::join!(
            world.copy.branch(&world.base, &one, &cancel),
            world.copy.branch(&world.base, &two, &cancel),
        );
        let (one, two) = (one.unwrap(), two.unwrap());
        for branch in [&one, &two] {
            let read = |name| std::fs::read_to_string(branch.work().join(name)).ok();
            assert_eq!(read("a.txt").as_deref(), Some("so far\n"));
            assert_eq!(read("made.txt").as_deref(), Some("made\n"));
            assert_eq!(read("new.txt").as_deref(), Some("not committed\n"));
            assert_eq!(read("src/b.txt"), None);
        }
        std::fs::write(one.work().join("one.txt"), "one\n").unwrap();
        let merged = one.merge(&world.base, &cancel).await.unwrap();
        assert_eq!(merged, done(&["a.txt", "made.txt", "one.txt", "src/b.txt"]));
        assert_eq!(world.text("a.txt").as_deref(), Some("so far\n"));
        assert!(!one.is_there() && world.copy.is_there());
        // What the one has merged, the other need not do again.
        std::fs::write(two.work().join("two.txt"), "two\n").unwrap();
        two.merge(&world.base, &cancel).await.unwrap();
        assert_eq!(world.text("one.txt").as_deref(), Some("one\n"));
        assert_eq!(world.text("two.txt").as_deref(), Some("two\n"));
        world.copy.remove(&cancel).await.unwrap();
        assert!(!world.copy.is_there());
    }
}

#[tokio::test]
async fn a_merge_that_git_describes_at_too_great_length_changes_nothing() {
    let world = World::new(true, "").await;
    // A path takes up to 4,096 bytes, so some two thousand files make eight megabytes.
    let mut below = world.work("");
    while below.as_os_str().len() < 3_600 {
        below.push("d".repeat(200));
    }
    std::fs::create_dir_all(&below).unwrap();
    for n in 0..2_600 {
        std::fs::write(below.join(format!("{n}")), "").unwrap();
    }
    std::fs::write(world.work("a.txt"), "theirs\n").unwrap();
    let before = world.text("a.txt");
    let cancel = CancellationToken::new();
    let error = world.copy.merge(&world.base, &cancel).await.unwrap_err();
    let said = error.to_string();
    assert!(said.starts_with("git printed "), "{said}");
    assert!(
        said.contains("more than the 8388608 that are read"),
        "{said}"
    );
    assert_eq!(world.text("a.txt"), before, "nothing was written");
    assert!(!world.user("d".repeat(200).as_str()).exists());
    assert!(world.work("a.txt").exists(), "the work is kept");
}

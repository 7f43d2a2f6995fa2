//! Merges that were stopped halfway, and what is left of them: nothing, or what somebody
//! has changed since.

use super::*;

/// Leaves what a process leaves that is killed after it wrote `count` files of a merge.
async fn killed_after(world: &World, count: usize) {
    let cancel = CancellationToken::new();
    let (copy, base) = (&world.copy, &world.base);
    let user = Workspace::open(copy.top()).unwrap();
    let work = Workspace::open(&copy.work()).unwrap();
    let trees = copy.trees(&user, &cancel).await.unwrap();
    let done = trees.since(base, &work).await.unwrap();
    let mine = trees.since(base, &user).await.unwrap();
    let merged = trees.merged(base, &mine, &done).await.unwrap().unwrap();
    let changes = trees.changes(&mine, &merged).await.unwrap();
    let staging = copy.folder.join(STAGING);
    let (old, new) = (staging.join("old"), staging.join("new"));
    trees.stage(&mine, &changes, &old).await.unwrap();
    trees.stage(&merged, &changes, &new).await.unwrap();
    let changes: Vec<&tree::Change> = changes.iter().collect();
    let mut journal = journal::Journal::open(&copy.folder, &changes).unwrap();
    for (n, change) in changes.iter().enumerate().take(count) {
        journal.begin(n).unwrap();
        let place = user.root().join(&change.path);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::copy(new.join(&change.path), place).unwrap();
    }
}

/// Three files changed, one of them new, in this order.
async fn with_three_changes() -> World {
    let world = World::new(true, "").await;
    std::fs::write(world.work("a.txt"), "theirs\n").unwrap();
    std::fs::create_dir(world.work("made")).unwrap();
    std::fs::write(world.work("made/x"), "theirs\n").unwrap();
    std::fs::write(world.work("src/b.txt"), "theirs\n").unwrap();
    world
}

#[tokio::test]
async fn what_a_killed_merge_wrote_is_put_back_before_anything_else_happens() {
    let world = with_three_changes().await;
    let before = world.text("a.txt");
    killed_after(&world, 2).await;
    assert_eq!(world.text("made/x").as_deref(), Some("theirs\n"));
    // As a process leaves it that was about to move a file into its place.
    let rubbish = world.user("made/.selvedge-0123456789abcdef01234567.tmp");
    std::fs::write(&rubbish, "half").unwrap();
    // And now the user changes what was not written yet.
    std::fs::write(world.user("src/b.txt"), "mine\n").unwrap();
    let merged = world.merge().await;
    assert!(matches!(merged, Merged::Conflict { .. }), "{merged:?}");
    assert_eq!(world.text("a.txt"), before);
    assert!(!world.user("made").exists(), "nor is anything left of it");
    assert_eq!(world.text("src/b.txt").as_deref(), Some("mine\n"));
    assert_eq!(world.copy.touched(), Vec::<String>::new());
    // The user gives in, and everything is merged.
    std::fs::write(world.user("src/b.txt"), "b\n").unwrap();
    assert_eq!(world.merge().await, done(&["a.txt", "made/x", "src/b.txt"]));
    assert_eq!(world.text("made/x").as_deref(), Some("theirs\n"));
}

#[tokio::test]
async fn a_file_that_the_user_changed_after_a_killed_merge_is_left_alone_and_named() {
    let world = with_three_changes().await;
    killed_after(&world, 2).await;
    std::fs::write(world.user("a.txt"), "theirs, and mine\n").unwrap();
    let merged = world.merge().await;
    assert!(matches!(merged, Merged::Conflict { .. }), "{merged:?}");
    let kept = Some("theirs, and mine\n");
    assert_eq!(world.text("a.txt").as_deref(), kept);
    assert!(!world.user("made").exists());
    assert_eq!(world.copy.touched(), ["a.txt"]);
    // Another attempt knows it, too, until the work is merged.
    assert!(matches!(world.merge().await, Merged::Conflict { .. }));
    assert_eq!(world.copy.touched(), ["a.txt"]);
    git(&world.user(""), &["checkout", "--quiet", "a.txt"]);
    assert_eq!(world.merge().await, done(&["a.txt", "made/x", "src/b.txt"]));
    assert_eq!(world.copy.touched(), Vec::<String>::new());
}

#[tokio::test]
async fn a_copy_that_is_given_up_takes_what_its_killed_merge_wrote_with_it() {
    let world = with_three_changes().await;
    let before = world.text("a.txt");
    killed_after(&world, 3).await;
    world.copy.remove(&CancellationToken::new()).await.unwrap();
    assert_eq!(world.text("a.txt"), before);
    assert_eq!(world.text("src/b.txt").as_deref(), Some("b\n"));
    assert!(!world.user("made").exists());
    assert!(!world.copy.is_there());
}

#[tokio::test]
async fn a_merge_that_cannot_be_finished_takes_back_what_it_wrote() {
    let world = World::new(true, "").await;
    let mode = |mode| std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(world.user("a.txt"), mode(0o755)).unwrap();
    let before = world.text("a.txt");
    std::fs::write(world.work("a.txt"), "theirs\n").unwrap();
    std::fs::remove_file(world.work("src/b.txt")).unwrap();
    std::fs::write(world.work("made.txt"), "theirs\n").unwrap();
    std::os::unix::fs::symlink("a.txt", world.work("link")).unwrap();
    std::fs::create_dir(world.work("zz")).unwrap();
    std::fs::write(world.work("zz/y"), "theirs\n").unwrap();
    // Where a folder has to be, the user has a file that git does not know of.
    std::fs::write(world.user(".gitignore"), "zz\n").unwrap();
    std::fs::write(world.user("zz"), "mine\n").unwrap();
    let cancel = CancellationToken::new();
    let error = world.copy.merge(&world.base, &cancel).await.unwrap_err();
    let said = error.to_string();
    assert!(said.contains("`zz/y` cannot be written"), "{said}");
    assert_eq!(world.text("a.txt"), before);
    let kept = world.user("a.txt").metadata().unwrap().permissions();
    assert_eq!(kept.mode() & 0o777, 0o755);
    assert_eq!(world.text("src/b.txt").as_deref(), Some("b\n"));
    assert!(!world.user("made.txt").exists());
    assert!(world.user("link").symlink_metadata().is_err());
    assert_eq!(world.text("zz").as_deref(), Some("mine\n"));
    assert_eq!(world.copy.touched(), Vec::<String>::new());
    // What was in the way goes, and the same merge is made.
    std::fs::remove_file(world.user("zz")).unwrap();
    let expected = done(&["a.txt", "link", "made.txt", "src/b.txt", "zz/y"]);
    assert_eq!(world.merge().await, expected);
}

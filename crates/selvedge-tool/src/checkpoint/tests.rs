use super::*;
use crate::testing::World;
use std::fs::{Permissions, create_dir, read_link, remove_dir_all, remove_file, set_permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

/// A workspace and a checkpoint of it, outside of it.
struct Scene {
    world: World,
    checkpoint: Checkpoint,
}

impl Scene {
    fn new(files: &[(&str, &str)]) -> Self {
        let world = World::new(files);
        let checkpoint =
            Checkpoint::at(world.outside().join("kept"), world.context.secrets.clone());
        Self { world, checkpoint }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.world.root().join(path)
    }

    fn keep(&self, paths: &[&str]) -> usize {
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        let workspace = &self.world.context.workspace;
        self.checkpoint.keep(workspace, &paths).unwrap()
    }

    fn keep_all(&self) -> Coverage {
        let context = &self.world.context;
        let kept = self
            .checkpoint
            .keep_all(&context.workspace, &context.cancel);
        kept.unwrap()
    }

    fn restore(&self) -> Restored {
        let context = &self.world.context;
        // As a process would that comes after: from what is on disk alone.
        let checkpoint = Checkpoint::at(self.world.outside().join("kept"), Secrets::new());
        let restored = checkpoint.restore(&context.workspace, &context.cancel);
        restored.unwrap()
    }

    /// Every path below the root with what is there.
    fn tree(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut folders = vec![self.world.root().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let shown = path.strip_prefix(self.world.root()).unwrap().display();
                let metadata = path.symlink_metadata().unwrap();
                let mode = metadata.permissions().mode() & 0o7777;
                match () {
                    () if metadata.is_symlink() => {
                        lines.push(format!(
                            "{shown} -> {}",
                            read_link(&path).unwrap().display()
                        ));
                    }
                    () if metadata.is_dir() => {
                        lines.push(format!("{shown}/"));
                        folders.push(path.clone());
                    }
                    () => {
                        let content = std::fs::read(&path).unwrap();
                        lines.push(format!("{shown} {mode:o} {content:?}"));
                    }
                }
            }
        }
        lines.sort();
        lines
    }
}

#[test]
fn named_files_are_put_back_with_their_bytes_and_modes() {
    let scene = Scene::new(&[("a.sh", "one"), ("b", "two"), ("c", "three")]);
    set_permissions(scene.path("a.sh"), Permissions::from_mode(0o751)).unwrap();
    std::fs::write(scene.path("b"), [0xff, 0, b'\n', 0x80]).unwrap();
    let before = scene.tree();
    assert_eq!(scene.keep(&["a.sh", "b", "new/deep/file"]), 5);
    scene.world.write("a.sh", "changed");
    set_permissions(scene.path("a.sh"), Permissions::from_mode(0o600)).unwrap();
    remove_file(scene.path("b")).unwrap();
    scene.world.write("new/deep/file", "made");
    // Only the first is kept: what it was before anything happened.
    assert_eq!(scene.keep(&["a.sh"]), 0);
    let restored = scene.restore();
    assert_eq!(scene.tree(), before);
    let paths = ["a.sh", "b", "new", "new/deep", "new/deep/file"].map(PathBuf::from);
    assert_eq!(restored.restored, paths);
    assert_eq!(scene.restore(), Restored::default(), "again is harmless");
}

#[test]
fn a_file_that_nobody_named_is_left_alone() {
    let scene = Scene::new(&[("a", "one"), ("b", "two")]);
    scene.keep(&["a"]);
    scene.world.write("b", "the user's");
    scene.restore();
    assert_eq!(scene.world.read("b"), "the user's");
}

#[test]
fn whatever_a_command_did_to_the_workspace_is_undone() {
    let scene = Scene::new(&[
        (".gitignore", "target/\n"),
        ("target/cache", "1"),
        ("src/a", "one"),
        ("src/b", "two"),
        ("docs/c", "three"),
        ("plain", "file"),
    ]);
    symlink("src/a", scene.path("link")).unwrap();
    symlink("nowhere", scene.path("dangling")).unwrap();
    create_dir(scene.path("empty")).unwrap();
    let before = scene.tree();
    assert_eq!(scene.keep_all(), Coverage::Whole);

    remove_dir_all(scene.path("src")).unwrap();
    symlink("docs", scene.path("src")).unwrap();
    remove_dir_all(scene.path("docs")).unwrap();
    scene.world.write("docs", "a file in the place of a folder");
    for path in ["link", "plain", "dangling"] {
        remove_file(scene.path(path)).unwrap();
    }
    symlink("plain", scene.path("link")).unwrap();
    scene.world.write("plain/now/a/folder", "x");
    remove_dir_all(scene.path("empty")).unwrap();
    scene.world.write("target/cache", "2");

    let restored = scene.restore();
    assert_eq!(restored.left, []);
    let after = scene.tree();
    let is_kept = |line: &&String| !line.starts_with("target/cache");
    assert!(
        after
            .iter()
            .filter(is_kept)
            .eq(before.iter().filter(is_kept)),
        "{after:#?}"
    );
    assert_eq!(
        scene.world.read("target/cache"),
        "2",
        "ignored files are nobody's work"
    );
}

#[test]
fn what_files_had_become_is_kept_too() {
    let scene = Scene::new(&[("a", "one")]);
    scene.keep(&["a"]);
    scene.world.write("a", "the work of an hour");
    scene.restore();
    assert_eq!(scene.world.read("a"), "one");
    let undone = Checkpoint::at(scene.world.outside().join("kept/undone"), Secrets::new());
    let context = &scene.world.context;
    undone.restore(&context.workspace, &context.cancel).unwrap();
    assert_eq!(scene.world.read("a"), "the work of an hour");
}

#[test]
fn a_folder_swapped_for_a_link_leads_no_write_out() {
    let scene = Scene::new(&[("dir/kept", "inside")]);
    let outside = scene.world.outside().join("elsewhere");
    create_dir(&outside).unwrap();
    std::fs::write(outside.join("kept"), "canary").unwrap();
    scene.keep(&["dir/kept"]);
    remove_dir_all(scene.path("dir")).unwrap();
    symlink(&outside, scene.path("dir")).unwrap();
    scene.restore();
    assert_eq!(
        std::fs::read_to_string(outside.join("kept")).unwrap(),
        "canary"
    );
    assert_eq!(scene.world.read("dir/kept"), "inside");
    assert!(!scene.path("dir").is_symlink());
}

#[test]
fn a_workspace_that_is_too_large_is_not_kept_as_a_whole_and_that_is_said() {
    let scene = Scene::new(&[("a", "one")]);
    let large = File::create(scene.path("large")).unwrap();
    large.set_len(BYTES_MAX + 1).unwrap();
    scene.keep(&["a"]);
    assert_eq!(scene.keep_all(), Coverage::TooLarge);
    scene.world.write("a", "two");
    let restored = scene.restore();
    assert!(restored.is_partial);
    assert_eq!(scene.world.read("a"), "one");
}

#[test]
fn a_line_that_a_crash_cut_off_harms_no_other() {
    let scene = Scene::new(&[("a", "one"), ("b", "two")]);
    scene.keep(&["a"]);
    let list = scene.world.outside().join("kept").join(LIST);
    let mut file = OpenOptions::new().append(true).open(list).unwrap();
    file.write_all(br#"{"path":"b","was":{"fi"#).unwrap();
    scene.keep(&["b"]);
    scene.world.write("a", "changed");
    scene.world.write("b", "changed");
    scene.restore();
    assert_eq!(
        (scene.world.read("a"), scene.world.read("b")),
        ("one".into(), "two".into())
    );
}

#[test]
fn damage_to_what_was_kept_is_found_and_not_written() {
    let scene = Scene::new(&[("a", "one")]);
    scene.keep(&["a"]);
    scene.world.write("a", "two");
    let contents = scene.world.outside().join("kept").join(CONTENTS);
    std::fs::write(&contents, "0ne").unwrap();
    let restored = scene.restore();
    assert!(restored.restored.is_empty(), "{:?}", restored.restored);
    assert!(restored.left[0].1.contains("damaged"), "{restored:?}");
    assert_eq!(scene.world.read("a"), "two");
}

#[test]
fn only_its_owner_can_look_into_a_checkpoint() {
    let scene = Scene::new(&[("a", "one")]);
    scene.keep(&["a"]);
    let folder = scene.world.outside().join("kept");
    for (path, mode) in [("", 0o700), (LIST, 0o600), (CONTENTS, 0o600)] {
        let metadata = folder.join(path).metadata().unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, mode, "{path}");
    }
}

#[test]
fn no_secret_is_copied_and_the_file_it_is_in_stays_as_it_is() {
    let scene = Scene::new(&[
        (".env", "DB_PASSWORD=c0rrect+horse/b4ttery\n"),
        (".env.local", "DB_PASSWORD=c0rrect+horse/b4ttery\n"),
        ("client.rs", "const KEY: &str = \"w0rd-of-the-gate-71\";\n"),
        ("settings", "plain\n"),
        ("main.rs", "fn main() {}\n"),
    ]);
    scene.world.context.secrets.know("w0rd-of-the-gate-71");
    assert_eq!(scene.keep_all(), Coverage::Whole);
    set_permissions(scene.path(".env.local"), Permissions::from_mode(0o640)).unwrap();
    scene
        .world
        .write(".env", "DB_PASSWORD=an0ther+horse/b4ttery\n");
    remove_file(scene.path("client.rs")).unwrap();
    let became = "it is w0rd-of-the-gate-71 and an hour of work\n";
    scene.world.write("settings", became);
    scene.world.write("main.rs", "fn main() { changed() }\n");

    let context = &scene.world.context;
    let restored = scene
        .checkpoint
        .restore(&context.workspace, &context.cancel);
    let restored = restored.unwrap();
    let reasons = restored.left.iter().map(|(_, why)| why);
    assert!(reasons.clone().all(|why| why.contains("may hold a secret")));
    let left = restored.left.iter().map(|(path, _)| path.to_str().unwrap());
    let mut left: Vec<_> = left.collect();
    left.sort_unstable();
    assert_eq!(left, [".env", "client.rs", "settings"]);
    assert_eq!(scene.world.read("main.rs"), "fn main() {}\n");
    // What it became is kept nowhere else, so nothing takes its place.
    assert_eq!(scene.world.read("settings"), became);
    assert!(scene.world.read(".env").contains("an0ther"));
    // Whether it can be read is no secret.
    let mode = scene
        .path(".env.local")
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o644);

    for kept in [CONTENTS, LIST, "undone/contents", "undone/list.jsonl"] {
        let text = std::fs::read(scene.world.outside().join("kept").join(kept)).unwrap();
        let text = String::from_utf8_lossy(&text).into_owned();
        for secret in ["horse/b4ttery", "w0rd-of-the-gate-71"] {
            assert!(!text.contains(secret), "{secret} is in {kept}");
        }
    }
}

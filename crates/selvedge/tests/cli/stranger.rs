//! A world that belongs to an ordinary user, also where tests run as root.
//!
//! Half of the errors of a fence are invisible to root, who may read and write everything.
//! So the binary is run by the user that owns nothing, with a home of its own in which
//! there is something to steal, and with the programs that every user has.

use std::os::unix::fs::{PermissionsExt, lchown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::world::World;

/// What nobody may find outside of the place where it was put.
pub const TREASURE: &str = "tr3asure-that-n0body-carries-off";

const NOBODY: u32 = 65_534;
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
// What a person keeps at home.
const KEPT: [&str; 5] = [
    ".ssh/id_ed25519",
    ".aws/credentials",
    ".netrc",
    ".bashrc",
    ".config/gh/hosts.yml",
];

/// The binary where that user can reach it.
pub struct Stranger(PathBuf);

impl World {
    /// A world of an ordinary user.
    pub fn of_a_stranger() -> Self {
        // Not below the target directory, which may lie where others cannot enter.
        let place = Path::new("/var/tmp");
        let folder = match place.is_dir() {
            true => tempfile::tempdir_in(place),
            false => tempfile::tempdir(),
        };
        let root = folder.unwrap();
        let program = root.path().join("selvedge");
        let own = Path::new(env!("CARGO_BIN_EXE_selvedge"));
        if std::fs::hard_link(own, &program).is_err() {
            std::fs::copy(own, &program).unwrap();
        }
        let world = Self::belonging_to(root, Stranger(program));
        for path in KEPT {
            world.write(&format!("person/{path}"), TREASURE);
        }
        world
    }

    /// Lets another program be run by whom everything belongs to.
    pub fn hand_over(&self, command: &mut Command) {
        if let Some(stranger) = self.stranger() {
            stranger.dress(&self.root(), command);
        }
    }

    /// The home of the person, as opposed to Selvedge's.
    pub fn person(&self) -> PathBuf {
        self.root().join("person")
    }

    /// What a person keeps is where it was, and as it was.
    pub fn check_treasures(&self) {
        for path in KEPT {
            let kept = std::fs::read_to_string(self.person().join(path));
            assert_eq!(kept.unwrap_or_default(), TREASURE, "{path}");
        }
        for place in ["home", "work"] {
            let found = selvedge_testkit::leaks(&self.root().join(place), &[TREASURE]);
            assert!(found.is_empty(), "it was carried off: {found:?}");
        }
    }
}

impl Stranger {
    /// What is run.
    pub fn program(&self) -> &Path {
        &self.0
    }

    /// Lets `command` be run by the user to whom everything below `root` belongs.
    pub fn dress(&self, root: &Path, command: &mut Command) {
        command
            .env("PATH", PATH)
            .env("HOME", root.join("person"))
            // What is beside the workspace is not for temporary files.
            .env("TMPDIR", "/tmp");
        if rustix::process::geteuid().is_root() {
            std::fs::set_permissions(root, std::fs::Permissions::from_mode(0o755)).unwrap();
            self.give(root);
            command.uid(NOBODY).gid(NOBODY);
        }
    }

    fn give(&self, path: &Path) {
        // Another name of it may be everybody's.
        if path != self.0 {
            lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let is_folder = path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        if is_folder {
            for entry in std::fs::read_dir(path).unwrap().flatten() {
                self.give(&entry.path());
            }
        }
    }
}

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

/// The user that owns nothing.
pub struct Stranger {
    /// The binary where they can reach it.
    program: PathBuf,
    /// Whether they have a home of their own, and the programs that every user has.
    has_home: bool,
}

impl World {
    /// A world of an ordinary user with the surroundings of these tests.
    pub fn of_somebody() -> Self {
        let root = tempfile::tempdir().unwrap();
        let stranger = Stranger {
            program: bring(root.path()),
            has_home: false,
        };
        Self::belonging_to(root, stranger)
    }

    /// A world of an ordinary user at home.
    pub fn of_a_stranger() -> Self {
        // Not below the target directory, which may lie where others cannot enter.
        let place = Path::new("/var/tmp");
        let folder = match place.is_dir() {
            true => tempfile::tempdir_in(place),
            false => tempfile::tempdir(),
        };
        let root = folder.unwrap();
        let stranger = Stranger {
            program: bring(root.path()),
            has_home: true,
        };
        let world = Self::belonging_to(root, stranger);
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

/// Puts the binary where everybody has a way to.
fn bring(root: &Path) -> PathBuf {
    let program = root.join("selvedge");
    let own = Path::new(env!("CARGO_BIN_EXE_selvedge"));
    if std::fs::hard_link(own, &program).is_err() {
        std::fs::copy(own, &program).unwrap();
    }
    std::fs::set_permissions(root, std::fs::Permissions::from_mode(0o755)).unwrap();
    program
}

impl Stranger {
    /// What is run.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Lets `command` be run by the user to whom everything below `root` belongs.
    pub fn dress(&self, root: &Path, command: &mut Command) {
        if self.has_home {
            command
                .env("PATH", PATH)
                .env("HOME", root.join("person"))
                // What is beside the workspace is not for temporary files.
                .env("TMPDIR", "/tmp");
        }
        if rustix::process::geteuid().is_root() {
            self.give(root);
            command.uid(NOBODY).gid(NOBODY);
        }
    }

    fn give(&self, path: &Path) {
        // What a run under way removes meanwhile is nobody's.
        let Ok(metadata) = path.symlink_metadata() else {
            return;
        };
        // Another name of the binary may be everybody's.
        if path != self.program {
            let _ = lchown(path, Some(NOBODY), Some(NOBODY));
        }
        if metadata.is_dir() {
            for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
                self.give(&entry.path());
            }
        }
    }
}

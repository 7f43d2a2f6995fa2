//! The same plan, carried out by another program: bubblewrap.
//!
//! Where a machine lets only programs that it trusts make namespaces, bubblewrap is often
//! among them. It is given the plan's steps as arguments, and runs the part of Selvedge
//! that stays inside (`process::inside`), which gives up the rest as always.
//!
//! It runs before there is a fence. So it is taken only from where nobody but root can have
//! put it, and it is given none of the command's variables: some of those decide what a
//! program loads.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::confine::Confines;
use super::landlock::Landlock;
use super::mounts::IN_MEMORY_COUNT;
use super::plan::{Plan, Step};
use super::prepared::{Outline, Refused, Stage};
use super::spec::{Network, Sandbox};

/// A bubblewrap that can be trusted.
#[derive(Debug, PartialEq)]
pub(crate) struct Bubblewrap {
    /// Where it is.
    pub(crate) program: PathBuf,
    /// Whether it has root's rights. It needs no namespace of users then, and may not
    /// bound what is in memory.
    is_privileged: bool,
}

/// What bubblewrap is told, and what is left to whom it runs.
pub(crate) struct Borrowed {
    /// Its arguments, without the command.
    pub(crate) arguments: Vec<OsString>,
    /// What the command gives up in there.
    pub(crate) confines: Confines,
    /// The folders in memory that it may write: how many files they hold cannot be said.
    pub(crate) in_memory: Vec<PathBuf>,
}

// Where systems keep it. The search path is the user's, and does not count.
const PLACES: [&str; 4] = [
    "/usr/bin/bwrap",
    "/bin/bwrap",
    "/usr/local/bin/bwrap",
    "/run/current-system/sw/bin/bwrap",
];

impl Bubblewrap {
    /// The one of this machine; or why there is none.
    pub(crate) fn find() -> Result<Self, String> {
        let mut doubts = Vec::new();
        for place in PLACES {
            match Self::at(Path::new(place), ROOT) {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => {}
                Err(doubt) => doubts.push(doubt),
            }
        }
        match doubts.is_empty() {
            true => Err(format!("there is no bubblewrap at `{}`", PLACES[0])),
            false => Err(doubts.join("; ")),
        }
    }

    /// The one at `place`, if it and everything above it is `owner`'s alone.
    fn at(place: &Path, owner: u32) -> Result<Option<Self>, String> {
        let Ok(program) = place.canonicalize() else {
            return Ok(None);
        };
        // Both ways: the links that lead there, and what they lead to.
        for path in program.ancestors().chain(place.ancestors()) {
            let found = path
                .symlink_metadata()
                .map_err(|error| format!("`{}`: {error}", path.display()))?;
            let is_writable = found.mode() & 0o022 != 0 && !found.is_symlink();
            if found.uid() != owner || is_writable {
                return Err(format!(
                    "`{}` is not trusted: others than root can change `{}`",
                    place.display(),
                    path.display()
                ));
            }
        }
        let found = program
            .metadata()
            .map_err(|error| format!("`{}`: {error}", program.display()))?;
        if !found.is_file() || found.mode() & 0o111 == 0 {
            return Err(format!("`{}` is not a program", program.display()));
        }
        Ok(Some(Self {
            program,
            is_privileged: found.mode() & SET_USER != 0,
        }))
    }

    /// What it is to be told, to run something in `directory`, which is in `workspace`.
    pub(crate) fn prepare(
        &self,
        sandbox: &Sandbox,
        workspace: &Path,
        directory: &Path,
    ) -> Result<Borrowed, Refused> {
        let Outline { plan, confines } = Outline::new(sandbox, workspace, directory)?;
        // Said now, and not by somebody who can hardly be understood from in there.
        Landlock::new(&[]).map_err(Stage::Landlock.refused())?;
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let telling = Telling {
            memory_bytes: (!self.is_privileged).then(|| sandbox.resources.memory_bytes()),
            mounted: mounted(&mounts),
        };
        let mut arguments = self.namespaces(&sandbox.network);
        arguments.extend(telling.steps(&plan).map_err(Stage::Files.refused())?);
        Ok(Borrowed {
            arguments,
            confines,
            in_memory: in_memory(&plan),
        })
    }

    fn namespaces(&self, network: &Network) -> Vec<OsString> {
        let mut words = vec![
            "--unshare-pid",
            "--unshare-ipc",
            "--unshare-uts",
            "--unshare-cgroup",
            "--as-pid-1",
            "--die-with-parent",
            "--cap-drop",
            "ALL",
        ];
        if !self.is_privileged {
            words.push("--unshare-user");
        }
        if *network != Network::On {
            words.push("--unshare-net");
        }
        words.into_iter().map(OsString::from).collect()
    }
}

/// The folders in memory that may be written.
fn in_memory(plan: &Plan) -> Vec<PathBuf> {
    let is_placed = |path: &PathBuf| {
        let mut steps = plan.steps.iter();
        steps.any(|step| matches!(step, Step::Place { at, .. } if at == path))
    };
    let is_covered = |path: &PathBuf| plan.steps.contains(&Step::Cover(path.clone()));
    let open = plan.writable.iter();
    open.filter(|path| is_covered(path) && !is_placed(path))
        .cloned()
        .collect()
}

const ROOT: u32 = 0;
const SET_USER: u32 = 0o4000;

/// How the steps are told.
struct Telling {
    /// What the folders in memory may hold together, if that can be said.
    memory_bytes: Option<u64>,
    /// Where something is mounted now.
    mounted: Vec<PathBuf>,
}

impl Telling {
    /// The steps in bubblewrap's words. It looks for what is shown in the view from
    /// outside, so nothing has to be taken hold of; and what it shows is read-only from
    /// the beginning, unless it is said otherwise.
    fn steps(&self, plan: &Plan) -> io::Result<Vec<OsString>> {
        let mut words = Words::default();
        words.say(&["--ro-bind", "/", "/"]);
        let mut held: Vec<&Path> = Vec::new();
        let mut placed: Vec<(&Path, &Path)> = Vec::new();
        let mut covered: Vec<&Path> = Vec::new();
        // Devices are bubblewrap's own, terminals and links included.
        let is_device = |path: &Path| path.starts_with("/dev") && path != Path::new("/dev/shm");
        for step in &plan.steps {
            match step {
                Step::Hold(path) => held.push(path),
                Step::Cover(at) if at == Path::new("/dev") => {
                    words.with("--dev", &[at]);
                    covered.push(at);
                }
                Step::Cover(at) => {
                    if let Some(bytes) = self.memory_bytes {
                        let each = (bytes / IN_MEMORY_COUNT).max(1 << 20);
                        words.say(&["--size", &each.to_string()]);
                    }
                    words.with("--tmpfs", &[at]);
                    covered.push(at);
                }
                Step::Folder(at) if !at.starts_with("/dev") => words.with("--dir", &[at]),
                Step::Link { at, target } if !is_device(at) => {
                    let last = placed.iter().rev().find(|(_, to)| at.starts_with(to));
                    match last.and_then(|(from, to)| Some(from.join(at.strip_prefix(to).ok()?))) {
                        None => words.with("--symlink", &[target, at]),
                        // In a folder that stays: it may be there already, and it does not
                        // matter who makes it.
                        Some(outside) => drop(std::os::unix::fs::symlink(target, outside)),
                    }
                }
                Step::Place { held: number, at } if !is_device(at) => {
                    let from = held[*number];
                    let how = match () {
                        () if from == Path::new("/dev/null") => "--dev-bind",
                        () if plan.writable.contains(at) => "--bind",
                        () => "--ro-bind",
                    };
                    words.with(how, &[from, at]);
                    placed.push((from, at));
                }
                // What is left is made by bubblewrap itself, or said once for all below.
                Step::Folder(_) | Step::File(_) | Step::Link { .. } | Step::Place { .. } => {}
                Step::Seal | Step::Open(_) | Step::Terminals(_) => {}
                Step::Processes => {
                    words.with("--proc", &[Path::new("/proc")]);
                    words.with("--remount-ro", &[Path::new("/proc")]);
                }
            }
        }
        let is_open = |path: &Path| plan.writable.iter().any(|open| open == path);
        for at in covered.into_iter().filter(|at| !is_open(at)) {
            words.with("--remount-ro", &[at]);
        }
        // What is mounted below a place that may be written is not meant by it.
        for (from, to) in &placed {
            for mount in self.mounted.iter().filter(|_| is_open(to)) {
                if let Ok(below) = mount.strip_prefix(from)
                    && below != Path::new("")
                    && !placed.iter().any(|(_, at)| *at == to.join(below))
                {
                    words.with("--remount-ro", &[&to.join(below)]);
                }
            }
        }
        Ok(words.0)
    }
}

#[derive(Default)]
struct Words(Vec<OsString>);

impl Words {
    fn say(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(OsString::from));
    }

    fn with(&mut self, word: &str, paths: &[&Path]) {
        self.0.push(word.into());
        self.0.extend(paths.iter().map(OsString::from));
    }
}

/// The places of `mountinfo`, in which blanks and the like are numbers.
fn mounted(table: &str) -> Vec<PathBuf> {
    let places = table.lines().filter_map(|line| line.split(' ').nth(4));
    places.map(|place| unescaped(place).into()).collect()
}

fn unescaped(place: &str) -> OsString {
    let bytes = place.as_bytes();
    let (mut plain, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        let digits = place.get(at + 1..at + 4).filter(|_| bytes[at] == b'\\');
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                plain.push(byte);
                at += 4;
            }
            None => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    OsStr::from_bytes(&plain).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::surroundings::Surroundings;
    use std::collections::BTreeSet;
    use std::os::unix::fs::PermissionsExt;

    fn set(paths: &[&str]) -> BTreeSet<PathBuf> {
        paths.iter().map(PathBuf::from).collect()
    }

    fn told(around: &Surroundings, mounted: &[&str]) -> String {
        let plan = Plan::new(
            &Sandbox::default(),
            Path::new("/home/u/app"),
            around,
            |_| true,
        );
        let telling = Telling {
            memory_bytes: Some(400 << 20),
            mounted: mounted.iter().map(PathBuf::from).collect(),
        };
        let words = telling.steps(&plan).unwrap();
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }

    #[test]
    fn only_what_was_opened_can_be_written() {
        let around = Surroundings {
            home: Some("/home/u".into()),
            covered: set(&["/home", "/home/u", "/tmp"]),
            kept: set(&["/home/u/.cargo"]),
            masked: set(&["/etc/shadow"]),
            protected: set(&["/home/u/app/.git"]),
            ..Surroundings::default()
        };
        let told = told(&around, &["/home/u/app/disk", "/home/u/other", "/proc"]);
        assert!(told.starts_with("--ro-bind / / "), "{told}");
        let order = [
            "--size 104857600 --tmpfs /home ",
            "--ro-bind /home/u/.cargo /home/u/.cargo",
            "--bind /home/u/app /home/u/app",
            "--ro-bind /home/u/app/.git /home/u/app/.git",
            "--dev-bind /dev/null /etc/shadow",
            "--proc /proc",
            "--remount-ro /home ",
            "--remount-ro /home/u/app/disk",
        ];
        let found = order.map(|words| told.find(words));
        assert!(
            found.iter().all(Option::is_some) && found.is_sorted(),
            "{found:?} of {told}"
        );
        assert_eq!(told.matches("--bind ").count(), 1, "{told}");
        for open in ["/tmp", "/home/u", "/dev/shm"] {
            let sealed = format!("--remount-ro {open} ");
            assert!(!format!("{told} ").contains(&sealed), "{open} in {told}");
        }
    }

    #[test]
    fn a_program_that_others_can_change_is_not_trusted() {
        let scratch = tempfile::tempdir_in("/var").or_else(|_| tempfile::tempdir());
        let scratch = scratch.unwrap();
        let folder = scratch.path().canonicalize().unwrap();
        let program = folder.join("bwrap");
        std::fs::write(&program, "").unwrap();
        let with = |path: &Path, mode: u32| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        with(&program, 0o755);
        assert_eq!(Bubblewrap::at(&folder.join("none"), ROOT), Ok(None));
        let owner = program.metadata().unwrap().uid();
        let doubt = Bubblewrap::at(&program, owner + 1).unwrap_err();
        assert!(doubt.contains("is not trusted"), "{doubt}");
        with(&program, 0o777);
        assert!(Bubblewrap::at(&program, ROOT).is_err());
        with(&program, 0o755);
        with(&folder, 0o777);
        let doubt = Bubblewrap::at(&program, ROOT).unwrap_err();
        assert!(doubt.contains(&folder.display().to_string()), "{doubt}");
        with(&folder, 0o755);
        if owner == ROOT && folder.starts_with("/var") {
            with(&program, 0o4755);
            let found = Bubblewrap::at(&program, ROOT).unwrap().unwrap();
            assert!(found.is_privileged);
            with(&program, 0o644);
            assert!(Bubblewrap::at(&program, ROOT).is_err(), "not a program");
        }
    }

    #[test]
    fn a_mount_is_found_whatever_its_name() {
        let table = "31 23 0:28 / /mnt/a\\040b rw - tmpfs tmpfs rw\n";
        assert_eq!(mounted(table), [PathBuf::from("/mnt/a b")]);
    }
}

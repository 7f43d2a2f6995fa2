//! Lets the kernel count what a command uses, with everything that it started.
//!
//! A limit of a process is its own, and a count taken ten times a second comes too late
//! for a fork bomb of root, whom no limit of processes holds. A control group is counted
//! by the kernel as a whole, at the very moment. Not everybody may make one: where none
//! can be had, the limits of processes and the census are what there is.
//!
//! Of the older generation of the interface only the count of processes is used: entering
//! a group can wait for all processors, some milliseconds for each tree that is entered.
//!
//! A group is a folder. It is removed with its command; when Selvedge was killed, by the
//! process that stands for the command; and what is left even so, at the next start.

#![allow(unsafe_code)]

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use crate::sandbox::Resources;

/// A group that was made for one command.
pub(super) struct Cgroup {
    folders: Vec<(Kind, PathBuf)>,
}

/// What a process needs to enter a group, and to remove it: made before the fork.
pub(super) struct Entry {
    members: Vec<OwnedFd>,
    folders: Vec<CString>,
    parent: libc::pid_t,
}

/// Where groups can be made on this machine, and what they hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Places(Vec<Place>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    kind: Kind,
    folder: PathBuf,
    holds_processes: bool,
    holds_memory: bool,
}

/// Two generations of the kernel's interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// One tree for everything.
    Unified,
    /// A tree for each thing that is counted.
    Legacy,
}

/// What counts a command's use on this machine, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Whether the kernel counts processes, with those of root.
    pub processes: bool,
    /// Whether the kernel counts memory.
    pub memory: bool,
}

/// What is done to the kernel's folders. In a test they are folders that behave so.
trait Tree {
    fn make(&self, folder: &Path) -> io::Result<()>;
    fn set(&self, file: &Path, value: &str) -> io::Result<()>;
    fn remove(&self, folder: &Path) -> io::Result<()>;
    fn may_write(&self, file: &Path) -> bool;
}

/// The kernel's own.
struct Kernel;

impl Tree for Kernel {
    fn make(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir(folder)
    }

    fn set(&self, file: &Path, value: &str) -> io::Result<()> {
        fs::write(file, value)
    }

    fn remove(&self, folder: &Path) -> io::Result<()> {
        fs::remove_dir(folder)
    }

    fn may_write(&self, file: &Path) -> bool {
        rustix::fs::access(file, rustix::fs::Access::WRITE_OK).is_ok()
    }
}

const PREFIX: &str = "selvedge-";
// A process that was killed is out of its group a moment later.
const REMOVE_TRIES_MAX: u32 = 50;
const REMOVE_PAUSE: std::time::Duration = std::time::Duration::from_millis(2);

/// What the kernel counts of commands here: a process tries.
pub fn counted() -> Counted {
    let group = Cgroup::make(&Resources::default());
    let is_entered = |group: &Cgroup| group.folders.iter().all(|(_, folder)| entered(folder));
    let group = group.filter(is_entered);
    Counted {
        processes: group.as_ref().is_some_and(|group| group.has("pids.max")),
        memory: group.is_some_and(|group| group.holds_memory()),
    }
}

/// The places of this machine, looked for once.
fn places() -> &'static Places {
    static FOUND: OnceLock<Places> = OnceLock::new();
    FOUND.get_or_init(|| {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let own = read("/proc/self/cgroup");
        let mounts = read("/proc/self/mountinfo");
        let found = Places::find(&own, &mounts, &Kernel);
        found.sweep(&Kernel);
        found
    })
}

impl Places {
    /// Finds them from what the kernel says of this process and its mounts.
    fn find(own: &str, mounts: &str, tree: &dyn Tree) -> Self {
        let trees = trees(own, mounts);
        let mut found = Self::default();
        for (kind, controllers, folder, top) in trees {
            let wants = |name: &str| {
                let is_there = controllers.is_empty() || controllers.iter().any(|c| c == name);
                is_there && !found.0.iter().any(|place| place.holds(name))
            };
            let processes = wants("pids");
            let memory = kind == Kind::Unified && wants("memory");
            if !processes && !memory {
                continue;
            }
            // Groups beside the own one: one that has members has no groups below it
            // that are counted.
            let above = folder.ancestors().take_while(|f| f.starts_with(&top));
            let own = folder.clone();
            let place = above
                .filter_map(|folder| try_place(tree, kind, folder, folder == own))
                .find(|place| {
                    (processes && place.holds_processes) || (memory && place.holds_memory)
                });
            found.0.extend(place.map(|place| Place {
                holds_processes: place.holds_processes && processes,
                holds_memory: place.holds_memory && memory,
                ..place
            }));
        }
        found
    }

    /// Removes the groups of processes that are gone.
    fn sweep(&self, tree: &dyn Tree) {
        for place in &self.0 {
            let entries = fs::read_dir(&place.folder);
            for entry in entries.into_iter().flatten().filter_map(Result::ok) {
                let name = entry.file_name();
                if is_left_behind(&name.to_string_lossy()) {
                    end(tree, &entry.path());
                }
            }
        }
    }
}

impl Place {
    fn holds(&self, controller: &str) -> bool {
        match controller {
            "pids" => self.holds_processes,
            _ => self.holds_memory,
        }
    }
}

impl Cgroup {
    /// A group within these bounds; none where none can be had.
    pub(super) fn make(resources: &Resources) -> Option<Self> {
        Self::make_in(&Kernel, places(), resources)
    }

    fn make_in(tree: &dyn Tree, places: &Places, resources: &Resources) -> Option<Self> {
        remove_leftovers();
        if places.0.is_empty() {
            return None;
        }
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}{number}", own_prefix()?);
        let mut group = Self {
            folders: Vec::new(),
        };
        for place in &places.0 {
            let folder = place.folder.join(&name);
            if let Err(error) = tree.make(&folder) {
                tracing::warn!(%error, folder = %folder.display(), "no control group");
                return None;
            }
            group.folders.push((place.kind, folder.clone()));
            if let Err(error) = place.bound(tree, &folder, resources) {
                tracing::warn!(%error, folder = %folder.display(), "no bounds for a control group");
                return None;
            }
        }
        Some(group)
    }

    /// What a command needs to enter.
    pub(super) fn entry(&self) -> io::Result<Entry> {
        let (mut members, mut folders) = (Vec::new(), Vec::new());
        for (_, folder) in &self.folders {
            let members_file = folder.join("cgroup.procs");
            members.push(
                fs::OpenOptions::new()
                    .write(true)
                    .open(members_file)?
                    .into(),
            );
            folders.push(CString::new(folder.as_os_str().as_bytes())?);
        }
        let parent = libc::pid_t::try_from(std::process::id()).unwrap_or(0);
        Ok(Entry {
            members,
            folders,
            parent,
        })
    }

    /// Whether the kernel counts its memory.
    pub(super) fn holds_memory(&self) -> bool {
        self.has("memory.max")
    }

    fn has(&self, file: &str) -> bool {
        let mut folders = self.folders.iter();
        folders.any(|(_, folder)| folder.join(file).exists())
    }

    /// Whether the kernel ended something in it because its memory was used up.
    pub(super) fn ran_out_of_memory(&self) -> bool {
        let count = |folder: &Path| count(&folder.join("memory.events"), "oom_kill");
        self.folders.iter().any(|(_, folder)| count(folder) > 0)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for (_, folder) in &self.folders {
            // Who is abandoned is still being killed just now.
            if fs::remove_dir(folder).is_err() && folder.exists() {
                let mut leftovers = LEFTOVERS.lock().expect("no panic under this lock");
                leftovers.push(folder.clone());
            }
        }
    }
}

// Groups that were not empty yet when they were to go.
static LEFTOVERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn remove_leftovers() {
    let mut leftovers = LEFTOVERS.lock().expect("no panic under this lock");
    leftovers.retain(|folder| fs::remove_dir(folder).is_err() && folder.exists());
}

impl Place {
    fn bound(&self, tree: &dyn Tree, folder: &Path, resources: &Resources) -> io::Result<()> {
        let set = |name: &str, value: String| tree.set(&folder.join(name), &value);
        if self.holds_processes {
            set("pids.max", resources.processes_max.to_string())?;
        }
        if self.holds_memory {
            set("memory.max", resources.memory_bytes().to_string())?;
            // A hog that is moved to disk page by page makes a machine as slow as one that
            // is not bounded. Not every machine can swap.
            let _ = set("memory.swap.max", "0".into());
            // Half of a build is no build.
            let _ = set("memory.oom.group", "1".into());
        }
        Ok(())
    }
}

impl Entry {
    /// The handles by which it is entered.
    pub(super) fn members(&self) -> &[OwnedFd] {
        &self.members
    }

    /// The same, of somebody who was given the handles and removes nothing.
    pub(super) fn given(members: Vec<OwnedFd>) -> Self {
        Self {
            members,
            folders: Vec::new(),
            parent: 0,
        }
    }

    /// Enters: this process, and whatever it starts. System calls only.
    pub(super) fn enter(&self) -> io::Result<()> {
        for members in &self.members {
            enter(members.as_raw_fd())?;
        }
        Ok(())
    }

    /// Removes the group if nobody else will: Selvedge, whose child this process is,
    /// has ended. System calls only.
    pub(super) fn remove_if_orphaned(&self) {
        // SAFETY: valid paths.
        unsafe {
            if libc::getppid() != self.parent {
                for folder in &self.folders {
                    libc::rmdir(folder.as_ptr());
                }
            }
        }
    }
}

fn enter(members: RawFd) -> io::Result<()> {
    // "0" is whoever writes it.
    // SAFETY: a buffer in the program, with its size.
    match unsafe { libc::write(members, c"0".as_ptr().cast(), 1) } {
        1 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether a process can enter the group of a folder: a child of this one tries.
fn entered(folder: &Path) -> bool {
    let file = fs::OpenOptions::new()
        .write(true)
        .open(folder.join("cgroup.procs"));
    let Ok(file) = file else { return false };
    let members = file.as_raw_fd();
    // SAFETY: a fork whose copy makes one system call and ends; the child is waited for.
    unsafe {
        match libc::fork() {
            -1 => false,
            0 => libc::_exit(i32::from(enter(members).is_err())),
            child => {
                let mut status = 0;
                while libc::waitpid(child, &raw mut status, 0) == -1
                    && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
                {
                }
                libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
            }
        }
    }
}

/// Tries a folder: makes a group in it, looks at what is counted there, and whether it
/// may be entered.
/// Only where it is itself is anything switched on: what is above is others' too.
fn try_place(tree: &dyn Tree, kind: Kind, folder: &Path, is_own: bool) -> Option<Place> {
    let trial = folder.join(format!("{}trial", own_prefix()?));
    tree.make(&trial).ok()?;
    let counts = |name: &str| trial.join(name).exists();
    if kind == Kind::Unified && is_own && !counts("pids.max") {
        // Allowed where nobody is in it, and at the root of all.
        let _ = tree.set(&folder.join("cgroup.subtree_control"), "+pids +memory");
    }
    let place = Place {
        kind,
        folder: folder.to_owned(),
        holds_processes: counts("pids.max"),
        holds_memory: counts("memory.max"),
    };
    // Who enters leaves another one: between the two is the folder above both.
    let may_enter = [folder, &trial]
        .iter()
        .all(|folder| tree.may_write(&folder.join("cgroup.procs")));
    let is_of_use = (place.holds_processes || place.holds_memory) && may_enter;
    end(tree, &trial);
    is_of_use.then_some(place)
}

/// Ends what is in a group, and removes it.
fn end(tree: &dyn Tree, folder: &Path) {
    for _ in 0..REMOVE_TRIES_MAX {
        if tree.remove(folder).is_ok() || !folder.exists() {
            return;
        }
        // The older interface has none; there, whatever is in it ends with its world.
        let _ = tree.set(&folder.join("cgroup.kill"), "1");
        std::thread::sleep(REMOVE_PAUSE);
    }
}

/// The beginning of the names of this process's groups: its process namespace, its
/// number in there and when it began. None where that cannot be known.
fn own_prefix() -> Option<&'static str> {
    static OWN: OnceLock<Option<String>> = OnceLock::new();
    let own = OWN.get_or_init(|| {
        let pid = std::process::id();
        let (namespace, began) = (namespace()?, began(pid)?);
        Some(format!("{PREFIX}{namespace}-{pid}-{began}-"))
    });
    own.as_deref()
}

fn namespace() -> Option<u64> {
    let text = fs::read_link("/proc/self/ns/pid").ok()?;
    let text = text.to_string_lossy();
    text.trim_start_matches("pid:[")
        .trim_end_matches(']')
        .parse()
        .ok()
}

/// When a process began, in ticks since the machine did.
fn began(pid: u32) -> Option<u64> {
    // The name of the program, in brackets, may contain anything.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

/// Whether a group is of a process of this namespace that is gone. Others' are left
/// alone: nothing is known of them.
fn is_left_behind(name: &str) -> bool {
    let Some(rest) = name.strip_prefix(PREFIX) else {
        return false;
    };
    let mut numbers = rest.split('-').map(str::parse::<u64>);
    let (Some(Ok(space)), Some(Ok(pid)), Some(Ok(start))) =
        (numbers.next(), numbers.next(), numbers.next())
    else {
        return false;
    };
    let is_alive = u32::try_from(pid).is_ok_and(|pid| began(pid) == Some(start));
    namespace() == Some(space) && !is_alive
}

/// The number behind a word in a file of such lines.
fn count(file: &Path, word: &str) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    let found = lines.find(|(name, _)| *name == word);
    found
        .and_then(|(_, number)| number.trim().parse().ok())
        .unwrap_or(0)
}

/// The trees that this process is in: which controllers they are for (the unified one
/// says so itself), its own folder in them, and their top.
fn trees(own: &str, mounts: &str) -> Vec<(Kind, Vec<String>, PathBuf, PathBuf)> {
    let mut trees = Vec::new();
    let mounted: Vec<Mount> = mounts.lines().filter_map(Mount::read).collect();
    for line in own.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let kind = match controllers.is_empty() {
            true => Kind::Unified,
            false => Kind::Legacy,
        };
        let controllers: Vec<String> = controllers
            .split(',')
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect();
        let is_it = |mount: &&Mount| match kind {
            Kind::Unified => mount.kind == "cgroup2",
            Kind::Legacy => {
                mount.kind == "cgroup"
                    && controllers.iter().all(|name| mount.options.contains(name))
            }
        };
        if let Some(mount) = mounted.iter().find(is_it)
            && let Ok(below) = Path::new(path).strip_prefix(&mount.root)
        {
            let folder = mount.at.join(below);
            trees.push((kind, controllers, folder, mount.at.clone()));
        }
    }
    // The newer first: it can do more.
    trees.sort_by_key(|(kind, ..)| *kind == Kind::Legacy);
    trees
}

/// A line of `mountinfo`.
struct Mount {
    root: PathBuf,
    at: PathBuf,
    kind: String,
    options: Vec<String>,
}

impl Mount {
    fn read(line: &str) -> Option<Self> {
        let (first, second) = line.split_once(" - ")?;
        let mut first = first.split(' ').skip(3);
        let mut second = second.split(' ');
        Some(Self {
            root: first.next()?.into(),
            at: first.next()?.into(),
            kind: second.next()?.into(),
            options: second.nth(1)?.split(',').map(str::to_owned).collect(),
        })
    }
}

#[cfg(test)]
mod tests;

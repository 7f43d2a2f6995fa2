//! Groups in a made-up hierarchy, and in the kernel's own.

use super::*;

const MOUNTS: &str = "\
30 24 0:26 / AT/pids rw,relatime - cgroup cgroup rw,pids
31 24 0:27 / AT/memory rw,relatime - cgroup cgroup rw,memory
32 24 0:28 / AT/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate
33 24 0:29 / /home rw,relatime - ext4 /dev/sda rw
";

/// A folder that is no tree of the kernel's: what is looked for, and where.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new(files: &[&str]) -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        for file in files {
            let path = machine.0.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        machine
    }

    fn trees(&self, own: &str) -> Vec<(Kind, Vec<String>, PathBuf, PathBuf)> {
        let at = self.0.path().display().to_string();
        trees(own, &MOUNTS.replace("AT", &at))
    }
}

#[test]
fn the_own_folder_is_found_in_every_tree() {
    let machine = Machine::new(&[]);
    let own = "8:pids:/a\n4:memory:/a/b\n2:cpu:/\n0::/user.slice/app.scope\n";
    let found = machine.trees(own);
    let folders: Vec<_> = found
        .iter()
        .map(|(_, names, folder, _)| {
            let folder = folder.strip_prefix(machine.0.path()).unwrap();
            (names.join(","), folder.display().to_string())
        })
        .collect();
    let expected = [
        ("", "unified/user.slice/app.scope"),
        ("pids", "pids/a"),
        ("memory", "memory/a/b"),
    ];
    assert_eq!(
        folders,
        expected.map(|(name, folder)| (name.to_owned(), folder.to_owned()))
    );
}

#[test]
fn groups_of_others_and_of_the_living_are_left_alone() {
    let (space, own) = (namespace().unwrap(), std::process::id());
    let start = began(own).unwrap();
    for (name, expected) in [
        (format!("selvedge-{space}-{own}-{start}-3"), false),
        (format!("selvedge-{space}-{own}-{}-3", start + 1), true),
        (
            format!("selvedge-{}-{own}-{}-3", space + 1, start + 1),
            false,
        ),
        ("selvedge-x-1-2-3".to_owned(), false),
        ("user.slice".to_owned(), false),
    ] {
        assert_eq!(is_left_behind(&name), expected, "{name}");
    }
}

#[test]
fn bounds_are_written_where_each_generation_keeps_them() {
    let machine = Machine::new(&["two/x", "one/x"]);
    let resources = Resources {
        processes_max: 7,
        memory_bytes_max: Some(4096),
        ..Resources::default()
    };
    let place = |kind, folder: &str| Place {
        kind,
        folder: machine.0.path().join(folder),
        holds_processes: true,
        holds_memory: true,
    };
    let read = |path: &str| fs::read_to_string(machine.0.path().join(path)).unwrap();
    let unified = place(Kind::Unified, "two");
    unified.bound(&Kernel, &unified.folder, &resources).unwrap();
    assert_eq!(read("two/pids.max"), "7");
    assert_eq!(read("two/memory.max"), "4096");
    assert_eq!(read("two/memory.oom.group"), "1");
    let legacy = Place {
        holds_memory: false,
        ..place(Kind::Legacy, "one")
    };
    legacy.bound(&Kernel, &legacy.folder, &resources).unwrap();
    assert_eq!(read("one/pids.max"), "7");
    assert!(!machine.0.path().join("one/memory.max").exists());
    fs::write(
        machine.0.path().join("two/memory.events"),
        "oom 1\noom_kill 2\n",
    )
    .unwrap();
    assert_eq!(
        count(&machine.0.path().join("two/memory.events"), "oom_kill"),
        2
    );
}

#[test]
fn where_no_group_can_be_entered_there_is_none() {
    let machine = Machine::new(&["unified/a/x"]);
    let mounts = MOUNTS.replace("AT", &machine.0.path().display().to_string());
    let found = Places::find("0::/a\n", &mounts, &Kernel);
    assert_eq!(found, Places::default(), "a folder is no group");
    let left = fs::read_dir(machine.0.path().join("unified/a")).unwrap();
    let mut left = left.map(|entry| entry.unwrap().path());
    assert!(left.all(|path| path.is_file()), "and no trial is left");
    assert!(Cgroup::make_in(&Kernel, &found, &Resources::default()).is_none());
}

/// The real thing, where it can be had: as root, or where groups are delegated.
#[test]
fn a_group_holds_whoever_enters_it_and_is_ended_with_them() {
    let resources = Resources {
        processes_max: 12,
        memory_bytes_max: Some(64 << 20),
        ..Resources::default()
    };
    let Some(group) = Cgroup::make(&resources) else {
        eprintln!("no control groups here");
        return;
    };
    let run = |script: &str| {
        use std::os::unix::process::CommandExt;
        let entry = group.entry().unwrap();
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script]);
        // SAFETY: one system call.
        unsafe { command.pre_exec(move || entry.enter()) };
        command.stderr(std::process::Stdio::null());
        command.spawn().unwrap()
    };
    if group.holds_memory() {
        let mut hog = run("head -c 200000000 /dev/zero | tail");
        let _ = hog.wait();
        assert!(group.ran_out_of_memory());
    }
    let started = "n=0; while [ $n -lt 40 ]; do sleep 60 & n=$((n + 1)); done; wait";
    let mut crowd = run(started);
    let members = |folder: &Path| {
        let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
        text.lines().count()
    };
    let (kind, folder) = group.folders[0].clone();
    // Refused forks end the shell, or leave it waiting: either way there are no more.
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while members(&folder) < 11 && std::time::Instant::now() < until {
        std::thread::yield_now();
    }
    assert!(
        (11..=12).contains(&members(&folder)),
        "{}",
        members(&folder)
    );
    if kind == Kind::Unified {
        end(&Kernel, &folder);
        assert!(!folder.exists(), "killed as a whole");
    } else {
        let members = fs::read_to_string(folder.join("cgroup.procs")).unwrap();
        let _ = std::process::Command::new("kill")
            .arg("-9")
            .args(members.lines())
            .status();
    }
    let _ = crowd.wait();
    while folder.exists() && fs::remove_dir(&folder).is_err() {
        assert!(std::time::Instant::now() < until, "it is not empty");
    }
}

/// Folders that behave as the newer generation of the interface does.
struct Fake {
    machine: Machine,
    /// Whose folders are the user's.
    delegated: PathBuf,
}

const FILES: [(&str, &str); 2] = [("pids", "pids.max"), ("memory", "memory.max")];

impl Fake {
    /// A tree in which `delegated` is the user's, with all that is below it.
    fn new(delegated: &str) -> Self {
        let machine = Machine::new(&[]);
        let root = machine.0.path().join("unified");
        fs::create_dir(&root).unwrap();
        let fake = Self {
            delegated: root.join(delegated),
            machine,
        };
        fake.furnish(&root, "pids memory");
        fake
    }

    fn at(&self, folder: &str) -> PathBuf {
        self.machine.0.path().join("unified").join(folder)
    }

    /// A group in which those below it are counted by these controllers.
    fn group(&self, folder: &str, below: &str, members: &str) {
        let folder = self.at(folder);
        self.make(&folder).unwrap();
        fs::write(folder.join("cgroup.subtree_control"), below).unwrap();
        fs::write(folder.join("cgroup.procs"), members).unwrap();
    }

    fn furnish(&self, folder: &Path, controllers: &str) {
        fs::write(folder.join("cgroup.controllers"), controllers).unwrap();
        for name in ["cgroup.procs", "cgroup.subtree_control"] {
            fs::write(folder.join(name), "").unwrap();
        }
        self.count(folder, controllers);
    }

    fn count(&self, folder: &Path, controllers: &str) {
        for (name, file) in FILES {
            if controllers.split(' ').any(|controller| controller == name) {
                fs::write(folder.join(file), "max").unwrap();
            }
        }
    }

    fn places(&self, own: &str) -> Places {
        let at = self.machine.0.path().display().to_string();
        let found = Places::find(&format!("0::/{own}\n"), &MOUNTS.replace("AT", &at), self);
        let mut folders = vec![self.at("")];
        while let Some(folder) = folders.pop() {
            let name = folder.file_name().unwrap().to_string_lossy().into_owned();
            assert!(!name.starts_with(PREFIX), "a trial is left: {name}");
            let below = fs::read_dir(folder)
                .unwrap()
                .map(|entry| entry.unwrap().path());
            folders.extend(below.filter(|path| path.is_dir()));
        }
        found
    }
}

impl Tree for Fake {
    fn make(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir(folder)?;
        let above = folder.parent().unwrap().join("cgroup.subtree_control");
        self.furnish(folder, &fs::read_to_string(above)?);
        Ok(())
    }

    fn set(&self, file: &Path, value: &str) -> io::Result<()> {
        if file.file_name().unwrap() != "cgroup.subtree_control" {
            return fs::write(file, value);
        }
        let folder = file.parent().unwrap();
        if !fs::read_to_string(folder.join("cgroup.procs"))?.is_empty() {
            return Err(io::Error::from_raw_os_error(libc::EBUSY));
        }
        let wanted = value.replace('+', "");
        let known = fs::read_to_string(folder.join("cgroup.controllers"))?;
        if !wanted
            .split(' ')
            .all(|name| known.split(' ').any(|one| one == name))
        {
            return Err(io::Error::from_raw_os_error(libc::ENOENT));
        }
        for entry in fs::read_dir(folder)?
            .flatten()
            .filter(|entry| entry.path().is_dir())
        {
            self.count(&entry.path(), &wanted);
        }
        fs::write(file, wanted)
    }

    fn remove(&self, folder: &Path) -> io::Result<()> {
        fs::remove_dir_all(folder)
    }

    fn may_write(&self, file: &Path) -> bool {
        file.starts_with(&self.delegated)
    }
}

const SLICE: &str = "user.slice/user@1000.service/app.slice";
const SCOPE: &str = "user.slice/user@1000.service/app.slice/run.scope";

fn of_a_user(delegated: &str, below: &str) -> Fake {
    let fake = Fake::new(delegated);
    fs::write(fake.at("cgroup.subtree_control"), "pids memory").unwrap();
    fake.group("user.slice", "pids memory", "");
    fake.group("user.slice/user@1000.service", "pids memory", "");
    fake.group(SLICE, below, "");
    fake.group(SCOPE, "", "4711\n");
    fake
}

/// A group with members counts nobody below it, so those of commands stand beside it.
#[test]
fn a_session_of_the_user_makes_its_groups_beside_its_own() {
    let fake = of_a_user("user.slice/user@1000.service", "pids memory");
    let found = fake.places(SCOPE);
    let [place] = &found.0[..] else {
        panic!("{found:?}");
    };
    assert_eq!(place.folder, fake.at(SLICE));
    assert!(place.holds_processes && place.holds_memory);
    let resources = Resources {
        processes_max: 9,
        memory_bytes_max: Some(8192),
        ..Resources::default()
    };
    let group = Cgroup::make_in(&fake, &found, &resources).unwrap();
    let folder = group.folders[0].1.clone();
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    assert_eq!(folder.parent().unwrap(), fake.at(SLICE));
    assert_eq!(
        (read("pids.max"), read("memory.max")),
        ("9".into(), "8192".into())
    );
    assert_eq!(read("memory.oom.group"), "1", "half of a build is no build");
    assert!(group.holds_memory() && !group.ran_out_of_memory());
    fs::write(folder.join("memory.events"), "low 0\noom_kill 3\n").unwrap();
    assert!(group.ran_out_of_memory());
    assert_eq!(group.entry().unwrap().members().len(), 1);
}

#[test]
fn where_no_group_is_the_user_s_there_is_none_and_nothing_is_left() {
    let fake = of_a_user("elsewhere", "pids memory");
    assert_eq!(fake.places(SCOPE), Places::default());
    // Who may write there but not to what is above both may not move anybody.
    let fake = of_a_user(SCOPE, "pids memory");
    assert_eq!(fake.places(SCOPE), Places::default());
}

#[test]
fn what_is_above_is_not_switched_on_since_it_is_others_too() {
    let fake = of_a_user("user.slice/user@1000.service", "");
    let found = fake.places(SCOPE);
    let folders: Vec<_> = found.0.iter().map(|place| place.folder.clone()).collect();
    assert_eq!(folders, [fake.at("user.slice/user@1000.service")]);
    let below = fs::read_to_string(fake.at(SLICE).join("cgroup.subtree_control")).unwrap();
    assert_eq!(below, "");
}

#[test]
fn an_own_group_that_is_empty_is_divided() {
    let fake = Fake::new("");
    fs::write(fake.at("cgroup.subtree_control"), "pids memory").unwrap();
    fake.group("box", "", "");
    let found = fake.places("box");
    assert_eq!(found.0[0].folder, fake.at("box"));
    let below = fs::read_to_string(fake.at("box/cgroup.subtree_control")).unwrap();
    assert_eq!(below, "pids memory");
}

#[test]
fn of_two_generations_each_counts_what_the_newer_cannot() {
    let fake = of_a_user("user.slice/user@1000.service", "memory");
    for group in ["user.slice/user@1000.service", "user.slice", ""] {
        fs::write(fake.at(group).join("cgroup.subtree_control"), "memory").unwrap();
    }
    let older = fake.machine.0.path().join("pids");
    fs::create_dir(&older).unwrap();
    fake.furnish(&older, "pids");
    fs::write(older.join("cgroup.subtree_control"), "pids").unwrap();
    let fake = Fake {
        delegated: fake.machine.0.path().to_owned(),
        machine: fake.machine,
    };
    let at = fake.machine.0.path().display().to_string();
    let own = format!("3:pids:/\n0::/{SCOPE}\n");
    let found = Places::find(&own, &MOUNTS.replace("AT", &at), &fake);
    let holds: Vec<_> = found
        .0
        .iter()
        .map(|place| (place.kind, place.holds_processes, place.holds_memory))
        .collect();
    assert_eq!(
        holds,
        [(Kind::Unified, false, true), (Kind::Legacy, true, false)]
    );
}

/// The newer generation in the real kernel, in a view of the files that only this test has.
/// What it counts may belong to the older one on this machine; entering, ending as a whole
/// and removing do not depend on that.
#[test]
fn a_group_of_the_newer_generation_is_entered_and_ended_as_a_whole() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can mount");
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let at = CString::new(scratch.path().as_os_str().as_bytes()).unwrap();
    // SAFETY: valid texts; the view is this thread's own from the first call on.
    unsafe {
        assert_eq!(libc::unshare(libc::CLONE_NEWNS), 0, "a view of its own");
        let private = libc::MS_REC | libc::MS_PRIVATE;
        let none = std::ptr::null();
        assert_eq!(
            libc::mount(c"none".as_ptr(), c"/".as_ptr(), none, private, none.cast()),
            0
        );
        let kind = c"cgroup2".as_ptr();
        let mounted = libc::mount(c"none".as_ptr(), at.as_ptr(), kind, 0, none.cast());
        assert_eq!(mounted, 0, "{}", io::Error::last_os_error());
    }
    let place = Place {
        kind: Kind::Unified,
        folder: scratch.path().to_owned(),
        holds_processes: scratch.path().join("pids.max").exists(),
        holds_memory: false,
    };
    let places = Places(vec![place]);
    let group = Cgroup::make_in(&Kernel, &places, &Resources::default()).unwrap();
    let folder = group.folders[0].1.clone();
    let entry = group.entry().unwrap();
    let mut command = std::process::Command::new("sh");
    command.args([
        "-c",
        "setsid sleep 600 & setsid sh -c 'sleep 600 & wait' & sleep 600",
    ]);
    // SAFETY: one system call.
    unsafe {
        use std::os::unix::process::CommandExt;
        command.pre_exec(move || entry.enter());
    }
    let mut child = command.spawn().unwrap();
    let members = || {
        let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
        text.lines().count()
    };
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while members() < 5 && std::time::Instant::now() < until {
        std::thread::yield_now();
    }
    assert_eq!(members(), 5, "also those that left their session");
    // As if whoever made it were gone: it is swept with everybody in it.
    let dead = own_prefix()
        .unwrap()
        .rsplitn(3, '-')
        .nth(2)
        .unwrap()
        .to_owned()
        + "-1-7";
    let left = scratch.path().join(&dead);
    fs::create_dir(&left).unwrap();
    fs::write(left.join("cgroup.procs"), child.id().to_string()).unwrap();
    assert!(is_left_behind(&dead));
    places.sweep(&Kernel);
    assert!(!left.exists() && folder.exists());
    assert!(!child.wait().unwrap().success(), "it was killed");
    end(&Kernel, &folder);
    assert!(!folder.exists() && members() == 0);
}

//! From what a command may reach to the steps that build its view of the files.
//!
//! What is to stay visible is taken hold of first, then folders are covered, and what
//! was taken hold of is put back. Then everything is made read-only at once, and the
//! few places that may be written are opened again. So nothing that was forgotten can
//! be written.

use std::path::{Path, PathBuf};

use super::spec::Sandbox;
use super::surroundings::Surroundings;

/// How a command's view of the files is built.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan {
    /// What is done, in this order.
    pub(super) steps: Vec<Step>,
    /// What may be written in the end.
    pub(super) writable: Vec<PathBuf>,
}

/// One step.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// Takes hold of what is there now. Each has a number, from 0.
    Hold(PathBuf),
    /// Shows an empty folder instead.
    Cover(PathBuf),
    /// Makes a folder to put something on, unless there is one.
    Folder(PathBuf),
    /// Makes a file to put something on, unless there is one.
    File(PathBuf),
    /// Makes a link, unless there is something.
    Link {
        /// Where.
        at: PathBuf,
        /// Where to.
        target: PathBuf,
    },
    /// Puts back what was taken hold of.
    Place {
        /// Its number.
        held: usize,
        /// Where it goes.
        at: PathBuf,
    },
    /// Makes everything read-only.
    Seal,
    /// Lets a place be written again; not what was put on top of it.
    Open(PathBuf),
    /// Shows the command's own processes, and no others.
    Processes,
    /// Lets it make terminals, and see no others.
    Terminals(PathBuf),
}

// What programs expect of `/dev`.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("/dev/ptmx", "pts/ptmx"),
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
];
const SHARED_MEMORY: &str = "/dev/shm";
const TERMINALS: &str = "/dev/pts";
/// Where every command has files of its own.
pub(crate) const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

impl Plan {
    /// How `workspace` is shown within `sandbox`. `is_folder` looks at the machine.
    pub(super) fn new(
        sandbox: &Sandbox,
        workspace: &Path,
        around: &Surroundings,
        is_folder: impl Fn(&Path) -> bool,
    ) -> Self {
        let mut writable = vec![workspace];
        writable.extend(sandbox.writable.iter().map(PathBuf::as_path));
        // The deeper a place, the more exactly it is meant: it goes on top.
        let mut shown: Vec<&Path> = around.kept.iter().map(PathBuf::as_path).collect();
        shown.extend(&writable);
        shown.extend(around.protected.iter().map(PathBuf::as_path));
        shown.sort_by_key(|path| path.components().count());

        let mut planner = Planner {
            around,
            steps: Vec::new(),
            held: Vec::new(),
        };
        if let Some(temp) = &sandbox.temp {
            planner.hold_private(temp);
        }
        for path in &shown {
            planner.hold(path, path, is_folder(path));
        }
        for path in &around.masked {
            planner.hold(Path::new("/dev/null"), path, false);
        }
        for name in DEVICES {
            let path = Path::new("/dev").join(name);
            planner.hold(&path, &path, false);
        }
        // What is hidden inside of a place that is shown is covered after it is shown.
        let is_inner = |path: &&PathBuf| {
            let mut above = path.ancestors().skip(1);
            above.any(|parent| shown.contains(&parent))
        };
        let (inner, outer): (Vec<_>, Vec<_>) = around.covered.iter().partition(is_inner);
        planner.cover(&outer);
        planner.cover(&[&PathBuf::from("/dev")]);
        planner.place();
        planner.cover(&inner);
        planner.links();
        planner.seal(&writable)
    }
}

struct Planner<'a> {
    around: &'a Surroundings,
    steps: Vec<Step>,
    /// Where what is held goes, and whether it is a folder.
    held: Vec<(PathBuf, bool)>,
}

impl Planner<'_> {
    /// The private folders for temporary files and for the home.
    fn hold_private(&mut self, temp: &Path) {
        for at in self.temporary() {
            self.hold(&temp.join("tmp"), &at, true);
        }
        if let Some(home) = &self.around.home {
            self.hold(&temp.join("home"), home, true);
        }
    }

    fn hold(&mut self, from: &Path, at: &Path, is_folder: bool) {
        self.held.push((at.into(), is_folder));
        self.steps.push(Step::Hold(from.into()));
    }

    fn cover(&mut self, folders: &[&PathBuf]) {
        for folder in folders {
            self.folders(folder.ancestors());
            self.steps.push(Step::Cover((*folder).clone()));
        }
    }

    fn place(&mut self) {
        for (held, (at, is_folder)) in std::mem::take(&mut self.held).into_iter().enumerate() {
            if is_folder {
                self.folders(at.ancestors());
            } else {
                self.folders(at.ancestors().skip(1));
                if self.is_covered(&at) {
                    self.steps.push(Step::File(at.clone()));
                }
            }
            self.steps.push(Step::Place { held, at });
        }
    }

    fn links(&mut self) {
        for (at, target) in &self.around.links {
            self.folders(at.ancestors().skip(1));
            self.link(at, target);
        }
        for (at, target) in DEVICE_LINKS {
            self.link(Path::new(at), Path::new(target));
        }
        self.steps.push(Step::Folder(TERMINALS.into()));
        self.steps.push(Step::Folder(SHARED_MEMORY.into()));
        self.steps.push(Step::Cover(SHARED_MEMORY.into()));
    }

    fn link(&mut self, at: &Path, target: &Path) {
        self.steps.push(Step::Link {
            at: at.into(),
            target: target.into(),
        });
    }

    fn seal(mut self, writable: &[&Path]) -> Plan {
        self.steps.push(Step::Seal);
        let mut open = vec![PathBuf::from(SHARED_MEMORY)];
        open.extend(self.temporary());
        open.extend(self.around.home.clone());
        open.extend(writable.iter().map(|path| path.to_path_buf()));
        self.steps.extend(open.iter().cloned().map(Step::Open));
        self.steps.push(Step::Processes);
        self.steps.push(Step::Terminals(TERMINALS.into()));
        Plan {
            steps: self.steps,
            writable: open,
        }
    }

    fn temporary(&self) -> Vec<PathBuf> {
        let paths = TEMPORARY.iter().map(PathBuf::from);
        paths
            .filter(|path| self.around.covered.contains(path))
            .collect()
    }

    /// Makes folders, outermost first. Only those below a covered one can be missing.
    fn folders<'p>(&mut self, paths: impl Iterator<Item = &'p Path>) {
        let mut missing: Vec<&Path> = paths.filter(|path| self.is_covered(path)).collect();
        missing.reverse();
        let steps = missing.into_iter().map(|path| Step::Folder(path.into()));
        self.steps.extend(steps);
    }

    /// Whether a path is below a covered folder, and may have to be made again.
    fn is_covered(&self, path: &Path) -> bool {
        let mut above = path.ancestors().skip(1);
        path.starts_with("/dev") || above.any(|parent| self.around.covered.contains(parent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn set(paths: &[&str]) -> BTreeSet<PathBuf> {
        paths.iter().map(PathBuf::from).collect()
    }

    fn plan(sandbox: &Sandbox, workspace: &str, around: &Surroundings) -> Plan {
        Plan::new(sandbox, Path::new(workspace), around, |_| true)
    }

    fn at(plan: &Plan, is_it: impl Fn(&Step) -> bool) -> usize {
        plan.steps
            .iter()
            .rposition(is_it)
            .expect("there is such a step")
    }

    fn placed(plan: &Plan, path: &str) -> usize {
        at(
            plan,
            |s| matches!(s, Step::Place { at, .. } if at == Path::new(path)),
        )
    }

    fn covered(plan: &Plan, path: &str) -> usize {
        at(plan, |step| *step == Step::Cover(path.into()))
    }

    #[test]
    fn the_deeper_place_goes_on_top() {
        let around = Surroundings {
            home: Some("/home/u".into()),
            covered: set(&["/home", "/home/u", "/tmp"]),
            kept: set(&["/home/u/.cargo", "/home/u/repo"]),
            protected: set(&["/home/u/repo/app/.git"]),
            ..Surroundings::default()
        };
        let sandbox = Sandbox {
            temp: Some("/data/t".into()),
            ..Sandbox::default()
        };
        let plan = plan(&sandbox, "/home/u/repo/app", &around);
        let order = [
            covered(&plan, "/home/u"),
            placed(&plan, "/home/u"),
            placed(&plan, "/home/u/repo"),
            placed(&plan, "/home/u/repo/app"),
            placed(&plan, "/home/u/repo/app/.git"),
            at(&plan, |step| *step == Step::Seal),
            at(&plan, |step| *step == Step::Open("/home/u/repo/app".into())),
        ];
        assert!(order.is_sorted(), "{order:?} of {:#?}", plan.steps);
    }

    #[test]
    fn nothing_is_opened_but_what_was_given() {
        let around = Surroundings {
            home: Some("/home/u".into()),
            covered: set(&["/home", "/home/u", "/tmp"]),
            kept: set(&["/home/u/.cargo"]),
            ..Surroundings::default()
        };
        let plan = plan(&Sandbox::default(), "/srv/app", &around);
        let writable = ["/dev/shm", "/tmp", "/home/u", "/srv/app"].map(PathBuf::from);
        assert_eq!(plan.writable, writable);
        let sealed = at(&plan, |step| *step == Step::Seal);
        let opened = plan.steps[sealed..]
            .iter()
            .filter(|s| matches!(s, Step::Open(_)));
        assert_eq!(opened.count(), writable.len());
    }

    #[test]
    fn what_is_hidden_inside_of_the_workspace_is_covered_after_it() {
        let around = Surroundings {
            covered: set(&["/srv/app/.data"]),
            ..Surroundings::default()
        };
        let plan = plan(&Sandbox::default(), "/srv/app", &around);
        assert!(placed(&plan, "/srv/app") < covered(&plan, "/srv/app/.data"));
        let around = Surroundings {
            covered: set(&["/srv/app"]),
            ..Surroundings::default()
        };
        let plan = super::tests::plan(&Sandbox::default(), "/srv/app", &around);
        assert!(placed(&plan, "/srv/app") > covered(&plan, "/srv/app"));
    }
}

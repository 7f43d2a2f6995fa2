//! A fence that is ready to be put up, and why it could not be.

use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::path::Path;

use libc::{c_long, pid_t};

use super::confine::{Confinement, Confines};
use super::filter::Sockets;
use super::landlock;
use super::mounts::Mounts;
use super::namespaces::Namespaces;
use super::plan::Plan;
use super::spec::{Network, Sandbox};
use super::surroundings::survey;

/// Everything that is needed to fence a command in, made before the fork.
pub(crate) struct Prepared {
    namespaces: Namespaces,
    mounts: Mounts,
    confinement: Confinement,
}

/// A part of putting up the fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stage {
    Namespaces = 1,
    Identity,
    Mounts,
    Files,
    Writable,
    Loopback,
    Directory,
    Limits,
    Capabilities,
    Landlock,
    Filter,
    Bubblewrap,
}

/// A part that failed, and how. Made without memory.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) stage: Stage,
    pub(crate) error: io::Error,
}

/// What the fence is to be, whoever puts it up.
pub(super) struct Outline {
    pub(super) plan: Plan,
    pub(super) confines: Confines,
}

impl Outline {
    /// Looks around, and plans for something that runs in `directory`, which is in
    /// `workspace`.
    pub(super) fn new(
        sandbox: &Sandbox,
        workspace: &Path,
        directory: &Path,
    ) -> Result<Self, Refused> {
        let files = Stage::Files.refused();
        if let Some(temp) = &sandbox.temp {
            make_private(temp).map_err(files)?;
        }
        let around = survey(sandbox, workspace, |name| std::env::var_os(name));
        if let Some(link) = around.link_in_the_way() {
            let why = format!("`{}` is a link and cannot be protected", link.display());
            return Err(files(io::Error::other(why)));
        }
        let plan = Plan::new(sandbox, workspace, &around, Path::is_dir);
        // In a network of its own there are no sockets but its own. In the machine's
        // there are others', some of which only newer kernels keep out.
        let sockets = match sandbox.network == Network::On && !landlock::has_scopes() {
            true => Sockets::Internet,
            false => Sockets::All,
        };
        let confines = Confines {
            directory: directory.into(),
            resources: sandbox.resources,
            writable: plan.writable.iter().map(Into::into).collect(),
            sockets,
        };
        Ok(Self { plan, confines })
    }
}

impl Prepared {
    /// Prepares to run something in `directory`, which is in `workspace`. The end of
    /// the way out, if there is one, is handed over through `way_out`.
    pub(crate) fn new(
        sandbox: &Sandbox,
        workspace: &Path,
        directory: &Path,
        way_out: Option<OwnedFd>,
    ) -> Result<Self, Refused> {
        let Outline { plan, confines } = Outline::new(sandbox, workspace, directory)?;
        Ok(Self {
            confinement: confines.prepare()?,
            namespaces: Namespaces::new(&sandbox.network, way_out)
                .map_err(Stage::Namespaces.refused())?,
            mounts: Mounts::new(&plan, sandbox.resources.memory_bytes())
                .map_err(Stage::Files.refused())?,
        })
    }

    /// Forks into a world of its own: 0 is returned in there.
    pub(crate) fn split(&self) -> Result<pid_t, Refused> {
        self.namespaces.split()
    }

    /// Builds that world, from the inside.
    pub(crate) fn build(&mut self) -> Result<(), Refused> {
        self.namespaces.settle()?;
        self.mounts.build()
    }

    /// Gives up what a command must not have; see [`Confinement::enter`].
    pub(crate) fn enter(&self, directory: RawFd) -> Result<(), Refused> {
        self.confinement.enter(directory)
    }
}

impl Stage {
    /// Turns what went wrong into a refusal.
    pub(super) fn refused(self) -> impl Fn(io::Error) -> Refused + Copy {
        move |error| Refused { stage: self, error }
    }

    /// The stage with this number.
    pub(crate) fn from_number(number: i32) -> Option<Self> {
        let all = [
            Self::Namespaces,
            Self::Identity,
            Self::Mounts,
            Self::Files,
            Self::Writable,
            Self::Loopback,
            Self::Directory,
            Self::Limits,
            Self::Capabilities,
            Self::Landlock,
            Self::Filter,
            Self::Bubblewrap,
        ];
        all.into_iter().find(|stage| *stage as i32 == number)
    }

    /// What could not be done.
    fn words(self) -> &'static str {
        match self {
            Self::Namespaces => "making namespaces",
            Self::Identity => "keeping the user's identity in a namespace",
            Self::Mounts => "building a view of the file system",
            Self::Files => "showing the files that commands need",
            Self::Writable => "letting the workspace be written",
            Self::Loopback => "making a network of its own",
            Self::Directory => "going to the directory",
            Self::Limits => "limiting what a command may use",
            Self::Capabilities => "giving up privileges",
            Self::Landlock => "restricting access with Landlock",
            Self::Filter => "filtering system calls",
            Self::Bubblewrap => "letting bubblewrap put it up",
        }
    }

    /// What a person can do about it.
    fn way_out(self) -> &'static str {
        match self {
            Self::Namespaces | Self::Identity | Self::Mounts | Self::Loopback => {
                "let this user make namespaces (sysctl `kernel.unprivileged_userns_clone=1`, \
                 `user.max_user_namespaces`, `kernel.apparmor_restrict_unprivileged_userns=0`; in \
                 a container, one that may), install bubblewrap where that may"
            }
            Self::Bubblewrap => {
                "install or allow `bwrap` for the whole machine, owned by root and writable by \
                 nobody else, or let this user make namespaces"
            }
            Self::Landlock => "use Linux 5.19 or later with Landlock enabled",
            Self::Filter => "use a kernel with seccomp filters",
            Self::Files | Self::Writable | Self::Directory => {
                "check that the workspace and its parents can be read"
            }
            Self::Limits | Self::Capabilities => "run Selvedge as an ordinary user",
        }
    }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the sandbox cannot be put up, and without it nothing was run: {}; a person can {}, \
             or choose to go without it: `sandbox.mode = \"off\"` in their own configuration, or \
             `--sandbox off`",
            self.cause(),
            self.stage.way_out()
        )
    }
}

impl std::error::Error for Refused {}

impl From<Refused> for io::Error {
    fn from(refused: Refused) -> Self {
        Self::new(refused.error.kind(), refused)
    }
}

impl Refused {
    /// What could not be done, and why.
    pub(super) fn cause(&self) -> String {
        format!("{} failed ({})", self.stage.words(), self.error)
    }

    /// The refusal that an error was made of.
    pub(crate) fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

impl Stage {
    /// Whether this is what a machine grants to some programs and not to others.
    pub(super) fn is_anothers(self) -> bool {
        matches!(
            self,
            Self::Namespaces | Self::Identity | Self::Mounts | Self::Loopback
        )
    }
}

/// What a system call returned, or why it failed. Needs no memory.
pub(super) fn done(result: c_long) -> io::Result<()> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Makes the folders that stand for `/tmp` and the home.
fn make_private(temp: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(temp.join("tmp"))?;
    builder.create(temp.join("home"))
}

//! What of this machine a command must see, and what it must not.
//!
//! The system's own folders stay as they are, read-only. Folders that hold people's
//! things are shown empty: homes, temporary files, and `/run`, where the sockets of
//! agents, buses and daemons are. Of a home the folders of tools come back, read-only,
//! without the credentials that lie among them.
//!
//! A socket in the file system leads to whoever listens there, whatever network one is in
//! and however read-only the folder is. So those of this machine on which somebody listens
//! now are shown empty too.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::spec::{Network, Sandbox};

/// What to do with the places of this machine. Every path is absolute and exists.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Surroundings {
    /// The user's home.
    pub(super) home: Option<PathBuf>,
    /// Folders that are shown empty.
    pub(super) covered: BTreeSet<PathBuf>,
    /// What is shown of them nevertheless, read-only.
    pub(super) kept: BTreeSet<PathBuf>,
    /// Links that are shown of them, and where they lead.
    pub(super) links: BTreeSet<(PathBuf, PathBuf)>,
    /// Files that are shown empty.
    pub(super) masked: BTreeSet<PathBuf>,
    /// What stays read-only inside of a folder that may be written.
    pub(super) protected: BTreeSet<PathBuf>,
}

/// The folders of the workspace that commands do not write, whether they exist or not:
/// what is in them decides over later commands.
pub(super) const PROTECTED_FOLDERS: [&str; 1] = [".selvedge"];

const COVERED: [&str; 6] = ["/home", "/root", "/tmp", "/var/tmp", "/run", "/var/run"];

// Parts of systems that keep their programs there.
const KEPT: [&str; 4] = [
    "/run/current-system",
    "/run/booted-system",
    "/run/opengl-driver",
    "/home/linuxbrew",
];

// Without these, a machine whose resolver is systemd's finds no host.
const KEPT_FOR_NETWORK: [&str; 3] = [
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager",
];

// Where tools install themselves, and what they have fetched.
const KEPT_OF_HOME: [&str; 54] = [
    ".asdf",
    ".bun",
    ".cabal",
    ".cache/go-build",
    ".cache/ms-playwright",
    ".cache/pip",
    ".cache/uv",
    ".cargo",
    ".conda",
    ".config/git",
    ".config/pip",
    ".deno",
    ".dotnet",
    ".editorconfig",
    ".elan",
    ".fnm",
    ".foundry",
    ".gem",
    ".ghcup",
    ".gitconfig",
    ".go",
    ".goenv",
    ".gradle",
    ".ivy2",
    ".jenv",
    ".julia",
    ".juliaup",
    ".local/bin",
    ".local/lib",
    ".local/pipx",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pipx",
    ".local/share/pnpm",
    ".local/share/uv",
    ".m2",
    ".mise",
    ".nix-profile",
    ".npm-global",
    ".nuget",
    ".nvm",
    ".opam",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".rvm",
    ".sbt",
    ".sdkman",
    ".stack",
    ".tool-versions",
    ".volta",
    ".yarn",
    "go",
    "miniconda3",
];

// Credentials that lie among them.
const MASKED_OF_HOME: [&str; 11] = [
    ".bundle/config",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/git/credentials",
    ".config/pip/pip.conf",
    ".gem/credentials",
    ".gradle/gradle.properties",
    ".m2/settings-security.xml",
    ".m2/settings.xml",
    ".nuget/NuGet/NuGet.Config",
    ".sbt/.credentials",
];

// What is hidden even from somebody whose workspace is the whole home.
const SECRETS_OF_HOME: [&str; 16] = [
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/gh",
    ".config/op",
    ".docker",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".local/share/keyrings",
    ".mozilla",
    ".netrc",
    ".npmrc",
    ".password-store",
    ".pypirc",
    ".ssh",
];

// Readable by root, who may be the user.
const MASKED: [&str; 6] = [
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/sudoers",
    "/etc/krb5.keytab",
];

/// Looks around. `variable` reads Selvedge's own environment.
pub(super) fn survey(
    sandbox: &Sandbox,
    workspace: &Path,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Surroundings {
    let home = variable("HOME").map(PathBuf::from);
    let home = home.filter(|home| home.is_absolute() && home.parent().is_some());
    let mut found = Surroundings::default();
    COVERED.iter().for_each(|path| found.cover(Path::new(path)));
    KEPT.iter().for_each(|path| found.keep(Path::new(path)));
    if sandbox.network == Network::On {
        KEPT_FOR_NETWORK
            .iter()
            .for_each(|p| found.keep(Path::new(p)));
    }
    MASKED.iter().for_each(|path| found.mask(Path::new(path)));
    if let Some(home) = home {
        found.survey_home(&home, workspace);
    }
    let path = variable("PATH").unwrap_or_default();
    for folder in std::env::split_paths(&path) {
        found.keep_tools(&folder, workspace);
    }
    found.survey_repository(workspace);
    sandbox.readable.iter().for_each(|path| found.keep(path));
    for path in &sandbox.hidden {
        found.hide(path);
    }
    for name in ["SSH_AUTH_SOCK", "GPG_AGENT_INFO", "DOCKER_HOST"] {
        let value = variable(name).unwrap_or_default();
        let path = value.to_string_lossy().replace("unix://", "");
        found.mask(Path::new(path.split(':').next().unwrap_or_default()));
    }
    let sockets = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    for socket in listening(&sockets).filter(|_| sandbox.network != Network::On) {
        let mut shown = found.kept.iter().chain(&sandbox.writable);
        let is_shown = socket.starts_with(workspace) || shown.any(|path| socket.starts_with(path));
        if is_shown || !found.is_covered(socket) {
            found.mask(socket);
        }
    }
    for name in PROTECTED_FOLDERS {
        found.protect(&workspace.join(name));
    }
    found
}

impl Surroundings {
    fn survey_home(&mut self, home: &Path, workspace: &Path) {
        let Ok(real) = home.canonicalize() else {
            return;
        };
        self.cover(&real);
        self.keep_link(home);
        for name in KEPT_OF_HOME {
            self.keep(&real.join(name));
        }
        for name in MASKED_OF_HOME {
            self.mask(&real.join(name));
        }
        if real.starts_with(workspace) {
            for name in SECRETS_OF_HOME {
                self.hide(&real.join(name));
            }
        }
        self.home = Some(real);
    }

    /// Keeps what a folder of the search path belongs to: `bin` is full of links into
    /// its neighbours.
    fn keep_tools(&mut self, folder: &Path, workspace: &Path) {
        let Ok(folder) = folder.canonicalize() else {
            return;
        };
        if !self.is_covered(&folder) || folder.starts_with(workspace) {
            return;
        }
        let whole = folder.parent().filter(|parent| {
            let is_bin = folder.file_name().is_some_and(|name| name == "bin");
            let is_more_than_tools = self.covered.contains(*parent)
                || parent.file_name().is_some_and(|name| name == ".local");
            is_bin && !is_more_than_tools
        });
        self.keep(whole.unwrap_or(&folder));
    }

    /// The repository that the workspace is, or is a part of: git must be able to read
    /// all of it. Its own folder is not written by commands.
    fn survey_repository(&mut self, workspace: &Path) {
        let Some(top) = workspace
            .ancestors()
            .find(|folder| folder.join(".git").exists())
        else {
            return;
        };
        let git = top.join(".git");
        match top == workspace {
            true => self.protect(&git),
            false => self.keep(top),
        }
        for folder in linked_repository(&git) {
            match folder.starts_with(workspace) {
                true => self.protect(&folder),
                false => self.keep(&folder),
            }
        }
    }

    /// A protected place that cannot be protected: a link can be replaced where it
    /// stands, whatever it leads to.
    pub(super) fn link_in_the_way(&self) -> Option<&Path> {
        let mut protected = self.protected.iter().map(PathBuf::as_path);
        protected.find(|path| path.is_symlink())
    }

    fn cover(&mut self, path: &Path) {
        if let Ok(path) = path.canonicalize()
            && path.is_dir()
        {
            self.covered.insert(path);
        }
    }

    fn keep(&mut self, path: &Path) {
        self.keep_link(path);
        if let Ok(path) = path.canonicalize()
            && self.is_covered(&path)
        {
            self.kept.insert(path);
        }
    }

    fn keep_link(&mut self, path: &Path) {
        if let Ok(target) = path.read_link()
            && self.is_covered(path)
        {
            self.links.insert((path.to_owned(), target));
        }
    }

    fn mask(&mut self, path: &Path) {
        if let Ok(path) = path.canonicalize()
            && !path.is_dir()
        {
            self.masked.insert(path);
        }
    }

    fn hide(&mut self, path: &Path) {
        self.cover(path);
        self.mask(path);
    }

    fn protect(&mut self, path: &Path) {
        if path.symlink_metadata().is_ok() {
            self.protected.insert(path.to_owned());
        }
    }

    fn is_covered(&self, path: &Path) -> bool {
        self.covered.iter().any(|covered| path.starts_with(covered))
    }
}

/// The sockets of the file system on which somebody listens, from the kernel's table.
fn listening(table: &str) -> impl Iterator<Item = &Path> {
    // Their flag in the fourth column, or that they take what is sent to them in the
    // fifth; a place is the last column, and may contain blanks.
    const ACCEPTS: &str = "00010000";
    const TAKES: &str = "0002";
    table.lines().skip(1).filter_map(|line| {
        let mut columns = line.splitn(8, ' ').filter(|column| !column.is_empty());
        let (flags, kind) = (columns.nth(3)?, columns.next()?);
        let at = line.find(" /")?;
        (flags == ACCEPTS || kind == TAKES).then(|| Path::new(&line[at + 1..]))
    })
}

/// Where the repository of a linked worktree is: the worktree's own folder and the one
/// that all share. The file that says so is the repository's, so what it names must be
/// a repository.
fn linked_repository(git: &Path) -> Vec<PathBuf> {
    let Ok(text) = std::fs::read_to_string(git) else {
        return Vec::new();
    };
    let Some(named) = text.trim().strip_prefix("gitdir:") else {
        return Vec::new();
    };
    let resolve = |base: &Path, name: &str| base.join(name.trim()).canonicalize().ok();
    let Some(own) = git.parent().and_then(|base| resolve(base, named)) else {
        return Vec::new();
    };
    let shared = std::fs::read_to_string(own.join("commondir")).ok();
    let shared = shared.and_then(|name| resolve(&own, &name));
    let shared = shared.unwrap_or_else(|| own.clone());
    let is_repository = own.join("HEAD").is_file()
        && shared.join("objects").is_dir()
        && shared.join("refs").is_dir();
    match is_repository {
        true => vec![own, shared],
        false => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, write};
    use std::os::unix::fs::symlink;

    struct Machine {
        scratch: tempfile::TempDir,
    }

    impl Machine {
        fn new(files: &[&str]) -> Self {
            let machine = Self {
                scratch: tempfile::tempdir().unwrap(),
            };
            for file in files {
                let path = machine.at(file);
                create_dir_all(path.parent().unwrap()).unwrap();
                write(path, "").unwrap();
            }
            machine
        }

        fn at(&self, path: &str) -> PathBuf {
            self.scratch.path().canonicalize().unwrap().join(path)
        }

        fn survey(&self, workspace: &str) -> Surroundings {
            survey(
                &Sandbox::default(),
                &self.at(workspace),
                |name| match name {
                    "HOME" => Some(self.at("home").into()),
                    "PATH" => Some(self.at("home/tools/bin").into()),
                    "SSH_AUTH_SOCK" => Some(self.at("agent").into()),
                    _ => None,
                },
            )
        }
    }

    #[test]
    fn a_home_is_hidden_but_for_its_tools_and_those_but_for_their_credentials() {
        let machine = Machine::new(&[
            "home/.ssh/id",
            "home/.cargo/bin/cargo",
            "home/.cargo/credentials.toml",
            "home/tools/bin/tool",
            "home/letters/private",
            "agent",
            "app/main.rs",
        ]);
        let found = machine.survey("app");
        assert!(found.covered.contains(&machine.at("home")));
        for kept in ["home/.cargo", "home/tools"] {
            assert!(found.kept.contains(&machine.at(kept)), "{kept}");
        }
        for hidden in ["home/.ssh", "home/letters"] {
            assert!(!found.kept.contains(&machine.at(hidden)), "{hidden}");
        }
        for masked in ["home/.cargo/credentials.toml", "agent"] {
            assert!(found.masked.contains(&machine.at(masked)), "{masked}");
        }
    }

    #[test]
    fn keys_stay_hidden_from_somebody_who_works_in_the_whole_home() {
        let machine = Machine::new(&["home/.ssh/id", "home/.netrc"]);
        let found = machine.survey("home");
        assert!(found.covered.contains(&machine.at("home/.ssh")));
        assert!(found.masked.contains(&machine.at("home/.netrc")));
    }

    #[test]
    fn a_repository_is_read_as_a_whole_and_its_folder_not_written() {
        let machine = Machine::new(&[
            "home/app/.git/HEAD",
            "home/app/part/a",
            "home/app/.selvedge/c",
        ]);
        let found = machine.survey("home/app");
        let protected = [".git", ".selvedge"].map(|name| machine.at("home/app").join(name));
        assert_eq!(found.protected, BTreeSet::from(protected));
        let found = machine.survey("home/app/part");
        assert!(found.kept.contains(&machine.at("home/app")));
    }

    #[test]
    fn a_worktree_reads_its_repository_and_a_lie_about_it_reads_nothing() {
        let machine = Machine::new(&[
            "home/app/.git/worktrees/w/HEAD",
            "home/app/.git/objects/x",
            "home/app/.git/refs/x",
            "home/.ssh/id",
            "w/a",
        ]);
        let own = machine.at("home/app/.git/worktrees/w");
        write(own.join("commondir"), "../..\n").unwrap();
        write(machine.at("w/.git"), format!("gitdir: {}\n", own.display())).unwrap();
        let found = machine.survey("w");
        assert!(found.kept.contains(&own) && found.kept.contains(&machine.at("home/app/.git")));
        let lie = format!("gitdir: {}\n", machine.at("home/.ssh").display());
        write(machine.at("w/.git"), lie).unwrap();
        let found = machine.survey("w");
        assert!(!found.kept.contains(&machine.at("home/.ssh")));
    }

    #[test]
    fn sockets_are_found_where_somebody_listens() {
        let table = "\
Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 12345 /srv/db/with blank.sock
0000000000000000: 00000003 00000000 00000000 0001 03 12346 /srv/db/with blank.sock
0000000000000000: 00000002 00000000 00010000 0005 01 12347 @abstract
0000000000000000: 00000002 00000000 00000000 0002 01 12348 /srv/log
0000000000000000: 00000003 00000000 00000000 0001 03 12349
";
        let found: Vec<&Path> = listening(table).collect();
        let expected = ["/srv/db/with blank.sock", "/srv/log"].map(Path::new);
        assert_eq!(found, expected);
    }

    #[test]
    fn a_link_among_the_tools_is_a_link_again() {
        let machine = Machine::new(&["disk/cargo/bin/cargo", "home/x", "app/a"]);
        symlink(machine.at("disk/cargo"), machine.at("home/.cargo")).unwrap();
        let found = machine.survey("app");
        let link = (machine.at("home/.cargo"), machine.at("disk/cargo"));
        assert!(found.links.contains(&link), "{:?}", found.links);
    }
}

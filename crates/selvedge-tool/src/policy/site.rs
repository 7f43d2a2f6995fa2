//! Where a path leads, as far as its text can tell, and which places are guarded.
//!
//! Nothing here opens a file. The fence is the kernel's; this decides when to ask.

use std::path::{Component, Path, PathBuf};

/// Where a call is to happen.
#[derive(Clone, Debug)]
pub struct Site {
    /// The workspace.
    pub root: PathBuf,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// Folders of which a command in the sandbox has its own. What lies beside the
    /// workspace there is somebody's, and not temporary.
    pub temporary: Vec<PathBuf>,
}

/// Where a path leads.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Place {
    /// Into the workspace: the path from its root.
    Inside(PathBuf),
    /// To a temporary file of the command's own.
    Temporary,
    /// To a device that takes or gives nothing of value, such as `/dev/null`.
    Nowhere,
    /// To a program or a library of the system.
    System,
    /// Anywhere else.
    Outside,
}

/// Why a place of the workspace is guarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Git's own files: a hook or a setting there runs later, as the user.
    Git,
    /// Selvedge's own files: they decide what agents may do.
    Selvedge,
    /// What agents are told, and which servers and hooks they use.
    Instructions,
    /// What runs by itself later: CI, editor tasks, package hooks, build scripts.
    Automation,
}

/// Where every command in the sandbox has files of its own: see `sandbox/plan.rs`.
const PRIVATE: [&str; 2] = crate::sandbox::TEMPORARY;
const NOWHERE: [&str; 6] = [
    "/dev/null",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/stdin",
    "/dev/zero",
    "/dev/urandom",
];
const SYSTEM: [&str; 12] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/opt",
    "/nix",
    "/etc/ssl",
    "/etc/os-release",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/version",
];

const INSTRUCTIONS: [&str; 13] = [
    "AGENTS.md",
    "AGENTS.override.md",
    "CLAUDE.md",
    "CLAUDE.local.md",
    "GEMINI.md",
    ".cursorrules",
    ".windsurfrules",
    ".mcp.json",
    ".claude",
    ".agents",
    ".cursor",
    ".codex",
    ".github/copilot-instructions.md",
];
const AUTOMATION: [&str; 16] = [
    ".github/workflows",
    ".github/actions",
    ".gitlab-ci.yml",
    ".circleci",
    "Jenkinsfile",
    ".travis.yml",
    "azure-pipelines.yml",
    ".husky",
    ".pre-commit-config.yaml",
    ".vscode",
    ".idea",
    ".devcontainer",
    ".envrc",
    "build.rs",
    "package.json",
    "setup.py",
];

impl Site {
    /// A workspace, and the places that the environment names.
    pub fn of(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            home: std::env::var_os("HOME").map(PathBuf::from),
            // What the environment calls so is the user's, and no command's.
            temporary: PRIVATE.map(PathBuf::from).into(),
        }
    }

    /// Where `text` leads from `here`, a folder of the workspace.
    pub(super) fn place(&self, here: &Path, text: &str) -> Place {
        let path = match text.strip_prefix('~') {
            Some(rest) => match (&self.home, rest.strip_prefix('/')) {
                (Some(home), Some(rest)) => home.join(rest),
                (Some(home), None) if rest.is_empty() => home.clone(),
                _ => return Place::Outside,
            },
            None => self.root.join(here).join(text),
        };
        let Some(path) = normal(&path) else {
            return Place::Outside;
        };
        if let Ok(inside) = path.strip_prefix(&self.root) {
            return Place::Inside(inside.to_owned());
        }
        let is_below = |folder: &PathBuf| path.starts_with(folder) && path != *folder;
        let is_beside = || {
            self.root
                .parent()
                .is_some_and(|near| path.starts_with(near))
        };
        match () {
            () if NOWHERE.iter().any(|device| path == Path::new(device)) => Place::Nowhere,
            () if path.starts_with("/dev/fd") => Place::Nowhere,
            () if self.temporary.iter().any(is_below) && !is_beside() => Place::Temporary,
            () if SYSTEM.iter().any(|folder| path.starts_with(folder)) => Place::System,
            () => Place::Outside,
        }
    }
}

/// Why a place of the workspace is guarded, if it is. Case does not matter, because
/// to some file systems it does not.
pub fn guard(place: &Path) -> Option<Guard> {
    let lower = place.to_string_lossy().to_lowercase();
    let is_part = |name: &str| {
        Path::new(&lower)
            .components()
            .any(|part| part.as_os_str() == name)
    };
    let is_below = |name: &&str| {
        let name = name.to_lowercase();
        let is_file = |path: &Path| path.ends_with(&name);
        match name.contains('/') {
            true => Path::new(&lower).starts_with(&name),
            false => Path::new(&lower).ancestors().any(is_file),
        }
    };
    if is_part(".git") {
        return Some(Guard::Git);
    }
    if is_part(".selvedge") && !Path::new(&lower).starts_with(".selvedge/worktrees") {
        return Some(Guard::Selvedge);
    }
    if INSTRUCTIONS.iter().any(is_below) {
        return Some(Guard::Instructions);
    }
    AUTOMATION.iter().any(is_below).then_some(Guard::Automation)
}

/// The path without `.` and `..`; none if it climbs above the root.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if !normal.pop() {
                    return None;
                }
            }
            part => normal.push(part),
        }
    }
    Some(normal)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A workspace that is only talked about.
    pub(in crate::policy) fn site() -> Site {
        Site {
            root: "/srv/app".into(),
            home: Some("/home/me".into()),
            temporary: vec!["/tmp".into()],
        }
    }

    #[test]
    fn a_path_leads_where_a_shell_would_go() {
        for (text, expected) in [
            ("a/b", Place::Inside("a/b".into())),
            ("./a/../b", Place::Inside("b".into())),
            ("/srv/app/a", Place::Inside("a".into())),
            (".", Place::Inside("".into())),
            ("/srv/app-evil/a", Place::Outside),
            ("../app-evil/a", Place::Outside),
            ("../../etc/passwd", Place::Outside),
            ("../../../..", Place::Outside),
            ("~/.bashrc", Place::Outside),
            ("~", Place::Outside),
            ("~root/x", Place::Outside),
            ("/etc/passwd", Place::Outside),
            ("/proc/self/root/etc/passwd", Place::Outside),
            ("/tmp/x", Place::Temporary),
            ("/tmp/../etc/x", Place::Outside),
            ("/tmp", Place::Outside),
            ("/dev/null", Place::Nowhere),
            ("/dev/sda", Place::Outside),
            ("/usr/include/x.h", Place::System),
        ] {
            assert_eq!(site().place(Path::new(""), text), expected, "{text}");
        }
        assert_eq!(
            site().place(Path::new("sub"), "../a"),
            Place::Inside("a".into())
        );
        assert_eq!(site().place(Path::new("sub"), "../../a"), Place::Outside);
    }

    #[test]
    fn what_lies_beside_a_workspace_is_nobody_s_temporary_file() {
        for (root, text, expected) in [
            ("/tmp/x/app", "/tmp/x/app-evil/a", Place::Outside),
            ("/tmp/x/app", "../secret", Place::Outside),
            ("/tmp/x/app", "../../y", Place::Temporary),
            ("/tmp/x/app", "/tmp/y", Place::Temporary),
            ("/tmp/x/app", "/tmp/x-y/z", Place::Temporary),
            ("/tmp/x/app", "/var/tmp/y", Place::Temporary),
            ("/tmp/app", "/tmp/app-evil/a", Place::Outside),
            ("/tmp/app", "a", Place::Inside("a".into())),
        ] {
            let site = Site::of(Path::new(root));
            let place = site.place(Path::new(""), text);
            assert_eq!(place, expected, "{text} from {root}");
        }
        // What the user calls temporary is the user's: a command has another one.
        let own = std::env::temp_dir().join("of-the-user/x");
        if !PRIVATE.iter().any(|folder| own.starts_with(folder)) {
            let site = Site::of(Path::new("/srv/app"));
            let place = site.place(Path::new(""), &own.to_string_lossy());
            assert_eq!(place, Place::Outside, "{}", own.display());
        }
    }

    #[test]
    fn what_decides_over_agents_or_runs_later_is_guarded() {
        for (path, expected) in [
            (".git/hooks/pre-commit", Some(Guard::Git)),
            ("sub/.git/config", Some(Guard::Git)),
            (".GIT/config", Some(Guard::Git)),
            (".git", Some(Guard::Git)),
            (".gitignore", None),
            (".selvedge/config.toml", Some(Guard::Selvedge)),
            (".selvedge/local/config.toml", Some(Guard::Selvedge)),
            (".selvedge/worktrees/a/src/x", None),
            ("AGENTS.md", Some(Guard::Instructions)),
            ("sub/agents.md", Some(Guard::Instructions)),
            (".mcp.json", Some(Guard::Instructions)),
            (".claude/settings.json", Some(Guard::Instructions)),
            ("docs/AGENTS.md.txt", None),
            (".github/workflows/ci.yml", Some(Guard::Automation)),
            (".github/ISSUE_TEMPLATE.md", None),
            ("crates/a/build.rs", Some(Guard::Automation)),
            ("package.json", Some(Guard::Automation)),
            ("src/main.rs", None),
        ] {
            assert_eq!(guard(Path::new(path)), expected, "{path}");
        }
    }
}

//! What a command may reach: data, recorded with the run that it holds for.
//!
//! It comes from a person's configuration alone. Nothing a model says, and nothing a
//! repository contains, adds to it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::hosts::HostRule;

/// What a command may reach.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sandbox {
    /// Whether there is a fence at all.
    pub mode: Mode,
    /// What it may reach of the network.
    #[serde(default)]
    pub network: Network,
    /// Folders it may write besides its workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writable: Vec<PathBuf>,
    /// What it may read of folders that are hidden otherwise, such as the home.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readable: Vec<PathBuf>,
    /// What it may not see, besides what nobody's commands see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<PathBuf>,
    /// Where its temporary files and its home are kept between commands. Without one
    /// they are in memory, and gone when the command ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temp: Option<PathBuf>,
    /// How much it may use.
    #[serde(default)]
    pub resources: Resources,
    /// Who puts the fence up.
    #[serde(default, skip_serializing_if = "Fence::is_auto")]
    pub fence: Fence,
}

/// Who puts the fence up. It is the same fence, and as high.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fence {
    /// Selvedge itself; bubblewrap where only that may.
    #[default]
    Auto,
    /// Selvedge itself.
    Own,
    /// Bubblewrap.
    Bubblewrap,
}

impl Fence {
    fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

/// Whether there is a fence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// There is; a command that cannot be fenced does not run.
    #[default]
    On,
    /// There is none: a person has chosen so.
    Off,
}

/// What may be reached of the network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// Nothing but the command's own loopback.
    #[default]
    Off,
    /// These hosts, through a proxy: `example.org`, `*.example.com`, `10.0.0.7:8080`.
    Allow(Vec<HostRule>),
    /// Everything.
    On,
}

/// How much one command may use, with all that it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// Processes and threads. Default: 4,096.
    pub processes_max: u64,
    /// Bytes of memory. Default: three quarters of what the machine has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes_max: Option<u64>,
    /// Bytes of one file. Default: 16 GB.
    pub file_bytes_max: u64,
    /// Files that are made while it runs. Default: 1,000,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_max: Option<u64>,
    /// Open files of one process. Default: 16,384.
    pub open_files_max: u64,
    /// Seconds of processor time of one process. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds_max: Option<u64>,
}

impl Default for Resources {
    fn default() -> Self {
        Self {
            processes_max: 4_096,
            memory_bytes_max: None,
            file_bytes_max: 16 << 30,
            files_max: None,
            open_files_max: 16_384,
            cpu_seconds_max: None,
        }
    }
}

impl Sandbox {
    /// No fence, because a person said so.
    pub fn off() -> Self {
        Self {
            mode: Mode::Off,
            ..Self::default()
        }
    }

    /// Whether commands are fenced.
    pub fn is_on(&self) -> bool {
        self.mode == Mode::On
    }

    /// What stands for it where an approval is bound to it. Its temporary folder is
    /// another in each session, and does not count.
    pub(crate) fn digest(&self) -> String {
        let lasting = Self {
            temp: None,
            ..self.clone()
        };
        let bytes = serde_json::to_vec(&lasting).expect("a sandbox is plain data");
        blake3::hash(&bytes).to_hex().to_string()
    }

    /// This, and nothing that `parent` does not have: what a child gets.
    pub fn within(&self, parent: &Self) -> Self {
        if !parent.is_on() {
            return self.clone();
        }
        // A fence that the child was free of is the parent's.
        let own = if self.is_on() { self } else { parent };
        Self {
            mode: Mode::On,
            network: own.network.within(&parent.network),
            writable: below(&own.writable, &parent.writable),
            readable: below(&own.readable, &parent.readable),
            hidden: union(&own.hidden, &parent.hidden),
            temp: parent.temp.clone(),
            resources: own.resources.within(&parent.resources),
            fence: parent.fence,
        }
    }
}

impl Network {
    fn within(&self, parent: &Self) -> Self {
        match (self, parent) {
            (Self::Off, _) | (_, Self::Off) => Self::Off,
            (network, Self::On) => network.clone(),
            (Self::On, Self::Allow(hosts)) => Self::Allow(hosts.clone()),
            (Self::Allow(own), Self::Allow(hosts)) => {
                let covered = |rule: &&HostRule| hosts.iter().any(|host| host.covers(rule));
                Self::Allow(own.iter().filter(covered).cloned().collect())
            }
        }
    }
}

impl Resources {
    /// The bytes of memory that hold on this machine.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory_bytes_max
            .unwrap_or_else(|| machine_memory_bytes() / 4 * 3)
    }

    /// How many files may be made.
    pub(crate) fn files_max(&self) -> u64 {
        self.files_max.unwrap_or(1_000_000)
    }

    fn within(&self, parent: &Self) -> Self {
        let lower = |own: Option<u64>, other: Option<u64>| own.into_iter().chain(other).min();
        Self {
            processes_max: self.processes_max.min(parent.processes_max),
            memory_bytes_max: lower(self.memory_bytes_max, parent.memory_bytes_max),
            file_bytes_max: self.file_bytes_max.min(parent.file_bytes_max),
            files_max: lower(self.files_max, parent.files_max),
            open_files_max: self.open_files_max.min(parent.open_files_max),
            cpu_seconds_max: lower(self.cpu_seconds_max, parent.cpu_seconds_max),
        }
    }
}

fn below(paths: &[PathBuf], allowed: &[PathBuf]) -> Vec<PathBuf> {
    let is_below = |path: &&PathBuf| allowed.iter().any(|root: &PathBuf| path.starts_with(root));
    paths.iter().filter(is_below).cloned().collect()
}

fn union(one: &[PathBuf], other: &[PathBuf]) -> Vec<PathBuf> {
    let new = other.iter().filter(|path| !one.contains(path));
    one.iter().chain(new).cloned().collect()
}

/// How much memory the machine has; a modest amount if it does not say.
fn machine_memory_bytes() -> u64 {
    const UNKNOWN: u64 = 4 << 30;
    let Ok(text) = std::fs::read_to_string(Path::new("/proc/meminfo")) else {
        return UNKNOWN;
    };
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = total.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok());
    kilobytes.map_or(UNKNOWN, |kilobytes: u64| kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(hosts: &[&str]) -> Network {
        Network::Allow(hosts.iter().map(|host| host.parse().unwrap()).collect())
    }

    #[test]
    fn a_child_has_no_more_network_than_its_parent() {
        let (off, on) = (Network::Off, Network::On);
        let some = rules(&["example.org", "*.example.com"]);
        for (child, parent, expected) in [
            (&on, &off, &off),
            (&some, &off, &off),
            (&off, &on, &off),
            (&on, &some, &some),
            (&some, &on, &some),
            (
                &rules(&["registry.example.com", "evil.org"]),
                &some,
                &rules(&["registry.example.com"]),
            ),
        ] {
            assert_eq!(child.within(parent), *expected, "{child:?} in {parent:?}");
        }
    }

    #[test]
    fn a_child_cannot_leave_the_fence_nor_widen_it() {
        let parent = Sandbox {
            writable: vec!["/data".into()],
            hidden: vec!["/secret".into()],
            resources: Resources {
                processes_max: 10,
                ..Resources::default()
            },
            ..Sandbox::default()
        };
        assert_eq!(Sandbox::off().within(&parent), parent);
        let child = Sandbox {
            writable: vec!["/data/mine".into(), "/data-evil".into(), "/".into()],
            ..Sandbox::default()
        };
        let narrowed = child.within(&parent);
        assert_eq!(narrowed.writable, [PathBuf::from("/data/mine")]);
        assert_eq!(narrowed.hidden, parent.hidden);
        assert_eq!(narrowed.resources.processes_max, 10);
        assert_eq!(child.within(&Sandbox::off()), child);
    }

    #[test]
    fn what_was_recorded_is_read_back() {
        let sandbox = Sandbox {
            network: rules(&["*.example.com", "127.0.0.1:8080"]),
            temp: Some("/data/s_1".into()),
            ..Sandbox::default()
        };
        let text = serde_json::to_string(&sandbox).unwrap();
        assert_eq!(serde_json::from_str::<Sandbox>(&text).unwrap(), sandbox);
    }
}

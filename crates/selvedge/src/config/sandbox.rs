//! `[sandbox]`: what commands may reach of this machine.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use selvedge_tool::{Fence, HostRule, Mode, Network, Resources, Sandbox};
use serde::{Deserialize, Serialize};

use crate::env;
use crate::paths::Paths;

/// What commands may reach of this machine. A project's file may close it further, and
/// not open it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SandboxSettings {
    /// Whether commands run in a sandbox. Default: `on`.
    ///
    /// Where it cannot be put up, commands are refused.
    pub mode: Option<SandboxMode>,
    /// Who puts it up. Default: `auto`, which is Selvedge itself, and bubblewrap (`bwrap`)
    /// where only that may. `selvedge doctor` says which of them does.
    pub fence: Option<FenceMode>,
    /// Whether they have the whole network. Default: `off`.
    pub network: Option<NetworkMode>,
    /// The hosts they may reach while the network is off, such as `example.org`,
    /// `*.example.com` or `10.0.0.7:8080`. Default: none.
    #[schemars(with = "Option<Vec<String>>")]
    pub allow: Option<Vec<HostRule>>,
    /// Folders they may write besides the workspace. Default: none.
    pub writable: Option<Vec<Place>>,
    /// What they may read of the home, besides the folders of tools. Default: nothing.
    pub readable: Option<Vec<Place>>,
    /// What they may not see, besides what they never see. Default: nothing.
    pub hidden: Option<Vec<Place>>,
    /// Megabytes of memory for a command, with all that it starts. Default: three
    /// quarters of the machine's.
    #[schemars(range(min = 1))]
    pub memory_mb_max: Option<u64>,
    /// Processes and threads of a command. Default: 4,096.
    #[schemars(range(min = 1))]
    pub processes_max: Option<u64>,
    /// Files that are made while a command runs. Default: 1,000,000.
    #[schemars(range(min = 1))]
    pub files_max: Option<u64>,
}

/// Whether commands run in a sandbox.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub enum SandboxMode {
    /// They do.
    On,
    /// They run as you would run them.
    Off,
}

/// Who puts the sandbox up. It is the same, whoever does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FenceMode {
    /// Selvedge itself; bubblewrap where only that may.
    Auto,
    /// Selvedge itself.
    Own,
    /// Bubblewrap.
    Bubblewrap,
}

/// Whether commands have the whole network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NetworkMode {
    /// They have it.
    On,
    /// They have not.
    Off,
}

/// An absolute path, or one that begins with `~/`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
pub struct Place(#[schemars(with = "String")] PathBuf);

impl Place {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl TryFrom<String> for Place {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let path = match text.strip_prefix("~/") {
            Some(rest) => env::home().map(|home| home.join(rest)),
            None => Some(PathBuf::from(&text)),
        };
        match path {
            Some(path) if path.is_absolute() => Ok(Self(path)),
            _ => Err(format!("`{text}` is neither absolute nor below `~/`")),
        }
    }
}

impl SandboxSettings {
    /// The sandbox for a run. What Selvedge keeps for itself is hidden in any case.
    pub fn sandbox(&self, paths: &Paths) -> Sandbox {
        let places = |places: &Option<Vec<Place>>| -> Vec<PathBuf> {
            places
                .iter()
                .flatten()
                .map(|place| place.0.clone())
                .collect()
        };
        let mut hidden = places(&self.hidden);
        hidden.extend([paths.data().to_owned(), paths.config().to_owned()]);
        let usual = Resources::default();
        Sandbox {
            mode: match self.mode {
                Some(SandboxMode::Off) => Mode::Off,
                Some(SandboxMode::On) | None => Mode::On,
            },
            network: match (self.network, self.allow.as_deref()) {
                (Some(NetworkMode::On), _) => Network::On,
                (_, None | Some([])) => Network::Off,
                (_, Some(hosts)) => Network::Allow(hosts.to_vec()),
            },
            writable: places(&self.writable),
            readable: places(&self.readable),
            hidden,
            temp: None,
            resources: Resources {
                processes_max: self.processes_max.unwrap_or(usual.processes_max),
                memory_bytes_max: self.memory_mb_max.map(|megabytes| megabytes << 20),
                files_max: self.files_max,
                ..usual
            },
            fence: match self.fence {
                Some(FenceMode::Own) => Fence::Own,
                Some(FenceMode::Bubblewrap) => Fence::Bubblewrap,
                Some(FenceMode::Auto) | None => Fence::Auto,
            },
        }
    }
}

//! Where things are kept.

use std::path::{Path, PathBuf};

use selvedge_ledger::StreamId;

use crate::env;
use crate::error::{Error, Result};

/// The roots of everything Selvedge keeps for a user.
#[derive(Clone, Debug)]
pub struct Paths {
    data: PathBuf,
    config: PathBuf,
}

impl Paths {
    /// The roots, from the environment.
    pub fn find() -> Result<Self> {
        if let Some(home) = env::path(env::HOME) {
            return Ok(Self {
                data: home.join("data"),
                config: home.join("config"),
            });
        }
        let homeless = || {
            Error::usage("there is no place to keep data")
                .cause(format!("neither `{}` nor `HOME` is set", env::HOME))
                .hint(format!("set `{}` to a folder of your own", env::HOME))
        };
        Ok(Self {
            data: env::xdg_data().ok_or_else(homeless)?.join("selvedge"),
            config: env::xdg_config().ok_or_else(homeless)?.join("selvedge"),
        })
    }

    /// The data root.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The ledger's file.
    pub fn ledger(&self) -> PathBuf {
        self.data.join("ledger.db")
    }

    /// What belongs to sessions and is no event, in a folder for each.
    pub fn sessions(&self) -> PathBuf {
        self.data.join("sessions")
    }

    /// What belongs to one session: the script it answers from, and what files were
    /// before it changed them.
    pub fn session(&self, session: &StreamId) -> PathBuf {
        self.sessions().join(session.as_str())
    }

    /// The copy of the script that a session's model answers from.
    pub fn script(&self, session: &StreamId) -> PathBuf {
        self.session(session).join("script.yaml")
    }

    /// What was approved for projects. No tool can write there.
    pub fn approvals(&self) -> PathBuf {
        self.data.join("approvals")
    }

    /// The folders that the user vouches for.
    pub fn trusted(&self) -> PathBuf {
        self.data.join("trusted.json")
    }

    /// The signed heads of sessions, and the key that signs them.
    pub fn heads(&self) -> PathBuf {
        self.data.join("heads.jsonl")
    }

    /// The key that heads are signed with.
    pub fn signing_key(&self) -> PathBuf {
        self.data.join("signing.key")
    }

    /// What the user allows tools to use, always.
    pub fn consents(&self) -> PathBuf {
        self.data.join("consents.json")
    }

    /// Answers that are given again to the very same request.
    pub fn cache(&self) -> PathBuf {
        self.data.join("cache")
    }

    /// The temporary files of a session's commands, and their home.
    pub fn temp(&self, session: &StreamId) -> PathBuf {
        self.session(session).join("temp")
    }

    /// The user's configuration file.
    pub fn user_config(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// The configuration root; stored keys are kept in it.
    pub fn config(&self) -> &Path {
        &self.config
    }

    /// Where crews are looked for, before the built-in ones.
    pub fn crews(&self, workspace: &Path) -> [PathBuf; 2] {
        [workspace.join(".selvedge/crews"), self.config.join("crews")]
    }

    /// Makes the data root, for its owner only: it holds everything agents saw.
    pub fn make_data(&self) -> Result<()> {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.data).map_err(|error| {
            Error::failed(format!(
                "the data folder `{}` cannot be made",
                self.data.display()
            ))
            .cause(error)
            .hint(format!(
                "set `{}` to a folder that can be written",
                env::HOME
            ))
        })
    }
}

//! Where things are kept.

use std::path::{Path, PathBuf};

use selvedge_ledger::StreamId;
use selvedge_tool::{ContentRoot, Owner};

use crate::env;
use crate::error::{Error, Result};

/// The roots of everything Selvedge keeps for a user.
#[derive(Clone, Debug)]
pub struct Paths {
    data: PathBuf,
    config: PathBuf,
    /// Where other programs keep what is the user's own.
    home: Option<PathBuf>,
}

impl Paths {
    /// The roots, from the environment.
    pub fn find() -> Result<Self> {
        if let Some(home) = env::path(env::HOME) {
            return Ok(Self {
                data: home.join("data"),
                config: home.join("config"),
                home: Some(home),
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
            home: env::home(),
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

    /// What was found out about the tools of projects, and chosen.
    pub fn discoveries(&self) -> PathBuf {
        self.data.join("discoveries")
    }

    /// What the user allows tools to use, always.
    pub fn consents(&self) -> PathBuf {
        self.data.join("consents.json")
    }

    /// What the user has approved of MCP servers. No tool can write there.
    pub fn mcp(&self) -> PathBuf {
        self.data.join("mcp")
    }

    /// Answers that are given again to the very same request.
    pub fn cache(&self) -> PathBuf {
        self.data.join("cache")
    }

    /// What belongs to one project: its index. Named after the folder, so that it is
    /// found again, and never within it.
    pub fn project(&self, root: &Path) -> PathBuf {
        let name = blake3::hash(root.as_os_str().as_encoded_bytes()).to_hex();
        self.data.join("projects").join(&name[..16])
    }

    /// The notes of the journal, where nothing else is said.
    pub fn journal(&self) -> PathBuf {
        self.data.join("journal")
    }

    /// What was typed into the journal's box.
    pub fn journal_history(&self) -> PathBuf {
        self.data.join("journal-history")
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

    /// Where configs of jobs are looked for, before the shipped ones.
    pub fn job_configs(&self, workspace: &Path) -> [PathBuf; 2] {
        [
            workspace.join(".selvedge/configs"),
            self.config.join("configs"),
        ]
    }

    /// What the user has to say to every agent.
    pub fn user_instructions(&self) -> PathBuf {
        self.config.join("AGENTS.md")
    }

    /// Where `skills` or `commands` are looked for: the user's own before those that a
    /// project brings along, ours before those of others.
    pub fn contents(&self, kind: &str) -> Vec<ContentRoot> {
        let root = |owner, folder| ContentRoot { owner, folder };
        let mut roots = vec![root(Owner::User, self.config.join(kind))];
        for others in [".agents", ".claude"] {
            let home = self.home.as_ref().map(|home| home.join(others).join(kind));
            roots.extend(home.map(|folder| root(Owner::User, folder)));
        }
        for folder in [".selvedge", ".agents", ".claude"] {
            roots.push(root(Owner::Project, Path::new(folder).join(kind)));
        }
        roots
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

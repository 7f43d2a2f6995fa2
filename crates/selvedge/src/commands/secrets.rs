//! `secrets`: looks for secrets in a text, and says who may use which.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand};
use selvedge_tool::{ConsentBook, NoConsent};

use super::run;
use crate::config::Config;
use crate::error::{Error, Exit, Result};
use crate::paths::Paths;
use crate::text::plural;
use crate::{out, secrets};

#[derive(Subcommand)]
pub enum SecretsCommand {
    /// Look for secrets in a text; exit code 1 if there are any.
    Check(Check),
    /// Let an agent's tools use a credential from now on.
    Allow(Consent),
    /// Take that back.
    Forbid(Consent),
}

#[derive(Args)]
pub struct Check {
    /// The file; `-` is stdin.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print one finding per line, as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub struct Consent {
    /// Whose credential, such as `github`.
    provider: String,
    /// The agent, by the name of its role.
    #[arg(long, value_name = "AGENT", default_value = "engineer")]
    agent: String,
}

impl SecretsCommand {
    pub fn perform(self) -> Result {
        match self {
            Self::Check(check) => check.perform(),
            Self::Allow(consent) => {
                consent.write(|book, agent, provider| book.allow(agent, provider))?;
                out::say(&format!(
                    "tools of `{}` may use the credential of `{}`",
                    consent.agent, consent.provider
                ));
                Ok(Exit::Done)
            }
            Self::Forbid(consent) => {
                consent.write(|book, agent, provider| book.forget(agent, provider))?;
                out::say(&format!(
                    "tools of `{}` are asked about before they use the credential of `{}`",
                    consent.agent, consent.provider
                ));
                Ok(Exit::Done)
            }
        }
    }
}

impl Check {
    fn perform(self) -> Result {
        let workspace = run::workspace(None)?;
        secrets::learn(&Config::load(&Paths::find()?, &workspace)?)?;
        let text = read(&self.file)?;
        let found = secrets::of_this_process().scan(&text);
        for found in &found {
            match self.json {
                true => out::json(found),
                false => out::line(&secrets::place(found)),
            }
        }
        out::say(&plural(found.len() as u64, "secret"));
        Ok(match found.is_empty() {
            true => Exit::Done,
            false => Exit::Failed,
        })
    }
}

impl Consent {
    fn write(
        &self,
        change: impl FnOnce(&ConsentBook, &str, &str) -> std::io::Result<()>,
    ) -> Result<()> {
        let paths = Paths::find()?;
        paths.make_data()?;
        let book = ConsentBook::new(paths.consents(), Arc::new(NoConsent));
        change(&book, &self.agent, &self.provider).map_err(|error| {
            Error::failed("what you allow cannot be kept")
                .cause(error)
                .hint(format!("look at `{}`", paths.consents().display()))
        })
    }
}

fn read(file: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    let read = match file == Path::new("-") {
        true => std::io::stdin().read_to_end(&mut bytes).map(drop),
        false => std::fs::read(file).map(|read| bytes = read),
    };
    read.map_err(|error| {
        Error::usage(format!("`{}` cannot be read", file.display()))
            .cause(error)
            .hint("name a file, or pipe the text and name `-`")
    })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

//! `mcp add`: puts a server into the user's configuration. Nothing is started.

use std::collections::BTreeMap;
use std::io::Write;

use clap::Args;
use selvedge_mcp::{Entry, Listed, NetworkWish, Scope};
use serde::Serialize;

use super::Here;
use crate::error::{Error, Exit, Result};
use crate::out;
use crate::text::escape;

#[derive(Args)]
pub struct Add {
    /// What it is called here.
    #[arg(value_name = "NAME")]
    name: String,
    /// Where it is, if it is not a program of this machine.
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    url: Option<String>,
    /// A variable it is given, such as `TOKEN=${MY_TOKEN}`; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    env: Vec<(String, String)>,
    /// A header that is sent, such as `Authorization=Bearer ${MY_TOKEN}`; may be
    /// repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    header: Vec<(String, String)>,
    /// What it may reach of the network: `on`, or hosts with commas in between.
    #[arg(long, value_name = "HOSTS")]
    network: Option<String>,
    /// The program and its arguments, after `--`.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Serialize)]
struct File {
    mcp: Servers,
}

#[derive(Serialize)]
struct Servers {
    servers: BTreeMap<String, Entry>,
}

impl Add {
    pub fn perform(self) -> Result {
        let here = Here::find()?;
        let name = self.name.clone();
        let listed = self.listed()?;
        listed.check().map_err(|why| {
            Error::usage(format!("`{name}` cannot be added"))
                .cause(why)
                .hint("`selvedge mcp add NAME -- COMMAND`, or `selvedge mcp add NAME --url URL`")
        })?;
        let own = here.config.settings().mcp.servers;
        if own.contains_key(&name) {
            return Err(
                Error::usage(format!("there is a server `{name}` already")).hint(format!(
                    "`selvedge mcp remove {name}` first, or take another name"
                )),
            );
        }
        let file = File {
            mcp: Servers {
                servers: [(name.clone(), listed.entry)].into(),
            },
        };
        let text = toml::to_string(&file).map_err(|error| {
            Error::failed(format!("`{name}` cannot be written down")).cause(error)
        })?;
        let path = here.paths.user_config();
        let append = || {
            std::fs::create_dir_all(here.paths.config())?;
            let mut options = std::fs::OpenOptions::new();
            let mut file = options.create(true).append(true).open(&path)?;
            write!(file, "\n{text}")
        };
        append().map_err(|error| {
            Error::failed(format!("`{}` cannot be written", path.display()))
                .cause(error)
                .hint("make it writable, or add the server by hand")
        })?;
        let name = escape(&name);
        out::say(&format!("`{name}` is in `{}`", path.display()));
        out::say(&format!("next: selvedge mcp approve {name}"));
        Ok(Exit::Done)
    }

    fn listed(self) -> Result<Listed> {
        let network = self.network.as_deref().map(network).transpose()?;
        let mut command = self.command.into_iter();
        Ok(Listed {
            name: self.name,
            scope: Scope::User,
            entry: Entry {
                command: command.next(),
                args: command.collect(),
                env: self.env.into_iter().collect(),
                url: self.url,
                headers: self.header.into_iter().collect(),
                network,
                ..Entry::default()
            },
        })
    }
}

fn network(text: &str) -> Result<NetworkWish> {
    let wish = match text {
        "on" | "off" => serde_json::json!(text),
        hosts => hosts.split(',').map(str::trim).collect(),
    };
    serde_json::from_value(wish).map_err(|_| {
        Error::usage(format!("`--network {text}` cannot be used"))
            .hint("say `on`, or hosts such as `api.github.com,*.example.com`")
    })
}

fn pair(text: &str) -> std::result::Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it is NAME=VALUE")?;
    match name.trim().is_empty() {
        true => Err("the name is missing".into()),
        false => Ok((name.trim().to_owned(), value.to_owned())),
    }
}

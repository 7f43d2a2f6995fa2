//! `journal domain new`: a domain of one's own.

use clap::{Args, Subcommand};
use selvedge_crews::journal::{DOMAINS, make_template};

use super::room::Room;
use crate::error::{Error, Exit, Result};
use crate::out;
use crate::text::escape;

#[derive(Subcommand)]
pub enum Domain {
    /// Make a folder with a domain to begin with.
    New(New),
    /// List the domains there are.
    List,
}

#[derive(Args)]
pub struct New {
    /// Its name: letters, digits, `-` and `_`.
    #[arg(value_name = "NAME")]
    name: String,
}

impl Domain {
    pub fn perform(self) -> Result {
        let room = Room::here()?;
        match self {
            Self::List => {
                for info in room.domains().infos() {
                    out::line(&format!("{}\n  {}", info.name, escape(&info.description)));
                }
            }
            Self::New(New { name }) => {
                let made = make_template(&room.folder.join(DOMAINS), &name).map_err(|error| {
                    Error::usage(format!("the domain `{}` cannot be made", escape(&name)))
                        .cause(error)
                        .hint("choose another name; `selvedge journal domain list` shows those there are")
                })?;
                let made = made.display();
                out::line(&made.to_string());
                out::say("edit its files: it counts from the next note on");
            }
        }
        Ok(Exit::Done)
    }
}

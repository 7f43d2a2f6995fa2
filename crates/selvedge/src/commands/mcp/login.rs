//! `mcp login` and `mcp logout`: who the user is at a server.

use clap::Args;
use selvedge_mcp::{ConnectError, Server, sign_in, sign_out};

use super::{Here, unreachable};
use crate::error::{Error, Exit, Result};
use crate::mcp::{self, Standing, Window, standing};
use crate::out;
use crate::text::escape;

#[derive(Args)]
pub struct Login {
    /// The server.
    #[arg(value_name = "NAME")]
    name: String,
    /// What is asked for, besides what the server names; may be repeated.
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<String>,
}

#[derive(Args)]
pub struct Logout {
    /// The server.
    #[arg(value_name = "NAME")]
    name: String,
}

impl Login {
    pub async fn perform(self) -> Result {
        let here = Here::find()?;
        let listed = here.server(&self.name)?;
        let name = escape(&self.name);
        if let Standing::Wrong(why) = standing(&here.book(), listed, &here.workspace) {
            return Err(Error::usage(format!("one cannot sign in to `{name}`")).cause(why));
        }
        if listed.entry.url.is_none() {
            return Err(Error::usage(format!("one cannot sign in to `{name}`"))
                .cause("it is a program of this machine")
                .hint("what it is to know of you stands in its `env`"));
        }
        let options = mcp::options();
        let wants = match Server::look(listed, &options, &here.surroundings()?).await {
            Ok(_) if self.scope.is_empty() => {
                out::say(&format!("`{name}` knows who you are, or does not want to"));
                return Ok(Exit::Done);
            }
            Ok(_) => None,
            Err(ConnectError::SignIn(challenge)) => Some(challenge),
            Err(error) => return Err(unreachable(&self.name, &error)),
        };
        let window = Window::open().await?;
        let scopes: Vec<String> = self
            .scope
            .iter()
            .flat_map(|scopes| scopes.split_whitespace().map(str::to_owned))
            .collect();
        sign_in(listed, &options, &window, wants.as_deref(), &scopes)
            .await
            .map_err(|error| {
                Error::failed(format!("you are not signed in to `{name}`"))
                    .cause(error)
                    .hint("try again, or ask its makers")
            })?;
        out::say(&format!("you are signed in to `{name}`"));
        Ok(Exit::Done)
    }
}

impl Logout {
    pub fn perform(self) -> Result {
        let here = Here::find()?;
        let listed = here.server(&self.name)?;
        sign_out(listed, &mcp::options()).map_err(|why| {
            Error::failed(format!(
                "you are still signed in to `{}`",
                escape(&self.name)
            ))
            .cause(why)
        })?;
        out::say(&format!(
            "what `{}` has given you is forgotten",
            escape(&self.name)
        ));
        Ok(Exit::Done)
    }
}

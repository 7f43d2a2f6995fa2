//! `completions`: a script that teaches a shell the commands.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::error::{Exit, Result};

#[derive(Args)]
pub struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub fn perform(self) -> Result {
        let mut command = super::Arguments::command();
        clap_complete::generate(self.shell, &mut command, "selvedge", &mut std::io::stdout());
        Ok(Exit::Done)
    }
}

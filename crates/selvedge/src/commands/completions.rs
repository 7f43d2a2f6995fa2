//! `completions`: a script that teaches a shell the commands.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::error::{Exit, Result};
use crate::out;

#[derive(Args)]
pub struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub fn perform(self) -> Result {
        let mut command = super::Arguments::command();
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "selvedge", &mut script);
        out::line(String::from_utf8_lossy(&script).trim_end());
        Ok(Exit::Done)
    }
}

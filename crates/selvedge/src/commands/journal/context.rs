//! `journal context`: what is known of the user.

use clap::Args;

use super::room::Room;
use crate::error::{Exit, Result};
use crate::out;
use crate::text::escape;

#[derive(Args)]
pub struct Context {}

impl Context {
    pub fn perform(self) -> Result {
        show(&Room::here()?)?;
        Ok(Exit::Done)
    }
}

/// Shows it, or says that there is nothing.
pub fn show(room: &Room) -> Result<()> {
    let text = room.notes().get_global_context()?;
    match text.trim().is_empty() {
        true => out::say("nothing is known of you yet"),
        false => out::line(&escape(text.trim_end())),
    }
    Ok(())
}

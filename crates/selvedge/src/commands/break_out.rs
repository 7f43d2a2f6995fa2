//! `break-out`: what `doctor` runs inside of the sandbox. Not for people.

use clap::Args;
use selvedge_tool::break_out;

use crate::error::{Exit, Result};
use crate::out;

/// Its name.
pub const BREAK_OUT: &str = "break-out";

#[derive(Args)]
pub struct BreakOut {}

impl BreakOut {
    pub fn perform(self) -> Result {
        for attempt in break_out() {
            out::line(&serde_json::to_string(&attempt).expect("plain data"));
        }
        Ok(Exit::Done)
    }
}

//! Running programs.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::tree;

/// The cargo that started us, so that the same toolchain does all the work.
pub fn cargo(arguments: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(tree::root())
        .stdin(Stdio::null());
    command
}

/// Runs a step and says how to repeat it alone if it fails.
pub fn step(arguments: &[&str]) -> Result<()> {
    let line = format!("cargo {}", arguments.join(" "));
    eprintln!("── {line}");
    let status = cargo(arguments)
        .status()
        .with_context(|| format!("`{line}` cannot be started"))?;
    ensure!(status.success(), "`{line}` failed");
    Ok(())
}

/// Whether cargo has the subcommand `name`.
pub fn has(name: &str) -> bool {
    cargo(&[name, "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

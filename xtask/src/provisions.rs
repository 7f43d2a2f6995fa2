//! Brings what the tests need from outside, where that may be done without asking.
//!
//! Tests that miss a program fail and say so; this keeps a fresh machine from failing.
//! Only root on a Debian is helped: everybody else is told by the test.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Result;

/// A program that tests need, its Debian package, and the variable by which the tests are
/// told that they are not wanted.
const WANTED: [(&str, &str, &str); 1] = [("/usr/bin/bwrap", "bubblewrap", "SELVEDGE_BWRAP")];

/// Installs what is missing, if it can be.
pub fn provisions() -> Result<()> {
    for (program, package, variable) in WANTED {
        let is_unwanted = std::env::var(variable).is_ok_and(|word| word == "skip");
        if is_unwanted || Path::new(program).exists() || !can_install() {
            continue;
        }
        eprintln!("── apt-get install {package}");
        // A list of packages that is missing or old is fetched anew, once.
        if !apt(&["install", "-y", "--no-install-recommends", package]) {
            apt(&["update"]);
            apt(&["install", "-y", "--no-install-recommends", package]);
        }
        if !Path::new(program).exists() {
            eprintln!("── `{package}` could not be installed: its tests will fail and say so");
        }
    }
    Ok(())
}

fn can_install() -> bool {
    let is_root = Command::new("id").arg("-u").output();
    is_root.is_ok_and(|said| said.stdout.trim_ascii() == b"0")
        && Path::new("/usr/bin/apt-get").exists()
}

fn apt(arguments: &[&str]) -> bool {
    let status = Command::new("/usr/bin/apt-get")
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

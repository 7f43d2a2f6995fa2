//! What others have made, installed once below the target directory.
//!
//! It needs npm, python3 and their registries; where one is missing the tests fail and
//! say so, unless `SELVEDGE_MCP=skip` says that they are not wanted.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

// The suite needs a newer Node than many systems have, so one is brought along.
const PACKAGES: &[&str] = &[
    "@modelcontextprotocol/conformance@0.1.16",
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem",
];
const PYTHON: &[&str] = &["mcp-server-git"];

/// Whether somebody has said that these tests are not wanted.
pub fn unwanted() -> bool {
    let unwanted = std::env::var("SELVEDGE_MCP").is_ok_and(|word| word == "skip");
    if unwanted {
        eprintln!("skipped: SELVEDGE_MCP=skip");
    }
    unwanted
}

/// Where everything is.
pub fn home() -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mcp");
    fs::create_dir_all(&home).expect("the target directory is writable");
    home
}

/// A Node, and the packages beside it.
pub fn node() -> PathBuf {
    let package = format!("node-linux-{}", architecture());
    once("npm", &format!("{PACKAGES:?} {package}"), |place| {
        let mut install = Command::new("npm");
        install.args([
            "install",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--prefix",
        ]);
        install
            .arg(place)
            .args(PACKAGES)
            .arg(format!("{package}@22"));
        run(&mut install);
    });
    modules().join(package).join("bin/node")
}

/// Where the packages are.
pub fn modules() -> PathBuf {
    home().join("npm/node_modules")
}

/// A program of a Python package.
pub fn python(program: &str) -> PathBuf {
    once("python", &format!("{PYTHON:?}"), |place| {
        run(Command::new("python3").args(["-m", "venv"]).arg(place));
        let mut install = Command::new(place.join("bin/python"));
        run(install
            .args(["-m", "pip", "install", "--quiet"])
            .args(PYTHON));
    });
    home().join("python/bin").join(program)
}

/// Makes a folder, unless it was made of the same before. One process makes it, the
/// others wait.
fn once(name: &str, wanted: &str, make: impl FnOnce(&Path)) {
    let place = home().join(name);
    let done = home().join(format!("{name}.done"));
    let lock = File::create(home().join(format!("{name}.lock")));
    let lock = lock.expect("the target directory is writable");
    lock.lock().expect("files can be locked");
    if fs::read_to_string(&done).is_ok_and(|made| made == wanted) {
        return;
    }
    // Left by an earlier list, or by a process that was stopped halfway.
    let _ = fs::remove_dir_all(&place);
    fs::create_dir_all(&place).expect("the target directory is writable");
    make(&place);
    fs::write(done, wanted).expect("the target directory is writable");
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "aarch64" => "arm64",
        _ => "x64",
    }
}

fn run(command: &mut Command) {
    let hint = "these tests need npm, python3 (with venv) and their registries; \
                `SELVEDGE_MCP=skip` leaves them out";
    match command.output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let complaint = String::from_utf8_lossy(&output.stderr);
            panic!("{command:?} failed: {complaint}\nhint: {hint}");
        }
        Err(error) => panic!("{command:?} cannot be run: {error}\nhint: {hint}"),
    }
}

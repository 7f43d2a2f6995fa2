//! The providers' own libraries, in a virtual environment of their own.
//!
//! It is made once, below the target directory, and again when the list of
//! versions changes. What it needs is python3 and a package index; where one is
//! missing the tests fail and say so, unless `SELVEDGE_SDK=skip` says that
//! they are not wanted.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const REQUIREMENTS: &str = include_str!("requirements.txt");
const SCRIPT: &str = include_str!("sdk.py");

/// Whether somebody has said that these tests are not wanted.
pub(crate) fn unwanted() -> bool {
    let unwanted = std::env::var("SELVEDGE_SDK").is_ok_and(|word| word == "skip");
    if unwanted {
        eprintln!("skipped: SELVEDGE_SDK=skip");
    }
    unwanted
}

/// What the libraries saw at `url`, in every one of `scenarios`.
pub(crate) fn look(url: &str, scenarios: &[&str]) -> Value {
    let python = environment().join("bin/python");
    let mut command = Command::new(python);
    command.args(["-", url]).args(scenarios);
    for proxy in ["http_proxy", "https_proxy", "all_proxy"] {
        command.env_remove(proxy).env_remove(proxy.to_uppercase());
    }
    let script = home().join("sdk.py");
    fs::write(&script, SCRIPT).expect("the target directory is writable");
    let script = File::open(script).expect("it was just written");
    let output = command.stdin(script).output();
    let output = output.expect("the environment has a python");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "the libraries failed:\n{complaint}"
    );
    serde_json::from_slice(&output.stdout).expect("it prints JSON")
}

/// The environment, made if it is not there yet.
fn environment() -> PathBuf {
    let place = home().join("environment");
    let done = home().join("requirements.txt");
    // One process makes it, the others wait.
    let lock = File::create(home().join("lock")).expect("the target directory is writable");
    lock.lock().expect("files can be locked");
    if fs::read_to_string(&done).is_ok_and(|made| made == REQUIREMENTS) {
        return place;
    }
    // Left by an earlier list, or by a process that was stopped halfway.
    let _ = fs::remove_dir_all(&place);
    let wanted = home().join("wanted.txt");
    fs::write(&wanted, REQUIREMENTS).expect("the target directory is writable");
    run(Command::new("python3").args(["-m", "venv"]).arg(&place));
    let mut install = Command::new(place.join("bin/python"));
    install.args(["-m", "pip", "install", "--quiet", "--requirement"]);
    run(install.arg(&wanted));
    fs::rename(wanted, done).expect("the target directory is writable");
    place
}

fn home() -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sdk");
    fs::create_dir_all(&home).expect("the target directory is writable");
    home
}

fn run(command: &mut Command) {
    let hint = "these tests need python3 (with venv) and a package index; \
                `SELVEDGE_SDK=skip` leaves them out";
    match command.output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let complaint = String::from_utf8_lossy(&output.stderr);
            panic!("{command:?} failed: {complaint}\nhint: {hint}");
        }
        Err(error) => panic!("{command:?} cannot be run: {error}\nhint: {hint}"),
    }
}

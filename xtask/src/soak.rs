//! The simulation, for longer than a test run allows.

use anyhow::{Context, Result, ensure};

use crate::command::cargo;

/// A night's worth on a small machine.
const SEEDS: u64 = 100_000;

/// Runs the simulation with `seeds` seeds.
pub fn soak(seeds: Option<&str>) -> Result<()> {
    let seeds: u64 = match seeds {
        Some(text) => text
            .parse()
            .with_context(|| format!("`{text}` is not a number of seeds"))?,
        None => SEEDS,
    };
    eprintln!("── the simulation with {seeds} seeds");
    let arguments = [
        "test",
        "--release",
        "--package",
        "selvedge-testkit",
        "--test",
        "simulation",
    ];
    let status = cargo(&arguments)
        .env("SELVEDGE_SEEDS", seeds.to_string())
        .status()
        .context("cargo cannot be started")?;
    ensure!(
        status.success(),
        "the simulation failed; its output names the seed to replay"
    );
    Ok(())
}

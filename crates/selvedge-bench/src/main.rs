//! Benchmarks: what a durable turn, a crowd of sessions, the gate, a resume and a
//! start cost.
//!
//! Each figure is one JSON line on stdout; a readable table follows on stderr.
//! Run with `cargo run --release -p selvedge-bench`, after `cargo build
//! --release -p selvedge` for the figures of the binary itself. Arguments choose
//! groups: `turns`, `crowd`, `gate`, `resume`, `policy`, `start`.

mod crowd;
mod figures;
mod gate;
mod policy;
mod resume;
mod rig;
mod start;
mod turns;

use figures::Figures;

fn main() -> anyhow::Result<()> {
    let chosen: Vec<String> = std::env::args().skip(1).collect();
    let wants = |group: &str| chosen.is_empty() || chosen.iter().any(|c| c == group);
    let mut figures = Figures::default();
    figures.disk_floor()?;
    if wants("turns") {
        turns::measure(&mut figures)?;
    }
    if wants("crowd") {
        crowd::measure(&mut figures)?;
    }
    if wants("gate") {
        gate::measure(&mut figures)?;
    }
    if wants("resume") {
        resume::measure(&mut figures)?;
    }
    if wants("policy") {
        policy::measure(&mut figures);
    }
    if wants("start") {
        start::measure(&mut figures)?;
    }
    figures.table();
    Ok(())
}

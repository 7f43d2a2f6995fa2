//! Benchmarks: what a durable turn, a crowd of sessions, a hundred missions, the gate, a
//! resume, a start, a sandbox and looking for secrets cost.
//!
//! Each figure is one JSON line on stdout; a readable table follows on stderr.
//! Run with `cargo run --release -p selvedge-bench`, after `cargo build
//! --release -p selvedge` for the figures of the binary itself. Arguments choose
//! groups: `turns`, `crowd`, `missions`, `gate`, `resume`, `policy`, `start`, `sandbox`,
//! `secrets`, `knowledge` (or one of its parts: `knowledge-reading`, `knowledge-asking`,
//! `knowledge-dense`, `knowledge-choosing`, `knowledge-finding`), `journal`.

mod crowd;
mod figures;
mod gate;
mod journal;
mod knowledge;
mod missions;
mod policy;
mod resume;
mod rig;
mod sandbox;
mod secrets;
mod start;
mod turns;

use figures::Figures;

// As in the binary itself.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> anyhow::Result<()> {
    // Before anything else: it may be there to watch over a command.
    selvedge_tool::stand_inside();
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
    if wants("missions") {
        missions::measure(&mut figures)?;
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
    if wants("secrets") {
        secrets::measure(&mut figures)?;
    }
    for (part, measure) in knowledge::PARTS {
        if wants("knowledge") || chosen.iter().any(|c| c == part) {
            measure(&mut figures)?;
        }
    }
    if wants("journal") {
        journal::measure(&mut figures)?;
    }
    if wants("sandbox") {
        sandbox::measure(&mut figures)?;
    }
    figures.table();
    Ok(())
}

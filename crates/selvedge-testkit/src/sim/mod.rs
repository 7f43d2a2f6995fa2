//! The simulated world: a real driver, ledger and agent on a simulated disk,
//! clock, model, tools and people, all from one seed.
//!
//! One thread, virtual time. A crash drops everything but the disk and the log
//! of effects that tools left outside, then a new process goes on from there.
//! What is random is drawn from the seed, split per component, so that a new
//! draw in one does not shift the others.

mod check;
mod clock;
mod dice;
mod ledger;
mod model;
mod tools;
mod world;

pub use check::{Broken, Counts};
pub use dice::Dice;
pub use world::{Faults, Report, Scenario, simulate};

//! Machines, the driver, sessions, signals and the clock.

mod clock;
mod machine;
mod perform;

pub use clock::{Chance, Clock, SeededChance, SystemChance, SystemClock};
pub use machine::{
    Act, Approval, Call, ChildSpec, Due, Effect, EffectId, Ending, Machine, Nature, Question, Status,
};
pub use perform::{Hold, NoWatcher, Performed, Performer, Probe, Scene, Watcher};

//! Machines and the driver that performs what they decide.
//!
//! # Map
//!
//! - `machine`: a pure value folded from events, and the effects it says are due
//! - `perform`: the trait through which effects touch the world
//! - `driver`, `run`: performs effects, records them before and after
//! - `letters`: taking what somebody outside said
//! - `resting`: children that wait for somebody
//! - `pausing`: why a run stands still, and what ends that
//! - `ending`: how a run stops
//! - `settle`: what to do with calls that a crash left open
//! - `book`: the driver's own fold: what is open, asked, paused
//! - `events`: the stored shapes of the driver's events
//! - `signal`: what somebody outside can say to a run
//! - `session`: who drives a session, and what state it is in
//! - `clock`: time and chance, as parameters
//! - `executor`: the threads that runs are driven on
//!
//! # Invariants
//!
//! - What may change something is on disk as begun before it begins, and is not
//!   run again unless a probe shows that it did not happen.
//! - `fold(ledger) == live state`: a machine sees the event that is stored.
//! - This crate knows nothing of models, tools, prompts or terminals.

mod book;
mod clock;
mod driver;
mod ending;
mod events;
mod executor;
mod letters;
mod machine;
mod pausing;
mod perform;
mod resting;
mod run;
mod session;
mod settle;
mod signal;

pub use book::{Book, OpenCall, Pause};
pub use clock::{Chance, Clock, SeededChance, SystemChance, SystemClock};
pub use driver::{DriveError, Driver, Machines, Patience, Rest};
pub use events::{
    BudgetRaised, ChildFinished, ChildStarted, Finished, LetterIgnored, MessageTaken,
    QuestionAnswered, QuestionAsked, RunCancelled, RunFinished, RunPaused, RunResumed, RunStarted,
    Started, SteerMode, Timer, Unfinished,
};
pub use executor::executor;
pub use machine::{
    Act, Approval, Call, ChildSpec, Due, Effect, EffectId, Ending, Machine, Nature, Question,
    Status,
};
pub use perform::{Hold, NoWatcher, Notice, Performed, Performer, Probe, Scene, Watcher};
pub use session::{Seat, SeatError, SessionState, session_state};
pub use signal::Signal;

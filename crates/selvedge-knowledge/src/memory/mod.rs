//! What agents remember beside the graph: what failed, notes, mistakes, preferences,
//! checkpoints and answers.

mod answers;
mod checkpoints;
mod failures;
mod likeness;
mod mistakes;
mod notes;
mod preferences;

pub use answers::{AnswerKey, AnswerStats, CachedAnswer, Intent};
pub use checkpoints::{Checkpoint, ChosenBecause, Status};
pub use failures::{Advice, Attempt, Failure, FailureWarning, Statistics};
pub use mistakes::{Mistake, MistakeReport};
pub use notes::Note;
pub use preferences::{Origin, Preference, Reaction};

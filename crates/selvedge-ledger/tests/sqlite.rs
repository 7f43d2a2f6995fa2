//! The SQLite ledger: what every ledger must do, and what only a file must.

mod suite;

#[path = "sqlite/backup.rs"]
mod backup;
#[path = "sqlite/crowd.rs"]
mod crowd;
#[path = "sqlite/damage.rs"]
mod damage;
#[path = "sqlite/disk.rs"]
mod disk;
#[path = "sqlite/flips.rs"]
mod flips;
#[path = "sqlite/folding.rs"]
mod folding;
#[path = "sqlite/opening.rs"]
mod opening;
#[path = "sqlite/place.rs"]
mod place;

suite::ledger_suite!(crate::place::File::new());

//! The SQLite ledger: what every ledger must do, and what only a file must.

mod suite;

#[path = "sqlite/place.rs"]
mod place;

use place::File;

suite::ledger_suite!(crate::File::new());

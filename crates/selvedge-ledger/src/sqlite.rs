//! A ledger in one SQLite file.
/// x
pub struct Mode;
/// x
pub struct SqliteLedger;
/// x
pub struct SqliteOptions;

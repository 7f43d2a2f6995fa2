//! The index as a whole: real files, a real database, a clock that is told the time.

mod acceptance;
mod grammar;
mod indexing;
mod memory;
mod quality;
mod world;

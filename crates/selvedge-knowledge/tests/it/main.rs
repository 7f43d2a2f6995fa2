//! The index as a whole: real files, a real database, a clock that is told the time.

mod acceptance;
mod embedding;
mod grammar;
mod indexing;
mod kill;
mod memory;
mod quality;
mod speed;
mod table;
mod world;

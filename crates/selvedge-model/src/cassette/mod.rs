//! Recorded exchanges, and the model that plays them.
//!
//! A cassette is a file of JSON lines. It holds what models answered and how long
//! that took; of what they were asked it holds hashes only, so that no prompt, no
//! file and no key leaves the machine with it.
//!
//! - `exchange`: the stored shapes
//! - `record`: a provider that writes down what another answers
//! - `replay`: a provider that plays a cassette, with the network closed

mod exchange;
mod record;
mod replay;

pub use exchange::CassetteError;
pub use record::Recorder;
pub use replay::Cassette;

#[cfg(test)]
mod tests;

//! How far a node can be trusted: decisions without I/O, given the time.

mod citations;
mod conflicts;
mod firewall;
mod freshness;
mod selection;
mod trust;

pub use citations::{Citations, RULES, cited, prompt};
pub use conflicts::conflicts_among;
pub use firewall::{Claim, ClaimKind, Evidence, Firewall, Verdict, claims, paths_in};
pub use freshness::{Freshness, freshness};
pub use selection::{Budget, Candidate, Picked, quality, select, tokens};
pub use trust::{Trust, Winner, trust, which_wins};

//! Selvedge with servers that others have made, and before the judges that others have
//! appointed.
//!
//! They come from npm and PyPI, once, below the target directory.

mod conformance;
#[path = "../hostile/place.rs"]
#[expect(dead_code, reason = "made for more than is needed here")]
mod place;
mod servers;
mod workshop;

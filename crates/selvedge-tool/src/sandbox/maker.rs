//! Who puts the fence up: Selvedge itself, or bubblewrap where only that may.
//!
//! Some machines let ordinary users make no namespaces, but for the programs that they
//! trust. Whether this is one of them is found out by trying: the first command that the
//! kernel refuses a namespace has not begun yet, and is put into the hands of bubblewrap.
//! What was found out holds until Selvedge ends.

use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;

use super::bubblewrap::Bubblewrap;
use super::prepared::{Refused, Stage};
use super::spec::{Fence, Sandbox};

/// Who puts the fence up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Maker {
    /// Selvedge itself.
    Own,
    /// This program.
    Bubblewrap {
        /// Where it is.
        program: PathBuf,
        /// Why not Selvedge itself; nothing if somebody has said so.
        instead: Option<String>,
    },
}

// Why this process cannot make namespaces, once it is known.
static OWN_IS_REFUSED: OnceLock<String> = OnceLock::new();

impl Maker {
    /// Who would put up this sandbox's fence now. What is not tried yet is not known:
    /// ask after a command has run.
    pub fn of(sandbox: &Sandbox) -> Result<Self, String> {
        Self::choose(sandbox.fence).map_err(|refused| refused.to_string())
    }

    /// Who puts up the next one.
    pub(crate) fn choose(fence: Fence) -> Result<Self, Refused> {
        match (fence, OWN_IS_REFUSED.get()) {
            (Fence::Own, _) | (Fence::Auto, None) => Ok(Self::Own),
            (Fence::Bubblewrap, _) => Self::borrow(None),
            (Fence::Auto, Some(why)) => Self::borrow(Some(why)),
        }
    }

    /// Who puts it up instead, after this one was refused so.
    pub(crate) fn instead(&self, fence: Fence, error: &io::Error) -> Option<Self> {
        let refused = Refused::of(error)?;
        if *self != Self::Own || fence != Fence::Auto || !refused.stage.is_anothers() {
            return None;
        }
        let why = refused.cause();
        let other = Self::borrow(Some(&why)).ok()?;
        let _ = OWN_IS_REFUSED.set(why);
        Some(other)
    }

    fn borrow(instead: Option<&str>) -> Result<Self, Refused> {
        match Bubblewrap::find() {
            Ok(found) => Ok(Self::Bubblewrap {
                program: found.program,
                instead: instead.map(str::to_owned),
            }),
            Err(why) => Err(Refused {
                stage: Stage::Bubblewrap,
                error: io::Error::new(io::ErrorKind::NotFound, why),
            }),
        }
    }
}

//! Every environment variable that Selvedge reads, in one place.
//!
//! The keys of model providers (`ANTHROPIC_API_KEY`, `OPENAI_API_KEY` and so on)
//! are named by the catalogue, because they come and go with providers.

use std::ffi::OsString;
use std::path::PathBuf;

/// Moves every root: data to `$SELVEDGE_HOME/data`, configuration to
/// `$SELVEDGE_HOME/config`.
pub const HOME: &str = "SELVEDGE_HOME";
/// What to log to stderr, such as `info` or `selvedge_runtime=debug`.
pub const LOG: &str = "SELVEDGE_LOG";
/// The script that takes the place of a model, as `--script` does.
pub const SCRIPT: &str = "SELVEDGE_SCRIPT";
/// The cassette that everything models answer is added to, as `--record` does.
pub const RECORD: &str = "SELVEDGE_RECORD";
/// The passphrase of the stored keys. At a terminal it is asked for instead.
pub const PASSPHRASE: &str = "SELVEDGE_PASSPHRASE";
/// All of the above: those that belong to no configuration key.
pub const OWN: [&str; 5] = [HOME, LOG, SCRIPT, RECORD, PASSPHRASE];
/// What the variable of a configuration key begins with: `SELVEDGE_BUDGET_USD`.
pub const CONFIG_PREFIX: &str = "SELVEDGE_";

const USER_HOME: &str = "HOME";
const XDG_DATA: &str = "XDG_DATA_HOME";
const XDG_CONFIG: &str = "XDG_CONFIG_HOME";
const NO_COLOR: &str = "NO_COLOR";

/// A variable that is set and not empty.
pub fn text(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// A variable that is set, not empty, and text.
pub fn word(name: &str) -> Option<String> {
    text(name)?.into_string().ok()
}

/// A variable that names a file or folder.
pub fn path(name: &str) -> Option<PathBuf> {
    text(name).map(PathBuf::from)
}

/// The XDG data root.
pub fn xdg_data() -> Option<PathBuf> {
    xdg(XDG_DATA, ".local/share")
}

/// The XDG configuration root.
pub fn xdg_config() -> Option<PathBuf> {
    xdg(XDG_CONFIG, ".config")
}

fn xdg(name: &str, below_home: &str) -> Option<PathBuf> {
    // The specification has relative paths ignored.
    let named = path(name).filter(|path| path.is_absolute());
    named.or_else(|| Some(path(USER_HOME)?.join(below_home)))
}

/// Whether colours are unwanted.
pub fn no_color() -> bool {
    text(NO_COLOR).is_some()
}

//! The secrets of this process, and texts that a person gives it.
//!
//! One registry for the whole process: whatever is printed, logged or handed to an
//! agent is looked at with it. Keys become known as they are read.

use std::io::{self, BufRead, Write};
use std::sync::{Arc, LazyLock, RwLock};

use selvedge_model::Clean;
use selvedge_tool::{CustomPattern, Secrets, Severity, Sighting};

use crate::config::{Config, OnSecret};
use crate::error::{Error, Exit, Result};
use crate::out;

static SECRETS: LazyLock<Secrets> = LazyLock::new(Secrets::new);
static MODE: RwLock<OnSecret> = RwLock::new(OnSecret::Refuse);

/// What this process keeps to itself.
pub fn of_this_process() -> &'static Secrets {
    &SECRETS
}

/// Learns the secrets of the environment, and what the configuration says of them.
pub fn learn(config: &Config) -> Result<()> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    SECRETS.know_environment(std::env::vars_os().filter_map(text));
    let settings = config.settings().secrets;
    let mode = settings.prompt.unwrap_or(OnSecret::Refuse);
    *MODE.write().expect("no panic under this lock") = mode;
    let custom = settings.patterns.into_iter().map(|pattern| CustomPattern {
        name: pattern.name,
        regex: pattern.regex,
    });
    let custom: Vec<CustomPattern> = custom.collect();
    SECRETS.adopt(&custom, &settings.files).map_err(|error| {
        Error::usage("the configuration under `[secrets]` cannot be used")
            .cause(error)
            .hint("correct it; `selvedge config path` names the files")
    })
}

/// Takes known values out of what is kept outside of the ledger.
pub fn cleaner() -> Clean {
    Arc::new(|text| SECRETS.redact_known(text).into_owned())
}

/// Lets a text pass that is to be given to an agent, or says why it may not.
///
/// `what` it is, such as `request`. What looks like a secret is let pass if it was
/// allowed by a flag; a value that this process knows never is.
pub fn check(what: &str, text: &str, is_allowed: bool) -> Result<()> {
    let mode = *MODE.read().expect("no panic under this lock");
    let found = SECRETS.scan(text);
    if let Some(known) = found.iter().find(|found| found.pattern == "known_value") {
        return Err(refusal(what, known).hint(
            "take it out; a tool can use it from the environment without anybody seeing it",
        ));
    }
    let is_bad = |found: &&Sighting| found.severity >= Severity::High;
    if let Some(bad) = found.iter().find(is_bad)
        && mode == OnSecret::Refuse
        && !is_allowed
    {
        return Err(refusal(what, bad).hint(
            "take it out, and let a tool read it from a variable or a file; if it is none, pass \
             `--allow-secret`",
        ));
    }
    if mode != OnSecret::Off && !is_allowed {
        let warn = |found| out::warn(&format!("the {what} may hold a secret: {}", place(found)));
        found.iter().for_each(warn);
    }
    Ok(())
}

/// As [`check`], and whoever is at the terminal may say that it is no secret.
pub fn guard(what: &str, text: &str, is_allowed: bool) -> Result<()> {
    let refused = check(what, text, is_allowed);
    match refused {
        Err(refused) if out::can_ask() && check(what, text, true).is_ok() => {
            out::say(&refused.to_string());
            let _ = write!(io::stderr(), "is it none, and to be sent? yes or no: ");
            let mut answer = String::new();
            let read = io::stdin().lock().read_line(&mut answer);
            match read.is_ok() && matches!(answer.trim(), "yes" | "y") {
                true => Ok(()),
                false => Err(Error::new(Exit::Denied, format!("the {what} was not sent"))),
            }
        }
        other => other,
    }
}

/// The place of a secret, in words that do not say it.
pub fn place(found: &Sighting) -> String {
    format!(
        "{} in line {}, at `{}`",
        found.pattern, found.line, found.context
    )
}

fn refusal(what: &str, found: &Sighting) -> Error {
    Error::new(
        Exit::Denied,
        format!("the {what} holds a secret and was not sent"),
    )
    .cause(place(found))
}

/// Where the log goes: to stderr, without secrets.
pub struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        io::stderr()
            .lock()
            .write_all(SECRETS.redact(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

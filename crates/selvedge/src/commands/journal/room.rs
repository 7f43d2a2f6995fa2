//! What every command of the journal needs: the folder, the clock, the domains.

use std::path::{Path, PathBuf};

use jiff::Zoned;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use selvedge_crews::journal::{DOMAINS, Domains, Notes, NotesError, Units};

use super::enter::Manner;
use crate::commands::run;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::out;
use crate::paths::Paths;
use crate::text::escape;

/// The journal of a user.
pub struct Room {
    /// Where everything else is.
    pub paths: Paths,
    /// What is set.
    pub config: Config,
    /// The folder of the notes.
    pub folder: PathBuf,
    /// The user's time zone.
    pub zone: TimeZone,
    /// Which units the user counts in.
    pub units: Units,
}

impl Room {
    /// The journal that the configuration names.
    pub fn open(manner: &Manner) -> Result<Self> {
        let mut room = Self::here()?;
        let word = |text: &String| toml::Value::String(text.clone());
        room.config
            .flag("model", "--model", manner.model.as_ref().map(word));
        Ok(room)
    }

    /// The same where no model is asked.
    pub fn here() -> Result<Self> {
        let paths = Paths::find()?;
        let config = Config::load(&paths, &run::workspace(None)?)?;
        config
            .warnings()
            .iter()
            .for_each(|warning| out::warn(warning));
        let settings = config.settings().journal;
        let folder = match &settings.dir {
            Some(folder) => expanded(folder),
            None => paths.journal(),
        };
        let zone = match &settings.timezone {
            Some(name) => TimeZone::get(name).map_err(|error| {
                Error::usage(format!("`journal.timezone` names no time zone: `{name}`"))
                    .cause(error)
                    .hint("name one such as `Europe/Berlin`, or leave it out")
            })?,
            None => TimeZone::system(),
        };
        Ok(Self {
            folder,
            zone,
            units: settings.units.map(Into::into).unwrap_or_default(),
            paths,
            config,
        })
    }

    /// The notes.
    pub fn notes(&self) -> Notes {
        Notes::at(&self.folder)
    }

    /// The domains. Those that are broken are named.
    pub fn domains(&self) -> Domains {
        let domains = Domains::load(&self.folder.join(DOMAINS));
        domains
            .faults
            .iter()
            .for_each(|fault| out::warn(&escape(fault)));
        domains
    }

    /// The user's moment: now, or the one that is given.
    pub fn moment(&self, at: Option<&str>) -> Result<DateTime> {
        let now = Zoned::now().with_time_zone(self.zone.clone()).datetime();
        let Some(at) = at else {
            return Ok(now);
        };
        let moment = at.trim().replacen(' ', "T", 1).parse::<DateTime>().ok();
        let moment = moment.or_else(|| {
            let (day, _) = selvedge_crews::journal::days_of(at, now.date())?;
            Some(day.to_datetime(now.time()))
        });
        moment.ok_or_else(|| {
            Error::usage(format!("`{}` is no moment", escape(at)))
                .hint("write `2026-01-04 10:30`, `2026-01-04` or `yesterday`")
        })
    }
}

/// A path with the home in the place of `~`.
fn expanded(folder: &str) -> PathBuf {
    match (folder.strip_prefix("~/"), crate::env::home()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => Path::new(folder).to_owned(),
    }
}

impl From<NotesError> for Error {
    fn from(error: NotesError) -> Self {
        let hint = format!(
            "make room or grant access, then try again: `{}`",
            error.path.display()
        );
        Self::failed("the notes cannot be used")
            .cause(&error)
            .hint(hint)
    }
}

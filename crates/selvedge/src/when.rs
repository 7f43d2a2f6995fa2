//! A moment that a person names: a day, or so long ago.

use selvedge_ledger::Time;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// A moment, or so many milliseconds before now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    /// This moment.
    At(Time),
    /// So many milliseconds before now.
    Ago(i64),
}

impl When {
    /// The moment, seen from `now`.
    pub fn from(self, now: Time) -> Time {
        match self {
            Self::At(time) => time,
            Self::Ago(millis) => Time(now.0.saturating_sub(millis)),
        }
    }

    /// `2026-11-01`, `7d`, `24h` or `30m`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is neither a day such as `2026-11-01` nor a time such as `7d`");
        if let Ok(day) = text.parse::<jiff::civil::Date>() {
            let start = day
                .to_zoned(jiff::tz::TimeZone::system())
                .map_err(|_| wrong())?;
            return Ok(Self::At(Time(start.timestamp().as_millisecond())));
        }
        let unit = match text.chars().last() {
            Some('d') => DAY_MS,
            Some('h') => DAY_MS / 24,
            Some('m') => DAY_MS / 24 / 60,
            _ => return Err(wrong()),
        };
        let number: u32 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
        Ok(Self::Ago(i64::from(number).saturating_mul(unit)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_day_or_a_length_of_time() {
        assert_eq!(When::parse("7d"), Ok(When::Ago(7 * DAY_MS)));
        assert_eq!(When::parse("24h"), Ok(When::Ago(DAY_MS)));
        assert!(matches!(When::parse("2026-11-01"), Ok(When::At(_))));
        for wrong in ["", "d", "7", "-1d", "2026-13-01", "7 days", "é"] {
            assert!(When::parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(When::Ago(5).from(Time(7)), Time(2));
    }
}

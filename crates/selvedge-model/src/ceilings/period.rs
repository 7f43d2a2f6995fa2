//! The day, the week and the month, as the user's calendar has them.

use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan, Zoned};
use selvedge_ledger::Time;
use serde::{Deserialize, Serialize};

/// How long an allowance lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Period {
    /// From midnight.
    Day,
    /// From Monday.
    Week,
    /// From the first.
    Month,
}

impl Period {
    /// From when until when the period lasts that `now` is in: the end belongs to
    /// the next.
    pub fn span(self, now: Time, zone: &TimeZone) -> (Time, Time) {
        self.civil(now, zone).unwrap_or((now, now))
    }

    fn civil(self, now: Time, zone: &TimeZone) -> Option<(Time, Time)> {
        let now = Timestamp::from_millisecond(now.0).ok()?;
        let today = now.to_zoned(zone.clone()).start_of_day().ok()?;
        let (start, length): (Zoned, Span) = match self {
            Self::Day => (today, 1.day()),
            Self::Week => {
                let since_monday = today.weekday().to_monday_zero_offset();
                let monday = today.checked_sub(i64::from(since_monday).days()).ok()?;
                (monday, 1.week())
            }
            Self::Month => (today.first_of_month().ok()?, 1.month()),
        };
        let start = start.start_of_day().ok()?;
        let end = start.checked_add(length).ok()?.start_of_day().ok()?;
        let time = |zoned: &Zoned| Time(zoned.timestamp().as_millisecond());
        Some((time(&start), time(&end)))
    }

    /// "day", "week", "month".
    pub fn noun(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, zone: &TimeZone) -> Time {
        let civil: jiff::civil::DateTime = text.parse().unwrap();
        let zoned = civil.to_zoned(zone.clone()).unwrap();
        Time(zoned.timestamp().as_millisecond())
    }

    #[test]
    fn periods_follow_the_users_calendar() {
        let zone = TimeZone::get("Europe/Berlin").unwrap_or(TimeZone::UTC);
        let now = at("2026-11-18T10:30:00", &zone);
        for (period, start, end) in [
            (Period::Day, "2026-11-18T00:00:00", "2026-11-19T00:00:00"),
            (Period::Week, "2026-11-16T00:00:00", "2026-11-23T00:00:00"),
            (Period::Month, "2026-11-01T00:00:00", "2026-12-01T00:00:00"),
        ] {
            let expected = (at(start, &zone), at(end, &zone));
            assert_eq!(period.span(now, &zone), expected, "{period:?}");
            // The end is the next one's.
            assert_eq!(period.span(expected.1, &zone).0, expected.1);
        }
    }

    #[test]
    fn a_day_may_have_twenty_five_hours() {
        let Ok(zone) = TimeZone::get("Europe/Berlin") else {
            panic!("the system has no time zones");
        };
        let (start, end) = Period::Day.span(at("2026-10-25T12:00:00", &zone), &zone);
        assert_eq!(end.millis_since(start), 25 * 3600 * 1000);
    }
}

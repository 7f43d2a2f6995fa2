//! Days as people speak of them: `yesterday`, `last week`, `since March`.
//!
//! Everything is a calendar day in the user's time zone, counted from the day that the
//! entry's clock shows. A day is a day, however many hours a change of clocks gives it.

use jiff::civil::{Date, Weekday};
use jiff::{Span, ToSpan};

/// Days from the first to the last, both included.
pub type Days = (Date, Date);

/// What words for a stretch of time mean on `today`; `None` if they mean none.
pub fn range(words: &str, today: Date) -> Option<Days> {
    let words = words.trim().to_lowercase();
    let words = words.trim_end_matches(['?', '.', '!', ',']).trim();
    if let Some((start, end)) = words.split_once("..") {
        return ordered(day(start, today)?, day(end, today)?);
    }
    for between in ["from ", "between "] {
        let rest = words.strip_prefix(between);
        let halves = rest.and_then(|rest| {
            [" to ", " until ", " and "]
                .iter()
                .find_map(|and| rest.split_once(and))
        });
        if let Some((start, end)) = halves {
            return ordered(range(start, today)?.0, range(end, today)?.1);
        }
    }
    for since in ["since ", "from "] {
        if let Some(rest) = words.strip_prefix(since) {
            return ordered(range(rest, today)?.0, today);
        }
    }
    let words = ["in ", "on ", "during ", "the ", "over "]
        .iter()
        .fold(words, |words, filler| {
            words.strip_prefix(filler).unwrap_or(words)
        });
    if let Some(day) = day(words, today) {
        return Some((day, day));
    }
    stretch(words, today).or_else(|| month(words, today))
}

/// The stretch of time that a text speaks of: the longest words in it that mean one.
pub fn mentioned(text: &str, today: Date) -> Option<Days> {
    const WORDS_MAX: usize = 5;
    let text = text.to_lowercase();
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || ",;:!?()".contains(c))
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| !word.is_empty())
        .collect();
    for length in (1..=WORDS_MAX.min(words.len())).rev() {
        for at in 0..=words.len() - length {
            let piece = &words[at..at + length];
            // `may` and `march` alone are more often verbs than months.
            if length == 1
                && (["may", "march", "second", "a"].contains(&piece[0]) || is_number(piece[0]))
            {
                continue;
            }
            if let Some(days) = range(&piece.join(" "), today) {
                return Some(days);
            }
        }
    }
    None
}

/// The single day that a text speaks of: `yesterday`, `on Monday`, `3 days ago`.
pub fn day_mentioned(text: &str, today: Date) -> Option<Date> {
    mentioned(text, today)
        .filter(|(start, end)| start == end)
        .map(|(day, _)| day)
}

fn day(words: &str, today: Date) -> Option<Date> {
    let words = words.trim();
    if let Ok(date) = words.parse::<Date>() {
        return Some(date);
    }
    let back = |days: i64| today.checked_sub(days.days()).ok();
    match words {
        "today" | "now" | "this morning" | "this afternoon" | "this evening" | "tonight" => {
            return Some(today);
        }
        "yesterday" | "last night" | "yesterday morning" | "yesterday evening" => return back(1),
        "day before yesterday" => return back(2),
        "tomorrow" => return today.tomorrow().ok(),
        _ => {}
    }
    if let Some(ago) = words.strip_suffix(" ago") {
        let (number, unit) = ago.split_once(' ')?;
        return today.checked_sub(span(count(number)?, unit)?).ok();
    }
    let named = words
        .strip_prefix("last ")
        .or(words.strip_prefix("this past "))
        .unwrap_or(words);
    let weekday = weekday(named)?;
    // A weekday is the last one before today; said on that day it is a week ago.
    let mut behind = today.weekday().since(weekday);
    if behind == 0 {
        behind = 7;
    }
    back(i64::from(behind))
}

fn stretch(words: &str, today: Date) -> Option<Days> {
    let week = |date: Date| {
        let monday = date
            .checked_sub(i64::from(date.weekday().to_monday_zero_offset()).days())
            .ok()?;
        Some((monday, monday.checked_add(6.days()).ok()?))
    };
    let whole_month = |date: Date| Some((date.first_of_month(), date.last_of_month()));
    let whole_year = |date: Date| Some((date.first_of_year(), date.last_of_year()));
    match words {
        "this week" => return week(today).map(|(start, _)| (start, today)),
        "last week" | "previous week" => return week(today.checked_sub(1.week()).ok()?),
        "this weekend" | "weekend" | "last weekend" => {
            let (monday, _) = week(today.checked_sub(1.week()).ok()?)?;
            let saturday = monday.checked_add(5.days()).ok()?;
            let saturday = match words {
                "last weekend" => saturday,
                _ => saturday.checked_add(1.week()).ok()?,
            };
            return Some((saturday, saturday.tomorrow().ok()?));
        }
        "this month" => return Some((today.first_of_month(), today)),
        "last month" | "previous month" => {
            return whole_month(today.first_of_month().yesterday().ok()?);
        }
        "this year" => return Some((today.first_of_year(), today)),
        "last year" | "previous year" => {
            return whole_year(today.first_of_year().yesterday().ok()?);
        }
        "ever" | "all time" | "always" => {
            return Some((Date::constant(1, 1, 1), today));
        }
        _ => {}
    }
    for past in ["last ", "past ", "previous "] {
        let Some(rest) = words.strip_prefix(past) else {
            continue;
        };
        let (number, unit) = match rest.split_once(' ') {
            Some((number, unit)) => (count(number)?, unit),
            None => (1, rest),
        };
        let start = today.checked_sub(span(number, unit)?).ok()?;
        return ordered(start, today);
    }
    match words.parse::<i16>() {
        Ok(year) if words.len() == 4 => {
            let first = Date::new(year, 1, 1).ok()?;
            whole_year(first)
        }
        _ => None,
    }
}

/// `march`, `march 2025`, `march 3`, `3 march 2025`, `2025-03`.
fn month(words: &str, today: Date) -> Option<Days> {
    if let Some((year, month)) = words.split_once('-')
        && let (Ok(year), Ok(month)) = (year.parse(), month.parse())
    {
        let first = Date::new(year, month, 1).ok()?;
        return Some((first, first.last_of_month()));
    }
    let mut month = None;
    let (mut year, mut day): (Option<i16>, Option<i8>) = (None, None);
    for word in words
        .split([' ', ','])
        .filter(|w| !w.is_empty() && *w != "of")
    {
        let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        if let Some(named) = month_named(word) {
            month.replace(named).is_none().then_some(())?;
        } else if digits.len() == 4 {
            year = Some(digits.parse().ok()?);
        } else {
            day = Some(digits.parse().ok()?);
        }
    }
    let month = month?;
    // Without a year it is the last one that has begun.
    let year = year.unwrap_or(match month > today.month() {
        true => today.year() - 1,
        false => today.year(),
    });
    match day {
        Some(day) => {
            let date = Date::new(year, month, day).ok()?;
            Some((date, date))
        }
        None => {
            let first = Date::new(year, month, 1).ok()?;
            Some((first, first.last_of_month()))
        }
    }
}

fn ordered(start: Date, end: Date) -> Option<Days> {
    (start <= end).then_some((start, end))
}

fn span(count: i64, unit: &str) -> Option<Span> {
    Some(match unit.trim_end_matches('s') {
        "day" => count.days(),
        "week" => count.weeks(),
        "fortnight" => (count * 2).weeks(),
        "month" => count.months(),
        "quarter" => (count * 3).months(),
        "year" => count.years(),
        _ => return None,
    })
}

fn count(word: &str) -> Option<i64> {
    const WORDS: [&str; 13] = [
        "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
        "eleven", "twelve",
    ];
    let number = match word {
        "a" | "an" => Some(1),
        "couple" | "few" => Some(3),
        _ => WORDS
            .iter()
            .position(|w| *w == word)
            .and_then(|at| i64::try_from(at).ok()),
    };
    number
        .or_else(|| word.parse().ok())
        .filter(|n| (0..10_000).contains(n))
}

fn is_number(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_digit())
}

fn month_named(word: &str) -> Option<i8> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let is_it = |month: &str| month == word || (word.len() == 3 && month.starts_with(word));
    let at = MONTHS.iter().position(|month| is_it(month))?;
    i8::try_from(at + 1).ok()
}

fn weekday(word: &str) -> Option<Weekday> {
    const DAYS: [(&str, Weekday); 7] = [
        ("monday", Weekday::Monday),
        ("tuesday", Weekday::Tuesday),
        ("wednesday", Weekday::Wednesday),
        ("thursday", Weekday::Thursday),
        ("friday", Weekday::Friday),
        ("saturday", Weekday::Saturday),
        ("sunday", Weekday::Sunday),
    ];
    DAYS.iter()
        .find(|(name, _)| *name == word)
        .map(|(_, day)| *day)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use jiff::civil::date;
    use jiff::tz::TimeZone;

    use super::*;

    /// Wednesday.
    const TODAY: Date = date(2026, 11, 18);

    #[track_caller]
    fn check(words: &str, today: Date, expected: &str) {
        let found = range(words, today).map(|(start, end)| format!("{start}..{end}"));
        assert_eq!(found.as_deref(), Some(expected), "{words}");
    }

    #[test]
    fn words_mean_the_days_that_people_mean_by_them() {
        for (words, expected) in [
            ("today", "2026-11-18..2026-11-18"),
            ("Yesterday", "2026-11-17..2026-11-17"),
            ("last week", "2026-11-09..2026-11-15"),
            ("this week", "2026-11-16..2026-11-18"),
            ("last month", "2026-10-01..2026-10-31"),
            ("past 2 weeks", "2026-11-04..2026-11-18"),
            ("last 30 days", "2026-10-19..2026-11-18"),
            ("past month", "2026-10-18..2026-11-18"),
            ("since March", "2026-03-01..2026-11-18"),
            ("since last monday", "2026-11-16..2026-11-18"),
            ("in March", "2026-03-01..2026-03-31"),
            ("december", "2025-12-01..2025-12-31"),
            ("March 2025", "2025-03-01..2025-03-31"),
            ("March 3rd", "2026-03-03..2026-03-03"),
            ("3 days ago", "2026-11-15..2026-11-15"),
            ("two weeks ago", "2026-11-04..2026-11-04"),
            ("on Wednesday", "2026-11-11..2026-11-11"),
            ("last weekend", "2026-11-14..2026-11-15"),
            ("2026-01-04", "2026-01-04..2026-01-04"),
            ("2026-01-01..2026-01-31", "2026-01-01..2026-01-31"),
            ("2026-02", "2026-02-01..2026-02-28"),
            ("2025", "2025-01-01..2025-12-31"),
            ("from January to March", "2026-01-01..2026-03-31"),
            ("last year", "2025-01-01..2025-12-31"),
        ] {
            check(words, TODAY, expected);
        }
        for nonsense in [
            "",
            "bench",
            "the",
            "99999999999 days ago",
            "2026-13-45",
            "monday tuesday",
        ] {
            assert_eq!(range(nonsense, TODAY), None, "{nonsense}");
        }
    }

    #[test]
    fn ends_of_months_and_years_are_real_days() {
        check("last month", date(2026, 3, 31), "2026-02-01..2026-02-28");
        check("last month", date(2024, 3, 31), "2024-02-01..2024-02-29");
        check("a month ago", date(2026, 3, 31), "2026-02-28..2026-02-28");
        check("yesterday", date(2026, 3, 1), "2026-02-28..2026-02-28");
        check("yesterday", date(2026, 1, 1), "2025-12-31..2025-12-31");
        check("last week", date(2026, 1, 1), "2025-12-22..2025-12-28");
        check("a year ago", date(2024, 2, 29), "2023-02-28..2023-02-28");
    }

    #[test]
    fn what_day_it_is_depends_on_the_users_time_zone_not_on_the_servers() {
        // Half past eleven in the evening in New York is the next day in Berlin.
        let moment: Timestamp = "2026-03-08T04:30:00Z".parse().unwrap();
        let day = |zone: &str| moment.to_zoned(TimeZone::get(zone).unwrap()).date();
        check(
            "yesterday",
            day("America/New_York"),
            "2026-03-06..2026-03-06",
        );
        check("yesterday", day("Europe/Berlin"), "2026-03-07..2026-03-07");
    }

    #[test]
    fn a_change_of_clocks_moves_no_day() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        // On 29 March 2026 clocks go from two to three, on 25 October from three to two.
        for (moment, expected) in [
            ("2026-03-29T00:59:00Z", "2026-03-28..2026-03-28"),
            ("2026-03-29T01:01:00Z", "2026-03-28..2026-03-28"),
            ("2026-10-25T00:30:00Z", "2026-10-24..2026-10-24"),
            ("2026-10-25T22:59:00Z", "2026-10-24..2026-10-24"),
            ("2026-10-25T23:01:00Z", "2026-10-25..2026-10-25"),
        ] {
            let moment: Timestamp = moment.parse().unwrap();
            check("yesterday", moment.to_zoned(zone.clone()).date(), expected);
        }
    }

    #[test]
    fn a_text_is_searched_for_the_time_that_it_speaks_of() {
        let found = |text: &str| mentioned(text, TODAY).map(|(s, e)| format!("{s}..{e}"));
        assert_eq!(
            found("Why did my bench feel heavy last week?").as_deref(),
            Some("2026-11-09..2026-11-15")
        );
        assert_eq!(
            found("average sleep in March").as_deref(),
            Some("2026-03-01..2026-03-31")
        );
        assert_eq!(found("Bench 185x5, felt heavy"), None);
        assert_eq!(found("I may run 5 k"), None);
        assert_eq!(
            day_mentioned("ran 5k yesterday", TODAY),
            Some(date(2026, 11, 17))
        );
        assert_eq!(day_mentioned("slept badly last week", TODAY), None);
    }
}

//! Drawings in plain text: a calendar of shades, and bars.

use std::collections::BTreeMap;

use jiff::ToSpan;
use jiff::civil::Date;

/// From nothing to a lot.
const SHADES: [char; 5] = ['·', '░', '▒', '▓', '█'];
const DAYS: [&str; 7] = ["Mon", "", "Wed", "", "Fri", "", "Sun"];
const BAR_CHARS: usize = 30;

/// A column for each week up to that of `today`, a row for each weekday.
pub fn calendar(by_day: &BTreeMap<Date, usize>, today: Date, weeks: usize) -> String {
    let monday = back(today, i64::from(today.weekday().to_monday_zero_offset()));
    let first = back(monday, 7 * (i64::try_from(weeks).unwrap_or(1) - 1));
    let most = by_day
        .range(first..=today)
        .map(|(_, count)| *count)
        .max()
        .unwrap_or(0);
    let mut lines = vec![String::from("    ")];
    let mut named = 0;
    for week in 0..weeks {
        let monday = after(first, 7 * week);
        let wide = lines[0].chars().count();
        // A name takes two columns: one that does not fit yet stands over the next week.
        if monday.month() != named && wide <= 4 + 2 * week {
            named = monday.month();
            lines[0].push_str(&" ".repeat(4 + 2 * week - wide));
            lines[0].push_str(&monday.strftime("%b").to_string());
        }
    }
    for (weekday, name) in DAYS.iter().enumerate() {
        let mut line = format!("{name:<4}");
        for week in 0..weeks {
            let day = after(first, 7 * week + weekday);
            line.push(match day > today {
                true => ' ',
                false => shade(by_day.get(&day).copied().unwrap_or(0), most),
            });
            line.push(' ');
        }
        lines.push(line.trim_end().to_owned());
    }
    lines.push(format!(
        "\n    less {} more",
        SHADES.map(String::from).join(" ")
    ));
    lines.join("\n")
}

/// A bar for each name, the longest first.
pub fn bars(counts: &BTreeMap<String, usize>) -> String {
    let mut counts: Vec<(&String, &usize)> = counts.iter().collect();
    counts.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), (*name).clone()));
    let most = counts.first().map_or(1, |(_, count)| **count).max(1);
    let wide = counts
        .iter()
        .map(|(name, _)| name.chars().count())
        .max()
        .unwrap_or(0);
    let line = |(name, count): &(&String, &usize)| {
        let bar = "█".repeat((**count * BAR_CHARS).div_ceil(most));
        format!("{name:<wide$}  {bar} {count}")
    };
    counts.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn shade(count: usize, most: usize) -> char {
    match count {
        0 => SHADES[0],
        _ => {
            SHADES[(count * (SHADES.len() - 1))
                .div_ceil(most.max(1))
                .min(SHADES.len() - 1)]
        }
    }
}

fn back(day: Date, days: i64) -> Date {
    day.saturating_sub(days.days())
}

fn after(day: Date, days: usize) -> Date {
    day.saturating_add(i64::try_from(days).unwrap_or(0).days())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use jiff::civil::date;

    use super::*;

    #[test]
    fn a_calendar_has_a_column_for_each_week() {
        let by_day = [
            (date(2026, 11, 2), 1),
            (date(2026, 11, 10), 2),
            (date(2026, 11, 18), 8),
        ];
        let drawn = calendar(&by_day.into(), date(2026, 11, 18), 4);
        expect![[r#"
            ....Oct Nov
            Mon · ░ · ·
                · · ░ ·
            Wed · · · █
                · · ·
            Fri · · ·
                · · ·
            Sun · · ·

                less · ░ ▒ ▓ █ more"#]]
        .assert_eq(&drawn.replacen("    Oct", "....Oct", 1));
    }

    #[test]
    fn bars_are_as_long_as_their_counts() {
        let counts = BTreeMap::from([("running".to_owned(), 5), ("strength".to_owned(), 10)]);
        let drawn = bars(&counts);
        let lengths: Vec<usize> = drawn
            .lines()
            .map(|line| line.matches('█').count())
            .collect();
        assert_eq!(lengths, [30, 15]);
    }
}

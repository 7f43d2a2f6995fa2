//! Arithmetic over rows: what was used, what was left out, and how much of the time it
//! covers.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Dimension, QuantityRow, Unit, Units};

/// Which number is wanted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// What is measured, such as `weight`, `distance` or `sleep`.
    pub measure: String,
    /// Of what, such as `bench press`. Everything if none.
    #[serde(default)]
    pub subject: Option<String>,
    /// What is done with the numbers.
    pub aggregate: Aggregate,
    /// One number for each of these instead of one for all.
    #[serde(default)]
    pub by: Option<Grouping>,
}

/// What is done with numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Aggregate {
    /// Their mean.
    Average,
    /// Their sum.
    Sum,
    /// The largest: a record of strength.
    Max,
    /// The smallest: a record of speed.
    Min,
    /// How many there are.
    Count,
    /// The first in time.
    First,
    /// The last in time.
    Last,
}

/// A stretch of time that numbers are put together by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Grouping {
    /// A day.
    Day,
    /// A week, from Monday.
    Week,
    /// A month.
    Month,
}

/// An entry with what counts of it.
pub struct Counted<'a> {
    /// Its id.
    pub entry: &'a str,
    /// The day that it is about.
    pub date: Date,
    /// Its quantities.
    pub rows: &'a [QuantityRow],
    /// Why it cannot be counted, if it cannot.
    pub skipped: Option<&'static str>,
}

/// A number, and what it rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Computed {
    /// What was asked.
    pub question: Question,
    /// From which day.
    pub start: String,
    /// To which day.
    pub end: String,
    /// The number; none if nothing was recorded.
    pub value: Option<f64>,
    /// Its unit.
    pub unit: String,
    /// One for each stretch of time, if that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Group>,
    /// How many quantities it is made of.
    pub rows: usize,
    /// The entries that were used.
    pub entries_used: Vec<String>,
    /// The entries that may say something and were not used.
    pub entries_skipped: Vec<Skipped>,
    /// On how many days something was recorded, of how many.
    pub coverage: String,
    /// How many units were not written, and taken from the user's preference.
    #[serde(default)]
    pub units_assumed: usize,
}

/// The number of a stretch of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Its first day.
    pub from: String,
    /// The number.
    pub value: f64,
}

/// An entry that was not used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Which.
    pub entry: String,
    /// Why.
    pub why: String,
}

/// Computes a number from entries that lie in a range, oldest first.
pub fn compute(
    question: &Question,
    (start, end): (Date, Date),
    entries: &[Counted<'_>],
    units: Units,
) -> Computed {
    let subject = question.subject.as_ref().map(|s| s.trim().to_lowercase());
    let measure = question.measure.trim().to_lowercase();
    let is_meant = |row: &&QuantityRow| {
        let is_subject = subject.as_ref().is_none_or(|wanted| {
            let of = row.subject.as_deref().unwrap_or_default();
            of == wanted || of.contains(wanted.as_str())
        });
        row.measure == measure && is_subject
    };
    let mut values: Vec<(Date, f64)> = Vec::new();
    let (mut used, mut skipped, mut days) = (Vec::new(), Vec::new(), BTreeSet::new());
    let (mut dimension, mut units_assumed): (Option<Dimension>, usize) = (None, 0);
    for entry in entries {
        if let Some(why) = entry.skipped {
            skipped.push(Skipped {
                entry: entry.entry.to_owned(),
                why: why.to_owned(),
            });
            continue;
        }
        let before = values.len();
        for row in entry.rows.iter().filter(is_meant) {
            // Kilograms and minutes are not added, whatever they are called.
            if *dimension.get_or_insert(row.dimension) != row.dimension {
                continue;
            }
            values.push((entry.date, row.value));
            units_assumed += usize::from(row.assumed_unit);
        }
        if values.len() > before {
            used.push(entry.entry.to_owned());
            days.insert(entry.date);
        }
    }
    let shown = dimension.map(|dimension| Unit::shown(dimension, units));
    let is_count = question.aggregate == Aggregate::Count;
    let put = |value: f64| match shown {
        Some(unit) if !is_count => unit.of_base(value),
        _ => value,
    };
    let mut groups: BTreeMap<Date, Vec<(Date, f64)>> = BTreeMap::new();
    if let Some(by) = question.by {
        for (date, value) in &values {
            groups
                .entry(first_of(by, *date))
                .or_default()
                .push((*date, *value));
        }
    }
    let groups = groups.into_iter().filter_map(|(from, values)| {
        Some(Group {
            from: from.to_string(),
            value: put(aggregate(question.aggregate, &values)?),
        })
    });
    let in_all = (end - start).get_days() + 1;
    Computed {
        question: question.clone(),
        start: start.to_string(),
        end: end.to_string(),
        value: aggregate(question.aggregate, &values).map(put),
        unit: match (is_count, shown) {
            (false, Some(unit)) => unit.name.to_owned(),
            _ => "count".to_owned(),
        },
        groups: groups.collect(),
        rows: values.len(),
        entries_used: used,
        entries_skipped: skipped,
        coverage: format!("{} of {in_all} days", days.len()),
        units_assumed,
    }
}

fn aggregate(how: Aggregate, values: &[(Date, f64)]) -> Option<f64> {
    let numbers = || values.iter().map(|(_, value)| *value);
    match how {
        Aggregate::Count => Some(values.len() as f64),
        _ if values.is_empty() => None,
        Aggregate::Average => Some(numbers().sum::<f64>() / values.len() as f64),
        Aggregate::Sum => Some(numbers().sum()),
        Aggregate::Max => numbers().reduce(f64::max),
        Aggregate::Min => numbers().reduce(f64::min),
        Aggregate::First => numbers().next(),
        Aggregate::Last => numbers().next_back(),
    }
}

fn first_of(by: Grouping, date: Date) -> Date {
    match by {
        Grouping::Day => date,
        Grouping::Week => {
            let back = i64::from(date.weekday().to_monday_zero_offset());
            date.saturating_sub(jiff::Span::new().days(back))
        }
        Grouping::Month => date.first_of_month(),
    }
}

impl Computed {
    /// The number in a sentence.
    pub fn summary(&self) -> String {
        let of = self.question.subject.as_deref().unwrap_or("everything");
        let what = serde_json::to_value(self.question.aggregate).unwrap_or_default();
        let what = what.as_str().unwrap_or_default().to_owned();
        let number = match self.value {
            Some(value) => format!("{} {}", rounded(value), self.unit),
            None => "nothing was recorded".to_owned(),
        };
        format!(
            "{what} {} of {of}, {} to {}: {number} ({} in {}, {} skipped, {})",
            self.question.measure,
            self.start,
            self.end,
            many(self.rows, "quantity", "quantities"),
            many(self.entries_used.len(), "entry", "entries"),
            many(self.entries_skipped.len(), "entry", "entries"),
            self.coverage
        )
    }
}

fn many(count: usize, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

/// A number as people write it.
fn rounded(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn sleep(hours: f64) -> Vec<QuantityRow> {
        vec![QuantityRow {
            domain: "general".into(),
            measure: "sleep".into(),
            subject: None,
            value: hours * 60.0,
            dimension: Dimension::Duration,
            written: hours,
            unit: "h".into(),
            assumed_unit: false,
        }]
    }

    fn question(aggregate: Aggregate, by: Option<Grouping>) -> Question {
        Question {
            measure: "sleep".into(),
            subject: None,
            aggregate,
            by,
        }
    }

    #[test]
    fn an_average_says_what_it_used_what_it_skipped_and_what_it_covers() {
        let (five, seven) = (sleep(5.0), sleep(7.0));
        let entry = |entry, day, rows, skipped| Counted {
            entry,
            date: date(2026, 3, day),
            rows,
            skipped,
        };
        let entries = [
            entry("a", 1, &five[..], None),
            entry("b", 2, &[], None),
            entry("c", 3, &seven[..], Some("its parsed data is stale")),
            entry("d", 9, &seven[..], None),
        ];
        let march = (date(2026, 3, 1), date(2026, 3, 31));
        let average = compute(
            &question(Aggregate::Average, None),
            march,
            &entries,
            Units::Metric,
        );
        assert_eq!((average.value, average.unit.as_str()), (Some(360.0), "min"));
        assert_eq!(average.entries_used, ["a", "d"]);
        assert_eq!(average.entries_skipped[0].entry, "c");
        assert_eq!(average.coverage, "2 of 31 days");
        let weeks = question(Aggregate::Max, Some(Grouping::Week));
        let weeks = compute(&weeks, march, &entries, Units::Metric).groups;
        // The first of March 2026 is a Sunday.
        let from: Vec<&str> = weeks.iter().map(|group| group.from.as_str()).collect();
        assert_eq!(from, ["2026-02-23", "2026-03-09"]);
    }

    #[test]
    fn nothing_recorded_is_no_number() {
        let day = date(2026, 3, 1);
        let none = compute(
            &question(Aggregate::Average, None),
            (day, day),
            &[],
            Units::Metric,
        );
        assert_eq!(none.value, None);
        let count = compute(
            &question(Aggregate::Count, None),
            (day, day),
            &[],
            Units::Metric,
        );
        assert_eq!(count.value, Some(0.0));
    }
}

//! Quantities as typed rows: read once out of what was parsed, and computed with by code.
//!
//! A domain's schema says under `x-rows` where its quantities are. Rows follow from the
//! parsed data alone, so a correction that changes the data changes the rows, and a value
//! that was corrected is never counted again.

mod compute;
mod unit;

pub use compute::{Computed, Counted, Question, compute};
pub use unit::{Dimension, Unit, Units};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A quantity that an entry records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuantityRow {
    /// The domain it was parsed by.
    pub domain: String,
    /// What is measured, such as `weight` or `sleep`.
    pub measure: String,
    /// Of what, such as `bench press`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// How much, in the base unit of its dimension.
    pub value: f64,
    /// What kind of quantity it is, which says the base unit.
    pub dimension: Dimension,
    /// How much, as it was written.
    pub written: f64,
    /// The unit that it was written in.
    pub unit: String,
    /// Whether the unit was not written, and taken from the user's preference.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub assumed_unit: bool,
}

/// Where in parsed data a quantity is: an element of a schema's `x-rows`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowRule {
    /// A list whose elements have one each, or a part that has one; none for the data
    /// itself.
    #[serde(default)]
    each: Option<String>,
    /// What is measured.
    measure: String,
    /// The field with what it is measured of.
    #[serde(default)]
    subject: Option<String>,
    /// The field with the number.
    value: String,
    /// The field with the unit.
    #[serde(default)]
    unit: Option<String>,
    /// The unit if none is written, for those who count in metres and kilograms.
    #[serde(default)]
    metric: Option<String>,
    /// The unit if none is written, for those who count in miles and pounds.
    #[serde(default)]
    imperial: Option<String>,
}

/// The rules that a schema declares.
pub fn rules(schema: &Value) -> Result<Vec<RowRule>, String> {
    let Some(rules) = schema.get("x-rows") else {
        return Ok(Vec::new());
    };
    let rules: Vec<RowRule> =
        serde_json::from_value(rules.clone()).map_err(|e| format!("`x-rows`: {e}"))?;
    for rule in &rules {
        for unit in [&rule.metric, &rule.imperial].into_iter().flatten() {
            if Unit::find(unit).is_none() {
                return Err(format!("`x-rows`: there is no unit `{unit}`"));
            }
        }
    }
    Ok(rules)
}

/// The quantities in what a domain parsed.
pub fn rows(domain: &str, schema: &Value, data: &Value, units: Units) -> Vec<QuantityRow> {
    let mut found = Vec::new();
    for rule in rules(schema).unwrap_or_default() {
        let places: Vec<&Value> = match &rule.each {
            None => vec![data],
            Some(part) => match &data[part.as_str()] {
                Value::Array(list) => list.iter().collect(),
                part => vec![part],
            },
        };
        found.extend(
            places
                .into_iter()
                .filter_map(|at| row(domain, &rule, at, units)),
        );
    }
    found
}

fn row(domain: &str, rule: &RowRule, at: &Value, units: Units) -> Option<QuantityRow> {
    let written = at.get(&rule.value)?.as_f64().filter(|n| n.is_finite())?;
    let named = rule.unit.as_ref().and_then(|field| at.get(field)?.as_str());
    let usual = match units {
        Units::Metric => rule.metric.as_ref(),
        Units::Imperial => rule.imperial.as_ref().or(rule.metric.as_ref()),
    };
    let known = named.and_then(Unit::find);
    // A unit that is not known is not replaced by one that is.
    let unit = match (named, known) {
        (Some(_), Some(unit)) => unit,
        (Some(_), None) => return None,
        (None, _) => Unit::find(usual.map_or("count", String::as_str))?,
    };
    let subject = rule
        .subject
        .as_ref()
        .and_then(|field| at.get(field)?.as_str());
    Some(QuantityRow {
        domain: domain.to_owned(),
        measure: rule.measure.clone(),
        subject: subject.map(|s| s.trim().to_lowercase()),
        value: unit.to_base(written),
        dimension: unit.dimension,
        written,
        unit: unit.name.to_owned(),
        assumed_unit: named.is_none() && rule.unit.is_some(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({ "x-rows": [{
            "each": "exercises", "subject": "name", "measure": "weight", "value": "weight",
            "unit": "weight_unit", "metric": "kg", "imperial": "lb",
        }] })
    }

    #[test]
    fn a_weight_is_the_same_in_pounds_and_in_kilograms() {
        let data = json!({ "exercises": [
            { "name": "Bench press", "weight": 185, "weight_unit": "lb" },
            { "name": "Squat", "weight": 100, "weight_unit": "kg" },
        ] });
        let rows = rows("strength", &schema(), &data, Units::Metric);
        assert!((rows[0].value - 83.914_588).abs() < 1e-3, "{rows:?}");
        assert_eq!((rows[0].written, rows[0].unit.as_str()), (185.0, "lb"));
        assert_eq!(rows[0].subject.as_deref(), Some("bench press"));
        assert!((rows[1].value - 100.0).abs() < 1e-9);
    }

    #[test]
    fn a_unit_that_is_not_written_is_the_users_and_marked_as_assumed() {
        let data = json!({ "exercises": [{ "name": "bench", "weight": 185 }] });
        let imperial = rows("strength", &schema(), &data, Units::Imperial);
        assert_eq!(
            (imperial[0].unit.as_str(), imperial[0].assumed_unit),
            ("lb", true)
        );
        let metric = rows("strength", &schema(), &data, Units::Metric);
        assert_eq!(metric[0].unit, "kg");
    }

    #[test]
    fn what_is_no_number_or_has_an_unknown_unit_is_no_row() {
        let data = json!({ "exercises": [
            { "name": "bench", "weight": "heavy" },
            { "name": "bench", "weight": 3, "weight_unit": "plates" },
            "nonsense",
        ] });
        assert!(rows("strength", &schema(), &data, Units::Metric).is_empty());
    }
}

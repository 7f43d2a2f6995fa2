//! Units, metric and imperial, and what they are worth.

use serde::{Deserialize, Serialize};

/// Which units a person counts in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Units {
    /// Metres and kilograms.
    #[default]
    Metric,
    /// Miles and pounds.
    Imperial,
}

/// What kind of quantity it is. Values are kept in the first unit that is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dimension {
    /// Kilograms.
    Mass,
    /// Kilometres.
    Distance,
    /// Minutes.
    Duration,
    /// Kilocalories.
    Energy,
    /// Millilitres.
    Volume,
    /// Minutes for a kilometre.
    Pace,
    /// Seconds for a hundred metres, as swimmers count.
    SwimPace,
    /// Beats a minute.
    Rate,
    /// Degrees Celsius.
    Temperature,
    /// A number of something.
    Count,
}

/// A unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// As it is shown.
    pub name: &'static str,
    /// What it measures.
    pub dimension: Dimension,
    /// How much of the base unit it is.
    factor: f64,
    /// What zero of it is in the base unit.
    offset: f64,
    /// How it is written, too.
    also: &'static [&'static str],
}

const fn unit(
    name: &'static str,
    dimension: Dimension,
    factor: f64,
    also: &'static [&'static str],
) -> Unit {
    Unit {
        name,
        dimension,
        factor,
        offset: 0.0,
        also,
    }
}

/// Of each dimension the base unit stands first. Factors are exact by definition.
const UNITS: &[Unit] = &[
    unit(
        "kg",
        Dimension::Mass,
        1.0,
        &["kgs", "kilo", "kilos", "kilogram", "kilograms"],
    ),
    unit("g", Dimension::Mass, 0.001, &["gram", "grams"]),
    unit(
        "mg",
        Dimension::Mass,
        0.000_001,
        &["milligram", "milligrams"],
    ),
    unit(
        "lb",
        Dimension::Mass,
        0.453_592_37,
        &["lbs", "pound", "pounds", "#"],
    ),
    unit(
        "oz",
        Dimension::Mass,
        0.028_349_523_125,
        &["ounce", "ounces"],
    ),
    unit("st", Dimension::Mass, 6.350_293_18, &["stone", "stones"]),
    unit(
        "km",
        Dimension::Distance,
        1.0,
        &[
            "k",
            "kms",
            "kilometre",
            "kilometres",
            "kilometer",
            "kilometers",
        ],
    ),
    unit(
        "m",
        Dimension::Distance,
        0.001,
        &["metre", "metres", "meter", "meters"],
    ),
    unit("mi", Dimension::Distance, 1.609_344, &["mile", "miles"]),
    unit(
        "yd",
        Dimension::Distance,
        0.000_914_4,
        &["yds", "yard", "yards"],
    ),
    unit("ft", Dimension::Distance, 0.000_304_8, &["foot", "feet"]),
    unit(
        "cm",
        Dimension::Distance,
        0.000_01,
        &["centimetre", "centimetres", "centimeter", "centimeters"],
    ),
    unit("in", Dimension::Distance, 0.000_025_4, &["inch", "inches"]),
    unit(
        "min",
        Dimension::Duration,
        1.0,
        &["mins", "minute", "minutes"],
    ),
    unit(
        "h",
        Dimension::Duration,
        60.0,
        &["hr", "hrs", "hour", "hours"],
    ),
    unit(
        "s",
        Dimension::Duration,
        1.0 / 60.0,
        &["sec", "secs", "second", "seconds"],
    ),
    unit(
        "kcal",
        Dimension::Energy,
        1.0,
        &["cal", "cals", "calorie", "calories", "kcals"],
    ),
    unit(
        "kJ",
        Dimension::Energy,
        1.0 / 4.184,
        &["kilojoule", "kilojoules"],
    ),
    unit(
        "ml",
        Dimension::Volume,
        1.0,
        &["millilitre", "millilitres", "milliliter", "milliliters"],
    ),
    unit(
        "l",
        Dimension::Volume,
        1000.0,
        &["litre", "litres", "liter", "liters"],
    ),
    unit(
        "fl oz",
        Dimension::Volume,
        29.573_529_562_5,
        &["floz", "fluid ounce", "fluid ounces"],
    ),
    unit("cup", Dimension::Volume, 236.588_236_5, &["cups"]),
    unit("min/km", Dimension::Pace, 1.0, &["/km", "min per km"]),
    unit(
        "min/mi",
        Dimension::Pace,
        1.0 / 1.609_344,
        &["/mi", "min per mile", "min/mile"],
    ),
    unit("s/100m", Dimension::SwimPace, 1.0, &["s/100 m"]),
    unit(
        "s/100yd",
        Dimension::SwimPace,
        1.0 / 0.9144,
        &["s/100 yd", "s/100y"],
    ),
    unit("bpm", Dimension::Rate, 1.0, &["beats per minute"]),
    unit("°C", Dimension::Temperature, 1.0, &["c", "celsius"]),
    Unit {
        name: "°F",
        dimension: Dimension::Temperature,
        factor: 5.0 / 9.0,
        offset: -160.0 / 9.0,
        also: &["f", "fahrenheit"],
    },
    unit(
        "count",
        Dimension::Count,
        1.0,
        &["times", "reps", "rep", "sets", "x"],
    ),
];

impl Unit {
    /// The unit that a word means.
    pub fn find(word: &str) -> Option<Self> {
        let word = word.trim().to_lowercase();
        let means =
            |unit: &&Self| unit.name.to_lowercase() == word || unit.also.contains(&word.as_str());
        UNITS.iter().find(means).copied()
    }

    /// The base unit of a dimension.
    pub fn base(dimension: Dimension) -> Self {
        let of = UNITS.iter().find(|unit| unit.dimension == dimension);
        of.copied().expect("every dimension has a base unit")
    }

    /// The unit in which somebody wants to read a quantity.
    pub fn shown(dimension: Dimension, units: Units) -> Self {
        let name = match (dimension, units) {
            (Dimension::Mass, Units::Imperial) => "lb",
            (Dimension::Distance, Units::Imperial) => "mi",
            (Dimension::Pace, Units::Imperial) => "min/mi",
            (Dimension::SwimPace, Units::Imperial) => "s/100yd",
            (Dimension::Temperature, Units::Imperial) => "°F",
            (Dimension::Volume, Units::Imperial) => "fl oz",
            _ => return Self::base(dimension),
        };
        Self::find(name).expect("it stands in the table")
    }

    /// So much of it, in the base unit.
    pub fn to_base(self, amount: f64) -> f64 {
        amount * self.factor + self.offset
    }

    /// So much of the base unit, in this one.
    pub fn of_base(self, amount: f64) -> f64 {
        (amount - self.offset) / self.factor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_found_by_all_its_names_and_goes_there_and_back() {
        for unit in UNITS {
            for name in unit.also.iter().chain([&unit.name]) {
                assert_eq!(Unit::find(&name.to_uppercase()), Some(*unit), "{name}");
            }
            let there = unit.of_base(unit.to_base(12.5));
            assert!((there - 12.5).abs() < 1e-9, "{}", unit.name);
        }
        assert_eq!(Unit::find("plates"), None);
    }

    #[test]
    fn conversions_are_those_of_the_textbook() {
        let to_base = |amount, name| Unit::find(name).unwrap().to_base(amount);
        assert!((to_base(26.2, "miles") - 42.164_8).abs() < 1e-3);
        assert!((to_base(98.6, "F") - 37.0).abs() < 1e-9);
        assert!((to_base(8.0, "min/mi") - 4.970_97).abs() < 1e-4);
        // A hundred yards are fewer metres: the same time is slower.
        assert!((to_base(90.0, "s/100yd") - 98.425).abs() < 1e-3);
        assert!((to_base(1.5, "hours") - 90.0).abs() < 1e-9);
        let shown = Unit::shown(Dimension::Mass, Units::Imperial);
        assert!((shown.of_base(100.0) - 220.462_262).abs() < 1e-5);
    }
}

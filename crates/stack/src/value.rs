//! Defines the values of cells, and their units.

use fulgurite_base::units::{self, significant_to};

/// The unit of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The values are names.
    Name,
    /// The values are pure numbers.
    Number,
    /// The values are nanoseconds, shown as ns, µs, ms or s.
    Nanoseconds,
    /// The values are bytes, shown as B, KiB, MiB, GiB or TiB.
    Bytes,
    /// The values are bytes per second, shown in powers of ten.
    BytesPerSecond,
}

impl Unit {
    /// Formats a value for people, in a suitable scale. Numbers have four significant digits, quantities with
    /// a unit three.
    pub fn humane(self, value: f64) -> String {
        match self.scales() {
            [] => Value::Real(value).readable(),
            scales => units::humane(value, scales),
        }
    }

    /// Returns the scales of the unit with their names, the largest first. Names and pure numbers have none.
    pub fn scales(self) -> &'static [(f64, &'static str)] {
        match self {
            Unit::Name | Unit::Number => &[],
            Unit::Nanoseconds => &[(1e9, " s"), (1e6, " ms"), (1e3, " µs"), (1.0, " ns")],
            Unit::Bytes => &units::HUMANE_SIZES,
            Unit::BytesPerSecond => &[(1e9, " GB/s"), (1e6, " MB/s"), (1e3, " kB/s"), (1.0, " B/s")],
        }
    }
}

/// The value of a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A name.
    Text(String),
    /// A count or a time in whole nanoseconds.
    Integer(u64),
    /// A ratio, a rate or a mean.
    Real(f64),
}

impl From<u64> for Value {
    fn from(value: u64) -> Value {
        Value::Integer(value)
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Value {
        Value::Integer(u64::from(value))
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Real(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Value {
        Value::Text(value)
    }
}

impl Value {
    /// Returns the value as a number; `None` for a name.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Text(_) => None,
            Value::Integer(integer) => Some(*integer as f64),
            Value::Real(real) => Some(*real),
        }
    }

    /// Formats the value exactly, as in CSV.
    pub fn exact(&self) -> String {
        match self {
            Value::Text(text) => text.clone(),
            Value::Integer(integer) => integer.to_string(),
            Value::Real(real) => real.to_string(),
        }
    }

    /// Formats the value for people: reals with four significant digits, integers in groups of three digits.
    pub fn readable(&self) -> String {
        match self {
            Value::Text(text) => text.clone(),
            Value::Integer(integer) => grouped(&integer.to_string()),
            Value::Real(real) if *real == 0.0 => "0".to_owned(),
            Value::Real(real) => {
                let text = significant_to(*real, 4);
                let (whole, rest) =
                    text.split_once('.').map_or((text.as_str(), ""), |(whole, rest)| (whole, rest));
                let dot = if rest.is_empty() { "" } else { "." };
                format!("{}{dot}{rest}", grouped(whole))
            }
        }
    }
}

fn grouped(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    let mut grouped = String::from(sign);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        for (real, text) in [
            (0.0, "0"),
            (12_345.678, "12,346"),
            (0.123_456, "0.1235"),
            (1.0, "1.000"),
            (-1_234.5, "-1,234"),
            (99.99, "99.99"),
        ] {
            assert_eq!(Value::Real(real).readable(), text);
        }
        assert_eq!(Value::Integer(1_234_567).readable(), "1,234,567");
    }
}

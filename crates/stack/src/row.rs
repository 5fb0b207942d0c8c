//! One run's results: a flat row of cells, each in its column.

use crate::Column;
use fulgurite_base::units::significant_to;

/// One cell.
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
    /// The number, if it is one.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Text(_) => None,
            Value::Integer(integer) => Some(*integer as f64),
            Value::Real(real) => Some(*real),
        }
    }

    /// The exact text: what CSV holds.
    pub fn exact(&self) -> String {
        match self {
            Value::Text(text) => text.clone(),
            Value::Integer(integer) => integer.to_string(),
            Value::Real(real) => real.to_string(),
        }
    }

    /// The text for people: reals to four significant digits, integers in groups of three.
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

/// One run's results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row(Vec<(Column, Value)>);

impl Row {
    /// Sets a column.
    pub fn set(&mut self, column: Column, value: impl Into<Value>) {
        let value = value.into();
        match self.0.iter_mut().find(|(known, _)| *known == column) {
            Some((_, old)) => *old = value,
            None => self.0.push((column, value)),
        }
    }

    /// Sets a column if there is a value.
    pub fn set_some(&mut self, column: Column, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.set(column, value);
        }
    }

    /// Drops the columns about the simulator's own cost: they differ from one execution to the
    /// next, and mean little where runs share the machine.
    pub fn drop_cost(&mut self) {
        self.0.retain(|(column, _)| !column.is_cost());
    }

    /// Drops all columns but these.
    pub fn keep(&mut self, columns: &[Column]) {
        self.0.retain(|(column, _)| columns.contains(column));
    }

    /// A column's value.
    pub fn get(&self, column: Column) -> Option<&Value> {
        self.0.iter().find(|(known, _)| *known == column).map(|(_, value)| value)
    }

    /// A column's number.
    pub fn number(&self, column: Column) -> Option<f64> {
        self.get(column)?.as_f64()
    }

    /// A column's text for people; empty where there is none.
    pub fn text(&self, column: Column) -> String {
        self.get(column).map(Value::readable).unwrap_or_default()
    }
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

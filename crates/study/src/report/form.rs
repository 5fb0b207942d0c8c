//! How the numbers of a plot are written. A plot has one form for all of its values. The bars, the published values,
//! the text that appears on pointing and the table under the picture show texts that are written here. The page's
//! script makes the steps of an axis, so it is given the form as data and has no rule of its own.

use crate::change;
use fulgurite_base::units::significant;
use fulgurite_stack::{Unit, Value};
use serde_json::json;

/// How the values of a plot are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// In a unit.
    Unit(Unit),
    /// As a change from zero: 0.1 is 10 % more.
    Change,
    /// A change again, written as its factor: 1.5 is `2.50×`.
    Factor,
    /// As a part of a whole: 0.1 is 10 %.
    Share,
}

/// A unit on the page: the least value that is written in it, what the value is divided by, what stands behind it.
type Step = (f64, f64, &'static str);

/// Pure numbers. Below ten thousand every digit can be read. A number that rounds up to a unit is written in it.
const NUMBERS: [Step; 4] =
    [(999_500_000.0, 1e9, " G"), (999_500.0, 1e6, " M"), (9_999.5, 1e3, " K"), (1.0, 1.0, "")];

/// How the values of one plot, or of one axis, are written.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    scale: Scale,
    /// Whether a number is written with all of its digits, so that 1 is `1.00` beside 1.68. Otherwise all of the numbers
    /// are counts.
    is_measured: bool,
}

impl Form {
    /// The form of `values`.
    pub fn of(scale: Scale, mut values: impl Iterator<Item = f64>) -> Form {
        Form { scale, is_measured: values.any(|value| value.fract() != 0.0) }
    }

    /// A value in the table under the picture. A reader looks there for what the picture does not tell apart, so a count
    /// has all of its digits and a measured number one more.
    pub fn in_table(self, value: f64) -> String {
        match self.scale {
            Scale::Unit(Unit::Name | Unit::Number) if self.is_measured || value < 0.0 => {
                Value::Real(value).readable()
            }
            Scale::Unit(Unit::Name | Unit::Number) => Value::Integer(value as u64).readable(),
            _ => self.text(value),
        }
    }

    /// A value in the picture.
    pub fn text(self, value: f64) -> String {
        match self.scale {
            Scale::Unit(Unit::Name | Unit::Number) => self.number(value).replace('-', "−"),
            Scale::Unit(unit) => unit.humane(value),
            Scale::Change => change::percent(value),
            Scale::Factor => change::factor(value) + "×",
            Scale::Share => format!("{:.1} %", 100.0 * value),
        }
    }

    fn number(self, value: f64) -> String {
        let reached = |(from, _, _): &&Step| value.abs() >= *from;
        let (from, per, name) = NUMBERS.iter().find(reached).copied().unwrap_or(NUMBERS[3]);
        match self.is_measured || from > 1.0 {
            true => significant(value / per) + name,
            false => format!("{value:.0}"),
        }
    }

    /// The form as data. A number of an axis is `times` the value and `plus`. It is written in the first unit that it
    /// reaches.
    pub fn of_axis(self) -> serde_json::Value {
        let (times, plus, units): (f64, f64, Vec<Step>) = match self.scale {
            Scale::Unit(unit) if !unit.scales().is_empty() => {
                (1.0, 0.0, unit.scales().iter().map(|(scale, name)| (*scale, *scale, *name)).collect())
            }
            Scale::Unit(_) => (1.0, 0.0, NUMBERS.to_vec()),
            Scale::Change | Scale::Share => (100.0, 0.0, vec![(0.0, 1.0, " %")]),
            Scale::Factor => (1.0, 1.0, vec![(0.0, 1.0, "×")]),
        };
        json!({ "times": times, "plus": plus, "isSigned": self.scale == Scale::Change, "units": units })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBER: Scale = Scale::Unit(Unit::Number);

    fn texts<const N: usize>(scale: Scale, values: [f64; N]) -> [String; N] {
        let form = Form::of(scale, values.into_iter());
        values.map(|value| form.text(value))
    }

    /// The rule: counts have no fraction. Beside a number with a fraction every number has three digits.
    #[test]
    fn counts_have_no_fraction_and_measured_numbers_have_three_digits() {
        assert_eq!(texts(NUMBER, [0.0, 1.0, 16.0, 2000.0, 9999.0]), ["0", "1", "16", "2000", "9999"]);
        assert_eq!(texts(NUMBER, [12_345.0, 2e6, 3e9]), ["12.3 K", "2.00 M", "3.00 G"]);
        assert_eq!(
            texts(NUMBER, [0.0, 1.0, 1.68, 16.0, 0.0421, 2000.0]),
            ["0", "1.00", "1.68", "16.0", "0.0421", "2000"]
        );
        assert_eq!(texts(NUMBER, [0.5, 12_345.0]), ["0.500", "12.3 K"]);
    }

    #[test]
    fn values_with_a_unit_have_it_behind_them() {
        assert_eq!(texts(Scale::Unit(Unit::Nanoseconds), [134_000.0, 2e9]), ["134 µs", "2.00 s"]);
        assert_eq!(texts(Scale::Unit(Unit::Bytes), [4096.0]), ["4 KiB"]);
        assert_eq!(texts(Scale::Change, [0.12, -0.185, 0.0]), ["+12.0 %", "−18.5 %", "0.0 %"]);
        assert_eq!(texts(Scale::Factor, [1.95, 0.0, 11.46, -0.5]), ["2.95×", "1.00×", "12.5×", "0.500×"]);
        assert_eq!(texts(Scale::Share, [0.12, 1.0]), ["12.0 %", "100.0 %"]);
    }

    /// The rule: the table tells apart what the picture does not.
    #[test]
    fn the_table_has_more_digits() {
        let cells =
            |values: [f64; 2]| values.map(|value| Form::of(NUMBER, values.into_iter()).in_table(value));
        assert_eq!(cells([2.4574, 16.0]), ["2.457", "16.00"]);
        assert_eq!(cells([30_926.5, 2000.0]), ["30,926", "2,000"]);
        assert_eq!(cells([30_926.0, 2000.0]), ["30,926", "2,000"]);
    }
}

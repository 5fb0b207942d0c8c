//! Formats the numbers of a plot, all values of the plot in one format. This format is used for the bars, the
//! published values, the tooltips and the table below the plot. The page's script labels the axes. It
//! receives the format as data and contains no formatting rules itself.

use crate::change;
use fulgurite_base::units::significant;
use fulgurite_stack::{Unit, Value};
use serde_json::json;

/// The quantity that the values of a plot express, which decides how they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// A quantity, with the unit of its values.
    Unit(Unit),
    /// A relative change, of which 0.1 means 10 % more.
    Change,
    /// A relative change that is written as a factor, so that 1.5 becomes `2.50×`.
    Factor,
    /// A share of a whole, of which 0.1 means 10 %.
    Share,
}

/// A unit for numbers: the smallest value that is written in it, the divisor, and the suffix.
type Step = (f64, f64, &'static str);

/// The units of pure numbers. Numbers below ten thousand are written with all digits. Each bound is the
/// smallest number that rounds to the unit's first value.
const NUMBERS: [Step; 4] =
    [(999_500_000.0, 1e9, " G"), (999_500.0, 1e6, " M"), (9_999.5, 1e3, " K"), (1.0, 1.0, "")];

/// The format of all values of one plot or one axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    scale: Scale,
    /// Whether any value has a fraction. If so, all numbers have three significant digits, so that 1 is
    /// written as `1.00` beside 1.68. Otherwise all values are counts.
    is_measured: bool,
}

impl Form {
    /// Chooses the format for `values`.
    pub(super) fn of(scale: Scale, mut values: impl Iterator<Item = f64>) -> Form {
        Form { scale, is_measured: values.any(|value| value.fract() != 0.0) }
    }

    /// Formats a value for the table below the plot, with more digits than in the plot. A count gets all its
    /// digits, and any other number one digit more.
    pub(super) fn in_table(self, value: f64) -> String {
        match self.scale {
            Scale::Unit(Unit::Name | Unit::Number) if self.is_measured || value < 0.0 => {
                Value::Real(value).readable()
            }
            Scale::Unit(Unit::Name | Unit::Number) => Value::Integer(value as u64).readable(),
            _ => self.text(value),
        }
    }

    /// Formats a value for the plot.
    pub(super) fn text(self, value: f64) -> String {
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

    /// Returns the format as data for the page's script. The script multiplies a value by `times` and adds
    /// `plus`. It writes the resulting number in the first of `units` whose bound the number reaches.
    pub(super) fn of_axis(self) -> serde_json::Value {
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

    /// The rule: counts have no fraction. If any number of a plot has a fraction, all its numbers have three
    /// significant digits.
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
    fn a_unit_follows_its_value() {
        assert_eq!(texts(Scale::Unit(Unit::Nanoseconds), [134_000.0, 2e9]), ["134 µs", "2.00 s"]);
        assert_eq!(texts(Scale::Unit(Unit::Bytes), [4096.0]), ["4 KiB"]);
        assert_eq!(texts(Scale::Change, [0.12, -0.185, 0.0]), ["+12.0 %", "−18.5 %", "0.0 %"]);
        assert_eq!(texts(Scale::Factor, [1.95, 0.0, 11.46, -0.5]), ["2.95×", "1.00×", "12.5×", "0.500×"]);
        assert_eq!(texts(Scale::Share, [0.12, 1.0]), ["12.0 %", "100.0 %"]);
    }

    /// The rule: values that look alike in the plot may still differ in the table, because the table has more
    /// digits.
    #[test]
    fn the_table_has_more_digits() {
        let cells =
            |values: [f64; 2]| values.map(|value| Form::of(NUMBER, values.into_iter()).in_table(value));
        assert_eq!(cells([2.4574, 16.0]), ["2.457", "16.00"]);
        assert_eq!(cells([30_926.5, 2000.0]), ["30,926", "2,000"]);
        assert_eq!(cells([30_926.0, 2000.0]), ["30,926", "2,000"]);
    }
}

//! Checks the conclusions of a study, usually those of a publication, against its result rows. The verdict
//! says whether a conclusion holds, with the figures and the rows in which they occur.

use super::file::{Check, Pair};
use super::finding::{describe, not_a_number, pairs, written};
use super::interval::Interval;
use super::select::{Select, known_columns};
use super::words::Words;
use crate::change;
use crate::report::{Answer, Verdict};
use crate::table::Table;
use fulgurite_base::units::{significant, significant_to};
use fulgurite_stack::StackError;
use fulgurite_stack::{Column, Row, Unit, Value};
use std::collections::BTreeMap;

/// A figure, and the name of the row in which it occurs.
type Figure = (f64, String);

/// The mean of the figures of rows with the same name, and the number of these figures.
struct Mean {
    interval: Interval,
    place: String,
    count: usize,
}

impl Check {
    /// Checks the conclusion in all rows that the check selects.
    pub(super) fn verdict(
        &self,
        table: &Table,
        words: Words<'_>,
        is_quick: bool,
    ) -> Result<Verdict, StackError> {
        let verdict = |answer, figure, why, noticed| {
            let says = self.says.clone();
            Verdict { says, answer, figure, why, noticed }
        };
        if let Some(reason) = self.full.as_ref().filter(|_| is_quick) {
            self.rows(table)?;
            // Injects the faults even if a quick run cannot tell whether the conclusion holds. The run still
            // tells whether the check could fail, provided that there are rows to compare.
            let noticed = self.noticed(table, words).unwrap_or(None);
            return Ok(verdict(Answer::NotChecked, String::new(), Some(reason.clone()), noticed));
        }
        let (holds, figure) = self.holds(table, words)?;
        let noticed = self.noticed(table, words)?;
        Ok(match holds {
            true => verdict(Answer::Holds, figure, None, noticed),
            false => verdict(Answer::Fails, figure, self.why.clone(), noticed),
        })
    }

    /// Returns whether the conclusion holds in the selected rows, and describes the figures.
    pub(super) fn holds(&self, table: &Table, words: Words<'_>) -> Result<(bool, String), StackError> {
        let mut rows = self.rows(table)?;
        if self.no_value.is_some() {
            rows.retain(|row| row.number(self.column).is_some());
            if rows.is_empty() {
                return Err(self.refused("no row has a number in `column`"));
            }
        }
        // Keeps only the selected rows in the table, because a row is named by the columns that differ
        // between the rows of its table.
        let table = &Table { rows: rows.iter().map(|row| (*row).clone()).collect() };
        match &self.falls_with {
            Some(axis) => self.falling(&rows, *axis, words),
            None => self.bounded(table, &rows, words),
        }
    }

    /// Returns the selected rows, or an error if there are none.
    fn rows<'a>(&self, table: &'a Table) -> Result<Vec<&'a Row>, StackError> {
        let rows = Select { part: self.part.as_deref(), only: &self.only }.of(table)?;
        match rows.is_empty() {
            true => Err(self.refused("no row matches `part` and `where`")),
            false => Ok(rows),
        }
    }

    fn refused(&self, reason: &str) -> StackError {
        StackError::request(format!("[[checks]] `{}`: {reason}", self.says))
    }

    /// Returns whether all figures are within the bounds, and describes the figures.
    fn bounded(&self, table: &Table, rows: &[&Row], words: Words<'_>) -> Result<(bool, String), StackError> {
        let figures = match &self.compare {
            None => self.plain(table, rows, words),
            Some(compare) => self.ratios(table, rows, compare, words)?,
        };
        let figures: Vec<Figure> = figures.ok_or_else(|| not_a_number(self.column))?;
        let mut figures = self.means(figures)?;
        figures.sort_by(|a, b| a.interval.mean.total_cmp(&b.interval.mean));
        let holds = figures.iter().all(|Mean { interval, .. }| {
            self.at_least.is_none_or(|bound| interval.low >= bound)
                && self.at_most.is_none_or(|bound| interval.high <= bound)
                && self.above.is_none_or(|bound| interval.low > bound)
                && self.below.is_none_or(|bound| interval.high < bound)
        });
        Ok((holds, format!("{}: {}", self.what(words)?, self.found(&figures))))
    }

    /// Returns a name for the figures.
    fn what(&self, words: Words<'_>) -> Result<String, StackError> {
        let of = words.column(self.column);
        Ok(match (&self.compare, self.against) {
            (Some(compare), _) => {
                let [old, new] = compare.sides()?.map(|side| written(&side, Some(words)));
                format!("{of}, {new} against {old}")
            }
            (None, Some(against)) => format!("{of} against {}", words.column(against)),
            (None, None) => of,
        })
    }

    /// Describes the smallest and the largest of sorted figures.
    fn found(&self, figures: &[Mean]) -> String {
        // Indexing cannot fail here, because `rows` returns at least one row, and `pairs` at least one pair.
        let (least, most) = (&figures[0], &figures[figures.len() - 1]);
        let as_factors = self.compare.is_some()
            && change::any_is_large(figures.iter().map(|figure| figure.interval.mean - 1.0));
        let [low, high] = [least, most].map(|mean| self.readable(mean, as_factors));
        let found = match figures.len() {
            1 => low,
            cases if low == high => format!("{low} in all {cases} cases"),
            cases => format!("from {low} ({}) to {high} ({}), in {cases} cases", least.place, most.place),
        };
        match self.over {
            Some(over) => format!("{found} (mean and 95 % confidence, {} values of {over})", least.count),
            None => found,
        }
    }

    /// Formats a figure, with its confidence interval if it has one. A ratio is written as a change or a
    /// factor. A ratio of two columns that is far from 1 is written as a share.
    fn readable(&self, figure: &Mean, as_factors: bool) -> String {
        let is_ratio = self.compare.is_some() || self.against.is_some();
        let readable = |figure: f64| match is_ratio {
            // A ratio far from 1 means that the column is a share of the column `against`, and not another
            // measurement of the same quantity.
            true if self.against.is_some() && (figure - 1.0).abs() > 0.1 => match 100.0 * figure {
                small if small < 1.0 => format!("{} %", significant_to(small, 2)),
                percent => format!("{percent:.1} %"),
            },
            true if as_factors => format!("{} times", significant(figure)),
            true if figure == 1.0 => "no change".to_owned(),
            true if (figure - 1.0).abs() < 0.01 => small_change(figure - 1.0),
            true => change::percent(figure - 1.0),
            false => humane(self.column, figure),
        };
        let Interval { mean, low, high } = figure.interval;
        match figure.count {
            1 => readable(mean),
            _ => format!("{} [{}, {}]", readable(mean), readable(low), readable(high)),
        }
    }

    /// Returns the columns that must not appear in the name of a row: those that are compared, and `over`.
    fn apart<'a>(&self, compared: impl Iterator<Item = &'a Column>) -> Vec<Column> {
        compared.copied().chain(self.over).collect()
    }

    fn plain(&self, table: &Table, rows: &[&Row], words: Words<'_>) -> Option<Vec<Figure>> {
        let apart = self.apart([].iter());
        let figure = |row: &&Row| {
            let by = self.against.map_or(Some(1.0), |against| row.number(against))?;
            Some((row.number(self.column)? / by, describe(table, row, &apart, words)))
        };
        rows.iter().map(figure).collect()
    }

    /// Returns the figure of the candidate divided by the figure of the baseline, for all pairs of rows with
    /// equal other settings.
    fn ratios(
        &self,
        table: &Table,
        rows: &[&Row],
        compare: &Pair,
        words: Words<'_>,
    ) -> Result<Option<Vec<Figure>>, StackError> {
        let [old, new] = compare.sides()?;
        known_columns(table, old.keys().copied())?;
        let apart = self.apart(old.keys());
        let ratio = |(old, new): (&Row, &Row)| {
            Some((new.number(self.column)? / old.number(self.column)?, describe(table, old, &apart, words)))
        };
        Ok(pairs(rows, &old, &new)?.into_iter().map(ratio).collect())
    }

    /// Returns the figures unchanged, or with `over` the mean of the figures of rows with the same name.
    fn means(&self, figures: Vec<Figure>) -> Result<Vec<Mean>, StackError> {
        let Some(over) = self.over else {
            let alone = |(figure, place)| Mean {
                interval: Interval { mean: figure, low: figure, high: figure },
                place,
                count: 1,
            };
            return Ok(figures.into_iter().map(alone).collect());
        };
        let mut places: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        figures.into_iter().for_each(|(figure, place)| places.entry(place).or_default().push(figure));
        let mean = |(place, values): (String, Vec<f64>)| {
            let interval = match self.compare {
                Some(_) => Interval::of_ratios(&values),
                None => Interval::of(&values),
            };
            let refused =
                || self.refused(&format!("a mean over {over} needs at least two rows for each place"));
            Ok(Mean { interval: interval.ok_or_else(refused)?, place, count: values.len() })
        };
        places.into_iter().map(mean).collect()
    }

    /// Returns whether each figure is smaller than the previous one along `axis`, for each value of
    /// `for_each`, and describes the smallest and the largest change.
    fn falling(&self, rows: &[&Row], axis: Column, words: Words<'_>) -> Result<(bool, String), StackError> {
        let line = |row: &Row| match self.for_each {
            Some(column) if row.number(column).is_some() => {
                format!("{} {}", words.column(column), row.text(column))
            }
            Some(column) => words.name(&row.text(column)).to_owned(),
            None => String::new(),
        };
        let mut points = Vec::new();
        for row in rows {
            let point = (line(row), row.number(axis), row.number(self.column));
            let (name, Some(x), Some(y)) = point else { return Err(not_a_number(axis)) };
            points.push((name, x, y));
        }
        // Sorts the points by line, because `windows` pairs neighbours and a pair must belong to one line.
        points.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let mut steps: Vec<Figure> = points
            .windows(2)
            .filter(|two| two[0].0 == two[1].0)
            .map(|two| {
                let of = if two[0].0.is_empty() { String::new() } else { format!("{}, ", two[0].0) };
                let [from, to] = [two[0].1, two[1].1].map(|x| humane(axis, x));
                let place = format!("{of}{} {from} to {to}", words.column(axis));
                (two[1].2 / two[0].2 - 1.0, place)
            })
            .filter(|(step, _)| step.is_finite())
            .collect();
        steps.sort_by(|a, b| a.0.total_cmp(&b.0));
        let Some(worst) = steps.last() else {
            return Err(self.refused("falls_with needs at least two rows that differ in that column"));
        };
        let least = &steps[0];
        Ok((
            worst.0 < 0.0,
            format!(
                "{}, from one step to the next: {} ({}) to {} ({})",
                words.column(self.column),
                change::signed(least.0),
                least.1,
                change::signed(worst.0),
                worst.1
            ),
        ))
    }
}

/// Formats a change of less than 1 % with two significant digits. One decimal is not enough: a change of
/// 0.004 %, which some bounds allow, would be written as zero.
fn small_change(change: f64) -> String {
    let sign = if change > 0.0 { '+' } else { '−' };
    format!("{sign}{} %", significant_to(100.0 * change.abs(), 2))
}

/// Formats a figure for people. An integer has no decimals.
fn humane(column: Column, figure: f64) -> String {
    match column.unit() {
        Unit::Number if figure >= 0.0 && figure.fract() == 0.0 => Value::Integer(figure as u64).readable(),
        unit => unit.humane(figure),
    }
}

#[cfg(test)]
mod tests {
    use super::small_change;

    /// The rule: all changes of less than 1 % have two significant digits, however small they are.
    #[test]
    fn small_changes_have_two_digits() {
        for (change, said) in
            [(0.000163, "+0.016 %"), (-0.000031, "−0.0031 %"), (0.0014, "+0.14 %"), (0.00996, "+1.0 %")]
        {
            assert_eq!(small_change(change), said);
        }
    }
}

//! A conclusion, most often of a paper, as a check over the rows of a study. The report says whether it holds,
//! with the figure and its place.

use super::file::{Check, Pair};
use super::finding::{describe, not_a_number, pairs, written};
use super::interval::Interval;
use super::{Select, known_columns};
use crate::report::Verdict;
use crate::table::Table;
use fulgurite_stack::StackError;
use fulgurite_stack::{Column, Row, Value};
use std::collections::BTreeMap;

/// One row's figure, and what sets the row apart.
type Figure = (f64, String);

/// The mean of the figures of one place, and how many they are.
struct Mean {
    interval: Interval,
    place: String,
    count: usize,
}

impl Mean {
    fn readable(&self) -> String {
        let Interval { mean, low, high } = self.interval;
        match self.count {
            1 => readable(mean),
            _ => format!("{} [{}, {}]", readable(mean), readable(low), readable(high)),
        }
    }

    fn with_place(&self) -> String {
        match self.place.as_str() {
            "" => self.readable(),
            place => format!("{} ({place})", self.readable()),
        }
    }
}

impl Check {
    /// Looks at every row that the check is about.
    pub fn verdict(&self, table: &Table) -> Result<Verdict, StackError> {
        let rows = Select { part: self.part.as_deref(), only: &self.only }.of(table)?;
        if rows.is_empty() {
            return Err(self.refused("no row has what `part` and `where` ask for"));
        }
        let (holds, figure) = match &self.falls_with {
            Some(axis) => self.falling(&rows, *axis)?,
            None => self.bounded(table, &rows)?,
        };
        Ok(Verdict { says: self.says.clone(), holds, figure })
    }

    fn refused(&self, reason: &str) -> StackError {
        StackError::request(format!("[[checks]] `{}`: {reason}", self.says))
    }

    /// Every figure is between the bounds.
    fn bounded(&self, table: &Table, rows: &[&Row]) -> Result<(bool, String), StackError> {
        let figures = match &self.compare {
            None => self.plain(table, rows),
            Some(compare) => self.ratios(table, rows, compare)?,
        };
        let figures: Vec<Figure> = figures.ok_or_else(|| not_a_number(self.column))?;
        let mut figures = self.means(figures)?;
        figures.sort_by(|a, b| a.interval.mean.total_cmp(&b.interval.mean));
        // `rows` has at least one row and `pairs` refuses to return none, so there is a first figure.
        let (least, most) = (&figures[0], &figures[figures.len() - 1]);
        let holds = figures.iter().all(|Mean { interval, .. }| {
            self.at_least.is_none_or(|bound| interval.low >= bound)
                && self.at_most.is_none_or(|bound| interval.high <= bound)
        });
        let found = match figures.len() {
            1 => least.readable(),
            cases if least.interval == most.interval => format!("{} in all {cases} cases", least.readable()),
            _ => format!("from {} to {}", least.with_place(), most.with_place()),
        };
        let sure = self.over.map_or_else(String::new, |over| {
            format!(" (mean and 95 % confidence, {} values of {over})", least.count)
        });
        Ok((holds, format!("{} is {found}{sure}", self.what()?)))
    }

    /// What the figures are.
    fn what(&self) -> Result<String, StackError> {
        let Some(compare) = &self.compare else { return Ok(self.column.to_string()) };
        let [old, new] = compare.sides()?;
        Ok(format!("{} with {} over {}", self.column, written(&new, false), written(&old, false)))
    }

    /// The columns that say nothing of where a figure stands, beside those of the comparison.
    fn apart<'a>(&self, compared: impl Iterator<Item = &'a Column>) -> Vec<Column> {
        compared.copied().chain(self.over).collect()
    }

    fn plain(&self, table: &Table, rows: &[&Row]) -> Option<Vec<Figure>> {
        let apart = self.apart([].iter());
        rows.iter().map(|row| Some((row.number(self.column)?, describe(table, row, &apart)))).collect()
    }

    /// Candidate over baseline wherever all else is equal.
    fn ratios(
        &self,
        table: &Table,
        rows: &[&Row],
        compare: &Pair,
    ) -> Result<Option<Vec<Figure>>, StackError> {
        let [old, new] = compare.sides()?;
        known_columns(table, old.keys().copied())?;
        let apart = self.apart(old.keys());
        let ratio = |(old, new): (&Row, &Row)| {
            Some((new.number(self.column)? / old.number(self.column)?, describe(table, old, &apart)))
        };
        Ok(pairs(rows, &old, &new)?.into_iter().map(ratio).collect())
    }

    /// Each figure by itself, or with `over` the means of those that stand at the same place.
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
                || self.refused(&format!("a mean over {over} needs two rows at least for each place"));
            Ok(Mean { interval: interval.ok_or_else(refused)?, place, count: values.len() })
        };
        places.into_iter().map(mean).collect()
    }

    /// Along `axis` no figure is above the one before, in any line of `for_each`.
    fn falling(&self, rows: &[&Row], axis: Column) -> Result<(bool, String), StackError> {
        let line = |row: &Row| match self.for_each {
            Some(column) if row.number(column).is_some() => format!("{column} {}", row.text(column)),
            Some(column) => row.text(column),
            None => String::new(),
        };
        let mut points = Vec::new();
        for row in rows {
            let point = (line(row), row.number(axis), row.number(self.column));
            let (name, Some(x), Some(y)) = point else { return Err(not_a_number(axis)) };
            points.push((name, x, y));
        }
        // The points of one line must be neighbours for `windows` to pair them.
        points.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let mut steps: Vec<Figure> = points
            .windows(2)
            .filter(|two| two[0].0 == two[1].0)
            .map(|two| {
                let of = if two[0].0.is_empty() { String::new() } else { format!("{}, ", two[0].0) };
                let place = format!("{of}{axis} {} to {}", readable(two[0].1), readable(two[1].1));
                (two[1].2 / two[0].2 - 1.0, place)
            })
            .filter(|(step, _)| step.is_finite())
            .collect();
        steps.sort_by(|a, b| a.0.total_cmp(&b.0));
        let Some(worst) = steps.last() else {
            return Err(self.refused("falls_with needs two rows at least that differ in that column"));
        };
        let percent = |step: f64| format!("{:+.1} %", 100.0 * step);
        Ok((
            worst.0 <= 0.0,
            format!(
                "from one step to the next {} changes by {} ({}) to {} ({})",
                self.column,
                percent(steps[0].0),
                steps[0].1,
                percent(worst.0),
                worst.1
            ),
        ))
    }
}

/// A figure, without decimals where it has none.
fn readable(figure: f64) -> String {
    if figure >= 0.0 && figure.fract() == 0.0 {
        Value::Integer(figure as u64).readable()
    } else {
        Value::Real(figure).readable()
    }
}

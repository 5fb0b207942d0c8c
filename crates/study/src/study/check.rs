//! A conclusion, most often of a paper, as a check over the rows of a study. The report says whether it holds,
//! with the figure and its place.

use super::file::{Check, Compare, Pair};
use super::finding::{describe, not_a_number};
use super::words::Words;
use super::{Select, known_columns};
use crate::report::{Answer, Verdict, change};
use crate::table::Table;
use fulgurite_stack::StackError;
use fulgurite_stack::{Column, Row, Unit, Value};

/// One row's figure, and what sets the row apart.
type Figure = (f64, String);

impl Check {
    /// Looks at every row that the check is about.
    pub fn verdict(&self, table: &Table, words: Words<'_>, is_quick: bool) -> Result<Verdict, StackError> {
        let rows = Select { part: self.part.as_deref(), only: &self.only }.of(table)?;
        if rows.is_empty() {
            return Err(self.refused("no row has what `part` and `where` ask for"));
        }
        if let Some(reason) = self.full.as_ref().filter(|_| is_quick) {
            let (answer, why) = (Answer::NotAsked, Some(reason.clone()));
            return Ok(Verdict { says: self.says.clone(), answer, figure: String::new(), why });
        }
        // Only what tells these rows apart names one of them.
        let table = &Table { rows: rows.iter().map(|row| (*row).clone()).collect() };
        let (holds, figure) = match &self.falls_with {
            Some(axis) => self.falling(&rows, *axis, words)?,
            None => self.bounded(table, &rows, words)?,
        };
        let (answer, why) = match holds {
            true => (Answer::Holds, None),
            false => (Answer::Fails, self.why.clone()),
        };
        Ok(Verdict { says: self.says.clone(), answer, figure, why })
    }

    fn refused(&self, reason: &str) -> StackError {
        StackError::request(format!("[[checks]] `{}`: {reason}", self.says))
    }

    /// Every figure is between the bounds.
    fn bounded(&self, table: &Table, rows: &[&Row], words: Words<'_>) -> Result<(bool, String), StackError> {
        let of_row = |row: &&Row| {
            let by = self.over.map_or(Some(1.0), |over| row.number(over))?;
            Some((row.number(self.column)? / by, describe(table, row, None, words)))
        };
        let figures = match &self.compare {
            None => rows.iter().map(of_row).collect(),
            Some(compare) => self.ratios(table, rows, compare, words)?,
        };
        let mut figures: Vec<Figure> = figures.ok_or_else(|| not_a_number(self.column))?;
        figures.sort_by(|a, b| a.0.total_cmp(&b.0));
        // `rows` has at least one row and `pairs` refuses to return none, so there is a first figure.
        let (least, most) = (&figures[0], &figures[figures.len() - 1]);
        let holds = self.at_least.is_none_or(|bound| least.0 >= bound)
            && self.at_most.is_none_or(|bound| most.0 <= bound);
        Ok((holds, format!("{}: {}", self.what(words), self.found(&figures))))
    }

    /// What the figures are of.
    fn what(&self, words: Words<'_>) -> String {
        let of = words.column(self.column);
        match (&self.compare, self.over) {
            (Some(Pair { baseline, candidate, .. }), _) => {
                format!("{of} of {} against {}", words.name(candidate), words.name(baseline))
            }
            (None, Some(over)) => format!("{of} against {}", words.column(over)),
            (None, None) => of,
        }
    }

    /// The least of sorted figures and the greatest.
    fn found(&self, figures: &[Figure]) -> String {
        let is_ratio = self.compare.is_some() || self.over.is_some();
        let readable = |figure: f64| match is_ratio {
            true if figure == 1.0 => "no change".to_owned(),
            // As small a change as a bound of 0.004 % would look like none.
            true if (figure - 1.0).abs() < 0.0005 => {
                format!("{:+.4} %", 100.0 * (figure - 1.0)).replace('-', "−")
            }
            true => change(figure - 1.0),
            false => humane(self.column, figure),
        };
        let (least, most) = (&figures[0], &figures[figures.len() - 1]);
        let [low, high] = [readable(least.0), readable(most.0)];
        match figures.len() {
            1 => low,
            cases if low == high => format!("{low} in all {cases} cases"),
            cases => format!("from {low} ({}) to {high} ({}), in {cases} cases", least.1, most.1),
        }
    }

    /// Candidate over baseline wherever all else is equal.
    fn ratios(
        &self,
        table: &Table,
        rows: &[&Row],
        compare: &Pair,
        words: Words<'_>,
    ) -> Result<Option<Vec<Figure>>, StackError> {
        known_columns(table, [compare.axis])?;
        let pairs = Compare::pairs(rows, compare.axis, &compare.baseline, &compare.candidate)?;
        let ratio = |(old, new): (&Row, &Row)| {
            Some((
                new.number(self.column)? / old.number(self.column)?,
                describe(table, old, Some(compare.axis), words),
            ))
        };
        Ok(pairs.into_iter().map(ratio).collect())
    }

    /// Along `axis` every figure is below the one before, in any line of `for_each`.
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
        // The points of one line must be neighbours for `windows` to pair them.
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
            return Err(self.refused("falls_with needs two rows at least that differ in that column"));
        };
        let least = &steps[0];
        Ok((
            worst.0 < 0.0,
            format!(
                "{}, from one step to the next: {} ({}) to {} ({})",
                words.column(self.column),
                change(least.0),
                least.1,
                change(worst.0),
                worst.1
            ),
        ))
    }
}

/// A figure as people read it, without decimals where it has none.
fn humane(column: Column, figure: f64) -> String {
    match column.unit() {
        Unit::Number if figure >= 0.0 && figure.fract() == 0.0 => Value::Integer(figure as u64).readable(),
        unit => unit.humane(figure),
    }
}

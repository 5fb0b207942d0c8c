//! Checks the conclusions of a study, usually those of a publication, against its result rows. The verdict
//! says whether a conclusion holds, with the figures and the rows in which they occur.

use super::file::{Check, Pair, Published};
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
        let (answer, figure) = self.answer(table, words)?;
        let noticed = self.noticed(table, words)?;
        let why = self.why.clone().filter(|_| answer != Answer::Holds);
        Ok(verdict(answer, figure, why, noticed))
    }

    /// Returns whether the conclusion holds in the selected rows and has the published size.
    pub(super) fn holds(&self, table: &Table, words: Words<'_>) -> Result<bool, StackError> {
        Ok(self.answer(table, words)?.0 == Answer::Holds)
    }

    /// Returns whether the conclusion holds in the selected rows, and describes the figures.
    fn answer(&self, table: &Table, words: Words<'_>) -> Result<(Answer, String), StackError> {
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

    /// Returns whether all figures are within the bounds and near the published figure, and describes the
    /// figures.
    fn bounded(
        &self,
        table: &Table,
        rows: &[&Row],
        words: Words<'_>,
    ) -> Result<(Answer, String), StackError> {
        let figures = match &self.compare {
            None => self.plain(table, rows, words),
            Some(compare) => self.ratios(table, rows, compare, words)?,
        };
        let figures: Vec<Figure> = figures.ok_or_else(|| not_a_number(self.column))?;
        let mut figures = self.means(figures)?;
        figures.sort_by(|a, b| a.interval.mean.total_cmp(&b.interval.mean));
        let ends = || figures.iter().flat_map(|Mean { interval, .. }| [interval.low, interval.high]);
        let answer = match ends().all(|figure| self.is_claimed(figure)) {
            false => Answer::Fails,
            true if ends().all(|figure| self.is_near(figure)) => Answer::Holds,
            true => Answer::HoldsInDirection,
        };
        let beside = self.published.map_or_else(String::new, |published| self.beside(published, &figures));
        Ok((answer, format!("{}: {}{beside}", self.what(words)?, self.found(&figures))))
    }

    /// Whether a figure is within the bounds. Without bounds, a ratio must be on the same side of 1 as the
    /// published one.
    fn is_claimed(&self, figure: f64) -> bool {
        if let Some(published) = self.published.filter(|_| !self.has_bounds() && self.is_ratio()) {
            return (figure - 1.0) * (published.middle() - 1.0) > 0.0;
        }
        self.at_least.is_none_or(|bound| figure >= bound)
            && self.at_most.is_none_or(|bound| figure <= bound)
            && self.above.is_none_or(|bound| figure > bound)
            && self.below.is_none_or(|bound| figure < bound)
    }

    /// Whether a figure is within the accepted factor of the published one, or nothing is published.
    pub(super) fn is_near(&self, figure: f64) -> bool {
        let (Some(published), Some(within)) = (self.published, self.within) else { return true };
        let times = self.times(figure, published);
        // The tolerance allows for the rounding of a figure that lies on a bound.
        times > 0.0 && times.max(1.0 / times) <= within * 1.000_001
    }

    /// Returns a figure as a multiple of the nearest published one. It is 1 inside a published range. A ratio
    /// is compared as a change if the published one is below 2, so −10 % is half of −20 %. A change in the
    /// other direction has a negative multiple.
    fn times(&self, figure: f64, published: Published) -> f64 {
        let (low, high) = published.range();
        if (low..=high).contains(&figure) {
            return 1.0;
        }
        let nearest = if figure < low { low } else { high };
        let start = if self.compare.is_some() && !self.are_factors(&[]) { 1.0 } else { 0.0 };
        // Beyond the end of a range at which nothing changes, the direction is the other one.
        if nearest == start { -1.0 } else { (figure - start) / (nearest - start) }
    }

    /// Describes the published figure, and how far the measured figures are from it.
    fn beside(&self, published: Published, figures: &[Mean]) -> String {
        let (low, high) = published.range();
        let as_factors = self.are_factors(figures);
        let text = |figure: f64| self.plain_figure(figure, as_factors);
        let published_text = if low == high { text(low) } else { format!("{} to {}", text(low), text(high)) };
        let mut times: Vec<f64> =
            figures.iter().map(|figure| self.times(figure.interval.mean, published)).collect();
        times.sort_by(f64::total_cmp);
        let (least, most) = (times[0], times[times.len() - 1]);
        let said = |times: f64| format!("{} times as much", significant(times));
        let distance = match (said(least), said(most)) {
            _ if most < 0.0 => "in the opposite direction".to_owned(),
            (_, most) if least < 0.0 => format!("from the opposite direction to {most}"),
            _ if (least, most) == (1.0, 1.0) && low < high => "inside".to_owned(),
            (least, most) if least == most => least,
            (_, most) => format!("{} to {most}", significant(least)),
        };
        // A factor of 1 accepts a published range and nothing around it.
        let within = self.within.filter(|within| *within > 1.0);
        let within = within.map_or_else(String::new, |within| format!("; accepted: a factor of {within}"));
        format!(". Published: {published_text}; measured: {distance}{within}")
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
        let as_factors = self.are_factors(figures);
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

    /// Whether the figures are written as factors: if the published one is a large change, or if nothing is
    /// published and one of the figures is. So figures are written as they are compared.
    fn are_factors(&self, figures: &[Mean]) -> bool {
        self.compare.is_some()
            && match self.published {
                Some(published) => change::is_large(published.range().1 - 1.0),
                None => change::any_is_large(figures.iter().map(|figure| figure.interval.mean - 1.0)),
            }
    }

    fn is_ratio(&self) -> bool {
        self.compare.is_some() || self.against.is_some()
    }

    /// Formats a figure, with its confidence interval if it has one.
    fn readable(&self, figure: &Mean, as_factors: bool) -> String {
        let readable = |figure: f64| self.plain_figure(figure, as_factors);
        let Interval { mean, low, high } = figure.interval;
        match figure.count {
            1 => readable(mean),
            _ => format!("{} [{}, {}]", readable(mean), readable(low), readable(high)),
        }
    }

    /// Formats a figure. A ratio is written as a change or a factor. A ratio of two columns that is far from 1
    /// is written as a share.
    fn plain_figure(&self, figure: f64, as_factors: bool) -> String {
        match self.is_ratio() {
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
    fn falling(&self, rows: &[&Row], axis: Column, words: Words<'_>) -> Result<(Answer, String), StackError> {
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
            if worst.0 < 0.0 { Answer::Holds } else { Answer::Fails },
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
    use super::super::file::File;
    use super::*;

    fn parsed(lines: &str) -> Result<File, StackError> {
        let head = "title = 't'\nquestion = 'q'\ncommand = 'pool'\n[grid]\n[[checks]]\nsays = 's'\n";
        File::parse("t", &format!("{head}{lines}"))
    }

    /// Checks the run times of `ace`, one for each number of users. Those of `single` are 100 ns.
    fn checked(elapsed: &[u64], lines: &str) -> (Answer, String) {
        let row = |users: usize, policy: &str, elapsed: u64| {
            let mut row = Row::default();
            row.set(Column::Users, users as u64);
            row.set(Column::WriteBack, policy);
            row.set(Column::ElapsedNs, elapsed);
            row
        };
        let both = |(users, elapsed): (usize, &u64)| [row(users, "single", 100), row(users, "ace", *elapsed)];
        let table = Table { rows: elapsed.iter().enumerate().flat_map(both).collect() };
        let file = parsed(&format!("column = 'elapsed_ns'\n{lines}")).unwrap();
        file.checks[0].answer(&table, Words::NONE).unwrap()
    }

    const COMPARE: &str = "compare = { axis = 'write_back', baseline = 'single', candidate = 'ace' }\n";

    /// The rule: a check with a published figure has two sides. It holds if the figures have the published
    /// direction and are within the stated factor. It says how many times the published figure they are.
    #[test]
    fn a_published_figure_bounds_the_size_on_both_sides() {
        let of = |elapsed: &[u64], more: &str| {
            checked(elapsed, &format!("{COMPARE}published = 0.82\nwithin = 2\n{more}"))
        };
        for (elapsed, answer, said) in [
            (
                82,
                Answer::Holds,
                "−18.0 %. Published: −18.0 %; measured: 1.00 times as much; accepted: a factor of 2",
            ),
            (91, Answer::Holds, "measured: 0.500 times as much;"),
            (64, Answer::Holds, "measured: 2.00 times as much;"),
            (92, Answer::HoldsInDirection, "measured: 0.444 times as much;"),
            (2, Answer::HoldsInDirection, "−98.0 %. Published: −18.0 %; measured: 5.44 times as much;"),
            (105, Answer::Fails, "measured: in the opposite direction;"),
        ] {
            let (is, figure) = of(&[elapsed], "");
            assert!(is == answer && figure.contains(said), "{elapsed}: {is:?}, {figure}");
        }
        // Every figure counts, and bounds of the check's own come first.
        let several = of(&[82, 98], "");
        assert!(
            several.0 == Answer::HoldsInDirection && several.1.contains("0.111 to 1.00 times"),
            "{several:?}"
        );
        assert_eq!(of(&[82], "at_most = 0.8").0, Answer::Fails);
        assert_eq!(of(&[2], "at_most = 0.8").0, Answer::HoldsInDirection);
    }

    /// The rule: ratios from 2 on are compared as factors, ratios of a range with its nearer end, and a column
    /// that is compared with nothing as it is.
    #[test]
    fn the_distance_is_that_of_the_written_figures() {
        let of = |elapsed: u64, lines: &str| checked(&[elapsed], &format!("{lines}\nwithin = 1.5"));
        let compared = |elapsed, published: &str| of(elapsed, &format!("{COMPARE}published = {published}"));
        for ((is, figure), answer, said) in [
            (
                compared(720, "2.4"),
                Answer::HoldsInDirection,
                "Published: 2.40 times; measured: 3.00 times as much",
            ),
            (
                compared(257, "1.3"),
                Answer::HoldsInDirection,
                "+157 %. Published: +30.0 %; measured: 5.23 times as much",
            ),
            (compared(300, "2.4"), Answer::Holds, "measured: 1.25 times as much"),
            (
                compared(230, "[2.2, 2.4]"),
                Answer::Holds,
                "Published: 2.20 times to 2.40 times; measured: inside",
            ),
            (compared(480, "[2.2, 2.4]"), Answer::HoldsInDirection, "measured: 2.00 times as much"),
            (
                compared(70, "[0.8, 1.0]"),
                Answer::Holds,
                "Published: −20.0 % to no change; measured: 1.50 times",
            ),
            (of(130, "where = { write_back = 'ace' }\npublished = 100"), Answer::Holds, "1.30 times as much"),
        ] {
            assert!(is == answer && figure.contains(said), "{is:?}, {figure}");
        }
    }

    #[test]
    fn a_published_figure_needs_a_factor_and_no_fall() {
        let refused = |lines: &str| parsed(&format!("column = 'hits'\n{lines}")).err().unwrap().to_string();
        for lines in ["published = 2", "at_most = 2\nwithin = 2", "published = 2\nwithin = 0.5"] {
            assert!(refused(lines).contains("`published` together with `within`"), "{lines}");
        }
        let falls = "falls_with = 'users'\npublished = 2\nwithin = 2";
        assert!(refused(falls).contains("needs either bounds"));
    }

    /// The rule: a check with a published figure must detect a fault, also if its figures are far from the
    /// published one.
    #[test]
    fn a_published_figure_detects_a_missing_gain() {
        let noticed = |elapsed: u64| {
            let mut rows = vec![Row::default(), Row::default()];
            for (row, (policy, elapsed)) in rows.iter_mut().zip([("single", 100), ("ace", elapsed)]) {
                row.set(Column::WriteBack, policy);
                row.set(Column::ElapsedNs, elapsed);
            }
            let file = parsed(&format!("column = 'elapsed_ns'\n{COMPARE}published = 0.82\nwithin = 1.1"));
            file.unwrap().checks[0].noticed(&Table { rows }, Words::NONE).unwrap()
        };
        assert_eq!(noticed(82).as_deref(), Some("no difference between the two sides"));
        assert_eq!(
            noticed(10).as_deref(),
            Some("no difference between the two sides (in figures that hold)")
        );
    }

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

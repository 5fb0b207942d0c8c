//! Summarises runs that differ only in their seed: the mean of each figure, and half of its range.
//!
//! Half of the range, (largest − smallest) / 2, needs no assumption about the distribution of a figure, and
//! no seed is further from the middle of the range.

use fulgurite_stack::{Column, Row, Value};
use std::collections::BTreeMap;

/// The summary of a table, column by column.
pub(crate) struct Summary {
    /// The heading, which explains the cells.
    pub heading: String,
    /// The columns that tell the summarised runs apart, and then the figures, each with its cells.
    pub columns: Vec<(Column, Vec<String>)>,
    /// The number of columns that tell runs apart.
    pub axes: usize,
}

impl Summary {
    /// Summarises those of `columns` whose values differ between rows. `format` formats a value. `None` if no
    /// runs differ only in their seed.
    pub(crate) fn of(
        rows: &[Row],
        columns: &[Column],
        format: impl Fn(Column, &Value) -> String,
    ) -> Option<Summary> {
        let axes: Vec<Column> = varying_axes(rows).collect();
        if !axes.contains(&Column::Seed) || rows.iter().any(is_part_of_run) {
            return None;
        }
        let axes: Vec<Column> = axes.into_iter().filter(|axis| *axis != Column::Seed).collect();
        let mut groups: Vec<Vec<&Row>> = Vec::new();
        let mut known = BTreeMap::new();
        for row in rows {
            let key: Vec<Option<String>> = axes.iter().map(|axis| row.get(*axis).map(Value::exact)).collect();
            let number = *known.entry(key).or_insert(groups.len());
            if number == groups.len() {
                groups.push(Vec::new());
            }
            groups[number].push(row);
        }
        // A run with one seed has no range. It is in the table already.
        groups.retain(|group| group.len() > 1);
        let most = groups.iter().map(Vec::len).max()?;
        let heading = match groups.iter().all(|group| group.len() == most) {
            true => format!("Over {most} seeds, mean ± half of the range:"),
            false => format!("Over up to {most} seeds, mean ± half of the range:"),
        };
        let of_axis = |axis: &Column| {
            let cell = |group: &Vec<&Row>| group[0].get(*axis).map(|value| format(*axis, value));
            (*axis, groups.iter().map(|group| cell(group).unwrap_or_default()).collect())
        };
        let named = axes.iter().filter(|axis| columns.contains(axis)).map(of_axis);
        let mut shown: Vec<(Column, Vec<String>)> = named.collect();
        let axes = shown.len();
        let figures = columns.iter().filter(|column| !column.is_axis() && is_figure(rows, **column));
        shown.extend(figures.map(|figure| {
            let cell = |group: &Vec<&Row>| spread(group, *figure, |real| format(*figure, &Value::Real(real)));
            (*figure, groups.iter().map(cell).collect())
        }));
        (shown.len() > axes).then_some(Summary { heading, columns: shown, axes })
    }

    /// The cells of each summarised run, with their columns.
    pub(crate) fn lines(&self) -> impl Iterator<Item = impl Iterator<Item = (&Column, &str)>> {
        let count = self.columns.first().map_or(0, |(_, cells)| cells.len());
        (0..count).map(|at| self.columns.iter().map(move |(column, cells)| (column, cells[at].as_str())))
    }
}

/// Returns the columns that tell runs apart and differ between rows.
pub(crate) fn varying_axes(rows: &[Row]) -> impl Iterator<Item = Column> {
    let differs = |column: &Column| rows.iter().any(|row| row.get(*column) != rows[0].get(*column));
    Column::all().filter(|column| column.is_axis()).filter(differs)
}

/// Whether a row describes a piece of a run: a time interval, a group, or a point of a curve.
pub(crate) fn is_part_of_run(row: &Row) -> bool {
    let parts = [Column::TimeNs, Column::TimePages, Column::Group, Column::MissRatio];
    parts.iter().any(|part| row.get(*part).is_some())
}

/// Whether all values of a column are numbers, and two of them differ.
fn is_figure(rows: &[Row], column: Column) -> bool {
    let values: Vec<&Value> = rows.iter().filter_map(|row| row.get(column)).collect();
    values.iter().all(|value| !matches!(value, Value::Text(_)))
        && values.windows(2).any(|two| two[0] != two[1])
}

/// Returns the mean of a figure and half of its range; the value alone if only one run has it.
fn spread(rows: &[&Row], figure: Column, format: impl Fn(f64) -> String) -> String {
    let values: Vec<f64> = rows.iter().filter_map(|row| row.number(figure)).collect();
    if let [] | [_] = values[..] {
        return values.first().map(|one| format(*one)).unwrap_or_default();
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let half = (most - least) / 2.0;
    match format(mean).parse::<f64>() {
        // A number without unit and scale has as many decimals as two digits of the range need.
        Ok(_) if half > 0.0 => {
            let decimals = (1 - half.log10().floor() as i32).clamp(0, 6) as usize;
            format!("{mean:.decimals$} ± {half:.decimals$}")
        }
        _ => format!("{} ± {}", format(mean), format(half)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(placement: &str, seed: u64, waf: f64) -> Row {
        let mut row = Row::default();
        row.set(Column::Workload, "zipf");
        row.set(Column::Placement, placement);
        row.set(Column::Seed, seed);
        row.set(Column::HostPagesWritten, 100u64);
        row.set(Column::Waf, waf);
        row
    }

    const COLUMNS: [Column; 5] =
        [Column::Workload, Column::Placement, Column::Seed, Column::HostPagesWritten, Column::Waf];

    fn summary(rows: &[(&str, u64, f64)]) -> Option<Summary> {
        let rows: Vec<Row> = rows.iter().map(|(placement, seed, waf)| row(placement, *seed, *waf)).collect();
        Summary::of(&rows, &COLUMNS, |_, value| value.readable())
    }

    /// The rule: rows that differ only in the seed are one line: the mean of each figure that differs, and half
    /// the distance of its largest and smallest value. The lines have the order of their first rows. Runs with one
    /// seed are left out.
    #[test]
    fn a_line_has_the_mean_and_half_of_the_range() {
        let rows =
            [("sepbit", 1, 2.0), ("none", 1, 5.0), ("sepbit", 2, 2.5), ("none", 2, 6.0), ("none", 3, 5.5)];
        let of_five = summary(&rows).unwrap();
        assert_eq!(of_five.heading, "Over up to 3 seeds, mean ± half of the range:");
        let cells = |texts: [&str; 2]| texts.map(str::to_owned).to_vec();
        assert_eq!(
            of_five.columns,
            [
                (Column::Placement, cells(["sepbit", "none"])),
                (Column::Waf, cells(["2.25 ± 0.25", "5.50 ± 0.50"]))
            ]
        );
        assert_eq!(of_five.axes, 1);
        assert_eq!(summary(&rows[..4]).unwrap().heading, "Over 2 seeds, mean ± half of the range:");
        let with_single = summary(&[rows[1], rows[3], ("dac", 1, 3.0)]).unwrap();
        assert_eq!(with_single.columns[0].1, ["none"], "a single run has no range");
        let fine = summary(&[("none", 1, 5.779_1), ("none", 2, 5.782_3)]).unwrap();
        assert_eq!(fine.columns[0].1, ["5.7807 ± 0.0016"]);
    }

    /// The rule: there is no summary if no run is repeated with another seed, if no figure differs, or if the
    /// rows are pieces of runs.
    #[test]
    fn without_repetitions_there_is_no_summary() {
        let none = |rows: &[(&str, u64, f64)]| summary(rows).is_none();
        assert!(none(&[("none", 1, 2.0), ("dac", 1, 3.0)]), "one seed");
        assert!(none(&[("none", 1, 2.0), ("dac", 2, 3.0)]), "no repetition");
        assert!(none(&[("none", 1, 2.0), ("none", 2, 2.0)]), "no difference");
        let mut rows = vec![row("none", 1, 2.0), row("none", 2, 3.0)];
        rows[0].set(Column::Group, 1u64);
        assert!(Summary::of(&rows, &COLUMNS, |_, value| value.readable()).is_none());
    }
}

//! Compares the rows of a table: selects the comparable rows, finds the best of them, and describes the
//! comparison in one sentence.
//!
//! Rows are compared by their policies. A *case* is a set of rows with equal work and an equal device; rows
//! of different cases are not compared. If no policy differs, rows are compared by the last column that
//! differs and does not describe work.

use super::cell::{head, humane, significant};
use crate::change;
use crate::seeds::is_part_of_run;
use crate::table::Table;
use fulgurite_stack::{Column, Command, Row, Value};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The columns that contain policies.
const POLICIES: [Column; 10] = [
    Column::Replacement,
    Column::WriteBack,
    Column::Prefetch,
    Column::Layer,
    Column::Placement,
    Column::Victim,
    Column::Schedule,
    Column::TornPages,
    Column::Degree,
    Column::Durability,
];

/// The columns that always separate cases. Rows with different values in these columns did different work, so
/// a higher figure is not a better one.
const WORK: [Column; 10] = [
    Column::Part,
    Column::Workload,
    Column::Benchmark,
    Column::Transaction,
    Column::Scale,
    Column::Pages,
    Column::Seed,
    Column::Skip,
    Column::Speed,
    Column::RateRequestsS,
];

/// The rows to compare, divided into cases.
pub(super) struct Comparison {
    /// The columns by which the rows of a case are compared.
    by: Vec<Column>,
    /// The row numbers of each case. A case has at least two rows.
    cases: Vec<Vec<usize>>,
}

impl Comparison {
    /// Selects the rows of `table` that can be compared; `None` if no case has two rows.
    pub(super) fn of(table: &Table) -> Option<Comparison> {
        let rows = &table.rows;
        if rows.len() < 2 || rows.iter().any(is_part_of_run) {
            return None;
        }
        let axes: Vec<Column> = table.varying_axes().collect();
        let mut by: Vec<Column> = axes.iter().copied().filter(|axis| POLICIES.contains(axis)).collect();
        if by.is_empty() {
            by.extend(axes.iter().rev().find(|axis| !WORK.contains(axis)));
        }
        let of_case: Vec<Column> = axes.into_iter().filter(|axis| !by.contains(axis)).collect();
        let (mut cases, mut known): (Vec<Vec<usize>>, BTreeMap<_, usize>) = Default::default();
        for (at, row) in rows.iter().enumerate() {
            let case: Vec<Option<String>> =
                of_case.iter().map(|column| row.get(*column).map(Value::exact)).collect();
            // The cases are in the order of their first rows.
            let number = *known.entry(case).or_insert(cases.len());
            if number == cases.len() {
                cases.push(Vec::new());
            }
            cases[number].push(at);
        }
        cases.retain(|case| case.len() > 1);
        (!by.is_empty() && !cases.is_empty()).then_some(Comparison { by, cases })
    }

    /// Returns for each row whether it has the best value of `column` in its case. If all values of a case
    /// are equal, none of them is the best.
    pub(super) fn best(&self, table: &Table, column: Column) -> Vec<bool> {
        let mut best = vec![false; table.rows.len()];
        let Some(better) = column.better() else { return best };
        for case in &self.cases {
            let Some(extremes) = Extremes::of(table, case, column, better) else { continue };
            if !extremes.is_seen(table, column) {
                continue;
            }
            let seen = |at: usize| shown(&table.rows[at], column);
            for at in case.iter().filter(|at| seen(**at) == seen(extremes.best)) {
                best[*at] = true;
            }
        }
        best
    }

    /// Returns the name of a row within its case: its values in the columns by which rows are compared.
    fn name(&self, row: &Row) -> String {
        named(row, &self.by)
    }

    fn sentence(&self, table: &Table, column: Column) -> Option<String> {
        let better = column.better()?;
        let extremes: Option<Vec<Extremes>> =
            self.cases.iter().map(|case| Extremes::of(table, case, column, better)).collect();
        let extremes = extremes?;
        let (top, bottom) =
            if better == Ordering::Greater { ("highest", "lowest") } else { ("lowest", "highest") };
        let what = words(column);
        if let [one] = &extremes[..] {
            let (best, worst) = (&table.rows[one.best], &table.rows[one.worst]);
            if !one.is_seen(table, column) {
                return Some(format!(
                    "There is no difference in {what} between the {} runs: {}.",
                    table.rows.len(),
                    shown(best, column)
                ));
            }
            return Some(format!(
                "{} has the {top} {what}: {}, {} {}, which has the {bottom} ({}).",
                self.name(best),
                shown(best, column),
                by_how_much(one.change(table, column)?),
                self.name(worst),
                shown(worst, column)
            ));
        }
        let count = extremes.len();
        let extremes: Vec<&Extremes> = extremes.iter().filter(|case| case.is_seen(table, column)).collect();
        if extremes.is_empty() {
            return Some(format!("There is no difference in {what} in any of the {count} cases."));
        }
        let winners: Vec<String> = extremes.iter().map(|case| self.name(&table.rows[case.best])).collect();
        let mut wins: BTreeMap<&str, usize> = BTreeMap::new();
        winners.iter().for_each(|name| *wins.entry(name).or_default() += 1);
        // If several names have the most wins, the one that wins first in the table is named.
        let winner = winners.iter().rev().max_by_key(|name| wins[name.as_str()])?;
        let changes = extremes.iter().zip(&winners).filter(|(_, name)| *name == winner);
        let mut changes: Vec<f64> =
            changes.map(|(case, _)| case.change(table, column)).collect::<Option<_>>()?;
        changes.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        let as_factors = change::any_is_large(changes.iter().copied());
        let size = |change: f64| match as_factors {
            true => change::factor(change),
            false => format!("{} %", significant((100.0 * change).abs())),
        };
        let (first, last) = (size(changes[0]), size(changes[changes.len() - 1]));
        let range = if first == last { first } else { format!("{first} to {last}") };
        let side = match better {
            _ if as_factors => "times",
            Ordering::Greater => "above",
            _ => "below",
        };
        Some(format!(
            "{winner} has the {top} {what} in {} of {count} cases, {range} {side} the {bottom}.",
            wins[winner.as_str()]
        ))
    }
}

/// The numbers of the best and the worst row of a case in one column.
struct Extremes {
    best: usize,
    worst: usize,
}

impl Extremes {
    /// Finds the best and the worst row; `None` if a row has no finite number in the column.
    fn of(table: &Table, case: &[usize], column: Column, better: Ordering) -> Option<Extremes> {
        let numbers: Option<Vec<(f64, usize)>> = case
            .iter()
            .map(|at| Some((table.rows[*at].number(column).filter(|number| number.is_finite())?, *at)))
            .collect();
        let mut numbers = numbers?;
        // The sort is stable, so of rows with equal numbers the first is chosen.
        numbers.sort_by(|a, b| a.0.total_cmp(&b.0));
        if better == Ordering::Greater {
            numbers.sort_by(|a, b| b.0.total_cmp(&a.0));
        }
        Some(Extremes { best: numbers[0].1, worst: numbers[numbers.len() - 1].1 })
    }

    /// Whether the formatted values of the two rows differ. Values that are formatted alike count as equal.
    fn is_seen(&self, table: &Table, column: Column) -> bool {
        shown(&table.rows[self.best], column) != shown(&table.rows[self.worst], column)
    }

    /// Returns the relative difference: the best value over the worst, minus one.
    fn change(&self, table: &Table, column: Column) -> Option<f64> {
        let change = table.rows[self.best].number(column)? / table.rows[self.worst].number(column)? - 1.0;
        change.is_finite().then_some(change)
    }
}

fn by_how_much(change: f64) -> String {
    let percent = significant((100.0 * change).abs());
    match change {
        large if change::is_large(large) => format!("{} times as much as", change::factor(large)),
        fall if fall < 0.0 => format!("{percent} % less than"),
        _ => format!("{percent} % more than"),
    }
}

fn shown(row: &Row, column: Column) -> String {
    row.get(column).map(|value| humane(column, value)).unwrap_or_default()
}

/// Names a row by its values in `columns`. A name is written as it is, and a number after the heading of its
/// column.
pub(crate) fn named(row: &Row, columns: &[Column]) -> String {
    let one = |column: &Column| match row.get(*column) {
        Some(Value::Text(name)) => Some(name.clone()),
        Some(value) => Some(format!("{} {}", head(*column), humane(*column, value))),
        None => (*column == Column::Layer).then(|| "no layer".to_owned()),
    };
    columns.iter().filter_map(one).collect::<Vec<_>>().join(", ")
}

/// Returns the name of a column in words.
pub(crate) fn words(column: Column) -> String {
    match column {
        Column::LatencyMeanNs => "mean latency".to_owned(),
        Column::LatencyP99Ns => "p99 latency".to_owned(),
        Column::Waf => "write amplification".to_owned(),
        Column::WafSteady => "steady write amplification".to_owned(),
        Column::KR | Column::KW => column.name().to_owned(),
        Column::ReadIops => "reads per second".to_owned(),
        Column::WriteIops => "writes per second".to_owned(),
        Column::WriteIos => "number of write requests".to_owned(),
        Column::WaitGcMeanNs => "mean wait for garbage collection".to_owned(),
        _ => head(column).replace('_', " "),
    }
}

/// Returns the columns by which the rows of a table are compared; `None` if they cannot be compared.
pub(crate) fn compared_by(table: &Table) -> Option<Vec<Column>> {
    Comparison::of(table).map(|comparison| comparison.by)
}

/// Whether any two rows that can be compared have different values of `column`, as people read them.
pub(crate) fn differs(table: &Table, column: Column) -> bool {
    let differ = |rows: &[usize]| {
        let mut texts = rows.iter().map(|at| shown(&table.rows[*at], column));
        texts.next().is_some_and(|first| texts.any(|text| text != first))
    };
    match Comparison::of(table) {
        Some(comparison) => comparison.cases.iter().any(|case| differ(case)),
        None => differ(&(0..table.rows.len()).collect::<Vec<_>>()),
    }
}

/// Compares the rows of a table by one column, in one sentence; `None` if they cannot be compared.
pub(crate) fn compared(table: &Table, column: Column) -> Option<String> {
    Comparison::of(table)?.sentence(table, column)
}

/// Returns the figures by which the runs of a command are judged, the most important first.
fn answers(command: Command) -> &'static [Column] {
    match command {
        Command::Pool => &[Column::ThroughputOpsS, Column::HitRatio],
        Command::Gc => &[Column::WafSteady, Column::Waf],
        Command::Replay | Command::Serve => &[Column::LatencyMeanNs, Column::LatencyP99Ns],
        Command::Bench => &[Column::ThroughputOpsS, Column::LatencyP99Ns],
        Command::Profile => &[Column::Alpha],
    }
}

/// Describes the results of a characterisation in one sentence.
fn profiled(table: &Table) -> Option<String> {
    let mut alphas: Vec<(f64, String)> = Vec::new();
    for row in &table.rows {
        let axes = table.varying_axes().collect::<Vec<_>>();
        alphas.push((row.number(Column::Alpha)?, named(row, &axes)));
    }
    alphas.sort_by(|a, b| a.0.total_cmp(&b.0));
    let sentence = match (&table.rows[..], &alphas[..]) {
        ([row], _) => format!(
            "{}: reads are {} times as fast as writes (alpha); k_r is {}, k_w {}.",
            named(row, &[Column::Device]),
            shown(row, Column::Alpha),
            shown(row, Column::KR),
            shown(row, Column::KW)
        ),
        (_, [(least, low), .., (most, high)]) => format!(
            "Reads are from {} ({low}) to {} ({high}) times as fast as writes (alpha).",
            significant(*least),
            significant(*most)
        ),
        _ => return None,
    };
    // The reader must know that the preset was fitted to the published figures, because agreement with them
    // is then no evidence.
    let is_fitted = table.rows.iter().any(|row| row.number(Column::AlphaTarget).is_some());
    let why = " Presets are fitted to the published figures (target), so their agreement is no evidence.";
    Some(sentence + if is_fitted { why } else { "" })
}

/// Describes the result in one sentence; `None` for a table without rows or without figures.
pub fn finding(table: &Table, command: Command) -> Option<String> {
    if command == Command::Profile {
        return profiled(table);
    }
    let has_all = |column: &&Column| table.rows.iter().all(|row| row.number(**column).is_some());
    let column = *answers(command).iter().find(has_all)?;
    if let Some(sentence) = Comparison::of(table).and_then(|compared| compared.sentence(table, column)) {
        return Some(sentence);
    }
    let first = table.rows.first()?;
    let what = [Column::Workload, Column::Benchmark];
    let (what, device) = (named(first, &what), named(first, &[Column::Device]));
    if table.rows.len() == 1 {
        let figures = answers(command).iter().filter(|column| first.get(**column).is_some());
        let figures: Vec<String> =
            figures.map(|column| format!("{} {}", words(*column), shown(first, *column))).collect();
        let place = match (what.is_empty(), device.is_empty()) {
            (false, false) => format!("{what} on {device}"),
            _ => what + &device,
        };
        return Some(format!("{place}: {}.", figures.join(", ")));
    }
    let axes: Vec<Column> = table.varying_axes().collect();
    let mut rows: Vec<&Row> = table.rows.iter().collect();
    rows.sort_by(|a, b| a.number(column).partial_cmp(&b.number(column)).unwrap_or(Ordering::Equal));
    let place = |row: &Row| match named(row, &axes) {
        place if place.is_empty() => shown(row, column),
        place => format!("{} ({place})", shown(row, column)),
    };
    Some(format!("The {} is between {} and {}.", words(column), place(rows[0]), place(rows[rows.len() - 1])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[(&str, &str, f64)]) -> Table {
        let row = |(workload, write_back, throughput): &(&str, &str, f64)| {
            let mut row = Row::default();
            row.set(Column::Workload, *workload);
            row.set(Column::Device, "p4510");
            row.set(Column::WriteBack, *write_back);
            row.set(Column::ThroughputOpsS, *throughput);
            row.set(Column::LatencyP99Ns, 2e9 / *throughput);
            row
        };
        Table { rows: rows.iter().map(row).collect() }
    }

    /// The rule: the sentence says that a preset was fitted to published figures. For a drive without
    /// published figures it says nothing about them.
    #[test]
    fn a_note_says_that_a_preset_was_fitted() {
        let row = |device: &str, target: Option<f64>| {
            let mut row = Row::default();
            row.set(Column::Device, device);
            for (column, value) in [(Column::Alpha, 2.8), (Column::KR, 80.0), (Column::KW, 8.0)] {
                row.set(column, value);
            }
            row.set_some(Column::AlphaTarget, target);
            row
        };
        let said = |rows: Vec<Row>| finding(&Table { rows }, Command::Profile).unwrap();
        let fitted =
            " Presets are fitted to the published figures (target), so their agreement is no evidence.";
        assert!(said(vec![row("p4510", Some(2.8))]).ends_with(fitted));
        assert!(said(vec![row("p4510", Some(2.8)), row("femu", None)]).ends_with(fitted));
        assert!(!said(vec![row("femu", None)]).contains("fitted"));
    }

    /// The rule: a range of gains goes from the smallest gain to the largest, both for figures where more is
    /// better and for figures where less is better.
    #[test]
    fn a_range_goes_from_the_smallest_gain_to_the_largest() {
        let row = |workload: &str, device: &str, mean: f64| {
            let mut row = Row::default();
            row.set(Column::Workload, workload);
            row.set(Column::Device, device);
            row.set(Column::LatencyMeanNs, mean);
            row
        };
        let rows = vec![
            row("a", "p4510", 20.0),
            row("a", "sata", 100.0),
            row("b", "p4510", 90.0),
            row("b", "sata", 100.0),
        ];
        assert_eq!(
            finding(&Table { rows }, Command::Replay).unwrap(),
            "p4510 has the lowest mean latency in 2 of 2 cases, 10.0 % to 80.0 % below the highest."
        );
    }

    /// The rule: with one case, the sentence names the best and the worst row. It writes their difference as
    /// a factor from +100 % on, and as a percentage below.
    #[test]
    fn one_case_names_the_best_and_the_worst() {
        let table =
            table(&[("zipf", "single", 15_667.0), ("zipf", "ace", 19_220.0), ("zipf", "raw", 16_000.0)]);
        assert_eq!(
            finding(&table, Command::Pool).unwrap(),
            "ace has the highest throughput: 19.2 K/s, 22.7 % more than single, which has the lowest (15.7 K/s)."
        );
        let far = self::table(&[("zipf", "single", 10.0), ("zipf", "ace", 125.0)]);
        assert_eq!(
            finding(&far, Command::Pool).unwrap(),
            "ace has the highest throughput: 125 /s, 12.5 times as much as single, which has the lowest (10 /s)."
        );
        let compared = Comparison::of(&table).unwrap();
        assert_eq!(compared.best(&table, Column::ThroughputOpsS), [false, true, false]);
        // A lower latency is better, so the same row is the best.
        assert_eq!(compared.best(&table, Column::LatencyP99Ns), [false, true, false]);
        assert_eq!(compared.best(&table, Column::WriteBack), [false; 3]);
    }

    #[test]
    fn different_work_makes_separate_cases() {
        let rows = [("a", "single", 10.0), ("a", "ace", 20.0), ("b", "single", 100.0), ("b", "ace", 110.0)];
        let table = table(&rows);
        assert_eq!(
            finding(&table, Command::Pool).unwrap(),
            "ace has the highest throughput in 2 of 2 cases, 1.10 to 2.00 times the lowest."
        );
        let compared = Comparison::of(&table).unwrap();
        assert_eq!(compared.best(&table, Column::ThroughputOpsS), [false, true, false, true]);
    }

    /// The rule: values that the table formats alike count as equal, and none of them is the best.
    #[test]
    fn a_difference_hidden_by_rounding_is_no_difference() {
        let alike = table(&[("a", "single", 15_663.0), ("a", "ace", 15_664.0)]);
        assert_eq!(
            finding(&alike, Command::Pool).unwrap(),
            "There is no difference in throughput between the 2 runs: 15.7 K/s."
        );
        assert_eq!(Comparison::of(&alike).unwrap().best(&alike, Column::ThroughputOpsS), [false, false]);
        let mut cases = alike.rows.clone();
        cases.extend(table(&[("b", "single", 10_000.0), ("b", "ace", 10_001.0)]).rows);
        let none = Table { rows: cases.clone() };
        assert_eq!(
            finding(&none, Command::Pool).unwrap(),
            "There is no difference in throughput in any of the 2 cases."
        );
        cases.extend(table(&[("c", "single", 10.0), ("c", "ace", 20.0)]).rows);
        assert_eq!(
            finding(&Table { rows: cases }, Command::Pool).unwrap(),
            "ace has the highest throughput in 1 of 3 cases, 2.00 times the lowest."
        );
    }

    #[test]
    fn figures_without_a_better_side_get_a_range() {
        let alone = table(&[("zipf", "ace", 19_220.0)]);
        assert_eq!(finding(&alone, Command::Pool).unwrap(), "zipf on p4510: throughput 19.2 K/s.");
        let work = table(&[("a", "ace", 20.0), ("b", "ace", 10.0)]);
        assert!(Comparison::of(&work).is_none());
        assert_eq!(
            finding(&work, Command::Pool).unwrap(),
            "The throughput is between 10 /s (b) and 20 /s (a)."
        );
        let equal = table(&[("a", "single", 10.0), ("a", "ace", 10.0)]);
        assert_eq!(
            finding(&equal, Command::Pool).unwrap(),
            "There is no difference in throughput between the 2 runs: 10 /s."
        );
        assert_eq!(Comparison::of(&equal).unwrap().best(&equal, Column::ThroughputOpsS), [false, false]);
        assert_eq!(finding(&Table::default(), Command::Pool), None);
    }
}

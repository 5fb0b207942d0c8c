//! Chooses the plots of a table that no study describes: lines over time or over a number that the runs
//! differ in, or bars with one place for each run.

mod columns;
mod of_trace;
#[cfg(test)]
mod tests;

use super::{Panel, Place, Plot, PlotKind, Scale, Series};
use crate::people::{self, compared, compared_by, differs, humane, named, words};
use crate::table::Table;
use crate::which_drive::{CHANGED, DRIVE};
use columns::{LATENCIES, Together, alone, over_numbers, together};
use fulgurite_stack::{Column, Command, Row, Unit, Value};
pub(super) use of_trace::plots_of_trace;
use std::collections::BTreeMap;

/// The most bars of a plot. More of them cannot be read.
const BARS_AT_MOST: usize = 120;
/// The most lines of a plot. More of them are the lines of a heat map.
const LINES_AT_MOST: usize = 12;
/// The most lines and columns of a heat map. A phone shows as many columns with their numbers.
const HEAT_LINES_AT_MOST: usize = 40;
const HEAT_COLUMNS_AT_MOST: usize = 6;
/// The ratio of the largest and the smallest value from which on an axis is logarithmic.
const LOGARITHMIC_FROM: f64 = 30.0;

/// The rows of one line, or of the bars of one colour, and the column that they draw.
struct Line<'a> {
    name: String,
    column: Column,
    rows: Vec<&'a Row>,
}

/// Returns the plots that the rows of a command allow.
pub(super) fn plots(table: &Table, command: Command) -> Vec<Plot> {
    let axes: Vec<Column> = table.varying_axes().collect();
    if let Some(time) = [Column::TimeNs, Column::TimePages].into_iter().find(|time| has(table, *time)) {
        return over_time(table, time, &axes, command);
    }
    let lines = number_axis(table, &axes, command).map_or_else(Vec::new, |x| over(table, x, &axes, command));
    let mut plots = if lines.is_empty() { bars_alone(table, &axes, command) } else { lines };
    plots.extend(together(command).into_iter().filter_map(|columns| bars_together(table, columns, &axes)));
    plots
}

/// Returns the plots of an advice: the figures of the settings that are compared, and the gain of each change.
pub(super) fn plots_of_advice(table: &Table) -> Vec<Plot> {
    let is_setting = |row: &&Row| row.text(Column::Kind) == "setting";
    let (settings, compared): (Vec<&Row>, Vec<&Row>) = table.rows.iter().partition(is_setting);
    let of_kind = |row: &Row| text_place(row.text(Column::Kind));
    let of_setting = |row: &Row| {
        let [name, plain, advised] =
            [Column::Name, Column::Plain, Column::Advised].map(|column| row.text(column));
        text_place(format!("--{} {advised} instead of {plain}", name.replace('_', "-")))
    };
    let bars = |title: &str, column: Column, rows: &[&Row], place: &dyn Fn(&Row) -> Place| {
        let rows = rows.iter().copied().filter(|row| row.number(column).is_some()).collect();
        let lines = [Line { name: String::new(), column, rows }];
        Some(plot(PlotKind::Bar, title.to_owned(), column, panel(&lines, place)))
            .filter(|plot| !plot.panels[0].x.is_empty())
    };
    let change = |title: &str, column: Column, figure: Column| {
        let mut plot = bars(title, column, &settings, &of_setting)?;
        plot.scale = Scale::Change;
        plot.y_label = words(figure);
        plot.zero_is = Some("the plain setting".to_owned());
        plot.caption = "The mean of the parts of the workload that judge the advice.".to_owned();
        Some(plot)
    };
    let plots = [
        bars("Throughput with the advice and without", Column::ThroughputOpsS, &compared, &of_kind),
        bars("p99 latency with the advice and without", Column::LatencyP99Ns, &compared, &of_kind),
        change("Throughput by one setting alone", Column::ThroughputChange, Column::ThroughputOpsS),
        change("p99 latency by one setting alone", Column::LatencyP99Change, Column::LatencyP99Ns),
    ];
    plots.into_iter().flatten().collect()
}

/// Returns the plots of a comparison of drives: response times by rate, and what a change of each drive gives.
pub(super) fn plots_of_drives(table: &Table) -> Vec<Plot> {
    let of_kind = |row: &Row, kind: &str| row.text(Column::Kind) == kind;
    let drives: Vec<&Row> = table.rows.iter().filter(|row| of_kind(row, DRIVE)).collect();
    let lines = |column: Column, base: Column, is_drawn: &dyn Fn(&Row) -> bool| -> Vec<Line<'_>> {
        let line = |drive: &&Row| {
            let name = drive.text(Column::Device);
            let is_of = |row: &&Row| {
                let of = if of_kind(row, DRIVE) { Column::Device } else { base };
                row.text(of) == name && is_drawn(row) && row.number(column).is_some()
            };
            Line { rows: table.rows.iter().filter(is_of).collect(), name, column }
        };
        drives.iter().map(line).collect()
    };
    let is_rate = |row: &Row| !of_kind(row, CHANGED);
    let at_rates = lines(Column::LatencyP99Ns, Column::Device, &is_rate);
    let mut plots = Vec::new();
    if at_rates.iter().any(|line| line.rows.len() > 2) {
        let title = "p99 latency by the rate of the workload".to_owned();
        let mut plot = over_number(Column::OfferedOpsS, title, Column::LatencyP99Ns, &at_rates);
        plot.caption =
            "The points that the search for the headroom has tried. Each line begins or ends at the \
                        workload's own rate, or passes it."
                .to_owned();
        plot.x_label = "offered requests per second".to_owned();
        plots.push(plot);
    }
    let change = |row: &Row| {
        let name = row.text(Column::Name);
        text_place(if name.is_empty() { "as it is".to_owned() } else { name })
    };
    for (title, column) in [
        ("p99 latency of each drive, and what a change gives", Column::LatencyP99Ns),
        ("Write amplification", Column::Waf),
        ("Years until the flash is worn out", Column::LifetimeYearsAtThisRate),
    ] {
        let is_changed = |row: &Row| of_kind(row, DRIVE) || of_kind(row, CHANGED);
        let bars = lines(column, Column::Plain, &is_changed);
        if bars.iter().all(|line| line.rows.is_empty()) {
            continue;
        }
        let mut plot = plot(PlotKind::Bar, title.to_owned(), column, panel(&bars, &change));
        plot.is_ordered = true;
        plots.push(plot);
    }
    plots
}

fn has(table: &Table, column: Column) -> bool {
    table.rows.iter().any(|row| row.number(column).is_some())
}

/// Returns the values of a column, sorted and without repetitions.
fn numbers(table: &Table, column: Column) -> Vec<f64> {
    let mut numbers: Vec<f64> = table.rows.iter().filter_map(|row| row.number(column)).collect();
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    numbers
}

/// Returns the axes but `x`.
fn without(axes: &[Column], x: Column) -> Vec<Column> {
    axes.iter().copied().filter(|axis| *axis != x).collect()
}

/// Returns the number in which the runs differ most; `None` if it has too few values for a line, or if there
/// would be too many lines.
fn number_axis(table: &Table, axes: &[Column], command: Command) -> Option<Column> {
    let is_repeated = |axis: &&Column| matches!(axis, Column::Seed | Column::Skip | Column::Group);
    let offered = (command == Command::Profile).then_some(Column::OfferedOpsS);
    let numbered = axes.iter().filter(|axis| !is_repeated(axis)).copied().chain(offered);
    let sized = numbered.map(|axis| (numbers(table, axis).len(), axis)).filter(|(count, _)| *count > 2);
    let (_, x) = sized.max_by_key(|(count, _)| *count)?;
    let is_whole = table.rows.iter().all(|row| row.number(x).is_some());
    (is_whole && lines(table, x, &without(axes, x)).len() <= HEAT_LINES_AT_MOST).then_some(x)
}

/// Draws the columns of intervals over time, with a line for each run.
fn over_time(table: &Table, time: Column, axes: &[Column], command: Command) -> Vec<Plot> {
    let others = without(axes, time);
    let runs = lines(table, time, &others).len();
    if numbers(table, time).len() < 3 || runs > LINES_AT_MOST {
        return Vec::new();
    }
    let mut plots = Vec::new();
    let [latency, ..] = &LATENCIES;
    // One run has a line for each percentile. Several runs share a plot for each column.
    if runs == 1 {
        let of_column = |(column, name): &(Column, &str)| Line {
            name: (*name).to_owned(),
            column: *column,
            rows: table.rows.iter().collect(),
        };
        let there = latency.columns.iter().filter(|(column, _)| has(table, *column));
        let mut lines: Vec<Line> = there.map(of_column).collect();
        // In short intervals the highest percentile is the longest response time.
        lines.dedup_by(|a, b| a.rows.iter().all(|row| row.number(a.column) == row.number(b.column)));
        if let Some(first) = lines.first() {
            let title = format!("{} over time", latency.title);
            let mut plot = over_number(time, title, first.column, &lines);
            plot.caption = latency.caption.to_owned();
            plot.y_label = "response time".to_owned();
            plots.push(plot);
        }
    }
    let is_drawn = |column: &Column| runs == 1 && latency.columns.iter().any(|(drawn, _)| drawn == column);
    for column in over_numbers(command).into_iter().filter(|column| !is_drawn(column)) {
        if has(table, column) && numbers(table, column) != [0.0] {
            let title = format!("{} over time", upper(&words(column)));
            plots.push(over_number(time, title, column, &lines(table, column, &others)));
        }
    }
    plots
}

/// Draws the columns of a command over the number `x`, with a line for each combination of the other axes.
fn over(table: &Table, x: Column, axes: &[Column], command: Command) -> Vec<Plot> {
    let drawn = over_numbers(command).into_iter().filter(|column| numbers(table, *column).len() > 1);
    let plot = |column: Column| {
        let title = format!("{} by {}", upper(&words(column)), words(x));
        let mut plot = over_number(x, title, column, &lines(table, column, &without(axes, x)));
        if plot.panels[0].series.iter().any(|series| series.band.is_some()) {
            plot.caption += " A band should have the exact value in 95 of 100 cases.";
        }
        if plot.panels[0].series.len() > LINES_AT_MOST { heat_map(plot) } else { plot }
    };
    drawn.map(plot).collect()
}

/// Draws columns by themselves, a plot for each, if they differ between the runs. If the runs differ in more
/// than one axis, the policies that are compared have the colours.
fn bars_alone(table: &Table, axes: &[Column], command: Command) -> Vec<Plot> {
    if table.rows.len() < 2 || table.rows.len() > BARS_AT_MOST {
        return Vec::new();
    }
    let by = compared_by(table).filter(|by| by.len() < axes.len());
    let places: Vec<Column> = match &by {
        Some(by) => axes.iter().copied().filter(|axis| !by.contains(axis)).collect(),
        None => axes.to_vec(),
    };
    let finding = people::finding(table, command);
    let bars = |column: Column| {
        let lines = match &by {
            Some(by) => lines(table, column, by),
            None => vec![Line { name: String::new(), column, rows: table.rows.iter().collect() }],
        };
        let sentence = compared(table, column).filter(|sentence| finding.as_ref() != Some(sentence));
        let title = sentence.map(|sentence| sentence.trim_end_matches('.').to_owned());
        let title = title.unwrap_or_else(|| upper(&words(column)));
        plot(PlotKind::Bar, title, column, panel(&lines, &|row| row_place(row, &places)))
    };
    let drawn = alone(command).iter().filter(|column| has(table, **column) && differs(table, **column));
    drawn.map(|column| bars(*column)).collect()
}

/// Draws several columns beside each other, for each run; `None` if no run has them.
fn bars_together(table: &Table, together: &Together, axes: &[Column]) -> Option<Plot> {
    let there = together.columns.iter().filter(|(column, _)| has(table, *column));
    let columns: Vec<&(Column, &str)> = there.collect();
    let (first, _) = columns.first()?;
    if table.rows.len() * columns.len() > BARS_AT_MOST {
        return None;
    }
    let panel = match &table.rows[..] {
        [row] => {
            let values = columns.iter().map(|(column, _)| row.number(*column)).collect();
            let x = columns.iter().map(|(_, name)| text_place((*name).to_owned())).collect();
            let (key, name) = (String::new(), together.title.to_owned());
            Panel { title: None, x, series: vec![Series { key, name, values, expected: None, band: None }] }
        }
        rows => {
            let line = |(column, name): &&(Column, &str)| Line {
                name: (*name).to_owned(),
                column: *column,
                rows: rows.iter().collect(),
            };
            let lines: Vec<Line> = columns.iter().map(line).collect();
            panel(&lines, &|row| row_place(row, axes))
        }
    };
    let mut plot = plot(PlotKind::Bar, together.title.to_owned(), *first, panel);
    plot.caption = together.caption.to_owned();
    plot.y_label = together.measure.to_owned();
    // The order of percentiles has a meaning, and so has the order in which the user typed the runs.
    plot.is_ordered = true;
    Some(plot)
}

/// Returns a line of `column` for each combination of the values of `by`, in the order of the rows.
fn lines<'a>(table: &'a Table, column: Column, by: &[Column]) -> Vec<Line<'a>> {
    let key = |row: &Row| -> Vec<Option<Value>> { by.iter().map(|axis| row.get(*axis).cloned()).collect() };
    let mut lines: Vec<(Vec<Option<Value>>, Line<'a>)> = Vec::new();
    for row in &table.rows {
        let key = key(row);
        match lines.iter_mut().find(|(known, _)| *known == key) {
            Some((_, line)) => line.rows.push(row),
            None => lines.push((key, Line { name: named(row, by), column, rows: vec![row] })),
        }
    }
    lines.into_iter().map(|(_, line)| line).collect()
}

/// Turns a plot with many lines into a heat map of some of their places, the last one included. On a logarithmic axis
/// they are closer to each other at the beginning.
fn heat_map(mut plot: Plot) -> Plot {
    for panel in &mut plot.panels {
        let (last, columns) = (panel.x.len() - 1, HEAT_COLUMNS_AT_MOST.min(panel.x.len()));
        let place = |column: usize| match plot.log_x {
            true => (panel.x.len() as f64).powf(column as f64 / columns as f64).round() as usize - 1,
            false => last * column / columns,
        };
        let mut kept: Vec<usize> = (1..=columns).map(place).collect();
        kept.dedup();
        panel.x = kept.iter().map(|at| panel.x[*at].clone()).collect();
        for series in &mut panel.series {
            series.values = kept.iter().map(|at| series.values[*at]).collect();
            (series.expected, series.band) = (None, None);
        }
    }
    plot.caption +=
        " There are too many lines to draw, so these are some of their values. The table has all.";
    Plot { kind: PlotKind::HeatMap, ..plot }
}

/// Names the place of a row by its values in `axes`.
fn row_place(row: &Row, axes: &[Column]) -> Place {
    text_place(named(row, axes))
}

fn text_place(name: String) -> Place {
    Place { value: Value::from(name.as_str()), name }
}

/// Puts the rows of all lines at their places. A place without a row in a line has no value there. If a line
/// has several rows for a place, the first one counts.
fn panel(lines: &[Line<'_>], place: &dyn Fn(&Row) -> Place) -> Panel {
    let mut x: Vec<Place> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    // Looks a place up by its text, because a run may have thousands of intervals.
    let mut at_of = |row: &Row| {
        let place = place(row);
        *known.entry(place.value.exact()).or_insert_with(|| {
            x.push(place);
            x.len() - 1
        })
    };
    let placed: Vec<Vec<usize>> =
        lines.iter().map(|line| line.rows.iter().map(|row| at_of(row)).collect()).collect();
    let mut order: Vec<usize> = (0..x.len()).collect();
    if x.iter().all(|place| place.value.as_f64().is_some()) {
        let number = |at: &usize| x[*at].value.as_f64().unwrap_or(0.0);
        order.sort_by(|a, b| number(a).total_cmp(&number(b)));
    }
    let series = lines.iter().zip(placed).map(|(line, placed)| {
        let mut rows: Vec<Option<&Row>> = vec![None; x.len()];
        for (at, row) in placed.into_iter().zip(&line.rows) {
            rows[at].get_or_insert(row);
        }
        let in_order = || order.iter().map(|at| rows[*at]);
        let expected: Vec<Option<(f64, f64)>> = in_order().map(|row| published(row?, line.column)).collect();
        let bands: Vec<Option<(f64, f64)>> = in_order().map(|row| band(row?, line.column)).collect();
        Series {
            key: line.name.clone(),
            name: if line.name.is_empty() { words(line.column) } else { line.name.clone() },
            values: in_order().map(|row| row?.number(line.column)).collect(),
            expected: expected.iter().any(Option::is_some).then_some(expected),
            band: bands.iter().any(Option::is_some).then_some(bands),
        }
    });
    let series = series.filter(|series| series.values.iter().any(Option::is_some)).collect();
    Panel { title: None, x: order.iter().map(|at| x[*at].clone()).collect(), series }
}

/// Returns the interval of an estimated figure.
fn band(row: &Row, column: Column) -> Option<(f64, f64)> {
    let error = match column {
        Column::MissRatio => row.number(Column::MissRatioError)?,
        _ => return None,
    };
    let figure = row.number(column)?;
    Some(((figure - error).max(0.0), (figure + error).min(1.0)))
}

/// Returns the published figure beside a measured one. A published bound, such as `>11`, is not drawn.
fn published(row: &Row, column: Column) -> Option<(f64, f64)> {
    let target = match column {
        Column::Alpha => Column::AlphaTarget,
        Column::KR => Column::KRTarget,
        Column::KW => Column::KWTarget,
        _ => return None,
    };
    let figure = row.get(target)?.exact().parse().ok()?;
    Some((figure, figure))
}

/// Draws lines over the number `x`.
fn over_number(x: Column, title: String, y: Column, lines: &[Line<'_>]) -> Plot {
    let place = |row: &Row| {
        let value = Value::Real(row.number(x).unwrap_or_default());
        Place { name: humane(x, &value), value }
    };
    let panel = panel(lines, &place);
    let places = panel.x.iter().filter_map(|place| place.value.as_f64());
    let is_time = matches!(x, Column::TimeNs | Column::TimePages);
    let log_x = !is_time && is_wide(places, false);
    let x_label = match x {
        Column::TimeNs => "time".to_owned(),
        Column::TimePages => "pages written".to_owned(),
        _ => words(x),
    };
    // Runs may have been measured at different places.
    let joins_gaps = !is_time;
    Plot { log_x, x_label, joins_gaps, x_unit: x.unit(), ..plot(PlotKind::Line, title, y, panel) }
}

/// Returns a plot of the column `y`, whose places are not numbers.
fn plot(kind: PlotKind, title: String, y: Column, panel: Panel) -> Plot {
    let values = panel.series.iter().flat_map(|series| series.values.iter().copied().flatten());
    let is_share = y.name().ends_with("_ratio") || y.name().ends_with("_share");
    Plot {
        title,
        caption: format!("{}.", upper(y.meaning())),
        kind,
        x_label: "run".to_owned(),
        y_label: words(y),
        log_x: false,
        log_y: y.unit() == Unit::Nanoseconds && is_wide(values, kind == PlotKind::Bar),
        scale: if is_share { Scale::Share } else { Scale::Unit(y.unit()) },
        x_unit: Unit::Number,
        expected_is: "published",
        zero_is: None,
        better: y.better(),
        is_ordered: false,
        no_value: "the run has no such figure".to_owned(),
        joins_gaps: false,
        colours_places: kind == PlotKind::Bar && panel.series.len() == 1,
        panels: vec![panel],
    }
}

/// Whether numbers differ so much that their axis is logarithmic. A line cannot show zero on such an axis.
/// Bars can, and leave it out here.
fn is_wide(numbers: impl Iterator<Item = f64>, leaves_out_zero: bool) -> bool {
    let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
    let counted = numbers.filter(|number| *number != 0.0 || !leaves_out_zero);
    counted.for_each(|number| (low, high) = (low.min(number), high.max(number)));
    low > 0.0 && high / low >= LOGARITHMIC_FROM
}

fn upper(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map_or_else(String::new, |first| first.to_uppercase().collect());
    // A name such as `p99` or `k_r` keeps its small letter.
    match letters.clone().next() {
        Some(second) if !second.is_lowercase() => text.to_owned(),
        _ => first + letters.as_str(),
    }
}

//! The plots of a trace: its requests and its working set over time, how its pages are requested again, and its
//! bursts at every scale.

use super::{Line, over_number, panel, plot, text_place};
use crate::people::humane;
use crate::report::{Panel, Place, Plot, PlotKind, Scale, Series};
use crate::table::Table;
use crate::trace_info::{PAIRS, intervals};
use fulgurite_stack::trace_profile::{Distances, Profile};
use fulgurite_stack::{Column, Row, Unit, Value};

/// Returns the plots of a trace, whose figures are in `row`.
pub(in crate::report) fn plots_of_trace(row: &Row, profile: &Profile) -> Vec<Plot> {
    let table = intervals(profile);
    let plots = [
        requests(&table, profile),
        working_set(&table, profile),
        reuse(profile),
        pairs(row),
        sequential(&table, profile),
        dispersion(profile),
    ];
    plots.into_iter().flatten().filter(Plot::shows_something).collect()
}

/// Returns the length of the intervals in words: `10.0 s` or `1,000 requests`.
fn length(profile: &Profile) -> String {
    let length = profile.intervals.length;
    match profile.has_times {
        true => humane(Column::IntervalNs, &Value::Integer(length)),
        false => format!("{} requests", humane(Column::Requests, &Value::Integer(length))),
    }
}

/// Draws columns of the intervals, each as a line with a name. Columns without any number but zero are left out.
fn over_time(
    table: &Table,
    profile: &Profile,
    title: &str,
    columns: &[(Column, &str)],
    caption: String,
) -> Option<Plot> {
    let x = if profile.has_times { Column::TimeNs } else { Column::TimeRequests };
    let is_drawn =
        |column: Column| table.rows.iter().any(|row| row.number(column).is_some_and(|number| number > 0.0));
    let line = |(column, name): &(Column, &str)| Line {
        name: (*name).to_owned(),
        column: *column,
        rows: table.rows.iter().collect(),
    };
    let lines: Vec<Line> = columns.iter().filter(|(column, _)| is_drawn(*column)).map(line).collect();
    let first = lines.first()?.column;
    let mut plot = over_number(x, title.to_owned(), first, &lines);
    plot.caption = caption;
    if !profile.has_times {
        plot.x_label = "requests".to_owned();
    }
    Some(plot)
}

fn requests(table: &Table, profile: &Profile) -> Option<Plot> {
    let columns = [(Column::Reads, "reads"), (Column::Writes, "writes"), (Column::Trims, "trims")];
    let caption = format!("The requests in each interval of {}.", length(profile));
    let mut plot = over_time(table, profile, "Requests over time", &columns, caption)?;
    plot.y_label = "requests".to_owned();
    Some(plot)
}

fn working_set(table: &Table, profile: &Profile) -> Option<Plot> {
    let columns = [(Column::WorkingSetPages, "all"), (Column::NewPages, "not requested before")];
    let caption = format!(
        "The different pages that are requested in each interval of {}, and those of them that were not requested \
         before.",
        length(profile)
    );
    let mut plot = over_time(table, profile, "Working set over time", &columns, caption)?;
    plot.y_label = "pages".to_owned();
    Some(plot)
}

fn sequential(table: &Table, profile: &Profile) -> Option<Plot> {
    let columns = [(Column::SequentialShare, "")];
    let caption =
        "The share of the requests in each interval that begin at the end of the one before.".to_owned();
    over_time(table, profile, "Sequential requests over time", &columns, caption)
}

/// Draws the share of repeated requests below each distance.
fn reuse(profile: &Profile) -> Option<Plot> {
    let [reads, writes] = &profile.distances;
    let both = reads.with(writes);
    let most = both.percentile(100.0)?;
    let bits = u64::BITS - most.leading_zeros();
    let frames: Vec<u64> = (0..=bits.min(62)).map(|bit| 1 << bit).collect();
    let place = |frames: &u64| {
        let value = Value::Integer(*frames);
        Place { name: humane(Column::Frames, &value), value }
    };
    let named = [("all", &both), ("reads", reads), ("writes", writes)];
    // A trace of reads only has one line.
    let is_drawn = |(name, distances): &&(&str, &Distances)| {
        distances.count() > 0 && (*name == "all" || distances.count() < both.count())
    };
    let series = named.iter().filter(is_drawn).map(|(name, distances)| Series {
        key: (*name).to_owned(),
        name: (*name).to_owned(),
        values: frames.iter().map(|frames| Some(distances.below(*frames))).collect(),
        expected: None,
        band: None,
    });
    let panel = Panel { title: None, x: frames.iter().map(place).collect(), series: series.collect() };
    let mut plot = plot(PlotKind::Line, "Reuse distances".to_owned(), Column::HitRatio, panel);
    plot.caption =
        "The share of the repeated requests for which fewer other pages were requested since the request \
                    before for the same page. A pool of LRU with as many frames hits them."
            .to_owned();
    plot.x_label = "frames".to_owned();
    plot.y_label = "share of the repeated requests".to_owned();
    plot.log_x = true;
    plot.better = None;
    Some(plot)
}

/// Draws the share of each pair of successive requests for a page.
fn pairs(row: &Row) -> Option<Plot> {
    row.number(PAIRS[0].0)?;
    let values = PAIRS.iter().map(|(column, _)| row.number(*column)).collect();
    let x = PAIRS.iter().map(|(_, name)| text_place((*name).to_owned())).collect();
    let series = Series { key: String::new(), name: "share".to_owned(), values, expected: None, band: None };
    let panel = Panel { title: None, x, series: vec![series] };
    let title = "Reads and writes of the same page".to_owned();
    let mut plot = plot(PlotKind::Bar, title, PAIRS[0].0, panel);
    plot.caption = "Each repeated request by its operation and that of the request before for the same page. What is \
                    written after a write need not have been written to the drive; a read after a write can be served \
                    from a write buffer."
        .to_owned();
    plot.x_label = "pair".to_owned();
    plot.y_label = "share of the repeated requests".to_owned();
    plot.is_ordered = true;
    Some(plot)
}

fn dispersion(profile: &Profile) -> Option<Plot> {
    let rows: Vec<Row> = profile
        .dispersion
        .iter()
        .map(|(length, dispersion)| {
            let mut row = Row::default();
            row.set(Column::IntervalNs, *length);
            row.set(Column::Dispersion, *dispersion);
            row
        })
        .collect();
    let line = Line { name: String::new(), column: Column::Dispersion, rows: rows.iter().collect() };
    let place = |row: &Row| {
        let value = Value::Real(row.number(Column::IntervalNs).unwrap_or_default());
        Place { name: humane(Column::IntervalNs, &value), value }
    };
    let title = "Bursts at every scale".to_owned();
    let mut plot = plot(PlotKind::Line, title, Column::Dispersion, panel(&[line], &place));
    plot.caption =
        "The index of dispersion: the variance of the requests in a window over their mean. It is 1 for \
                    random arrivals at every length of the window; if it grows, bursts follow bursts."
            .to_owned();
    plot.x_label = "length of the window".to_owned();
    plot.x_unit = Unit::Nanoseconds;
    (plot.log_x, plot.log_y, plot.scale) = (true, true, Scale::Unit(Unit::Number));
    Some(plot).filter(|_| !rows.is_empty())
}

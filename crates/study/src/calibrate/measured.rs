//! Reads the measured latencies of a drive: a table with one row per offered rate.
//!
//! Two spellings are read: the columns of `profile --suite latency --csv`, with times in nanoseconds, and
//! those of the table that the SSD-iq study (Haas, Lee, Bonnet and Leis, PVLDB 18(11), 2025) gives for real
//! drives, with times in microseconds.

use fulgurite_files::obstacle;
use fulgurite_stack::{Column, Row, StackError};
use std::collections::BTreeMap;
use std::path::Path;

/// The number of figures of a point.
pub(super) const FIGURES: usize = 9;

/// A figure of a point: its column, which is one spelling in files, the other spelling, and its weight in a
/// fit. The first figure is a rate, the others are times.
pub(super) struct Figure {
    pub(super) column: Column,
    measured: &'static str,
    pub(super) weight: f64,
}

/// The figures of a point. Percentiles far out in the tail weigh less, because they hardly repeat on the same
/// drive.
pub(super) const ALL: [Figure; FIGURES] = [
    Figure { column: Column::DoneOpsS, measured: "load_done_ops_s", weight: 8.0 },
    Figure { column: Column::ReadLatencyP50Ns, measured: "probe_read_p50_us", weight: 3.0 },
    Figure { column: Column::ReadLatencyP90Ns, measured: "probe_read_p90_us", weight: 2.0 },
    Figure { column: Column::ReadLatencyP99Ns, measured: "probe_read_p99_us", weight: 2.0 },
    Figure { column: Column::ReadLatencyP999Ns, measured: "probe_read_p999_us", weight: 0.5 },
    Figure { column: Column::WriteLatencyP50Ns, measured: "probe_write_p50_us", weight: 3.0 },
    Figure { column: Column::WriteLatencyP90Ns, measured: "probe_write_p90_us", weight: 1.0 },
    Figure { column: Column::WriteLatencyP99Ns, measured: "probe_write_p99_us", weight: 1.0 },
    Figure { column: Column::WriteLatencyP999Ns, measured: "probe_write_p999_us", weight: 0.2 },
];

/// The figures of a drive at one offered rate; `None` for a figure that was not measured. Times are in
/// nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) offered_ops_s: u64,
    pub(super) figures: [Option<f64>; FIGURES],
}

/// Returns the point in a result row of the suite `latency`.
pub(super) fn point(row: &Row) -> Point {
    Point {
        offered_ops_s: row.number(Column::OfferedOpsS).unwrap_or(0.0).round() as u64,
        figures: ALL.each_ref().map(|figure| row.number(figure.column)),
    }
}

/// Returns the points of the drive called `drive` in a file, by rate. `None` stands for the only drive.
pub(super) fn read(path: &Path, drive: Option<&str>) -> Result<Vec<Point>, StackError> {
    let refused = |why: String| {
        StackError::request(format!(
            "SOURCE {}: {why}; accepted: CSV as profile --suite latency prints it, or with the columns \
             offered_ops_s, load_done_ops_s, probe_read_p50_us and the like",
            path.display()
        ))
    };
    let file = std::fs::File::open(path).map_err(|error| refused(obstacle(path, &error)))?;
    let mut reader = csv::Reader::from_reader(file);
    let columns = reader.headers().map_err(|error| refused(error.to_string()))?.clone();
    let at = |name: &str| columns.iter().position(|column| column.trim() == name);
    let rate = at("offered_ops_s").ok_or_else(|| refused("it has no column offered_ops_s".to_owned()))?;
    let device = at("device");
    // The place of each figure, and the nanoseconds of its unit.
    let places: Vec<Option<(usize, f64)>> = ALL
        .iter()
        .map(|figure| {
            let own = at(figure.column.name()).map(|place| (place, 1.0));
            let unit = if figure.measured.ends_with("_us") { 1_000.0 } else { 1.0 };
            own.or(at(figure.measured).map(|place| (place, unit)))
        })
        .collect();
    if places[0].is_none() {
        return Err(refused("it has neither done_ops_s nor load_done_ops_s".to_owned()));
    }
    let (mut points, mut drives) = (BTreeMap::new(), std::collections::BTreeSet::new());
    for row in reader.records() {
        let row = row.map_err(|error| refused(error.to_string()))?;
        let name = device.and_then(|place| row.get(place)).unwrap_or_default().trim();
        drives.insert(name.to_owned());
        if drive.is_some_and(|wanted| !name.contains(wanted)) {
            continue;
        }
        let line = row.position().map_or(0, csv::Position::line);
        let number = |place: usize| match row.get(place).unwrap_or_default().trim() {
            "" => Ok(None),
            text => match text.parse::<f64>() {
                Ok(number) if number.is_finite() && number >= 0.0 => Ok(Some(number)),
                _ => Err(refused(format!("line {line}: `{text}` is not a number"))),
            },
        };
        let offered = number(rate)?.ok_or_else(|| refused(format!("line {line} has no offered_ops_s")))?;
        let mut figures = [None; FIGURES];
        for (figure, place) in figures.iter_mut().zip(&places) {
            if let Some((place, unit)) = place {
                *figure = number(*place)?.map(|number| number * unit).filter(|number| *number > 0.0);
            }
        }
        let point = Point { offered_ops_s: offered.round() as u64, figures };
        if points.insert(point.offered_ops_s, point).is_some() && drive.is_none() && drives.len() > 1 {
            break;
        }
    }
    if drive.is_none() && drives.len() > 1 {
        let names: Vec<&str> = drives.iter().map(String::as_str).collect();
        return Err(StackError::request(format!(
            "SOURCE {} has several drives; accepted: --drive with a part of one name of {}",
            path.display(),
            names.join(", ")
        )));
    }
    let points: Vec<Point> = points.into_values().collect();
    if points.is_empty() {
        let why = drive.map_or("it has no rows".to_owned(), |drive| format!("no row is about {drive}"));
        return Err(refused(why));
    }
    need_two(points).map_err(refused)
}

/// Refuses fewer rates than a fit needs.
pub(super) fn need_two(points: Vec<Point>) -> Result<Vec<Point>, String> {
    match points.len() {
        0 | 1 => Err(format!("a fit needs at least two rates, and it has {}", points.len())),
        _ => Ok(points),
    }
}

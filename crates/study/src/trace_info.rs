//! Describes a trace file: its figures in one row, or in a row for each volume or interval, and how it develops.

use crate::table::Table;
use fulgurite_base::option::parse_choice;
use fulgurite_base::units;
use fulgurite_stack::trace_profile::{Interval, Length, Profile, profile};
use fulgurite_stack::workload::{TraceForm, open_trace};
use fulgurite_stack::{Column, Row, StackError};
use fulgurite_workload::trace::{
    Format, OpSummary, Skipped, Summary, Summing, TraceOptions, TraceReader, Unit, volume_text,
};

/// A question about a trace file, as the user gave it. [`describe`] answers it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Described<'a> {
    /// The path of the file, or several files.
    pub path: &'a str,
    /// The format, with options; needed only if the name and the content of the file do not tell the format. With its
    /// option `volume=list` there is a row for each volume.
    pub format: Option<&'a str>,
    /// Whether the requests are sorted by time.
    pub sort: bool,
    /// How several files are one trace.
    pub files: Option<&'a str>,
    /// The page size; `None` for 4 KiB.
    pub page: Option<&'a str>,
    /// The length of the intervals, of which each gets a row: a time or a number of requests.
    pub interval: Option<&'a str>,
}

/// The description of a trace.
pub struct Description {
    /// The row with all figures, or the rows of the volumes.
    rows: Vec<Row>,
    /// How the trace develops; `None` if there are rows of volumes.
    profile: Option<Profile>,
    has_interval: bool,
}

impl Description {
    /// Returns the row with all figures, or the rows of the volumes or intervals that were asked for.
    pub fn table(&self) -> Table {
        match &self.profile {
            Some(profile) if self.has_interval => intervals(profile),
            _ => self.whole(),
        }
    }

    /// Whether the table has a row for each interval.
    pub fn has_intervals(&self) -> bool {
        self.has_interval
    }

    /// Returns the row with all figures, or the rows of the volumes.
    pub(crate) fn whole(&self) -> Table {
        Table { rows: self.rows.clone() }
    }

    /// Returns how the trace develops; `None` if volumes were asked for.
    pub(crate) fn profile(&self) -> Option<&Profile> {
        self.profile.as_ref()
    }
}

/// Describes a trace file.
pub fn describe(asked: Described<'_>) -> Result<Description, StackError> {
    let Described { path, format, sort, files, page, interval } = asked;
    let mut form = form_of(format, sort, files)?;
    let is_list = form.options.volume.as_deref() == Some(LIST);
    if is_list {
        form.options.volume = None;
    }
    let page_bytes = page.map(units::parse_size).transpose()?;
    let length = interval.map(read_length).transpose()?;
    if is_list && length.is_some() {
        return Err(StackError::request(format!(
            "--interval does not go with volume={LIST}; choose one volume, or leave it out"
        )));
    }
    let mut reader = open_trace(path, form)?;
    let unit = reader.unit();
    if let (Unit::Pages, Some(page)) = (unit, page) {
        return Err(StackError::request(format!(
            "--page {page} does not go with {}, which counts pages of its own; leave it out",
            reader.format().name()
        )));
    }
    let page_bytes = page_bytes.unwrap_or(4096);
    if is_list {
        let rows = of_volumes(&mut reader, path, unit, page_bytes)?;
        return Ok(Description { rows, profile: None, has_interval: false });
    }
    let mut whole = Summing::new(unit, page_bytes)?;
    let profile = profile(&mut reader, &mut whole, length)?;
    if let (Some(Length::Time(_)), false, Some(text)) = (length, profile.has_times, interval) {
        return Err(StackError::request(format!(
            "--interval {text}: this trace has no times; accepted: a number of requests, like 10K"
        )));
    }
    let summary = Summary { volumes: reader.volumes().len(), ..whole.finish() };
    let mut row = row_of(path, &reader, &summary, page_bytes);
    set_profile(&mut row, &profile);
    row.set(Column::Skipped, Skipped::total(reader.skipped()));
    row.set(Column::SkippedWhy, Skipped::reasons(reader.skipped()));
    row.set(Column::TimesClamped, reader.clamped());
    set_decided(&mut row, &reader.decided());
    Ok(Description { rows: vec![row], profile: Some(profile), has_interval: length.is_some() })
}

/// Returns a row for each volume of a trace.
fn of_volumes(
    reader: &mut TraceReader,
    path: &str,
    unit: Unit,
    page_bytes: u64,
) -> Result<Vec<Row>, StackError> {
    let mut volumes: Vec<Summing> = Vec::new();
    while let Some(record) = reader.next() {
        let record = record.map_err(|error| StackError::request(error.to_string()))?;
        while volumes.len() < reader.volumes().len() {
            volumes.push(Summing::of_volume(unit, page_bytes)?);
        }
        // Volume 0 means that the format has no volumes.
        if let Some(volume) = (record.volume as usize).checked_sub(1) {
            volumes[volume].add(&record);
        }
    }
    if reader.volumes().is_empty() {
        return Err(StackError::request(format!(
            "volume={LIST}: {} has no volumes; leave the option out",
            reader.format().name()
        )));
    }
    let rows = reader.volumes().iter().zip(volumes).map(|(name, summing)| {
        let summary = Summary { volumes: 1, ..summing.finish() };
        let mut row = row_of(path, reader, &summary, page_bytes);
        row.set(Column::Volume, volume_text(name));
        row
    });
    Ok(rows.collect())
}

/// Reads the length of intervals: a time like `10s`, or a number of requests like `10K`.
fn read_length(text: &str) -> Result<Length, StackError> {
    let is_time = text.ends_with(['s', 'm', 'h', 'd']);
    let length = match is_time {
        true => units::parse_time(text).map(Length::Time),
        false => units::parse_count(text).map(Length::Requests),
    };
    match length.map_err(|error| StackError::request(format!("--interval: {error}")))? {
        Length::Time(time) if time.0 == 0 => Err(empty_interval(text)),
        Length::Requests(0) => Err(empty_interval(text)),
        length => Ok(length),
    }
}

fn empty_interval(text: &str) -> StackError {
    StackError::request(format!(
        "--interval {text} is empty; accepted: a time like 10s, or a number of requests like 10K"
    ))
}

/// Returns a row for each interval of a trace.
pub(crate) fn intervals(profile: &Profile) -> Table {
    let length = profile.intervals.length;
    let row = |(number, interval): (u64, &Interval)| {
        let mut row = Row::default();
        let beginning = number.saturating_mul(length);
        let requests = interval.requests();
        if profile.has_times {
            row.set(Column::TimeNs, beginning);
            row.set(Column::IntervalNs, length);
            row.set(Column::RateRequestsS, requests as f64 * 1e9 / length as f64);
        } else {
            row.set(Column::TimeRequests, beginning);
        }
        row.set(Column::Requests, requests);
        row.set(Column::Reads, interval.reads);
        row.set(Column::Writes, interval.writes);
        row.set(Column::Trims, interval.trims);
        row.set(Column::WorkingSetPages, interval.pages);
        row.set(Column::NewPages, interval.new_pages);
        if requests > 0 {
            row.set(Column::ReadShare, interval.reads as f64 / requests as f64);
            row.set(Column::SequentialShare, interval.sequential as f64 / requests as f64);
        }
        row
    };
    Table { rows: (0..).zip(&profile.intervals.all).map(row).collect() }
}

/// Sets the figures of how pages are requested again.
fn set_profile(row: &mut Row, profile: &Profile) {
    let [reads, writes] = &profile.distances;
    let distances = reads.with(writes);
    for (column, percent) in
        [(Column::ReuseDistanceP50, 50.0), (Column::ReuseDistanceP90, 90.0), (Column::ReuseDistanceP99, 99.0)]
    {
        row.set_some(column, distances.percentile(percent));
    }
    let repeated = profile.pairs.as_flattened().iter().sum::<u64>();
    if repeated > 0 {
        for ((column, ..), count) in PAIRS.iter().zip(profile.pairs.as_flattened()) {
            row.set(*column, *count as f64 / repeated as f64);
        }
    }
    row.set_some(Column::ReuseSample, Some(1.0 / f64::from(profile.divisor)).filter(|_| profile.divisor > 1));
}

/// The pairs of successive requests for a page, in the order of [`Profile::pairs`].
pub(crate) const PAIRS: [(Column, &str); 4] = [
    (Column::ReadAfterReadShare, "read after read"),
    (Column::WriteAfterReadShare, "write after read"),
    (Column::ReadAfterWriteShare, "read after write"),
    (Column::WriteAfterWriteShare, "write after write"),
];

/// Returns the form of a trace, as the user gave it.
pub(crate) fn form_of(
    format: Option<&str>,
    sort: bool,
    files: Option<&str>,
) -> Result<TraceForm, StackError> {
    let format = format.map(Format::parse).transpose()?;
    let (format, options) =
        format.map_or((None, TraceOptions::default()), |(format, options)| (Some(format), options));
    let join = files.map(parse_choice).transpose();
    let join = join.map_err(|error| StackError::request(format!("--files: {error}")))?;
    let sort = sort || options.sort;
    Ok(TraceForm { format, options: TraceOptions { sort, ..options }, join })
}

/// The value of `volume=` that asks for a row for each volume.
const LIST: &str = "list";

fn row_of(path: &str, reader: &TraceReader, summary: &Summary, page_bytes: u64) -> Row {
    let in_pages = reader.unit() == Unit::Pages;
    let mut row = Row::default();
    row.set(Column::File, path);
    row.set(Column::Format, reader.format().name());
    row.set(Column::Requests, summary.requests);
    row.set(Column::Reads, summary.reads.requests);
    row.set(Column::Writes, summary.writes.requests);
    row.set(Column::Trims, summary.trims.requests);
    row.set(Column::ReadShare, summary.read_share);
    set_sizes(&mut row, [Column::ReadSizeMin, Column::ReadSizeMean, Column::ReadSizeMax], &summary.reads);
    set_sizes(&mut row, [Column::WriteSizeMin, Column::WriteSizeMean, Column::WriteSizeMax], &summary.writes);
    row.set(Column::SizeUnit, if in_pages { "pages" } else { "bytes" });
    if !in_pages {
        row.set(Column::PageBytes, page_bytes);
    }
    row.set(Column::FootprintPages, summary.footprint_pages);
    row.set_some(Column::FootprintPagesError, summary.footprint_error);
    row.set(Column::FootprintReadPages, summary.reads.footprint_pages);
    row.set(Column::FootprintWrittenPages, summary.writes.footprint_pages);
    if let Some(rate) = summary.rate_requests_s {
        row.set(Column::DurationNs, summary.duration.0);
        row.set(Column::RateRequestsS, rate);
        row.set_some(Column::PeakRequestsS, summary.peak_requests_s);
        row.set_some(Column::Burstiness, summary.burstiness);
        row.set_some(Column::Dispersion, summary.dispersion);
        row.set_some(Column::WorkingSetPages, summary.working_set_pages);
    }
    if summary.volumes > 0 {
        row.set(Column::Volumes, summary.volumes as u64);
    }
    row.set(Column::SequentialShare, summary.sequential_share);
    row.set(Column::ReuseShare, summary.reuse_share);
    row
}

/// Sets the column of the reader's decisions, if there are any.
pub(crate) fn set_decided(row: &mut Row, decided: &str) {
    if !decided.is_empty() {
        row.set(Column::Decided, decided);
    }
}

fn set_sizes(row: &mut Row, [min, mean, max]: [Column; 3], of: &OpSummary) {
    if let Some(sizes) = of.sizes {
        row.set(min, sizes.min);
        row.set(mean, sizes.mean);
        row.set(max, sizes.max);
    }
}

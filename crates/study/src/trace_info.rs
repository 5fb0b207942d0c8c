//! Describes a trace file in one result row, or in a row for each volume.

use crate::table::Table;
use fulgurite_base::option::parse_choice;
use fulgurite_base::units;
use fulgurite_stack::workload::{TraceForm, open_trace};
use fulgurite_stack::{Column, Row, StackError};
use fulgurite_workload::trace::{
    Format, OpSummary, Skipped, Summary, Summing, TraceOptions, TraceReader, Unit, volume_text,
};

/// Describes the trace file at `path`. `format` is needed only if the name and the content of the file do not
/// tell the format. With its option `volume=list` there is a row for each volume. `page` is the page size in
/// which the footprint is counted; `None` means 4 KiB. With `sort` the requests are sorted by time. `files` says how
/// several files are one trace.
pub fn describe(
    path: &str,
    format: Option<&str>,
    sort: bool,
    files: Option<&str>,
    page: Option<&str>,
) -> Result<Table, StackError> {
    let mut form = form_of(format, sort, files)?;
    let is_list = form.options.volume.as_deref() == Some(LIST);
    if is_list {
        form.options.volume = None;
    }
    let page_bytes = page.map(units::parse_size).transpose()?;
    let mut reader = open_trace(path, form)?;
    let unit = reader.unit();
    if let (Unit::Pages, Some(page)) = (unit, page) {
        return Err(StackError::request(format!(
            "--page {page} does not go with {}, which counts pages of its own; leave it out",
            reader.format().name()
        )));
    }
    let page_bytes = page_bytes.unwrap_or(4096);
    let mut whole = Summing::new(unit, page_bytes)?;
    let mut volumes: Vec<Summing> = Vec::new();
    while let Some(record) = reader.next() {
        let record = record.map_err(|error| StackError::request(error.to_string()))?;
        if !is_list {
            whole.add(&record);
            continue;
        }
        while volumes.len() < reader.volumes().len() {
            volumes.push(Summing::of_volume(unit, page_bytes)?);
        }
        // Volume 0 means that the format has no volumes.
        if let Some(volume) = (record.volume as usize).checked_sub(1) {
            volumes[volume].add(&record);
        }
    }
    if !is_list {
        let summary = Summary { volumes: reader.volumes().len(), ..whole.finish() };
        let mut row = row_of(path, &reader, &summary, page_bytes);
        row.set(Column::Skipped, Skipped::total(reader.skipped()));
        row.set(Column::SkippedWhy, Skipped::reasons(reader.skipped()));
        row.set(Column::TimesClamped, reader.clamped());
        set_decided(&mut row, &reader.decided());
        return Ok(Table { rows: vec![row] });
    }
    if reader.volumes().is_empty() {
        return Err(StackError::request(format!(
            "volume={LIST}: {} has no volumes; leave the option out",
            reader.format().name()
        )));
    }
    let rows = reader.volumes().iter().zip(volumes).map(|(name, summing)| {
        let summary = Summary { volumes: 1, ..summing.finish() };
        let mut row = row_of(path, &reader, &summary, page_bytes);
        row.set(Column::Volume, volume_text(name));
        row
    });
    Ok(Table { rows: rows.collect() })
}

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

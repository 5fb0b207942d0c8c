//! What a trace file is like, as a row.

use crate::error::StudyError;
use crate::table::{Row, Table};
use fulgurite_base::{Spec, units};
use fulgurite_workload::trace::{Format, OpSummary, Trace, TraceOptions, Unit};
use std::path::Path;

/// Describes the trace file at `path`. `format` where its name and content do not tell; `page` is
/// the page size that footprints are counted in, by default 4 KiB.
pub fn describe(path: &str, format: Option<&str>, page: Option<&str>) -> Result<Table, StudyError> {
    let format = format.map(|spec| Format::from_spec(Spec::parse(spec)?)).transpose()?;
    let (format, options) =
        format.map_or((None, TraceOptions::default()), |(format, options)| (Some(format), options));
    let page_bytes = page.map(units::parse_size).transpose()?;
    let trace = Trace::load(Path::new(path), format, options)
        .map_err(|error| StudyError::request(error.to_string()))?;
    let in_pages = trace.unit() == Unit::Pages;
    if let (true, Some(page)) = (in_pages, page) {
        return Err(StudyError::request(format!(
            "--page {page} does not go with {}, which counts pages of its own; leave it out",
            trace.format().name()
        )));
    }
    let page_bytes = page_bytes.unwrap_or(4096);
    let summary = trace.summary(page_bytes)?;
    let mut row = Row::default();
    row.set("file", path);
    row.set("format", trace.format().name());
    row.set("requests", summary.requests);
    row.set("reads", summary.reads.requests);
    row.set("writes", summary.writes.requests);
    row.set("trims", summary.trims.requests);
    row.set("read_share", summary.read_share);
    set_sizes(&mut row, ["read_size_min", "read_size_mean", "read_size_max"], &summary.reads);
    set_sizes(&mut row, ["write_size_min", "write_size_mean", "write_size_max"], &summary.writes);
    row.set("size_unit", if in_pages { "pages" } else { "bytes" });
    if !in_pages {
        row.set("page_bytes", page_bytes);
    }
    row.set("footprint_pages", summary.footprint_pages);
    row.set("footprint_read_pages", summary.reads.footprint_pages);
    row.set("footprint_written_pages", summary.writes.footprint_pages);
    if let Some(rate) = summary.rate_requests_s {
        row.set("duration_ns", summary.duration.0);
        row.set("rate_requests_s", rate);
        row.set_some("peak_requests_s", summary.peak_requests_s);
        row.set_some("burstiness", summary.burstiness);
    }
    if summary.volumes > 0 {
        row.set("volumes", summary.volumes as u64);
    }
    row.set("sequential_share", summary.sequential_share);
    row.set("reuse_share", summary.reuse_share);
    row.set("skipped", summary.skipped.iter().map(|skipped| skipped.count).sum::<u64>());
    let why: Vec<String> =
        summary.skipped.iter().map(|skipped| format!("{} {}", skipped.count, skipped.reason)).collect();
    row.set("skipped_why", why.join("; "));
    row.set("times_clamped", summary.clamped);
    Ok(Table { rows: vec![row] })
}

fn set_sizes(row: &mut Row, [min, mean, max]: [&'static str; 3], of: &OpSummary) {
    if let Some(sizes) = of.sizes {
        row.set(min, sizes.min);
        row.set(mean, sizes.mean);
        row.set(max, sizes.max);
    }
}

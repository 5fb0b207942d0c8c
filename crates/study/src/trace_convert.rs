//! Writes trace files: converts a trace into another format, or stores the requests of a generator.

use crate::grid;
use crate::table::Table;
use crate::trace_info::{form_of, set_decided};
use flate2::Compression;
use flate2::write::GzEncoder;
use fulgurite_base::{Nanos, units};
use fulgurite_files::output::{self, Named, OutputFile, Replaces, write_whole};
use fulgurite_stack::progress::check_stopped;
use fulgurite_stack::settings::read_sample;
use fulgurite_stack::workload::{View, Workload, files_of, open_trace};
use fulgurite_stack::{Column, Progress, Row, StackError};
use fulgurite_workload::Request;
use fulgurite_workload::trace::{
    Cut, Format, Loss, Record, Skipped, TraceError, TraceWriter, Unit, volume_text, write_oracle_general,
};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// The trace file to write, as given by the user.
#[derive(Clone, Copy, Debug)]
pub struct Written<'a> {
    /// The path of the file.
    pub out: &'a Path,
    /// Whether an existing file may be replaced.
    pub force: bool,
    /// The name of the file's trace format.
    pub to: &'a str,
}

impl<'a> Written<'a> {
    fn output(self) -> Named<'a> {
        output_at(self.out, self.force)
    }
}

/// A trace to convert, as given by the user.
#[derive(Clone, Copy, Debug)]
pub struct Converted<'a> {
    /// The path of the trace to read.
    pub path: &'a str,
    /// The file to write.
    pub written: Written<'a>,
    /// The format of the trace to read, with options. `None` means that the name and the content of the trace
    /// tell.
    pub format: Option<&'a str>,
    /// Whether to sort the requests by time.
    pub sort: bool,
    /// How several files are one trace; `None` means merged by time.
    pub files: Option<&'a str>,
    /// The page size in bytes; `None` means 4 KiB.
    pub page: Option<&'a str>,
    /// What is cut out of the trace.
    pub cut: Cuts<'a>,
}

/// What is cut out of a trace, as given by the user; `None` means all of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cuts<'a> {
    /// The time of the first request, from the beginning of the trace.
    pub from: Option<&'a str>,
    /// The time before which the last request arrives.
    pub until: Option<&'a str>,
    /// The name of the only volume.
    pub volume: Option<&'a str>,
    /// The share of the pages.
    pub sample: Option<&'a str>,
    /// Whether addresses and names are hidden.
    pub anonymise: bool,
    /// The seed of the sample and of the hidden addresses; `None` means 42 for a sample.
    pub seed: Option<&'a str>,
}

/// Describes the output file of a trace. Nothing in a trace file tells whether Fulgurite wrote it, so an
/// existing file is replaced only with `--force`.
fn output_at(out: &Path, force: bool) -> Named<'_> {
    Named::new("OUT", out).replacing(Replaces::Nothing.or_forced(force))
}

/// Converts a trace into a file. The file appears complete or not at all.
pub fn convert(converted: Converted<'_>) -> Result<Table, StackError> {
    let Converted { path, written, format, sort, files, page, cut: cuts } = converted;
    let form = form_of(format, sort, files)?;
    let to = Format::from_name(written.to)?;
    let page_bytes = page.map(units::parse_size).transpose()?.unwrap_or(4096);
    let out = written.output();
    let inputs = files_of(path, Some(form.join.unwrap_or_default()))?;
    let inputs: Vec<Named<'_>> = inputs.iter().map(|path| Named::new("FILE", path)).collect();
    output::check(&inputs, &[out])?;
    let wrong = |error: TraceError| StackError::request(error.to_string());
    let reader = open_trace(path, form)?;
    let unit = reader.unit();
    let cut = cuts.cut(unit, page_bytes)?;
    if page.is_some() && unit == to.unit() && (cuts.sample.is_none() || unit == Unit::Pages) {
        return Err(StackError::request(format!(
            "--page has no effect from {} to {}, which use the same unit; leave it out",
            reader.format().name(),
            to.name()
        )));
    }
    let counts = reader.format().name();
    // The writer asks for the names of volumes while it takes records.
    let reader = RefCell::new(reader);
    let records = std::iter::from_fn(|| Some(reader.borrow_mut().next()?.map_err(wrong)));
    let is_in_volume = |record: &Record| {
        let Some(wanted) = cuts.volume else { return true };
        let index = (record.volume as usize).checked_sub(1);
        index.is_some_and(|index| *reader.borrow().volumes()[index] == *wanted.as_bytes())
    };
    let nothing = || {
        let reader = reader.borrow();
        let volumes: Vec<String> = reader.volumes().iter().map(|name| volume_text(name)).collect();
        cuts.nothing_is_left(path, &volumes)
    };
    let records = cut_out(records, &cut, is_in_volume, nothing);
    // Names would tell what is hidden.
    let names = |from: usize| match cuts.anonymise {
        true => Vec::new(),
        false => reader.borrow().volumes()[from..].to_vec(),
    };
    let mut table = put(out, to, unit, page_bytes, counts, records, names)?;
    let reader = reader.into_inner();
    let row = &mut table.rows[0];
    row.set(Column::Skipped, Skipped::total(reader.skipped()));
    row.set(Column::TimesClamped, reader.clamped());
    set_decided(row, &reader.decided());
    Ok(table)
}

impl Cuts<'_> {
    /// Checks what is cut out of a trace with records in `unit`.
    fn cut(&self, unit: Unit, page_bytes: u64) -> Result<Cut, StackError> {
        let named = |flag: &'static str| move |error| StackError::request(format!("{flag}: {error}"));
        let time = |flag, text: Option<&str>, usual| {
            text.map_or(Ok(usual), |text| units::parse_time(text).map_err(named(flag)))
        };
        let times = time("--from", self.from, Nanos::ZERO)?..time("--until", self.until, Nanos::MAX)?;
        if times.is_empty() {
            return Err(StackError::request(format!(
                "--until {} is not after --from {}; accepted: a later time",
                self.until.unwrap_or_default(),
                self.from.unwrap_or("0s")
            )));
        }
        if self.anonymise && self.seed.is_none() {
            return Err(StackError::request(
                "--anonymise needs a seed that nobody can guess, because the seed tells the addresses; accepted: \
                    --seed N, like a random number of 19 digits",
            ));
        }
        let sample = self.sample.map(read_sample).transpose().map_err(named("--sample"))?;
        let page = if unit == Unit::Pages { 1 } else { page_bytes };
        if page == 0 {
            return Err(StackError::request(
                "--page 0: a page has at least one byte; accepted: a size like 4KiB",
            ));
        }
        let seed = self.seed.map_or(Ok(42), grid::seed)?;
        Ok(Cut { times, sample, page, hides: self.anonymise, seed, unit })
    }

    /// Returns the error for a cut that leaves no request.
    fn nothing_is_left(&self, path: &str, volumes: &[String]) -> StackError {
        let all = [
            ("--from", self.from),
            ("--until", self.until),
            ("--volume", self.volume),
            ("--sample", self.sample),
        ];
        let given: Vec<String> =
            all.iter().filter_map(|(flag, value)| Some(format!("{flag} {}", (*value)?))).collect();
        let volumes = match (self.volume, volumes) {
            (None, _) => String::new(),
            (_, []) => "; it has no volumes".to_owned(),
            (_, some) => format!("; its volumes are {}", some[..some.len().min(12)].join(" ")),
        };
        StackError::request(format!(
            "{path} has no request with {}{volumes}; accepted: a part with at least one",
            given.join(" ")
        ))
    }
}

/// The longest request that is divided into pages of a sample, in pages.
const SAMPLED_AT_MOST: u64 = 1 << 24;

/// Returns what a cut leaves of `records`. `nothing` is the error if that is nothing.
fn cut_out<'a>(
    mut records: impl Iterator<Item = Result<Record, StackError>> + 'a,
    cut: &'a Cut,
    is_in_volume: impl Fn(&Record) -> bool + 'a,
    nothing: impl Fn() -> StackError + 'a,
) -> impl Iterator<Item = Result<Record, StackError>> + 'a {
    let (mut parts, mut has_part, mut is_done) = (VecDeque::new(), false, false);
    std::iter::from_fn(move || {
        while parts.is_empty() && !is_done {
            let record = match records.next() {
                None => {
                    is_done = true;
                    break;
                }
                Some(Err(error)) => return Some(Err(error)),
                Some(Ok(record)) => record,
            };
            if !is_in_volume(&record) {
                continue;
            }
            if cut.sample.is_some() && record.length / cut.page > SAMPLED_AT_MOST {
                return Some(Err(StackError::request(format!(
                    "--sample: a request of {} pages is too long to be divided; accepted: at most {SAMPLED_AT_MOST}",
                    record.length / cut.page
                ))));
            }
            is_done = !cut.apply(&record, |part| parts.push_back(part));
            has_part |= !parts.is_empty();
        }
        match parts.pop_front() {
            Some(part) => Some(Ok(part)),
            None if has_part => None,
            None => {
                has_part = true;
                Some(Err(nothing()))
            }
        }
    })
}

/// Writes `records`, whose positions and lengths are in the unit `from`, to the file `out`. The file appears
/// complete or not at all.
pub fn write(
    records: &[Record],
    from: Unit,
    out: &Path,
    to: Format,
    page_bytes: u64,
    force: bool,
) -> Result<Table, StackError> {
    let out = output_at(out, force);
    output::check(&[], &[out])?;
    // Checks regularly whether another thread has cancelled this call.
    let records = records.iter().enumerate().map(|(number, record)| {
        if number.is_multiple_of(1 << 12) {
            check_stopped();
        }
        Ok(*record)
    });
    put(out, to, from, page_bytes, "the trace", records, |_| Vec::new())
}

/// A writer that ends the call if another thread has cancelled it.
struct Wanted<W>(W);

impl<W: Write> Write for Wanted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        check_stopped();
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Writes `records`, whose positions and lengths are in the unit `from`, to `out`, and returns a table with
/// one row. `source` is the origin of the records in error messages. `names` returns the names of the volumes
/// that occurred so far, without the given number of first ones.
fn put(
    out: Named<'_>,
    to: Format,
    from: Unit,
    page_bytes: u64,
    source: &str,
    records: impl Iterator<Item = Result<Record, StackError>>,
    names: impl Fn(usize) -> Vec<Arc<[u8]>>,
) -> Result<Table, StackError> {
    if to == Format::ORACLE_GENERAL && from == Unit::Pages {
        return Err(StackError::request(format!(
            "{source} counts in pages and has no times, and oracle-general counts in bytes and has times; \
             convert to another format first"
        )));
    }
    let (requests, left_out, lost) = write_packed(out, |mut packed| {
        if to == Format::ORACLE_GENERAL {
            // Collects all records first, because a record in this format names the next request of its
            // object.
            let records: Vec<Record> = records.collect::<Result<_, _>>()?;
            let written =
                write_oracle_general(&records, &mut Wanted(&mut packed)).and_then(|()| packed.finish());
            written.map_err(|error| out.failed(error))?;
            let mut lost = "operations".to_owned();
            for loss in [Loss::BELOW_1_S, Loss::STARTS_IN_SECTORS, Loss::LENGTHS_OF_4_GIB, Loss::VOLUMES] {
                if records.iter().any(loss.of) {
                    lost += "; ";
                    lost += loss.what;
                }
            }
            return Ok((records.len() as u64, 0, lost));
        }
        write_all(out, TraceWriter::new(packed, to, from, page_bytes)?, records, names)
    })?;
    let mut row = Row::default();
    row.set(Column::File, out.path.display().to_string());
    row.set(Column::Format, to.name());
    row.set(Column::Requests, requests - left_out);
    row.set(Column::RequestsLeftOut, left_out);
    row.set(Column::Loses, lost);
    Ok(Table { rows: vec![row] })
}

/// A trace to generate, as given by the user.
#[derive(Clone, Copy, Debug)]
pub struct Generated<'a> {
    /// The name of a generator with options.
    pub workload: &'a str,
    /// The file to write.
    pub written: Written<'a>,
    /// The size of the logical space in bytes; `None` means 8 GB.
    pub logical: Option<&'a str>,
    /// The page size in bytes; `None` means 4 KiB.
    pub page: Option<&'a str>,
    /// The number of requests; `None` means 20 times the number of pages.
    pub ops: Option<&'a str>,
    /// The seed of all randomness; `None` means 42.
    pub seed: Option<&'a str>,
}

/// Writes the requests of a generator to a file for other programs. The commands `gc`, `pool` and `replay`
/// perform the same requests for the same generator and seed.
pub fn generate(generated: Generated<'_>, progress: &Progress) -> Result<Table, StackError> {
    let Generated { workload, written, .. } = generated;
    let out = written.output();
    let described = Workload::parse(workload, None)?;
    if described.trace().is_some() {
        return Err(StackError::request(format!(
            "{workload} is a trace and not a generator; `fulgurite trace convert` writes it in another format"
        )));
    }
    let to = Format::from_name(written.to)?;
    let named = |flag: &'static str| move |error| StackError::request(format!("{flag}: {error}"));
    let size = |flag, text: Option<&str>, default| {
        text.map_or(Ok(default), |text| units::parse_size(text).map_err(named(flag)))
    };
    let count = |flag, text: Option<&str>, default| {
        text.map_or(Ok(default), |text| units::parse_count(text).map_err(named(flag)))
    };
    let logical = size("--logical", generated.logical, 8_000_000_000)?;
    let page_bytes = size("--page", generated.page, 4096)?;
    let pages = logical.checked_div(page_bytes).filter(|pages| *pages > 0);
    let (Some(pages), Ok(page)) = (pages, u32::try_from(page_bytes)) else {
        return Err(StackError::request(format!(
            "--logical {logical} is less than one page of --page {page_bytes}; accepted: a smaller page, or more space"
        )));
    };
    let ops = count("--ops", generated.ops, pages.saturating_mul(20))?;
    if ops == 0 {
        return Err(StackError::request("--ops 0: a trace has at least one request; accepted: from 1 on"));
    }
    let seed = generated.seed.map_or(Ok(42), grid::seed)?;
    let mut requests = described.bind(View::Pool { page_bytes: page, pages })?.requests(seed)?;
    output::check(&[], &[out])?;
    progress.expect(ops);
    let requests = std::iter::from_fn(move || requests.next_request());
    // Counts down, because the progress display needs the number of requests that are left.
    let records = (0..ops).rev().zip(requests).map(|(left, request)| {
        progress.left(left, ops);
        let Request { at, op, page, pages, .. } = request;
        Ok(Record::new(at, op, page, u64::from(pages)))
    });
    let (requests, left_out, lost) = write_packed(out, |packed| {
        write_all(out, TraceWriter::new(packed, to, Unit::Pages, page_bytes)?, records, |_| Vec::new())
    })?;
    let mut row = Row::default();
    row.set(Column::File, out.path.display().to_string());
    row.set(Column::Format, to.name());
    row.set(Column::Workload, workload);
    row.set(Column::Pages, pages);
    row.set(Column::PageBytes, page_bytes);
    row.set(Column::Seed, seed);
    row.set(Column::Requests, requests - left_out);
    row.set(Column::RequestsLeftOut, left_out);
    row.set(Column::Loses, lost);
    Ok(Table { rows: vec![row] })
}

/// Writes the records. Returns how many records were given, how many of these the format left out, and which
/// properties of the others it lost.
fn write_all(
    out: Named<'_>,
    mut writer: TraceWriter<Packed<'_>>,
    records: impl Iterator<Item = Result<Record, StackError>>,
    names: impl Fn(usize) -> Vec<Arc<[u8]>>,
) -> Result<(u64, u64, String), StackError> {
    let failed = |error| out.failed(error);
    let (mut requests, mut named) = (0, 0);
    for record in records {
        let record = record?;
        if record.volume as usize > named {
            let new = names(named);
            named += new.len();
            writer.add_volumes(&new);
        }
        writer.write(&record).map_err(failed)?;
        requests += 1;
    }
    let lost = writer.lost();
    let (packed, left_out) = writer.finish().map_err(failed)?;
    packed.finish().map_err(failed)?;
    Ok((requests, left_out, lost))
}

/// Calls `write` with the output file `out`, which is compressed if its name says so.
fn write_packed<T>(
    out: Named<'_>,
    write: impl FnOnce(Packed<'_>) -> Result<T, StackError>,
) -> Result<T, StackError> {
    write_whole(out, |file| {
        let packed = match out.path.extension().and_then(|extension| extension.to_str()) {
            Some("gz") => Packed::Gzip(GzEncoder::new(file, Compression::default())),
            Some("zst") => {
                Packed::Zstd(zstd::Encoder::new(file, ZSTD_LEVEL).map_err(|error| out.failed(error))?)
            }
            Some(other @ ("xz" | "lz4" | "bz2" | "zip")) => {
                return Err(StackError::request(format!(
                    "OUT {}: traces are not packed as .{other}; accepted: .gz, .zst, or a name without packing",
                    out.path.display()
                )));
            }
            _ => Packed::Plain(file),
        };
        write(packed)
    })
}

/// The compression level. Traces are written once and read often. This level gives small files and is still
/// as fast as the generators.
const ZSTD_LEVEL: i32 = 10;

/// An output file with its compression.
enum Packed<'a> {
    Plain(&'a mut OutputFile),
    Gzip(GzEncoder<&'a mut OutputFile>),
    Zstd(zstd::Encoder<'static, &'a mut OutputFile>),
}

impl Packed<'_> {
    fn finish(self) -> io::Result<()> {
        match self {
            Packed::Plain(_) => Ok(()),
            // Compressors write the end of their format only here.
            Packed::Gzip(encoder) => encoder.finish().map(drop),
            Packed::Zstd(encoder) => encoder.finish().map(drop),
        }
    }
}

impl Write for Packed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Packed::Plain(file) => file.write(bytes),
            Packed::Gzip(encoder) => encoder.write(bytes),
            Packed::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Packed::Plain(file) => file.flush(),
            Packed::Gzip(encoder) => encoder.flush(),
            Packed::Zstd(encoder) => encoder.flush(),
        }
    }
}

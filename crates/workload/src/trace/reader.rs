//! The reader of all formats. It calls the parser of the format, counts skipped lines, and enforces the
//! invariants of records: times that never decrease, bounded lengths, and at least one request.

use super::error::TraceError;
use super::field::unless_binary;
use super::format::Format;
use super::input::Lines;
use super::join::{FILES_AT_MOST, Join, Joined, PartReader};
use super::paging::{Paging, request, requests};
use super::record::{Line, Record, Unit};
use super::row::{Frame, PlainLines, Shape};
use super::skipped::Skipped;
use super::sort::{OpenScratch, Sorted, Sorter};
use super::space::{AddressSpace, REGION_BYTES};
use super::state::{Long, ReaderState, TraceOptions, volume_text};
use crate::{Op, Request};
use fulgurite_base::{Nanos, SpecError};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// The greatest lengths of usual reads and writes, which are 1 GiB and 2^20 pages. The option `long` says what
/// becomes of longer ones. Trims have any length.
const BYTES_MAX: u64 = 1 << 30;
const PAGES_MAX: u64 = 1 << 20;

/// The number of records that are read at once. They fit in the first-level cache of a CPU.
const TOGETHER: usize = 256;

/// An iterator over the records of a trace file. An error ends it, as its last item.
pub struct TraceReader {
    lines: Lines,
    format: Format,
    state: ReaderState,
    /// The size of a record in bytes in a binary format; 0 in a text format.
    record_bytes: usize,
    admission: Admission,
    skipped: Vec<Skipped>,
    /// A buffer for records that were parsed together and are passed on one by one.
    plain: Vec<Record>,
    /// The records in the order of time, if they are sorted and all lines were read.
    sorted: Option<Sorted>,
    /// Records that were read together. `next` returns those from index `ahead_at` on.
    ahead: Vec<Record>,
    ahead_at: usize,
    /// The error behind the records of `ahead`.
    failed: Option<TraceError>,
    is_done: bool,
    /// Whether the trace may have no request, because it is a part of another.
    is_part: bool,
    /// The readers of the files, if the trace consists of several.
    joined: Option<Box<Joined<TraceReader>>>,
}

/// Enforces the invariants of all records: a length and an end within the bounds, and times that start at zero
/// and never decrease.
struct Admission {
    unit: Unit,
    /// The greatest length of a usual read or write.
    most: u64,
    long: Long,
    /// Whether every record becomes a request for one page; see [`TraceOptions::objects`].
    objects: bool,
    stage: Stage,
    /// Whether there was a request.
    has_request: bool,
    /// The time of the first request on the format's own clock; `None` before the first request.
    origin: Option<Nanos>,
    /// The time of the last record, relative to the first one.
    now: Nanos,
    clamped: u64,
}

/// The stage of reading, which decides what becomes of a record.
enum Stage {
    /// The first records are held back, to find out whether their times are later than those of the others.
    First(Vec<Record>),
    /// All records are collected, to be sorted.
    Sorting(Sorter),
    /// Records are passed on at once.
    Running,
}

/// The number of records that are held back.
const FIRST_RECORDS: usize = 256;

/// Returns the number of records at the beginning that are late: more than half of the records after each of
/// them have earlier times. Returns 0 if this is so of half of all records, because they have no order then.
fn late_records(first: &[Record]) -> usize {
    let is_late = |at: usize| {
        let after = &first[at + 1..];
        2 * after.iter().filter(|record| record.at < first[at].at).count() > after.len()
    };
    (0..first.len().div_ceil(2)).find(|at| !is_late(*at)).unwrap_or(0)
}

impl Admission {
    /// Checks a record's extent, makes its time relative to the first request, and passes it on. Counts a
    /// record that is left out.
    #[inline]
    fn admit(
        &mut self,
        mut record: Record,
        skipped: &mut Vec<Skipped>,
        each: &mut impl FnMut(Record),
    ) -> Result<(), String> {
        if self.objects {
            // The start is the identity of an object. The object is one page, whatever its length is.
            record.length = 1;
        }
        if record.length == 0 {
            count(skipped, NO_LENGTH);
            return Ok(());
        }
        if record.length > self.most && record.op != Op::Trim && self.is_left_out(&record)? {
            count(skipped, TOO_LONG);
            return Ok(());
        }
        if record.start.checked_add(record.length).is_none() {
            return Err(self.beyond_the_end(&record));
        }
        self.has_request = true;
        match self.stage {
            Stage::Running => each(self.timed(record)),
            _ => self.keep(record, each)?,
        }
        Ok(())
    }

    /// Keeps a record until all first records, or all records, are there.
    #[cold]
    fn keep(&mut self, record: Record, each: &mut impl FnMut(Record)) -> Result<(), String> {
        match &mut self.stage {
            Stage::Running => {}
            Stage::Sorting(sorter) => sorter.push(record).map_err(|error| not_sorted(&error))?,
            Stage::First(first) => {
                first.push(record);
                if first.len() == FIRST_RECORDS {
                    self.pass_first(each);
                }
            }
        }
        Ok(())
    }

    /// Passes on the records that were held back. Late ones get the time of the first record that is not late.
    fn pass_first(&mut self, each: &mut impl FnMut(Record)) {
        let Stage::First(first) = &mut self.stage else { return };
        let first = std::mem::take(first);
        self.stage = Stage::Running;
        let late = late_records(&first);
        self.clamped += late as u64;
        for (at, record) in first.iter().enumerate() {
            let passed = if at < late { Record { at: Nanos::ZERO, ..*record } } else { self.timed(*record) };
            each(passed);
        }
    }

    /// Makes the time of a record relative to the first one, and clamps it if it decreases.
    #[inline]
    fn timed(&mut self, mut record: Record) -> Record {
        let origin = *self.origin.get_or_insert(record.at);
        // The sum is the time of an earlier record on the format's clock, so it does not overflow.
        if record.at < origin + self.now {
            self.clamped += 1;
        } else {
            self.now = record.at - origin;
        }
        record.at = self.now;
        record
    }

    /// Whether a long read or write is left out. Fails if the options refuse it.
    #[cold]
    fn is_left_out(&self, record: &Record) -> Result<bool, String> {
        match self.long {
            Long::Skip => Ok(true),
            Long::Read => Ok(false),
            Long::Refuse => Err(format!(
                "a request of {} {} is out of range; at most {} with long=refuse",
                record.length,
                self.unit_name(),
                self.most
            )),
        }
    }

    #[cold]
    fn beyond_the_end(&self, record: &Record) -> String {
        let Record { start, length, .. } = record;
        format!("its end, {start} + {length} {}, is out of range; at most {}", self.unit_name(), u64::MAX)
    }

    fn unit_name(&self) -> &'static str {
        if self.unit == Unit::Bytes { "bytes" } else { "pages" }
    }
}

/// Opens a trace file, plain or packed. Its format is the given one, or the one that its name or content
/// selects.
///
/// Fails if the file cannot be read or its format is not recognised.
pub fn open(
    path: impl AsRef<Path>,
    format: Option<Format>,
    options: TraceOptions,
) -> Result<TraceReader, TraceError> {
    let name = path.as_ref().to_string_lossy();
    let file = File::open(&path).map_err(|error| TraceError {
        file: name.clone().into_owned(),
        line: None,
        reason: format!("cannot be opened: {error}; accepted: the path of a trace"),
    })?;
    TraceReader::new(&name, file, format, options)
}

/// The byte order mark, which some editors and spreadsheets write before a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

fn not_sorted(error: &io::Error) -> String {
    format!("its requests cannot be sorted: {error}")
}

const NO_LENGTH: &str = "a request of length zero";
const TOO_LONG: &str = "a read or write above 1 GiB or 2^20 pages";

/// Counts a line that is skipped for this reason.
fn count(skipped: &mut Vec<Skipped>, reason: &'static str) {
    Skipped::count(skipped, reason, 1);
}

impl TraceReader {
    /// Creates a reader of any source of bytes, as [`open`] does for a file. `file_name` is used in error
    /// messages and can select the format.
    pub fn new(
        file_name: &str,
        source: impl Read + Send + 'static,
        format: Option<Format>,
        options: TraceOptions,
    ) -> Result<TraceReader, TraceError> {
        let mut lines = Lines::new(file_name, source)?;
        // The header of a tar archive has its magic number at byte 257.
        if lines.peek().get(257..262) == Some(b"ustar") {
            return Err(lines.error("this is a tar archive; unpack it and give the trace inside".to_owned()));
        }
        let mark = if lines.peek().starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let format = match format.or_else(|| Format::detect(file_name, &lines.peek()[mark..])) {
            Some(format) => format,
            None => return Err(format_unknown(&mut lines)),
        };
        let record_bytes = match format.row().shape {
            Shape::Lines { .. } => {
                // The byte order mark is passed over in text only. In a binary format, the same bytes belong
                // to the first record.
                lines.pass(mark, 0);
                0
            }
            Shape::Records { size, .. } => {
                size(lines.peek(), &options).map_err(|reason| lines.error(reason))?
            }
            Shape::Framed { frame, .. } => {
                let Frame { header, record } = frame(lines.peek()).map_err(|reason| lines.error(reason))?;
                lines.pass(header, 0);
                record
            }
        };
        Ok(TraceReader {
            lines,
            format,
            admission: Admission {
                unit: format.unit(),
                most: if format.unit() == Unit::Bytes { BYTES_MAX } else { PAGES_MAX },
                long: options.long,
                objects: options.objects,
                stage: match options.sort {
                    true => Stage::Sorting(Sorter::new(None)),
                    false => Stage::First(Vec::new()),
                },
                has_request: false,
                origin: None,
                now: Nanos::ZERO,
                clamped: 0,
            },
            state: ReaderState::new(options),
            record_bytes,
            skipped: Vec::new(),
            plain: Vec::new(),
            sorted: None,
            ahead: Vec::new(),
            ahead_at: 0,
            failed: None,
            is_done: false,
            is_part: false,
            joined: None,
        })
    }

    /// Joins the readers of several files to one trace. Each has a name that tells its volumes apart from those of
    /// other files. `name` is that of the whole trace in error messages.
    ///
    /// Fails if there are no readers, if they differ in their formats, or if a file cannot be read.
    pub fn join(
        name: &str,
        mut readers: Vec<(String, TraceReader)>,
        join: Join,
    ) -> Result<TraceReader, TraceError> {
        let wrong = |reason| TraceError { file: name.to_owned(), line: None, reason };
        if readers.len() > FILES_AT_MOST {
            let reason = format!("{} files are too many; at most {FILES_AT_MOST}", readers.len());
            return Err(wrong(reason));
        }
        let Some((first, reader)) = readers.first() else {
            return Err(wrong("no file; a trace has at least one".to_owned()));
        };
        let (format, options) = (reader.format, reader.state.options.clone());
        if let Some((other, reader)) = readers.iter().find(|(_, reader)| reader.format != format) {
            return Err(wrong(format!(
                "{first} is {} and {other} is {}; accepted: files of one format, or its name with --format",
                format.name(),
                reader.format.name()
            )));
        }
        readers.iter_mut().for_each(|(_, reader)| reader.is_part = true);
        let mut whole = TraceReader::new(name, io::empty(), Some(format), options)?;
        let joined = Joined::new(join, readers)?;
        // Each file was sorted by itself.
        whole.admission.stage = Stage::Running;
        whole.joined = Some(Box::new(joined));
        Ok(whole)
    }

    /// Provides scratch files for a trace that is sorted (see [`TraceOptions::sort`]) and does not fit in
    /// memory. Without this call all its records are kept in memory. Call it before the first record is read.
    pub fn with_scratch(mut self, open: OpenScratch) -> TraceReader {
        if let Stage::Sorting(sorter) = &mut self.admission.stage {
            *sorter = Sorter::new(Some(open));
        }
        self
    }

    /// The format of the trace.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The unit of the records' positions and lengths: the format's unit, or pages if requests are objects.
    pub fn unit(&self) -> Unit {
        if self.state.options.objects { Unit::Pages } else { self.format.unit() }
    }

    /// Returns the requests as a stream of requests for pages of `page_bytes` bytes. A trace of at most one
    /// volume keeps its page numbers. Several volumes are placed side by side.
    ///
    /// Fails if `page_bytes` is zero.
    pub fn page_requests(self, page_bytes: u64) -> Result<PageStream, SpecError> {
        let paging = Paging::new(self.unit(), page_bytes)?;
        Ok(PageStream {
            reader: self,
            paging,
            space: AddressSpace::new(paging.region_pages()),
            ahead: VecDeque::new(),
        })
    }

    /// The lines that were skipped so far, grouped by reason, in the order of first appearance. Comments,
    /// headers and blank lines do not count.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// The number of records so far whose time was before that of their predecessor and was set to it.
    pub fn clamped(&self) -> u64 {
        let of_files = self.joined.as_ref().map_or(0, |joined| joined.clamped());
        self.admission.clamped + of_files
    }

    /// Returns what the reader decided so far because the trace does not say it, such as the unit of its times;
    /// an empty text if there was nothing to decide.
    pub fn decided(&self) -> String {
        self.joined.as_ref().map_or_else(|| self.state.decided(), |joined| joined.decided())
    }

    /// The names of the volumes (disks, devices, files) that have occurred so far, in the order of first
    /// appearance; none in formats without volumes. [`Record::volume`] numbers them from one on.
    pub fn volumes(&self) -> &[Arc<[u8]>] {
        self.joined.as_ref().map_or_else(|| self.state.volumes(), |joined| joined.names())
    }

    /// Returns the records with all volumes placed side by side in one space of addresses. A record is
    /// divided if it does not fit into a single region of that space.
    pub fn in_one_space(self) -> impl Iterator<Item = Result<Record, TraceError>> {
        let mut reader = self;
        let mut space = AddressSpace::new(REGION_BYTES);
        let mut placed = VecDeque::new();
        std::iter::from_fn(move || {
            if placed.is_empty() {
                let record = match reader.next()? {
                    Ok(record) => record,
                    Err(error) => return Some(Err(error)),
                };
                let each = |units: Range<u64>| {
                    placed.push_back(Record {
                        volume: 0,
                        start: units.start,
                        length: units.end - units.start,
                        ..record
                    });
                };
                if let Err(reason) =
                    space.place(record.volume, record.start..record.start + record.length, each)
                {
                    return Some(Err(reader.lines.error(reason)));
                }
            }
            placed.pop_front().map(Ok)
        })
    }

    /// Reads `most` more lines or binary records. Calls `each` with the records that are passed on; the first
    /// ones are held back for some lines, and records that are sorted are held back until the last line. A
    /// large `most` is several times faster than one by one. Returns false at the end of the trace.
    fn advance_by(&mut self, most: usize, mut each: impl FnMut(Record)) -> Result<bool, TraceError> {
        if self.joined.is_some() {
            return self.pass_joined(most, &mut each);
        }
        if self.sorted.is_some() {
            return self.pass_sorted(most, &mut each);
        }
        let more = self.advance_input(most, &mut each);
        if !matches!(more, Ok(true)) {
            // The records before the end or the error are passed on.
            self.admission.pass_first(&mut each);
        }
        if matches!(more, Ok(false))
            && let Stage::Sorting(sorter) = &mut self.admission.stage
        {
            let sorter = std::mem::replace(sorter, Sorter::new(None));
            self.admission.stage = Stage::Running;
            self.sorted = Some(sorter.finish().map_err(|error| self.lines.error(not_sorted(&error)))?);
            return Ok(true);
        }
        more
    }

    /// Does the work of [`TraceReader::advance_by`] for a trace of several files.
    fn pass_joined(&mut self, most: usize, each: &mut impl FnMut(Record)) -> Result<bool, TraceError> {
        let Some(joined) = &mut self.joined else { return Ok(false) };
        let mut has_more = true;
        for _ in 0..most {
            let Some(record) = joined.next()? else {
                has_more = false;
                break;
            };
            self.admission.has_request = true;
            each(self.admission.timed(record));
        }
        self.skipped = joined.skipped();
        if has_more || self.admission.has_request { Ok(has_more) } else { Err(self.no_request()) }
    }

    /// Does the work of [`TraceReader::advance_by`] for records that were sorted.
    fn pass_sorted(&mut self, most: usize, each: &mut impl FnMut(Record)) -> Result<bool, TraceError> {
        for _ in 0..most {
            let Some(sorted) = &mut self.sorted else { return Ok(false) };
            match sorted.next().map_err(|error| self.lines.error(not_sorted(&error)))? {
                Some(record) => each(self.admission.timed(record)),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Does the work of [`TraceReader::advance_by`] while there are lines to read.
    fn advance_input(&mut self, most: usize, each: &mut impl FnMut(Record)) -> Result<bool, TraceError> {
        let parse = match self.format.row().shape {
            Shape::Records { parse, .. } => parse,
            Shape::Lines { parse, plain } => return self.advance_lines(parse, plain, most, each),
            Shape::Framed { rest, parse, .. } => return self.advance_framed(rest, parse, most, each),
        };
        let before = self.lines.number();
        let Some(records) = self.lines.next_records(self.record_bytes, most)? else {
            return self.end();
        };
        // The records borrow the buffer of `lines`, so the error is created after the loop.
        let mut refused = None;
        for (at, record) in (1..).zip(records.chunks_exact(self.record_bytes)) {
            let understood = self.state.count(|state| parse(record, state));
            if let Err(reason) = take(understood, &mut self.admission, &mut self.skipped, each) {
                refused = Some(format!("record {}: {reason}", before + at));
                break;
            }
        }
        match refused {
            Some(reason) => Err(self.lines.error(reason)),
            None => Ok(true),
        }
    }

    /// Does the work of [`TraceReader::advance_by`] for binary records with further data.
    fn advance_framed(
        &mut self,
        rest: fn(&[u8]) -> usize,
        parse: fn(&[u8], &mut ReaderState) -> Result<Line, String>,
        most: usize,
        each: &mut impl FnMut(Record),
    ) -> Result<bool, TraceError> {
        for _ in 0..most {
            let Some(record) = self.lines.next_record(self.record_bytes)? else { return self.end() };
            let behind = rest(record);
            let understood = self.state.count(|state| parse(record, state));
            if let Err(reason) = take(understood, &mut self.admission, &mut self.skipped, each) {
                return Err(self.error_here(reason));
            }
            self.lines.pass_data(behind)?;
        }
        Ok(true)
    }

    /// Does the work of [`TraceReader::advance_by`] for a text format.
    fn advance_lines(
        &mut self,
        parse: fn(&[u8], &mut ReaderState) -> Result<Line, String>,
        plain: Option<PlainLines>,
        most: usize,
        each: &mut impl FnMut(Record),
    ) -> Result<bool, TraceError> {
        let mut left = most;
        while left > 0 {
            if let Some(plain) = plain {
                let read = self.advance_plain(plain, left, each)?;
                left -= read;
                if read > 0 {
                    continue;
                }
            }
            let Some(line) = self.lines.next()? else {
                return self.end();
            };
            // Files that were put behind each other may each begin with this mark.
            let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
            let understood =
                self.state.count(|state| parse(line, state)).map_err(|reason| unless_binary(line, reason));
            if let Err(reason) = take(understood, &mut self.admission, &mut self.skipped, each) {
                return Err(self.error_here(reason));
            }
            left -= 1;
        }
        Ok(true)
    }

    /// Calls `each` with the records of the next plain lines in the buffer, if there are any. Plain lines are
    /// those that the format's faster parser accepts. Returns their number.
    fn advance_plain(
        &mut self,
        plain: PlainLines,
        most: usize,
        each: &mut impl FnMut(Record),
    ) -> Result<usize, TraceError> {
        self.plain.clear();
        let bytes = plain(self.lines.at_hand(), most.min(TOGETHER), &mut self.plain);
        let before = self.lines.number();
        self.lines.pass(bytes, self.plain.len());
        // Usually `ReaderState::count` counts a line while it is parsed. Plain lines bypass it, so they are
        // counted here.
        self.state.pass(self.plain.len());
        for (at, record) in (1..).zip(&self.plain) {
            let admitted = self.admission.admit(*record, &mut self.skipped, each);
            admitted.map_err(|reason| self.lines.error_at(before + at, reason))?;
        }
        Ok(self.plain.len())
    }

    /// Creates an error that concerns the last line or record.
    fn error_here(&self, reason: String) -> TraceError {
        match self.format.row().shape {
            Shape::Lines { .. } => self.lines.error_at(self.lines.number(), reason),
            Shape::Records { .. } | Shape::Framed { .. } => {
                self.lines.error(format!("record {}: {reason}", self.lines.number()))
            }
        }
    }

    /// Returns false for the end of the trace. Fails if a trace that must have a request has none.
    fn end(&self) -> Result<bool, TraceError> {
        if self.admission.has_request || self.is_part { Ok(false) } else { Err(self.no_request()) }
    }

    fn no_request(&self) -> TraceError {
        let skipped: Vec<String> =
            self.skipped.iter().map(|skipped| format!("{} × {}", skipped.count, skipped.reason)).collect();
        let left_out =
            if skipped.is_empty() { String::new() } else { format!("; left out: {}", skipped.join(", ")) };
        let others: Vec<String> =
            self.state.other_volumes().iter().map(|volume| volume_text(volume)).collect();
        let has = match others.is_empty() {
            true => String::new(),
            false => format!("; its volumes are {}", others.join(" ")),
        };
        self.lines.error(format!("no {} request in this file{left_out}{has}", self.format.name()))
    }
}

impl PartReader for TraceReader {
    fn clock_start(&self) -> u128 {
        let origin = self.admission.origin.map_or(0, |origin| u128::from(origin.0));
        self.state.base + origin
    }

    fn volumes(&self) -> &[Arc<[u8]>] {
        TraceReader::volumes(self)
    }

    fn skipped(&self) -> &[Skipped] {
        TraceReader::skipped(self)
    }

    fn clamped(&self) -> u64 {
        TraceReader::clamped(self)
    }

    fn decided(&self) -> String {
        TraceReader::decided(self)
    }
}

/// Passes on the record of a line, or counts the reason why the line is skipped.
#[inline]
fn take(
    understood: Result<Line, String>,
    admission: &mut Admission,
    skipped: &mut Vec<Skipped>,
    each: &mut impl FnMut(Record),
) -> Result<(), String> {
    match understood? {
        Line::Request(record) => return admission.admit(record, skipped, each),
        Line::Skip(reason) => count(skipped, reason),
        Line::Nothing => {}
    }
    Ok(())
}

impl Iterator for TraceReader {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(record) = self.ahead.get(self.ahead_at) {
                self.ahead_at += 1;
                return Some(Ok(*record));
            }
            if let Some(error) = self.failed.take() {
                return Some(Err(error));
            }
            if self.is_done {
                return None;
            }
            let mut ahead = std::mem::take(&mut self.ahead);
            ahead.clear();
            let more = self.advance_by(TOGETHER, |record| ahead.push(record));
            (self.ahead, self.ahead_at) = (ahead, 0);
            // After an error, the position in the file is not reliable, so the reader stops.
            self.is_done = !matches!(more, Ok(true));
            self.failed = more.err();
        }
    }
}

/// An iterator over the page requests of a trace file; see [`TraceReader::page_requests`].
pub struct PageStream {
    reader: TraceReader,
    paging: Paging,
    space: AddressSpace,
    /// Requests that `next` has not returned yet.
    ahead: VecDeque<Request>,
}

impl PageStream {
    /// The names of the volumes that have occurred so far; see [`TraceReader::volumes`].
    pub fn volumes(&self) -> &[Arc<[u8]>] {
        self.reader.volumes()
    }

    /// The lines that were skipped so far; see [`TraceReader::skipped`].
    pub fn skipped(&self) -> &[Skipped] {
        self.reader.skipped()
    }

    /// Returns what the reader decided so far; see [`TraceReader::decided`].
    pub fn decided(&self) -> String {
        self.reader.decided()
    }

    /// The number of times that were set to that of the record before; see [`TraceReader::clamped`].
    pub fn clamped(&self) -> u64 {
        self.reader.clamped()
    }

    /// Calls `each` with the requests of at most `most` of the next lines or binary records. Returns false at
    /// the end of the trace.
    pub fn for_some(&mut self, most: usize, mut each: impl FnMut(Request)) -> Result<bool, TraceError> {
        let PageStream { reader, paging, space, ahead } = self;
        ahead.drain(..).for_each(&mut each);
        let mut failed = None;
        let more = reader.advance_by(most, |record| {
            let pages = paging.pages(&record);
            // Most records have no volume and become one request, so they need no placing.
            if let (0, Ok(count)) = (record.volume, u32::try_from(pages.end - pages.start)) {
                return each(request(&record, pages.start, count));
            }
            let placed = space.place(record.volume, pages, |pages| {
                requests(&record, pages, &mut each);
            });
            if let Err(reason) = placed {
                failed.get_or_insert(reason);
            }
        })?;
        failed.map_or(Ok(more), |reason| Err(reader.lines.error(reason)))
    }
}

impl Iterator for PageStream {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ahead.is_empty() {
            let record = match self.reader.next()? {
                Ok(record) => record,
                Err(error) => return Some(Err(error)),
            };
            let PageStream { reader, paging, space, ahead } = self;
            let placed = space.place(record.volume, paging.pages(&record), |pages| {
                requests(&record, pages, |request| ahead.push_back(request));
            });
            if let Err(reason) = placed {
                return Some(Err(reader.lines.error(reason)));
            }
        }
        self.ahead.pop_front().map(Ok)
    }
}

#[cold]
fn format_unknown(lines: &mut Lines) -> TraceError {
    let first_bytes = lines.peek();
    if first_bytes.is_empty() {
        // If the peek failed, the next read reports its error.
        return match lines.next() {
            Err(error) => error,
            Ok(_) => lines.error("the file is empty; a trace has at least one request".to_owned()),
        };
    }
    let known: Vec<&str> = Format::all().iter().map(|format| format.name()).collect();
    let reason =
        format!("neither its name nor its first lines tell its format; give one of: {}", known.join(" "));
    let reason = unless_binary(first_bytes, reason);
    lines.error(reason)
}

//! A trace in memory, and its requests for pages, which keep their original page numbers or get new,
//! consecutive ones.

use super::error::TraceError;
use super::format::Format;
use super::page_set::PageSets;
use super::paging::{Paging, requests};
use super::reader::{TraceReader, open};
use super::record::{Record, Unit};
use super::skipped::Skipped;
use super::space::AddressSpace;
use super::state::TraceOptions;
use crate::{Op, Request};
use fulgurite_base::SpecError;
use std::path::Path;
use std::sync::Arc;

/// A whole trace in memory. It has at least one record, in the unit of its format.
#[derive(Clone, Debug)]
pub struct Trace {
    records: Vec<Record>,
    format: Format,
    unit: Unit,
    skipped: Vec<Skipped>,
    clamped: u64,
    volumes: Vec<Arc<[u8]>>,
    decided: String,
}

impl Trace {
    /// Reads a whole file as [`open`] does. The records take 32 bytes of memory each.
    pub fn load(
        path: impl AsRef<Path>,
        format: Option<Format>,
        options: TraceOptions,
    ) -> Result<Trace, TraceError> {
        Trace::read(open(path, format, options)?)
    }

    /// Reads all records of a reader into memory.
    pub fn read(mut reader: TraceReader) -> Result<Trace, TraceError> {
        // The reader is borrowed, because it is needed for its counts after the last record.
        let records = reader.by_ref().collect::<Result<Vec<Record>, TraceError>>()?;
        Ok(Trace {
            records,
            format: reader.format(),
            unit: reader.unit(),
            skipped: reader.skipped().to_vec(),
            clamped: reader.clamped(),
            volumes: reader.volumes().to_vec(),
            decided: reader.decided(),
        })
    }

    /// The records of the trace, in the order of the file.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The format of the trace file.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The unit of the positions and lengths of the records.
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// The lines that were skipped, grouped by reason.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// The number of records whose time was before that of their predecessor and was set to it.
    pub fn clamped(&self) -> u64 {
        self.clamped
    }

    /// Returns the decisions of the reader about things that the trace does not say; see
    /// [`TraceReader::decided`].
    pub fn decided(&self) -> &str {
        &self.decided
    }

    /// The names of the volumes, in the order of first appearance; none in formats without volumes.
    pub fn volumes(&self) -> &[Arc<[u8]>] {
        &self.volumes
    }

    /// Returns the trace as requests for pages of `page_bytes` bytes (without effect if the unit is pages). A
    /// record that covers a part of a page is a request for the whole page. The pages that occur in the trace
    /// get new numbers from zero on, in ascending order, so that neighbours stay neighbours.
    ///
    /// Fails if `page_bytes` is zero.
    pub fn page_requests(&self, page_bytes: u64) -> Result<PageTrace, SpecError> {
        let paging = Paging::new(self.unit, page_bytes)?;
        let mut touched = PageSets::default();
        for record in &self.records {
            touched.insert(record.volume, paging.pages(record));
        }
        // Pages get ascending numbers, so all of them must be known before the first one gets its number.
        let numbering = touched.numbering();
        let mut all = Vec::with_capacity(self.records.len());
        for record in &self.records {
            let pages = paging.pages(record);
            let first = numbering.of(record.volume, pages.start);
            requests(record, first..first + (pages.end - pages.start), |request| all.push(request));
        }
        Ok(PageTrace { requests: all, distinct_pages: touched.pages(), span: touched.pages() })
    }

    /// Returns the trace as requests for pages of `page_bytes` bytes, with the original page numbers if there
    /// is at most one volume. Several volumes are placed side by side.
    ///
    /// Fails if `page_bytes` is zero or if the volumes have no room in one space of addresses.
    pub fn pages_in_place(&self, page_bytes: u64) -> Result<PageTrace, SpecError> {
        let paging = Paging::new(self.unit, page_bytes)?;
        let mut space = AddressSpace::new(paging.region_pages());
        let mut all = Vec::with_capacity(self.records.len());
        for record in &self.records {
            space
                .place(record.volume, paging.pages(record), |pages| {
                    requests(record, pages, |request| all.push(request));
                })
                .map_err(SpecError::new)?;
        }
        let span = all.iter().map(|request| request.page + u64::from(request.pages)).max().unwrap_or(0);
        // The span also has pages that do not occur, so it is only an upper bound of the number of distinct
        // pages.
        Ok(PageTrace { requests: all, distinct_pages: span, span })
    }
}

/// A trace in memory as requests for pages.
#[derive(Clone, Debug)]
pub struct PageTrace {
    requests: Vec<Request>,
    distinct_pages: u64,
    span: u64,
}

impl PageTrace {
    /// The requests of the trace, each for one or more pages.
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// One more than the greatest page number of the requests.
    pub fn span(&self) -> u64 {
        self.span
    }

    /// The number of distinct pages that occur. With original page numbers, it is an upper bound. All page
    /// numbers are below it.
    pub fn distinct_pages(&self) -> u64 {
        self.distinct_pages
    }

    /// The number of one-page requests that [`PageTrace::iter`] returns.
    pub fn pages_requested(&self) -> u64 {
        self.requests.iter().map(|request| u64::from(request.pages)).sum()
    }

    /// The number of pages that writes and trims change; a request counts once for each of its pages.
    pub fn pages_changed(&self) -> u64 {
        let changes = self.requests.iter().filter(|request| request.op != Op::Read);
        changes.map(|request| u64::from(request.pages)).sum()
    }

    /// Returns every request split into one-page requests, each at the time of the whole request.
    pub fn iter(&self) -> impl Iterator<Item = Request> {
        self.requests.iter().flat_map(|request| {
            let pages = request.page..request.page + u64::from(request.pages);
            pages.map(|page| Request { page, pages: 1, ..*request })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_base::Nanos;

    fn trace(format: Format, records: &[(Op, u64, u64)]) -> Trace {
        let record = |(at, &(op, start, length))| Record::new(Nanos(at), op, start, length);
        Trace {
            records: (0..).zip(records).map(record).collect(),
            format,
            unit: format.unit(),
            skipped: Vec::new(),
            clamped: 0,
            volumes: Vec::new(),
            decided: String::new(),
        }
    }

    #[test]
    fn parts_of_pages_touch_them_and_numbers_are_dense() {
        let records = [
            (Op::Read, 40_960, 512),   // the first sector of page 10
            (Op::Write, 4_095, 4_098), // the last byte of page 0, page 1, the first byte of page 2
            (Op::Trim, 12_288, 4_096), // page 3, wholly
            (Op::Read, 45_055, 2),     // the last byte of page 10, the first of page 11
        ];
        let pages = trace(Format::CLOUD_PHYSICS, &records).page_requests(4096).unwrap();
        assert_eq!((pages.distinct_pages(), pages.pages_requested(), pages.requests().len()), (6, 7, 4));
        let seen: Vec<_> = pages.iter().map(|request| (request.at.0, request.op, request.page)).collect();
        let (r, w, t) = (Op::Read, Op::Write, Op::Trim);
        assert_eq!(seen, [(0, r, 4), (1, w, 0), (1, w, 1), (1, w, 2), (2, t, 3), (3, r, 4), (3, r, 5)]);
        assert!(pages.iter().all(|request| request.pages == 1));
    }

    #[test]
    fn pages_are_left_as_they_are() {
        let records = [(Op::Read, 70, 1), (Op::Read, 7, 1), (Op::Write, u64::MAX - 1, 1), (Op::Read, 8, 1)];
        let pages = trace(Format::PAGE_OPS, &records).page_requests(4096).unwrap();
        assert_eq!(pages.iter().map(|request| request.page).collect::<Vec<_>>(), [2, 0, 3, 1]);
        assert_eq!(pages.distinct_pages(), 4);
    }

    #[test]
    fn a_page_has_a_size() {
        let error = trace(Format::CLOUD_PHYSICS, &[(Op::Read, 0, 1)]).page_requests(0).unwrap_err();
        assert_eq!(error.to_string(), "a page of 0 bytes holds nothing; write a size like 4KiB");
    }
}

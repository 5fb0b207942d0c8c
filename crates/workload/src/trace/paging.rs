//! Converts the positions and lengths of a trace's records to pages.

use super::record::{Record, Unit};
use super::space::REGION_BYTES;
use crate::Request;
use fulgurite_base::SpecError;
use std::num::NonZeroU64;
use std::ops::Range;

/// The mapping from the positions of records to pages, by the page size in units of the trace.
#[derive(Clone, Copy)]
pub(super) enum Paging {
    /// The page size is two to the power of this number of units. This is the usual case, and a shift is far
    /// cheaper than a division.
    Shift(u32),
    /// The page size is any other number of units.
    Divide(NonZeroU64),
}

impl Paging {
    /// Creates the mapping for pages of `page_bytes` bytes. If the unit is pages, a page is one unit.
    pub(crate) fn new(unit: Unit, page_bytes: u64) -> Result<Paging, SpecError> {
        match (unit, NonZeroU64::new(page_bytes)) {
            (_, None) => Err(SpecError::new("a page of 0 bytes holds nothing; write a size like 4KiB")),
            (Unit::Pages, Some(_)) => Ok(Paging::Shift(0)),
            (Unit::Bytes, Some(bytes)) if bytes.is_power_of_two() => {
                Ok(Paging::Shift(bytes.trailing_zeros()))
            }
            (Unit::Bytes, Some(bytes)) => Ok(Paging::Divide(bytes)),
        }
    }

    /// Returns the pages that a record covers completely or partly.
    #[inline]
    pub(crate) fn pages(self, record: &Record) -> Range<u64> {
        let page = |unit| match self {
            Paging::Shift(bits) => unit >> bits,
            Paging::Divide(units) => unit / units,
        };
        // The reader admits no record of length zero and none whose end overflows, so neither the subtraction
        // nor the additions overflow.
        page(record.start)..page(record.start + record.length - 1) + 1
    }

    /// Returns the size of the regions of an [`AddressSpace`](super::space::AddressSpace) in pages.
    pub(crate) fn region_pages(self) -> u64 {
        match self {
            Paging::Shift(bits) => (REGION_BYTES >> bits).max(1),
            Paging::Divide(units) => REGION_BYTES.div_ceil(units.get()),
        }
    }
}

/// Returns a request for `count` pages, at the time and with the operation of `record`.
#[inline]
pub(super) fn request(record: &Record, page: u64, count: u32) -> Request {
    Request { at: record.at, op: record.op, page, pages: count, stream: 0, copy_of: None }
}

/// Calls `each` with the requests for `pages`, at the time and with the operation of `record`. There are
/// several requests if the number of pages does not fit in 32 bits.
#[inline]
pub(super) fn requests(record: &Record, pages: Range<u64>, mut each: impl FnMut(Request)) {
    let mut page = pages.start;
    while page < pages.end {
        let count = u32::try_from(pages.end - page).unwrap_or(u32::MAX);
        each(request(record, page, count));
        page += u64::from(count);
    }
}

//! The request of a workload, which is an operation on consecutive pages.

use fulgurite_base::Nanos;
use std::num::NonZeroU64;

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Reads the pages.
    Read,
    /// Writes the pages.
    Write,
    /// Declares the contents of the pages unneeded.
    Trim,
}

/// One request of a workload, which is an operation on consecutive pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The arrival time since the start of the workload; zero if the workload has no times.
    pub at: Nanos,
    /// The operation on the pages.
    pub op: Op,
    /// The number of the first page; the pages of a workload are numbered from zero.
    pub page: u64,
    /// The number of pages, at least one.
    pub pages: u32,
    /// A placement hint: pages written with the same stream are expected to become invalid at about the same
    /// time. Zero if nothing is known.
    pub stream: u16,
    /// The source of a write of one page with the content of another page; `None` for all other requests. A
    /// drive with SHARE stores nothing for such a write.
    pub copy_of: Option<CopyOf>,
}

/// The number of a page whose content a write repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyOf(NonZeroU64);

impl CopyOf {
    /// Creates the source from a page number, which must be less than 2^64 - 1.
    pub fn page(page: u64) -> CopyOf {
        CopyOf(NonZeroU64::MIN.saturating_add(page))
    }

    /// Returns the page number of the source.
    #[inline]
    pub fn number(self) -> u64 {
        self.0.get() - 1
    }
}

impl Request {
    /// Creates a request for one page, without a time.
    #[inline]
    pub(crate) fn of_page(op: Op, page: u64) -> Request {
        Request { at: Nanos::ZERO, op, page, pages: 1, stream: 0, copy_of: None }
    }

    /// Creates a write of the content of page `source` to `page`, which a drive with SHARE performs as a
    /// share.
    #[inline]
    pub(crate) fn sharing(page: u64, source: u64) -> Request {
        Request { copy_of: Some(CopyOf::page(source)), ..Request::of_page(Op::Write, page) }
    }
}

//! The request of a workload.

use fulgurite_base::Nanos;
use std::num::NonZeroU64;

/// What a request does to its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Reads them.
    Read,
    /// Writes them.
    Write,
    /// Declares their content no longer needed.
    Trim,
}

/// One request of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it arrives, counted from the workload's start; zero where the workload has no times.
    pub at: Nanos,
    /// What it does.
    pub op: Op,
    /// The first page, counted from zero in the workload's pages.
    pub page: u64,
    /// How many pages from there on; at least one.
    pub pages: u32,
    /// A placement hint: writes of one stream are expected to die together. Zero where nothing is known.
    pub stream: u16,
    /// Of a write of one page: the page whose content it repeats. A drive that can share stores nothing for it.
    pub copy_of: Option<CopyOf>,
}

/// A page whose content a write repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyOf(NonZeroU64);

impl CopyOf {
    /// The page with this number, which is less than 2^64 - 1.
    pub fn page(page: u64) -> CopyOf {
        CopyOf(NonZeroU64::MIN.saturating_add(page))
    }

    /// The page's number.
    #[inline]
    pub fn number(self) -> u64 {
        self.0.get() - 1
    }
}

impl Request {
    /// A request without a time for one page.
    #[inline]
    pub fn of_page(op: Op, page: u64) -> Request {
        Request { at: Nanos::ZERO, op, page, pages: 1, stream: 0, copy_of: None }
    }

    /// A write that puts the content of the page `source` on the page `page`: a share, where a drive can share.
    #[inline]
    pub fn sharing(page: u64, source: u64) -> Request {
        Request { copy_of: Some(CopyOf::page(source)), ..Request::of_page(Op::Write, page) }
    }
}

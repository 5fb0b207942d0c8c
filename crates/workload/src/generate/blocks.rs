//! Turns accesses to pages into the writes of a storage engine to its drive (the option `blocks=yes`).
//!
//! The model follows InnoDB. A change makes a page dirty in the buffer pool and appends to the redo log. When
//! more than the share `dirty` of the data pages are dirty, the page that has been dirty for the longest time
//! is written. So a popular page is written once for many changes. The pages of the engine have 16 KiB. Each
//! is first written to a doublewrite buffer of 2 MiB. The log is a ring of a 64th of the space. Commits are
//! written in groups of eight, and the last block of the log is rewritten until it is full. Reads are
//! omitted.

use super::generator::{Generator, RequestSource};
use super::recipe::Space;
use crate::{Op, Request};
use fulgurite_base::{Share, SpecError};
use std::collections::VecDeque;

/// The options of the engine model, for workloads that can run through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// Whether the generator returns the engine's writes to its drive instead of the accesses to its pages.
    pub blocks: bool,
    /// The share of the data pages that may be dirty in the engine's buffer pool before pages are written.
    pub dirty: Share,
}

impl Default for EngineConfig {
    fn default() -> EngineConfig {
        EngineConfig { blocks: false, dirty: Share::percent(10) }
    }
}

/// Declares the options of a workload `$config` with a field `engine`, after its own options.
macro_rules! with_engine {
    ($config:ty $(, $own:expr)*) => {
        impl fulgurite_base::Declared for $config {
            const OPTIONS: &'static [fulgurite_base::Opt<$config>] = &[
                $($own,)*
                fulgurite_base::opt!(
                    "blocks",
                    engine.blocks,
                    fulgurite_base::option::YES_NO,
                    "an engine's writes to its drive, not the accesses to its pages"
                ),
                fulgurite_base::opt!(
                    "dirty",
                    engine.dirty,
                    fulgurite_base::option::SHARE,
                    fulgurite_base::Share::ZERO => fulgurite_base::Share::ONE,
                    "with blocks=yes: most data pages that may be dirty"
                ),
            ];
        }
    };
}

pub(super) use with_engine;

/// The size of an engine's page and the size of the doublewrite buffer, in bytes.
const PAGE_BYTES: u64 = 16 << 10;
const DOUBLEWRITE_BYTES: u64 = 2 << 20;
/// The number of changes in one group commit, and the number of group commits that fill a block of the log.
const GROUP: u32 = 8;
const COMMITS_IN_BLOCK: u32 = 4;

/// A range of pages that is written as a ring.
#[derive(Clone, Debug)]
struct Ring {
    first: u64,
    pages: u64,
    next: u64,
}

impl Ring {
    fn write(&mut self) -> Request {
        let page = self.first + self.next;
        self.next = (self.next + 1) % self.pages;
        Request::of_page(Op::Write, page)
    }
}

/// The engine model over a generator of page accesses.
#[derive(Debug)]
struct Blocks {
    inner: Generator,
    /// The number of device pages in an engine's page, and the first device page of the data.
    unit: u64,
    first: u64,
    log: Ring,
    doublewrite: Ring,
    commits: u32,
    changes: u32,
    dirty: VecDeque<u64>,
    is_dirty: Vec<u64>,
    dirty_max: usize,
    out: VecDeque<Request>,
}

impl EngineConfig {
    /// Starts a generator with `start`. If `blocks` is set, the generator is wrapped in the engine model, and
    /// `writes` must say that it writes anything.
    pub(super) fn start(
        &self,
        space: Space<'_>,
        writes: bool,
        start: impl Fn(Space<'_>) -> Result<Generator, SpecError>,
    ) -> Result<Generator, SpecError> {
        if !self.blocks {
            return start(space);
        }
        let Space { name, pages, page_bytes, .. } = space;
        // An engine that never writes is refused, because a caller would wait for its first write for ever.
        if !writes {
            return Err(SpecError::new(format!(
                "blocks=yes of {name}: the workload changes nothing, so an engine writes no blocks; accepted: blocks=no"
            )));
        }
        // A device page of more than 16 KiB counts as one page of the engine, so an engine's page has at
        // least one device page.
        let unit = (PAGE_BYTES / u64::from(page_bytes)).max(1);
        let log = (pages / 64).max(1);
        let doublewrite = (DOUBLEWRITE_BYTES / u64::from(page_bytes)).min(pages / 64).max(unit);
        let first = log + doublewrite;
        let data = pages.saturating_sub(first) / unit;
        if data < 100 {
            return Err(SpecError::new(format!(
                "pages of {name}: {pages} is too few with blocks=yes; accepted: at least {}",
                128 * unit
            )));
        }
        let inner = start(Space { pages: data, page_bytes: page_bytes * unit as u32, ..space })?;
        Ok(Generator::new(Blocks {
            inner,
            unit,
            first,
            log: Ring { first: 0, pages: log, next: 0 },
            doublewrite: Ring { first: log, pages: doublewrite, next: 0 },
            commits: 0,
            changes: 0,
            dirty: VecDeque::new(),
            is_dirty: vec![0; data.div_ceil(64) as usize],
            dirty_max: self.dirty.of(data) as usize,
            out: VecDeque::new(),
        }))
    }
}

impl RequestSource for Blocks {
    fn request(&mut self) -> Request {
        loop {
            if let Some(request) = self.out.pop_front() {
                return request;
            }
            let request = self.inner.request();
            if request.op == Op::Write {
                self.change(request.page);
            }
        }
    }
}

impl Blocks {
    fn change(&mut self, page: u64) {
        self.changes += 1;
        if self.changes.is_multiple_of(GROUP) {
            self.commits += 1;
            // A log block that is not full is rewritten by the next group commit, so the head of the log
            // returns to it.
            let at = self.log.next;
            self.out.push_back(self.log.write());
            if !self.commits.is_multiple_of(COMMITS_IN_BLOCK) {
                self.log.next = at;
            }
        }
        let (word, bit) = (&mut self.is_dirty[(page / 64) as usize], page % 64);
        if *word >> bit & 1 == 0 {
            *word |= 1 << bit;
            self.dirty.push_back(page);
        }
        if self.dirty.len() > self.dirty_max
            && let Some(oldest) = self.dirty.pop_front()
        {
            self.is_dirty[(oldest / 64) as usize] &= !(1 << (oldest % 64));
            // The copy in the doublewrite buffer is written first, so that a page torn by a crash can be
            // restored from the copy.
            self.out.extend((0..self.unit).map(|_| self.doublewrite.write()));
            let first = self.first + oldest * self.unit;
            self.out.extend((first..first + self.unit).map(|page| Request::of_page(Op::Write, page)));
        }
    }
}

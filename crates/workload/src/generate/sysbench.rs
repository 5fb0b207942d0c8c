//! Generates the page accesses of sysbench's OLTP transactions (`oltp_common.lua` of sysbench 1.0).
//!
//! The database has one table with an index on a second column. The rows are chosen by sysbench's default
//! distribution ("special"), in which three of four choices go to one hundredth of the rows. A read-only
//! transaction reads ten rows by key and four ranges of a hundred rows. A write-only transaction has an
//! update that moves the index entry, an update that does not, and a row that is deleted and inserted again.
//! A read-write transaction has both parts.
//!
//! *Assumptions.* Rows have 200 bytes and are clustered by key. The index has a sixth of the pages.

use super::draw::percent;
use super::generator::{Generator, RequestSource};
use super::recipe::{Recipe, Space};
use super::tables::{Accesses, Layout, Table};
use crate::{Op, Request};
use fulgurite_base::{Declared, Opt, Prng, SpecError};

/// The parts of a sysbench transaction. A user cannot set any option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SysbenchConfig {
    /// Whether transactions read ten single rows and four ranges.
    pub reads: bool,
    /// Whether transactions update, delete and insert rows.
    pub writes: bool,
}

impl Declared for SysbenchConfig {
    const OPTIONS: &'static [Opt<SysbenchConfig>] = &[];
}

/// The generator, with the table and its index.
#[derive(Debug)]
struct Sysbench {
    rows: Table,
    index: Table,
    /// The number of leaf pages that a range of a hundred rows covers.
    range: u64,
    reads: bool,
    writes: bool,
    accesses: Accesses,
    prng: Prng,
}

impl Recipe for SysbenchConfig {
    fn start(&self, space: Space<'_>) -> Result<Generator, SpecError> {
        let (prng, Space { pages, page_bytes, .. }) = (space.prng(), space);
        space.check_tables()?;
        let mut layout = Layout::new(pages);
        let (rows, index) = (layout.table(830.0), layout.table(165.0));
        let range = (100 * 200u64).div_ceil(u64::from(page_bytes));
        let accesses = Accesses::default();
        let SysbenchConfig { reads, writes } = *self;
        Ok(Generator::new(Sysbench { rows, index, range, reads, writes, accesses, prng }))
    }

    fn writes_anything(&self) -> bool {
        self.writes
    }
}

impl Sysbench {
    /// Draws a row's relative position in the table, from 0 to 1. Three of four positions are in the
    /// hundredth around the middle.
    fn row(&mut self) -> f64 {
        let place = self.prng.unit_f64();
        if percent(&mut self.prng, 75) { 0.495 + place / 100.0 } else { place }
    }
}

impl RequestSource for Sysbench {
    fn request(&mut self) -> Request {
        loop {
            if let Some(request) = self.accesses.pop() {
                return request;
            }
            if self.reads {
                for _ in 0..10 {
                    let row = self.row();
                    self.accesses.row(self.rows, row, Op::Read);
                }
                for _ in 0..4 {
                    let row = self.row();
                    self.accesses.scan(self.rows, row, self.range);
                }
            }
            if self.writes {
                let [moved, changed, replaced] = [self.row(), self.row(), self.row()];
                let [from, to] = [self.row(), self.row()];
                self.accesses.row(self.rows, moved, Op::Write);
                // The update changes the indexed column, so it moves the index entry from one leaf to
                // another.
                self.accesses.row(self.index, from, Op::Write);
                self.accesses.row(self.index, to, Op::Write);
                self.accesses.row(self.rows, changed, Op::Write);
                self.accesses.row(self.rows, replaced, Op::Write);
                self.accesses.row(self.index, from, Op::Write);
            }
        }
    }
}

//! sysbench's page accesses: its OLTP transactions on one table with an index on a second column
//! (`oltp_common.lua` of sysbench 1.0), with its default choice of rows: three of four go to one hundredth
//! of them ("special").
//!
//! Read-only: ten rows by key and four ranges of a hundred. Write-only: an update that moves the index
//! entry, one that does not, a row deleted and inserted again. Read-write: both. Assumed: rows of 200 bytes
//! clustered by key, the index a sixth of the pages.

use super::draw::percent;
use super::generator::{Generator, RequestSource};
use super::recipe::{Recipe, Space};
use super::tables::{Accesses, Layout, Table};
use crate::{Op, Request};
use fulgurite_base::{Declared, Opt, Prng, SpecError};

/// The parts of a transaction: a workload without options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SysbenchConfig {
    /// Points and ranges.
    pub reads: bool,
    /// Updates.
    pub writes: bool,
}

impl Declared for SysbenchConfig {
    const OPTIONS: &'static [Opt<SysbenchConfig>] = &[];
}

/// The table and its index.
#[derive(Debug)]
struct Sysbench {
    rows: Table,
    index: Table,
    /// Pages that a range of a hundred rows covers.
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
    /// A row's relative place; three of four are in the hundredth around the middle.
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
                // The update moves the index entry from one leaf to another.
                self.accesses.row(self.index, from, Op::Write);
                self.accesses.row(self.index, to, Op::Write);
                self.accesses.row(self.rows, changed, Op::Write);
                self.accesses.row(self.rows, replaced, Op::Write);
                self.accesses.row(self.index, from, Op::Write);
            }
        }
    }
}

//! sysbench's page accesses: its OLTP transactions on one table with an index on a second column
//! (`oltp_common.lua` of sysbench 1.0), with its default choice of rows: three of four go to one hundredth
//! of them ("special").
//!
//! Read-only: ten rows by key and four ranges of a hundred. Write-only: an update that moves the index
//! entry, one that does not, a row deleted and inserted again. Read-write: both. Assumed: rows of 200 bytes
//! clustered by key, the index a sixth of the pages.

use super::tables::{Accesses, Layout, Table, percent};
use super::{Generator, Make};
use crate::{Op, Request};
use fulgurite_base::{Prng, SpecError};

/// The table and its index.
#[derive(Clone, Debug)]
pub struct Sysbench {
    rows: Table,
    index: Table,
    /// Pages that a range of a hundred rows covers.
    range: u64,
    reads: bool,
    writes: bool,
    accesses: Accesses,
    prng: Prng,
}

impl Sysbench {
    pub(super) fn generator(make: Make, reads: bool, writes: bool) -> Result<Generator, SpecError> {
        let (prng, Make { pages, page_bytes, .. }) = (make.prng(), make);
        if pages < 100 {
            return Err(SpecError::new(format!(
                "pages of sysbench: {pages} is too few; accepted: at least 100"
            )));
        }
        let mut layout = Layout::new(pages);
        let (rows, index) = (layout.table(830.0), layout.table(165.0));
        let range = (100 * 200u64).div_ceil(u64::from(page_bytes));
        let accesses = Accesses::default();
        Ok(Generator::Sysbench(Box::new(Sysbench { rows, index, range, reads, writes, accesses, prng })))
    }

    /// A row's place: three of four in the hundredth around the middle.
    fn row(&mut self) -> f64 {
        let place = self.prng.unit_f64();
        if percent(&mut self.prng, 75) { 0.495 + place / 100.0 } else { place }
    }

    pub(super) fn request(&mut self) -> Request {
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
                self.accesses.row(self.index, from, Op::Write);
                self.accesses.row(self.index, to, Op::Write);
                self.accesses.row(self.rows, changed, Op::Write);
                self.accesses.row(self.rows, replaced, Op::Write);
                self.accesses.row(self.index, from, Op::Write);
            }
        }
    }
}

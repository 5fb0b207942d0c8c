//! Makes one result row per interval of a fixed number of page writes.

use super::observer::{Counts, Observer};
use crate::{Column, Row};
use fulgurite_base::StreamId;
use fulgurite_ftl::Ftl;
use fulgurite_ftl::placement::midas::Midas;

/// The rows of the completed intervals, and the state of the current interval.
pub(super) struct Series {
    /// The columns that describe the run, which every row has.
    identity: Row,
    length: u64,
    start: Counts,
    /// The counts at the beginning of the last completed interval.
    before: Counts,
    rows: Vec<Row>,
    /// The number of page writes before the first interval, which are those of the fill.
    origin: u64,
}

impl Observer for Series {
    fn next(&self) -> Option<u64> {
        Some(self.start.host + self.length)
    }

    fn look(&mut self, ftl: &Ftl, now: Counts) {
        self.end(ftl, now);
    }
}

impl Series {
    /// Begins a series of intervals of `length` page writes at `now`.
    pub(super) fn new(identity: Row, length: u64, now: Counts) -> Series {
        Series { identity, length, start: now, before: now, rows: Vec::new(), origin: now.host }
    }

    fn end(&mut self, ftl: &Ftl, now: Counts) {
        let stretch = now.since(&self.start);
        let mut row = self.identity.clone();
        row.set(Column::TimePages, self.start.host - self.origin);
        row.set(Column::HostPagesWritten, stretch.host);
        // Each program of a flash page is either a host page or a copy.
        row.set(Column::GcPagesCopied, stretch.flash.programs - stretch.host);
        row.set(Column::Erases, stretch.flash.erases);
        row.set(Column::Waf, stretch.waf());
        let streams = ftl.config().collect.placement.streams();
        let sizes: Vec<u32> = (0..streams).map(|stream| ftl.segments().in_stream(StreamId(stream))).collect();
        row.set(Column::Groups, sizes.iter().filter(|segments| **segments > 0).count() as u64);
        if let Some(midas) = ftl.placer().policy::<Midas>() {
            row.set(Column::GroupsSized, midas.sizes().len() as u64);
            row.set(Column::HotSegments, sizes[0]);
        }
        row.set(
            Column::LastSegments,
            sizes.iter().rev().find(|segments| **segments > 0).copied().unwrap_or(0),
        );
        self.rows.push(row);
        (self.before, self.start) = (self.start, now);
    }

    /// Returns a row per interval. A remainder of at least half an interval becomes an interval of its own; a
    /// shorter one is added to the last interval.
    pub(super) fn rows(mut self, ftl: &Ftl, now: Counts) -> Vec<Row> {
        let rest = now.host - self.start.host;
        if 2 * rest < self.length && self.rows.pop().is_some() {
            self.start = self.before;
        }
        if now.host > self.start.host {
            self.end(ftl, now);
        }
        self.rows
    }
}

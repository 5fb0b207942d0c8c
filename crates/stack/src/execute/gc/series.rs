//! A run as a series: one row per interval of a fixed number of page writes.

use super::observer::{Counts, Observer};
use crate::{Column, Row};
use fulgurite_base::StreamId;
use fulgurite_ftl::Ftl;
use fulgurite_ftl::placement::midas::Midas;

/// The completed intervals.
pub(super) struct Series {
    /// The columns that describe the run.
    identity: Row,
    length: u64,
    start: Counts,
    /// The counts at the beginning of the previous interval.
    before: Counts,
    rows: Vec<Row>,
    /// Page writes before the first interval.
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
    /// A series of intervals of `length` page writes from `now` on.
    pub(super) fn new(identity: Row, length: u64, now: Counts) -> Series {
        Series { identity, length, start: now, before: now, rows: Vec::new(), origin: now.host }
    }

    fn end(&mut self, ftl: &Ftl, now: Counts) {
        let stretch = now.since(&self.start);
        let mut row = self.identity.clone();
        row.set(Column::TimePages, self.start.host - self.origin);
        row.set(Column::HostPagesWritten, stretch.host);
        // A program is either of a host page or of a copy.
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

    /// A row per interval. A remainder of at least half an interval is an interval of its own; a shorter one
    /// belongs to the last interval.
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

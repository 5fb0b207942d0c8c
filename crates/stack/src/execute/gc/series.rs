//! Gives a run as a series: one row per interval of a fixed number of page writes.

use super::observer::{Counts, Observer};
use crate::{Column, Row};
use fulgurite_base::StreamId;
use fulgurite_ftl::Ftl;
use fulgurite_ftl::placement::midas::Midas;

/// The stretches that are over.
pub struct Series {
    /// What sets the run apart.
    identity: Row,
    length: u64,
    start: Counts,
    /// Where the stretch before the current one began.
    before: Counts,
    rows: Vec<Row>,
    /// Page writes before the first stretch.
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
    /// A series of stretches of `length` page writes from `now` on.
    pub fn new(identity: Row, length: u64, now: Counts) -> Series {
        Series { identity, length, start: now, before: now, rows: Vec::new(), origin: now.host }
    }

    fn end(&mut self, ftl: &Ftl, now: Counts) {
        let stretch = now.since(&self.start);
        let mut row = self.identity.clone();
        row.set(Column::TimePages, self.start.host - self.origin);
        row.set(Column::HostPagesWritten, stretch.host);
        // Every page program is of a host page or of a copy.
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

    /// A row for every stretch; what is left over is one of its own if it is half a stretch, else it belongs to the
    /// last.
    pub fn rows(mut self, ftl: &Ftl, now: Counts) -> Vec<Row> {
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

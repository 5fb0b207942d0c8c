//! The receiver of flash operations, which counts them or executes them on a drive.

use super::unit::UnitId;
use crate::segments::SegmentId;
use fulgurite_base::Ppn;

/// The receiver of a translation layer's flash operations.
pub trait FlashSink {
    /// Receives the read of a valid page, to be moved.
    fn read(&mut self, ppn: Ppn);
    /// Receives the program of a page: a host write, or the copy of a page that was just read from `source`.
    fn program(&mut self, ppn: Ppn, source: Option<Ppn>);
    /// Receives the erase of a segment. All operations on its pages were emitted before.
    fn erase(&mut self, segment: SegmentId);
    /// Returns the number of queued and running flash operations in `unit`, which
    /// [`Stripe::LeastLoaded`](crate::Stripe) compares.
    #[inline]
    fn load(&self, _unit: UnitId) -> u32 {
        0
    }
}

/// A sink that only counts, for studies without virtual time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountingSink {
    /// The number of pages read to be moved.
    pub reads: u64,
    /// The number of pages programmed, for the host and for moves.
    pub programs: u64,
    /// The number of segments erased.
    pub erases: u64,
}

impl FlashSink for CountingSink {
    #[inline]
    fn read(&mut self, _: Ppn) {
        self.reads += 1;
    }

    #[inline]
    fn program(&mut self, _: Ppn, _: Option<Ppn>) {
        self.programs += 1;
    }

    fn erase(&mut self, _: SegmentId) {
        self.erases += 1;
    }
}

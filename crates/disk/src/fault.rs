//! Faults on request: reads and writes that fail, slowness, a full drive, lost and misdirected writes, and the
//! points of a run at which a power cut is due.

use fulgurite_base::Nanos;

/// A range of bytes, and how many more requests to it fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failing {
    /// The address of the first byte.
    pub offset: u64,
    /// The number of bytes.
    pub length: u64,
    /// The number of requests that fail from now on.
    pub times: u64,
}

impl Failing {
    /// Whether a request to this range fails now, which counts as one of the times.
    fn strikes(&mut self, offset: u64, length: u64) -> bool {
        let is_hit = self.times > 0
            && offset < self.offset.saturating_add(self.length)
            && self.offset < offset + length;
        self.times -= u64::from(is_hit);
        is_hit
    }
}

/// A point of a run at which the power is to be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutPoint {
    /// The submission of the nth write, trim or write of zeros from now on, counted from one.
    Write(u64),
    /// The submission of the nth flush from now on, counted from one.
    Flush(u64),
    /// The submission of a write to one of these bytes.
    WriteTo {
        /// The address of the first byte.
        offset: u64,
        /// The number of bytes.
        length: u64,
    },
    /// The submission of a flush while at least this number of pages is not durable.
    Unflushed(u64),
}

/// The faults that a drive has now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Reads that fail with an error of the medium.
    pub reads: Vec<Failing>,
    /// Writes that fail with an error of the medium, and change nothing.
    pub writes: Vec<Failing>,
    /// The time that every request takes in addition.
    pub delay: Nanos,
    /// Whether writes fail because the drive has no space left.
    pub is_full: bool,
    /// The number of writes from now on that complete without any effect, so that later reads are stale.
    pub lost_writes: u64,
    /// The number of writes from now on that go to the next page but one instead of their own.
    pub misdirected_writes: u64,
}

/// The fate of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Written,
    /// Fails with an error of the medium.
    Fails,
    /// Fails because there is no space left.
    Full,
    /// Completes without any effect.
    Lost,
    /// Takes effect elsewhere.
    Misdirected,
}

impl Faults {
    /// Whether a read of these bytes fails.
    pub(crate) fn fails_read(&mut self, offset: u64, length: u64) -> bool {
        let is_hit = self.reads.iter_mut().any(|failing| failing.strikes(offset, length));
        self.reads.retain(|failing| failing.times > 0);
        is_hit
    }

    /// Returns what happens to a write of these bytes.
    pub(crate) fn of_write(&mut self, offset: u64, length: u64) -> Fate {
        let is_hit = self.writes.iter_mut().any(|failing| failing.strikes(offset, length));
        self.writes.retain(|failing| failing.times > 0);
        if is_hit {
            Fate::Fails
        } else if self.is_full {
            Fate::Full
        } else if self.lost_writes > 0 {
            self.lost_writes -= 1;
            Fate::Lost
        } else if self.misdirected_writes > 0 {
            self.misdirected_writes -= 1;
            Fate::Misdirected
        } else {
            Fate::Written
        }
    }
}

/// Watches for a point at which the power is to be cut.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Watch {
    point: Option<CutPoint>,
    is_reached: bool,
}

impl Watch {
    /// Waits for `point` from now on.
    pub(crate) fn arm(&mut self, point: CutPoint) {
        *self = Watch { point: Some(point), is_reached: false };
    }

    /// Whether the point was reached.
    pub(crate) fn is_reached(&self) -> bool {
        self.is_reached
    }

    /// Observes the submission of a write.
    pub(crate) fn write(&mut self, at: u64, bytes: u64) {
        match &mut self.point {
            Some(CutPoint::Write(left)) => {
                *left = left.saturating_sub(1);
                self.is_reached |= *left == 0;
            }
            Some(CutPoint::WriteTo { offset, length }) => {
                self.is_reached |= at < offset.saturating_add(*length) && *offset < at + bytes;
            }
            _ => {}
        }
    }

    /// Observes the submission of a flush while `unflushed` pages are not durable.
    pub(crate) fn flush(&mut self, unflushed: u64) {
        match &mut self.point {
            Some(CutPoint::Flush(left)) => {
                *left = left.saturating_sub(1);
                self.is_reached |= *left == 0;
            }
            Some(CutPoint::Unflushed(pages)) => self.is_reached |= unflushed >= *pages,
            _ => {}
        }
    }
}

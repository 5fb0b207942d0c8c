//! The mean lifespan of the collected segments of stream 0, as in SepBIT (Wang et al., FAST 2022).

use crate::{SegmentId, SegmentTable};

/// The mean lifespan over groups of collected segments.
#[derive(Clone, Debug)]
pub(super) struct Lifespan {
    /// The number of segments in a mean.
    of: u32,
    mean: u64,
    /// The number of segments in the next mean, and the sum of their lifespans.
    collected: u32,
    sum: u64,
}

impl Lifespan {
    /// Creates a mean over `of` segments. It is infinite at first.
    pub(super) fn new(of: u32) -> Lifespan {
        Lifespan { of, mean: u64::MAX, collected: 0, sum: 0 }
    }

    /// Returns the mean, in page writes.
    #[inline]
    pub(super) fn mean(&self) -> u64 {
        self.mean
    }

    /// Learns that a victim was picked.
    pub(super) fn picked(&mut self, victim: SegmentId, segments: &SegmentTable) {
        if segments.stream(victim).0 != 0 {
            return;
        }
        // As in Wang et al., the lifespan of a segment is from its first page to its collection.
        self.sum += segments.now() - segments.opened_at(victim);
        self.collected += 1;
        if self.collected == self.of {
            self.mean = self.sum / u64::from(self.collected);
            (self.collected, self.sum) = (0, 0);
        }
    }
}

//! Borrows frames from the pool for the record cache ahead of need.
//!
//! While a checkpoint is running, most pages of the pool may be dirty, so a frame is rarely available without
//! waiting for a write. So a separate task requests some more frames than commits in progress need, and waits
//! for them like a miss does. If these frames are not enough, a commit waits as well, because its writes
//! would otherwise need frames for their leaves.

use super::cache::RecordCache;
use fulgurite_pool::{Lent, Loan};

/// The number of chunks that should be available in addition to the reserved ones.
const AHEAD: usize = 64;
/// The denominator of the largest share of all chunks that may be available ahead.
const PART_AHEAD: usize = 128;

impl RecordCache {
    /// Returns the lent frames, through which more frames are requested.
    pub(crate) fn frames(&self) -> &Lent {
        self.ring.frames()
    }

    /// Adds a frame that was requested.
    pub(crate) fn add_frame(&mut self, loan: Loan) {
        self.ring.add(loan);
    }

    /// Returns the number of frames to borrow, so that chunks for `reserved` bytes and `ahead` more
    /// chunks can be begun at once.
    pub(crate) fn frames_for(&self, reserved: u64, ahead: usize) -> usize {
        let needed = self.chunks_for(reserved);
        let left = self.chunks().saturating_sub(self.ring.used() + needed);
        (needed + ahead.min(left)).saturating_sub(self.ring.ready())
    }

    /// Whether half of the chunks that should be available ahead are missing.
    pub(crate) fn needs_frames(&self) -> bool {
        self.is_used() && self.frames_for(self.reserved, self.ahead() / 2) > 0
    }

    pub(crate) fn ahead(&self) -> usize {
        AHEAD.min(self.chunks() / PART_AHEAD)
    }
}

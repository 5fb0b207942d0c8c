//! Frames that the pool lends to records before they are needed.
//!
//! While a checkpoint has changed most pages of the pool, hardly any frame can be had without a wait for a write. So a task of its own
//! waits, as misses do, for some frames more than commits under way need. Where those do not suffice, a commit waits as well: its writes would
//! need frames for their leaves otherwise.

use super::cache::RecordCache;
use fulgurite_pool::{Lent, Loan};

/// Chunks that can be begun at once, beside those that are promised.
const AHEAD: usize = 64;
/// No more than this part of all.
const PART_AHEAD: usize = 128;

impl RecordCache {
    /// The frames of the pool, to ask for more of them.
    pub fn frames(&self) -> &Lent {
        self.ring.frames()
    }

    /// Takes a frame that was asked for.
    pub fn add_frame(&mut self, loan: Loan) {
        self.ring.add(loan);
    }

    /// Frames to borrow, so that so many bytes that are promised and so many chunks beside can be begun at once.
    pub fn frames_for(&self, promised: u64, ahead: usize) -> usize {
        let needed = self.chunks_for(promised);
        let left = self.chunks().saturating_sub(self.ring.used() + needed);
        (needed + ahead.min(left)).saturating_sub(self.ring.ready())
    }

    /// Whether half of what should be ready ahead is not.
    pub fn needs_frames(&self) -> bool {
        self.is_used() && self.frames_for(self.promised, self.ahead() / 2) > 0
    }

    pub fn ahead(&self) -> usize {
        AHEAD.min(self.chunks() / PART_AHEAD)
    }
}

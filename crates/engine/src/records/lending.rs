//! Frames that the pool lends to records before they are needed.
//!
//! While a checkpoint has changed most pages of the pool, hardly any frame can be had without a wait for a write. So a task of its own
//! waits, as misses do, for some frames more than commits under way need. Where those do not suffice, a commit waits as well: its writes would
//! need frames for their leaves otherwise.

use super::Records;
use crate::shard::Shard;
use crate::wait::together;
use fulgurite_device::Device;
use fulgurite_pool::Loan;
use std::rc::Rc;

/// Chunks that can be begun at once, beside those that are promised.
const AHEAD: usize = 64;
/// No more than this part of all.
const PART_AHEAD: usize = 128;
/// Frames that are asked for together.
const ASKED_TOGETHER: usize = 16;

impl<D: Device + 'static> Shard<D> {
    /// Borrows frames for records in a task of its own, unless one does so already or there are enough.
    pub fn borrow_frames_later(self: &Rc<Self>) {
        if !self.records.borrow().needs_frames() || self.borrowing.replace(true) {
            return;
        }
        let shard = Rc::clone(self);
        self.handle.spawn(async move {
            shard.borrow_frames().await;
            shard.borrowing.set(false);
        });
    }

    async fn borrow_frames(&self) {
        let missing = |records: &Records| records.frames_for(records.promised, records.ahead());
        while self.health.check().is_ok() && self.ask_for_frames(missing).await {}
    }

    /// Waits for the frames that records of so many bytes may need beside what is promised, as far as the pool lends them.
    pub async fn until_frames(&self, bytes: u64) {
        while self.ask_for_frames(|records| records.frames_for(records.promised + bytes, 0)).await {}
    }

    /// Waits for some of the frames that are missing. False where none is, or none is lent.
    async fn ask_for_frames(&self, missing: impl Fn(&Records) -> usize) -> bool {
        let asked: Vec<_> = {
            let records = self.records.borrow();
            let frames = missing(&records).min(ASKED_TOGETHER);
            (0..frames).map(|_| records.ring.frames().borrow_soon()).collect()
        };
        let loans: Vec<Loan> = together(asked).await.into_iter().flatten().collect();
        let any = !loans.is_empty();
        let mut records = self.records.borrow_mut();
        loans.into_iter().for_each(|loan| records.ring.add(loan));
        any
    }
}

impl Records {
    /// Frames to borrow, so that so many bytes that are promised and so many chunks beside can be begun at once.
    fn frames_for(&self, promised: u64, ahead: usize) -> usize {
        let needed = self.chunks_for(promised);
        let left = self.chunks().saturating_sub(self.ring.used() + needed);
        (needed + ahead.min(left)).saturating_sub(self.ring.ready())
    }

    /// Whether half of what should be ready ahead is not.
    fn needs_frames(&self) -> bool {
        self.is_used() && self.frames_for(self.promised, self.ahead() / 2) > 0
    }

    pub(super) fn ahead(&self) -> usize {
        AHEAD.min(self.chunks() / PART_AHEAD)
    }
}

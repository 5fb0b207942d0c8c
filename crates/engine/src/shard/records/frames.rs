//! Lends frames of the pool to the record cache, and divides memory between records and pages.

use crate::memory::record_cache::RecordCache;
use crate::shard::Shard;
use crate::wait::together;
use fulgurite_pool::Loan;
use std::rc::Rc;

/// The number of frames that are requested at once.
const ASKED_TOGETHER: usize = 16;
/// The divisor of the margin: the margin is one part in this many of the frames of the pool.
const MARGIN_PART: u32 = 16;

impl Shard {
    /// Borrows frames for records in a background task. It does nothing if such a task runs or there are
    /// enough frames.
    pub(crate) fn borrow_frames_later(self: &Rc<Self>) {
        if !self.state.records().needs_frames() || !self.jobs.borrowing().begin() {
            return;
        }
        let shard = Rc::clone(self);
        self.handle.spawn(async move {
            shard.borrow_frames().await;
            shard.jobs.borrowing().end();
        });
    }

    async fn borrow_frames(&self) {
        let missing = |records: &RecordCache| records.frames_for(records.reserved(), records.ahead());
        while self.health.check().is_ok() && self.ask_for_frames(missing).await {}
    }

    /// Waits for the frames that `bytes` of records may need beside the reserved ones, as far as the pool
    /// lends them.
    pub(crate) async fn until_frames(&self, bytes: u64) {
        while self.ask_for_frames(|records| records.frames_for(records.reserved() + bytes, 0)).await {}
    }

    /// Waits for some of the missing frames. Returns false if none is missing, or the pool lends none.
    async fn ask_for_frames(&self, missing: impl Fn(&RecordCache) -> usize) -> bool {
        let asked: Vec<_> = {
            let records = self.state.records();
            let frames = missing(&records).min(ASKED_TOGETHER);
            (0..frames).map(|_| records.frames().borrow_soon()).collect()
        };
        let loans: Vec<Loan> = together(asked).await.into_iter().flatten().collect();
        let any = !loans.is_empty();
        let mut records = self.state.records_mut();
        loans.into_iter().for_each(|loan| records.add_frame(loan));
        any
    }
}

impl Shard {
    /// Begins to divide memory between records and pages so that the drive has the least work. The record
    /// cache begins with its first share, or with the frames that it holds if these are more.
    pub(crate) fn begin_to_divide(&self) {
        let mut records = self.state.records_mut();
        if !records.is_used() {
            return;
        }
        let margin = (self.state.frames() / MARGIN_PART).max(1);
        self.durable.pool().watch_departures(margin);
        records.begin_to_divide(u64::from(margin));
    }

    /// Moves the border between records and pages if an adjustment is due.
    pub(crate) fn divide_memory(self: &Rc<Self>) {
        let departures = self.durable.pool().departures();
        if self.state.records_mut().is_division_due(departures.left) {
            let pool = (departures, self.durable.pool().counters().pages_written);
            self.state.records_mut().divide(pool, self.durable.pages().times_written());
            self.evict_records_later();
        }
    }
}

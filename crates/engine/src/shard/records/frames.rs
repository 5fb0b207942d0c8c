//! Frames of the pool for the record cache, and the division of memory between records and pages.

use crate::memory::record_cache::RecordCache;
use crate::shard::Shard;
use crate::wait::together;
use fulgurite_device::Device;
use fulgurite_pool::Loan;
use std::rc::Rc;

/// Frames that are asked for together.
const ASKED_TOGETHER: usize = 16;
/// The margin is this part of the frames of the pool.
const MARGIN_PART: u32 = 16;

impl<D: Device + 'static> Shard<D> {
    /// Borrows frames for records in a task of its own, unless one does so already or there are enough.
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
        let missing = |records: &RecordCache| records.frames_for(records.promised(), records.ahead());
        while self.health.check().is_ok() && self.ask_for_frames(missing).await {}
    }

    /// Waits for the frames that so many bytes of records may need beside those promised, as far as the pool
    /// lends them.
    pub(crate) async fn until_frames(&self, bytes: u64) {
        while self.ask_for_frames(|records| records.frames_for(records.promised() + bytes, 0)).await {}
    }

    /// Waits for some of the missing frames. False if none is missing, or none is lent.
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

impl<D: Device + 'static> Shard<D> {
    /// From now on memory is divided between records and pages so that the drive has the least to do. Records
    /// begin with the first share, or with what they hold if that is more.
    pub(crate) fn begin_to_divide(&self) {
        let mut records = self.state.records_mut();
        if !records.is_used() {
            return;
        }
        let margin = (self.state.frames() / MARGIN_PART).max(1);
        self.durable.pool().watch_departures(margin);
        records.begin_to_divide(u64::from(margin));
    }

    /// Moves the border between records and pages if that is due.
    pub(crate) fn divide_memory(self: &Rc<Self>) {
        let departures = self.durable.pool().departures();
        if self.state.records_mut().is_division_due(departures.left) {
            let pool = (departures, self.durable.pool().counters().pages_written);
            self.state.records_mut().divide(pool, self.durable.pages().times_written());
            self.evict_records_later();
        }
    }
}

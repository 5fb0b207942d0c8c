//! Frames of the pool for records, and how the memory is divided between records and pages.

use crate::memory::record_cache::RecordCache;
use crate::shard::Shard;
use crate::wait::together;
use fulgurite_device::Device;
use fulgurite_pool::Loan;
use std::rc::Rc;

/// Frames that are asked for together.
const ASKED_TOGETHER: usize = 16;
/// Of the frames of a pool, one in so many is the margin.
const MARGIN_PART: u32 = 16;

impl<D: Device + 'static> Shard<D> {
    /// Borrows frames for records in a task of its own, unless one does so already or there are enough.
    pub fn borrow_frames_later(self: &Rc<Self>) {
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

    /// Waits for the frames that records of so many bytes may need beside what is promised, as far as the pool lends them.
    pub async fn until_frames(&self, bytes: u64) {
        while self.ask_for_frames(|records| records.frames_for(records.promised() + bytes, 0)).await {}
    }

    /// Waits for some of the frames that are missing. False where none is, or none is lent.
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
    /// From now on the memory is divided between records and pages as that saves the most. Records begin with what they have, and with
    /// [`FIRST_SHARE`] at least.
    pub fn begin_to_divide(&self) {
        let mut records = self.state.records_mut();
        if !records.is_used() {
            return;
        }
        let margin = (self.state.frames() / MARGIN_PART).max(1);
        self.durable.pool().watch_departures(margin);
        records.begin_to_divide(u64::from(margin));
    }

    /// Looks whether records should have more of the memory, or pages.
    pub fn divide_memory(self: &Rc<Self>) {
        let departures = self.durable.pool().departures();
        if self.state.records_mut().is_division_due(departures.left) {
            let pool = (departures, self.durable.pool().counters().pages_written);
            self.state.records_mut().divide(pool, self.durable.pages().times_written());
            self.evict_records_later();
        }
    }
}

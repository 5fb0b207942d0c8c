//! The second stage of a commit: reserves memory, pages and log space for the worst case, so that nothing can
//! fail for lack of space once the record of the commit is in the log.

use super::stage::{Admitted, Operations, Prepared, Room, Target, record};
use crate::memory::record_cache::RecordCache;
use crate::shard::Shard;
use crate::{Error, Lsn};
use std::rc::Rc;

/// Returns the number of pages that this many splits of leaves can need.
fn pages_for(splits: u64) -> u64 {
    splits + splits / 2 + 8
}

impl Shard {
    /// Waits until there is space for a commit, and reserves it. Records for which the record cache has no
    /// space go to their leaves.
    pub(super) async fn admit(self: &Rc<Self>, prepared: Prepared) -> Result<Admitted, Error> {
        let Prepared { mut operations, leaves, replaced, user_bytes, marks } = prepared;
        let bytes: u64 = operations.records().map(RecordCache::promise_bytes).sum();
        if bytes > 0 {
            self.until_frames(bytes).await;
        }
        let (records, more_leaves) = self.promise_records(&mut operations);
        let mut promise = Promise { shard: self, pages: 0, records };
        self.borrow_frames_later();
        if more_leaves > 0 {
            self.evict_records_later();
        }
        let room = self.room_for(&operations, leaves + more_leaves, records)?;
        self.state.space().promise(room.pages)?;
        promise.pages = room.pages;
        let has_room = || {
            if let Err(error) = self.health.check() {
                return Some(Err(error));
            }
            let fits = self.has_room_in_log(room.log);
            if !fits {
                self.checkpoint_later(Lsn(u64::MAX));
            } else if let Some(goal) = self.checkpoint_goal() {
                self.checkpoint_later(goal);
            }
            fits.then_some(Ok(()))
        };
        match has_room() {
            Some(outcome) => outcome?,
            None => {
                let began = self.handle.now();
                self.log_room.until(has_room).await?;
                let waited = self.handle.now() - began;
                self.counters.count(|counts| {
                    counts.log_waits += 1;
                    counts.log_wait_ns += waited.0;
                });
            }
        }
        self.log_room.promise(room.log);
        std::mem::forget(promise);
        Ok(Admitted { operations, replaced, user_bytes, room, marks })
    }

    /// Reserves space in the record cache. Operations for which there is none get their leaves as targets.
    /// Returns the number of bytes reserved, and the number of operations that now go to leaves.
    fn promise_records(&self, operations: &mut Operations) -> (u64, u64) {
        let mut records = self.state.records_mut();
        let (mut promised, mut leaves) = (0, 0);
        for (op, target) in std::iter::zip(&operations.ops, &mut operations.targets) {
            if *target != Target::Cache {
                continue;
            }
            match records.promise(record(op)) {
                Some(bytes) => promised += bytes,
                None => {
                    *target = Target::Leaf;
                    leaves += 1;
                }
            }
        }
        (promised, leaves)
    }

    /// Returns the most pages and log bytes that operations can need that change `leaves` leaves.
    ///
    /// Each leaf is split once, and again for each quarter of a page that is put into it. Every two of these
    /// splits cause one split in the levels above. A record for the cache counts like a changed leaf, so a
    /// full store refuses the record before it lacks the pages to merge it. A record that still cannot be
    /// merged stays in the cache.
    fn room_for(&self, operations: &Operations, leaves: u64, records: u64) -> Result<Room, Error> {
        let page = u64::from(self.page_bytes());
        let bytes: u64 = operations.ops.iter().map(|op| op.bytes() as u64).sum();
        let puts = operations.ops.iter().filter(|op| op.value.is_some()).count() as u64;
        let cached = operations.records().count() as u64;
        let cached_puts = operations.records().filter(|record| record.value.is_some()).count() as u64;
        let splits = puts.min(leaves + cached + 2 + 4 * bytes / page);
        // Cached deletions change no leaf now, and merging them frees space.
        let makes_room = cached as usize == operations.ops.len() && puts == 0;
        let pages = if makes_room { 0 } else { pages_for(splits) };
        // The splits that cached records cause are logged when these records are merged, so their log space
        // is not reserved now. Deletions cause no splits.
        let split_now = pages.saturating_sub(cached_puts + cached_puts / 2);
        Ok(Room { pages, log: self.log_bytes_for(bytes, split_now)?, records })
    }

    /// Returns the log space that operations of `bytes` bytes can need that allocate `pages` pages. Fails if
    /// this is more than one transaction may use.
    fn log_bytes_for(&self, bytes: u64, pages: u64) -> Result<u64, Error> {
        let blocks = bytes / 4064 * 4096 + 8192;
        let need = blocks + pages * (u64::from(self.page_bytes()) / 2 + 1024);
        let most = self.durable.log().capacity() / 4;
        if need > most {
            Err(Error::TransactionTooLarge { bytes, most: bytes * most / need })
        } else {
            Ok(need)
        }
    }

    /// Releases the reservations of a commit that has ended.
    pub(super) fn give_back(&self, room: Room) {
        self.state.space().release(room.pages);
        self.state.records_mut().release(room.records);
        self.log_room.end_commit(room.log);
    }
}

/// The reservations of a commit that is not admitted yet. Dropping the value releases them.
struct Promise<'a> {
    shard: &'a Shard,
    pages: u64,
    /// The reserved bytes of the record cache.
    records: u64,
}

impl Drop for Promise<'_> {
    fn drop(&mut self) {
        self.shard.state.space().release(self.pages);
        self.shard.state.records_mut().release(self.records);
        self.shard.log_room.notify();
    }
}

//! Changes the record cache's share of memory, and gives frames back to the pool.

use super::cache::RecordCache;
use super::cost::{LEAST_COST, reserved_for_deletes};
use super::division::{Division, WATCHED_PART};
use fulgurite_pool::{Departed, Departures};

/// The denominator of the least share of its highest limit that the record cache keeps. Commits need some
/// space.
const LEAST_PART: u64 = 16;
/// The initial limit, in per cent of the highest limit.
const FIRST_SHARE: u64 = 60;

impl RecordCache {
    /// Whether the division should be reconsidered. `left` is the total number of pages evicted from the
    /// pool.
    pub(crate) fn is_division_due(&mut self, left: u64) -> bool {
        self.division.is_due(left)
    }

    pub(crate) fn begin_to_divide(&mut self, margin: u64) {
        let chunk_bytes = self.ring.chunk_bytes() as u64;
        let watched = (margin * chunk_bytes / LEAST_COST / WATCHED_PART) as usize;
        let departed = || Departed::new(margin * chunk_bytes, watched.max(1));
        self.division =
            Division { margin, chunk_bytes, records: departed(), leaves: departed(), ..Division::fixed() };
        self.share_bytes = (self.most_bytes / 100 * FIRST_SHARE).max(self.bytes()).min(self.most_bytes);
        self.limit_bytes = self.share_bytes;
        self.give_frames_back();
    }

    pub(crate) fn divide(&mut self, pool: (Departures, u64), times: u64) {
        let least = self.most_bytes / LEAST_PART;
        let limit = if self.division.is_idle(self.counters.hits) {
            let margin = self.division.margin * self.chunk_cost();
            self.limit_bytes.saturating_sub(margin).max(least)
        } else {
            let chunks = self.division.decide(pool, times);
            let bytes = chunks.unsigned_abs() * self.chunk_cost();
            let share = match chunks < 0 {
                true => self.share_bytes.saturating_sub(bytes),
                false => self.share_bytes + bytes,
            };
            self.share_bytes = share.clamp(least, self.most_bytes);
            self.share_bytes
        };
        // The limit never drops below the bytes in use or reserved, plus a reserve for deletions. Entries are
        // evicted meanwhile, and the next decision can lower the limit further.
        let held = self.held(self.reserved);
        let beside = reserved_for_deletes(held).max(2 * self.chunk_cost());
        self.limit_bytes = limit.max((held + beside).min(self.limit_bytes));
        self.give_frames_back();
    }

    /// Restores the limit to the cache's full share, because the cache is used again.
    pub(crate) fn wake(&mut self) {
        self.limit_bytes = self.limit_bytes.max(self.share_bytes);
    }

    /// Gives back free frames that are beyond the limit and not reserved.
    pub(crate) fn give_frames_back(&mut self) {
        let kept = self.chunks_for(self.reserved) + self.ahead();
        while self.ring.used() + self.ring.ready() > self.chunks() && self.ring.ready() > kept {
            self.ring.give_back();
        }
    }
}

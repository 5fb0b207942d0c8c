//! The share of the memory that records have, and the frames that they give back.

use super::cache::RecordCache;
use super::cost::{LEAST_COST, kept_to_remove};
use super::division::{Division, WATCHED_PART};
use fulgurite_pool::{Departed, Departures};

/// Of what records may have, one in so many bytes stays theirs: commits need some.
const LEAST_PART: u64 = 16;
/// Per cent of what records may have that they begin with.
const FIRST_SHARE: u64 = 60;

impl RecordCache {
    /// Whether the memory should be divided anew. `left` pages have left the pool so far.
    pub fn is_division_due(&mut self, left: u64) -> bool {
        self.division.is_due(left)
    }

    pub fn begin_to_divide(&mut self, margin: u64) {
        let chunk_bytes = self.ring.chunk_bytes() as u64;
        let watched = (margin * chunk_bytes / LEAST_COST / WATCHED_PART) as usize;
        let departed = || Departed::new(margin * chunk_bytes, watched.max(1));
        self.division =
            Division { margin, chunk_bytes, records: departed(), leaves: departed(), ..Division::fixed() };
        self.share_bytes = (self.most_bytes / 100 * FIRST_SHARE).max(self.bytes()).min(self.most_bytes);
        self.limit_bytes = self.share_bytes;
        self.give_frames_back();
    }

    pub fn divide(&mut self, pool: (Departures, u64), times: u64) {
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
        // What is here, or was promised, keeps its room, beside which some is for those that take records away. Entries go meanwhile, and the
        // next look goes further.
        let held = self.held(self.promised);
        let beside = kept_to_remove(held).max(2 * self.chunk_cost());
        self.limit_bytes = limit.max((held + beside).min(self.limit_bytes));
        self.give_frames_back();
    }

    /// Somebody brings records: they may have their whole share again.
    pub fn wake(&mut self) {
        self.limit_bytes = self.limit_bytes.max(self.share_bytes);
    }

    /// Gives back frames that records may not have any longer, as far as they are empty and not promised.
    pub fn give_frames_back(&mut self) {
        let kept = self.chunks_for(self.promised) + self.ahead();
        while self.ring.used() + self.ring.ready() > self.chunks() && self.ring.ready() > kept {
            self.ring.give_back();
        }
    }
}

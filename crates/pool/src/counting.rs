//! A miss counter: it counts the misses and writes of a pool, without a drive and without time, with the same
//! policies and tables as a pool.
//!
//! Requests are given in slices, so that the memory for a later request can be fetched into the processor's
//! cache while earlier requests are served: first the home slot of its page (where the look-up in the page
//! table begins), then the frame in this slot with its list link.

use crate::counters::PoolCounters;
use crate::page_table::PageTable;
use crate::replacement::dispatch;
use crate::write_back::Plan;
use crate::{Arrival, Cursor, FrameTable, Replacement, ReplacementPolicy, WriteBack};
use fulgurite_base::{FrameId, PageId};

/// The distance, in requests, at which the home slot of a page is fetched, and the distance for its frame.
const SLOTS_AHEAD: usize = 24;
const FRAMES_AHEAD: usize = 8;

/// A pool that only counts: a write ends as soon as it begins.
pub struct MissCounter {
    replacement: Replacement,
    rest: Rest,
}

/// The parts of the counter other than the replacement policy.
struct Rest {
    frames: FrameTable,
    table: PageTable,
    write_back: WriteBack,
    /// The number of frames in use. Frames are taken in order and never freed.
    used: u32,
    plan: Plan,
    cursor: Cursor,
    counters: PoolCounters,
}

impl MissCounter {
    /// Creates an empty pool of `frames` frames, at least one. Only the batch size of the write-back policy
    /// matters here, because no miss waits without time.
    pub fn new(frames: u32, replacement: Replacement, write_back: WriteBack) -> MissCounter {
        assert!(frames > 0, "a pool needs at least one frame");
        let rest = Rest {
            frames: FrameTable::new(frames),
            table: PageTable::new(frames),
            write_back,
            used: 0,
            plan: Plan::default(),
            cursor: Cursor::default(),
            counters: PoolCounters::default(),
        };
        MissCounter { replacement, rest }
    }

    /// Serves requests, each with its page and with whether it changes the page.
    pub fn request_all(&mut self, requests: &[(PageId, bool)]) {
        let MissCounter { replacement, rest } = self;
        dispatch!(
            replacement,
            policy => rest.serve(policy, requests),
            custom policy => rest.serve(&mut **policy, requests)
        );
    }

    /// Returns the counters.
    pub fn counters(&self) -> PoolCounters {
        self.rest.counters
    }
}

impl Rest {
    fn serve(&mut self, policy: &mut (impl ReplacementPolicy + ?Sized), requests: &[(PageId, bool)]) {
        for (at, (page, write)) in requests.iter().enumerate() {
            if let Some((page, _)) = requests.get(at + SLOTS_AHEAD) {
                self.table.prefetch(*page);
            }
            // The home slot was fetched sixteen requests ago, so the guess does not wait for memory.
            if let Some(frame) = requests.get(at + FRAMES_AHEAD).and_then(|(page, _)| self.table.guess(*page))
            {
                self.frames.prefetch(frame);
                policy.prefetch(frame);
            }
            match self.table.get(*page, |frame| self.frames.page(FrameId(frame))) {
                Some(frame) => {
                    let frame = FrameId(frame);
                    self.counters.hits += 1;
                    policy.access(frame, *write);
                    if *write {
                        self.frames.set_dirty(frame, true);
                    }
                }
                None => self.miss(policy, *page, *write),
            }
        }
    }

    fn miss(&mut self, policy: &mut (impl ReplacementPolicy + ?Sized), page: PageId, write: bool) {
        self.counters.misses += 1;
        self.counters.read_ios += 1;
        self.counters.pages_read += 1;
        let recall = policy.miss(page);
        let frame = match self.used < self.frames.len() {
            true => {
                self.used += 1;
                FrameId(self.used - 1)
            }
            false => self.evict(policy),
        };
        self.frames.load(frame, page);
        self.frames.set_dirty(frame, write);
        self.table.insert(page, frame.0);
        policy.insert(frame, page, Arrival { write, prefetched: false, recall });
    }

    fn evict(&mut self, policy: &mut (impl ReplacementPolicy + ?Sized)) -> FrameId {
        let frames = &mut self.frames;
        // Without batches only the victim frame is written, so the eviction order need not be read.
        if self.write_back.batches {
            self.cursor.reset();
            let order = std::iter::from_fn(|| policy.next(frames, &mut self.cursor));
            self.write_back.plan(order, frames, &mut self.plan);
            if !self.plan.write.is_empty() {
                policy.written_ahead(frames, &self.plan.write);
                for frame in &self.plan.write {
                    frames.set_dirty(*frame, false);
                    policy.cleaned(*frame);
                }
                self.counters.write_ios += 1;
                self.counters.pages_written += self.plan.write.len() as u64;
            }
        }
        let victim = policy.evict(frames).expect("no frame is pinned");
        if frames.is_dirty(victim) {
            self.counters.write_ios += 1;
            self.counters.pages_written += 1;
        }
        self.table.remove(frames.page(victim), |frame| frames.page(FrameId(frame)));
        // The next miss probably evicts this frame, so its memory is fetched now.
        if let Some(next) = policy.likely_victim() {
            frames.prefetch(next);
            policy.prefetch(next);
        }
        victim
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReplacementConfig;

    /// The rule: each miss reads one page with one command, and each evicted dirty page is written with one
    /// command.
    #[test]
    fn reads_and_writes_are_counted() {
        let replacement = "lru".parse::<ReplacementConfig>().unwrap().start(2).unwrap();
        let mut counter = MissCounter::new(2, replacement, WriteBack::SINGLE);
        counter.request_all(
            &[(1, true), (2, false), (1, false), (3, true), (4, false)]
                .map(|(page, write)| (PageId(page), write)),
        );
        let expected = PoolCounters {
            hits: 1,
            misses: 4,
            read_ios: 4,
            pages_read: 4,
            write_ios: 1,
            pages_written: 1,
            ..PoolCounters::default()
        };
        assert_eq!(counter.counters(), expected);
    }
}

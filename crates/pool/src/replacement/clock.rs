//! Clock sweep: a hand circles over the frames and decrements their usage counts until it finds a count of
//! zero.
//!
//! As in PostgreSQL's buffer manager (`src/backend/storage/buffer/freelist.c`), a page is read in with a
//! usage count of 1, every use adds one up to 5, and the hand skips pinned frames without changing them. The
//! order of the frames in the circle never changes, so a hit writes one byte. If all counts are at least n,
//! an eviction costs n full rounds; amortised O(max). `max=1,initial=0` is the textbooks' clock.

use super::policy::{Arrival, Cursor, ReplacementPolicy};
use crate::FrameTable;
use fulgurite_base::option::COUNT_16;
use fulgurite_base::{Declared, FrameId, Opt, PageId, SpecError, opt};

/// The mark of a frame that holds no page, in place of a usage count.
const EMPTY: u8 = u8::MAX;

/// The greatest usage count that a frame with a page can have.
const MOST_USES: u16 = EMPTY as u16 - 1;

/// The options of the policy `clock`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockConfig {
    /// The greatest usage count.
    pub max: u16,
    /// The usage count of a page that is read in.
    pub initial: u16,
}

impl Default for ClockConfig {
    fn default() -> ClockConfig {
        ClockConfig { max: 5, initial: 1 }
    }
}

impl Declared for ClockConfig {
    const OPTIONS: &'static [Opt<ClockConfig>] = &[
        opt!("max", max, COUNT_16, 1 => MOST_USES, "greatest usage count"),
        opt!("initial", initial, COUNT_16, 0 => MOST_USES, "usage count of a page that is read in, up to max"),
    ];
}

/// The usage count of each frame, and the hand.
pub struct Clock {
    counts: Vec<u8>,
    hand: u32,
    initial: u8,
    max: u8,
}

impl Clock {
    pub(super) fn new(config: &ClockConfig, frames: u32) -> Result<Clock, SpecError> {
        let ClockConfig { max, initial } = *config;
        if max == 0 || max > MOST_USES || initial > max {
            return Err(SpecError::new(format!(
                "initial={initial} and max={max} contradict each other; accepted: max from 1 to {MOST_USES}, \
                 initial up to max"
            )));
        }
        // A usage count is one byte, so that a hit touches little memory.
        Ok(Clock { counts: vec![EMPTY; frames as usize], hand: 0, initial: initial as u8, max: max as u8 })
    }

    #[inline]
    fn after(&self, frame: u32) -> u32 {
        if frame + 1 == self.counts.len() as u32 { 0 } else { frame + 1 }
    }
}

impl ReplacementPolicy for Clock {
    #[inline]
    fn insert(&mut self, frame: FrameId, _: PageId, arrival: Arrival) {
        self.counts[frame.index()] = if arrival.prefetched { 0 } else { self.initial };
    }

    #[inline]
    fn access(&mut self, frame: FrameId, _: bool) {
        let count = &mut self.counts[frame.index()];
        *count += u8::from(*count < self.max);
    }

    fn remove(&mut self, frame: FrameId) {
        self.counts[frame.index()] = EMPTY;
    }

    /// Reads the order without evicting. Each round returns the frames whose usage count equals `step`.
    fn next(&self, frames: &FrameTable, cursor: &mut Cursor) -> Option<FrameId> {
        let all = self.counts.len() as u32;
        while cursor.step <= u64::from(self.max) {
            while cursor.counts[0] < all {
                let frame = (self.hand + cursor.counts[0]) % all;
                cursor.counts[0] += 1;
                // The mark of an empty frame is above `max`, so no round returns such a frame.
                if u64::from(self.counts[frame as usize]) == cursor.step && !frames.is_pinned(FrameId(frame))
                {
                    return Some(FrameId(frame));
                }
            }
            cursor.step += 1;
            cursor.counts[0] = 0;
        }
        None
    }

    #[inline]
    fn evict(&mut self, frames: &FrameTable) -> Option<FrameId> {
        let all = self.counts.len() as u32;
        // If a full round finds only empty and pinned frames, there is no victim.
        let mut vain = 0;
        while vain < all {
            let frame = self.hand;
            self.hand = self.after(frame);
            let count = &mut self.counts[frame as usize];
            if *count == EMPTY || frames.is_pinned(FrameId(frame)) {
                vain += 1;
            } else if *count == 0 {
                *count = EMPTY;
                return Some(FrameId(frame));
            } else {
                *count -= 1;
                // The lower count may make this frame a victim in the next round, so the search goes on.
                vain = 0;
            }
        }
        None
    }

    #[inline]
    fn prefetch(&self, frame: u32) {
        fulgurite_base::prefetch(&self.counts, frame as usize);
    }
}

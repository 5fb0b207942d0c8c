//! Clock sweep: a hand goes round the frames and takes away one use from each until it meets one with
//! none left.
//!
//! As in PostgreSQL's buffer manager (`src/backend/storage/buffer/freelist.c`): a page comes in with a
//! usage count of 1, every use adds one up to 5, the hand passes pinned frames over as they are. The
//! frames stand in a circle for ever, so a hit is one byte. An eviction costs a full round for each
//! count that all pages share, amortised O(max). `max=1,initial=0` is the textbooks' clock.

use super::{Arrival, Cursor, ReplacementPolicy};
use crate::FrameTable;
use fulgurite_base::{FrameId, PageId, Spec, SpecError};

/// The count of a frame that holds no page.
const EMPTY: u8 = u8::MAX;

/// Usage counts and the hand.
pub struct Clock {
    counts: Vec<u8>,
    hand: u32,
    initial: u8,
    max: u8,
}

impl Clock {
    pub(super) fn from_spec(spec: &mut Spec, frames: u32) -> Result<Clock, SpecError> {
        let max = spec.take::<u32>("max")?.unwrap_or(5);
        let initial = spec.take::<u32>("initial")?.unwrap_or(1.min(max));
        if max == 0 || max >= u32::from(EMPTY) || initial > max {
            return Err(SpecError::new(format!(
                "max={max},initial={initial} of clock; accepted: max from 1 to 254, initial up to max"
            )));
        }
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

    /// In the round `step` leave the frames whose count is just that.
    fn next(&self, frames: &FrameTable, cursor: &mut Cursor) -> Option<FrameId> {
        let all = self.counts.len() as u32;
        while cursor.step <= u64::from(self.max) {
            while cursor.counts[0] < all {
                let frame = (self.hand + cursor.counts[0]) % all;
                cursor.counts[0] += 1;
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
        // After a full round without a page that could leave, there is none.
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

//! The parameters of a write-back policy, and the plans that follow from them for a miss and for the cleaner.

use crate::{Cursor, FrameTable, Replacement, ReplacementPolicy};
use fulgurite_base::{FrameId, SpecError};

/// A plan: the writes and evictions for a miss in a full pool, or the writes of the cleaner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The dirty frames to write together, in eviction order.
    pub(crate) write: Vec<FrameId>,
    /// The frame to evict; `None` if every frame is pinned.
    pub(crate) evict: Option<FrameId>,
    /// The number of further frames that may be evicted for prefetching.
    pub(crate) prefetch: u32,
}

/// A replacement policy's eviction order, read lazily.
pub(crate) struct Order<'a> {
    replacement: &'a Replacement,
    frames: &'a FrameTable,
    cursor: &'a mut Cursor,
}

impl<'a> Order<'a> {
    /// Starts reading the current eviction order. Resets `cursor` first.
    pub(crate) fn new(
        replacement: &'a Replacement,
        frames: &'a FrameTable,
        cursor: &'a mut Cursor,
    ) -> Order<'a> {
        cursor.reset();
        Order { replacement, frames, cursor }
    }
}

impl Iterator for Order<'_> {
    type Item = FrameId;

    #[inline]
    fn next(&mut self) -> Option<FrameId> {
        self.replacement.next(self.frames, self.cursor)
    }
}

/// Throughput over queue depth: pairs of a queue depth, in rising order, and requests per second.
pub type Curve = Vec<(u32, f64)>;

/// A drive that can be measured. A measurement may take long, so a policy asks only for the values that its
/// options do not set.
pub trait MeasuredDrive {
    /// Returns the drive's write concurrency: the number of writes that the drive executes at once.
    fn k_w(&mut self) -> Result<u32, SpecError>;

    /// Returns the drive's throughput curves for reads and for writes of one page.
    fn curves(&mut self) -> Result<[Curve; 2], SpecError>;
}

/// A closure is a drive whose write concurrency is known and nothing else.
impl<F: FnMut() -> Result<u32, SpecError>> MeasuredDrive for F {
    fn k_w(&mut self) -> Result<u32, SpecError> {
        self()
    }

    fn curves(&mut self) -> Result<[Curve; 2], SpecError> {
        Err(SpecError::new(
            "the write-back policy auto needs the drive's curves; accepted: one like ace:n_w=8",
        ))
    }
}

/// The parameters of a write-back policy for one drive: the settings of the mechanism.
#[derive(Clone, Debug)]
pub struct WriteBack {
    /// Whether ACE's rules apply: a miss on a dirty victim writes the first `n_w` dirty frames of the
    /// eviction order, and pages are prefetched only beside such a batch, into the frames that the miss has
    /// evicted.
    pub batches: bool,
    /// The number of dirty frames that a miss writes together.
    pub n_w: u32,
    /// The number of frames that a miss evicts together when pages are prefetched.
    pub n_e: u32,
    /// The most spare frames. With 0, a miss on a dirty victim waits for its write.
    pub buffers: u32,
    /// The least number of spare frames. More frames become spare, up to `buffers`, while writes need them.
    pub buffers_least: u32,
    /// The most pages that all misses together may have under write. A batch is cut to what this bound
    /// leaves, and a miss waits if the bound leaves nothing.
    pub under_way: u32,
    /// The number of frames at the head of the eviction order that the cleaner keeps clean; 0 if there is no
    /// cleaner.
    pub ahead: u32,
    /// The number of frames that the cleaner writes together.
    pub cleaner_n_w: u32,
    /// Whether no other miss evicts while a miss waits for its write.
    pub lock: bool,
}

impl WriteBack {
    /// The policy that writes only the victim frame, waits for the write, and evicts the frame.
    pub const SINGLE: WriteBack = WriteBack {
        batches: false,
        n_w: 1,
        n_e: 1,
        buffers: 0,
        buffers_least: 0,
        under_way: u32::MAX,
        ahead: 0,
        cleaner_n_w: 0,
        lock: false,
    };

    /// Returns ACE with batches of `n_w` frames, and as many evictions when pages are prefetched.
    pub const fn ace(n_w: u32) -> WriteBack {
        WriteBack { batches: true, n_w, n_e: n_w, ..WriteBack::SINGLE }
    }

    /// Returns the same policy with exactly `buffers` spare frames.
    pub fn with_buffers(self, buffers: u32) -> WriteBack {
        WriteBack { buffers, buffers_least: buffers, ..self }
    }

    /// Returns the most pages that a miss or the cleaner writes together.
    pub fn batch_pages(&self) -> u32 {
        self.n_w.max(self.cleaner_n_w)
    }

    /// Plans the writes and evictions of a miss, given the frames in eviction order. Clears `plan` first.
    pub(crate) fn plan(
        &self,
        mut order: impl Iterator<Item = FrameId>,
        frames: &FrameTable,
        plan: &mut Plan,
    ) {
        plan.write.clear();
        // ACE prefetches only together with a batch, the other policies with every read.
        plan.prefetch = if self.batches { 0 } else { u32::MAX };
        plan.evict = order.next();
        let Some(victim) = plan.evict else { return };
        if !frames.is_dirty(victim) {
            return;
        }
        plan.write.push(victim);
        if self.batches {
            // The victim frame is one of the `n_e` evicted and one of the `n_w` written frames.
            plan.prefetch = self.n_e - 1;
            plan.write.extend(order.filter(|frame| frames.is_dirty(*frame)).take(self.n_w as usize - 1));
        }
    }

    /// Plans the cleaner's next batch. `plan.write` stays empty if the first `ahead` frames are all clean.
    pub(crate) fn plan_cleaning(
        &self,
        order: impl Iterator<Item = FrameId>,
        frames: &FrameTable,
        plan: &mut Plan,
    ) {
        plan.write.clear();
        let ahead = order.take(self.ahead as usize);
        let dirty = ahead.filter(|frame| frames.is_dirty(*frame));
        plan.write.extend(dirty.take(self.cleaner_n_w as usize));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the writes, the eviction and the evictions for prefetching of a plan. `dirty` tells for each
    /// frame of the order whether it is dirty.
    fn planned(write_back: &WriteBack, dirty: &[bool]) -> (Vec<u32>, Option<u32>, u32) {
        let (frames, order) = frames(dirty);
        let mut plan = Plan { write: vec![FrameId(99)], ..Plan::default() };
        write_back.plan(order, &frames, &mut plan);
        (plan.write.iter().map(|frame| frame.0).collect(), plan.evict.map(|frame| frame.0), plan.prefetch)
    }

    fn frames(dirty: &[bool]) -> (FrameTable, impl Iterator<Item = FrameId>) {
        let mut frames = FrameTable::new(dirty.len() as u32);
        for (frame, dirty) in (0..).map(FrameId).zip(dirty) {
            frames.set_dirty(frame, *dirty);
        }
        (frames, (0..dirty.len() as u32).map(FrameId))
    }

    /// The rule: ACE prefetches only together with a batch, into the n_e - 1 frames that follow the victim in
    /// the eviction order.
    #[test]
    fn ace_plans_a_batch_for_a_dirty_victim_and_nothing_for_a_clean_one() {
        let ace = WriteBack { n_e: 3, ..WriteBack::ace(4) };
        assert_eq!(planned(&ace, &[true, false, true, true, true, true]), (vec![0, 2, 3, 4], Some(0), 2));
        assert_eq!(planned(&ace, &[true, false]), (vec![0], Some(0), 2));
        assert_eq!(planned(&ace, &[false, true, true]), (vec![], Some(0), 0));
        assert_eq!(planned(&ace, &[]), (vec![], None, 0));
        assert_eq!(planned(&WriteBack::SINGLE, &[true, true]), (vec![0], Some(0), u32::MAX));
        assert_eq!(planned(&WriteBack::SINGLE, &[false, true]), (vec![], Some(0), u32::MAX));
    }

    /// The rule: the cleaner examines the first `ahead` frames of the eviction order and writes the first n_w
    /// dirty ones of them.
    #[test]
    fn the_cleaner_looks_at_the_configured_number_of_frames() {
        let cleaned = |n_w: u32, dirty: &[bool]| {
            let (frames, order) = frames(dirty);
            let mut plan = Plan { write: vec![FrameId(99)], ..Plan::default() };
            let cleaner = WriteBack { ahead: 3, cleaner_n_w: n_w, ..WriteBack::SINGLE };
            cleaner.plan_cleaning(order, &frames, &mut plan);
            plan.write.iter().map(|frame| frame.0).collect::<Vec<u32>>()
        };
        assert_eq!(cleaned(8, &[true; 6]), [0, 1, 2]);
        assert_eq!(cleaned(2, &[true; 6]), [0, 1]);
        assert_eq!(cleaned(8, &[false, true, false, true]), [1]);
        assert_eq!(cleaned(8, &[false, false, false, true]), []);
    }
}

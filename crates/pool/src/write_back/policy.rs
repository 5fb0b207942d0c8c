//! The mechanism that all write-back policies share, and the decisions that it takes for a miss and for the cleaner.

use crate::{Cursor, FrameTable, Replacement, ReplacementPolicy};
use fulgurite_base::{FrameId, SpecError};

/// What the pool shall do for a miss in a full pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Dirty frames to write together, in eviction order.
    pub write: Vec<FrameId>,
    /// The frame to evict; `None` where every frame is in use.
    pub evict: Option<FrameId>,
    /// How many more frames may be evicted for pages to prefetch.
    pub prefetch: u32,
}

/// A replacement policy's eviction order, read lazily.
pub struct Order<'a> {
    replacement: &'a Replacement,
    frames: &'a FrameTable,
    cursor: &'a mut Cursor,
}

impl<'a> Order<'a> {
    /// The order as it is now. `cursor` is reset first.
    pub fn new(replacement: &'a Replacement, frames: &'a FrameTable, cursor: &'a mut Cursor) -> Order<'a> {
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

/// Throughput over requests in flight: pairs of a number in flight, in rising order, and requests per second.
pub type Curve = Vec<(u32, f64)>;

/// What a policy may ask about the drive that it is for. Answers may take long: each is asked for only where the
/// policy was not told the number that follows from it.
pub trait MeasuredDrive {
    /// The drive's write concurrency.
    fn k_w(&mut self) -> Result<u32, SpecError>;

    /// Its curves of reads and of writes of one page.
    fn curves(&mut self) -> Result<[Curve; 2], SpecError>;
}

/// A drive of which the write concurrency alone is known.
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

/// A write-back policy for a drive: a point in the mechanism's space.
#[derive(Clone, Debug)]
pub struct WriteBack {
    /// Whether ACE's rules apply: a miss looks for `n_w` dirty frames along the eviction order, and pages are prefetched
    /// only beside a batch, into the frames that the miss has dropped.
    pub batches: bool,
    /// Dirty frames that a miss writes together.
    pub n_w: u32,
    /// Frames that a miss drops together where pages are prefetched.
    pub n_e: u32,
    /// Spare frames at most for pages whose write is under way; with none, a miss waits for its write.
    pub buffers: u32,
    /// Spare frames that are kept whatever happens. Up to `buffers`, others are taken from the pool as writes under way
    /// need them, and given back when they no longer do.
    pub buffers_least: u32,
    /// Pages whose write is under way at most when a miss begins one; all misses share this. A batch is as large as that
    /// leaves, and a miss to which nothing is left waits.
    pub under_way: u32,
    /// Frames at the head of the eviction order that the cleaner keeps clean; none without a cleaner.
    pub ahead: u32,
    /// Frames that the cleaner writes together.
    pub cleaner_n_w: u32,
    /// Whether a miss that waits for its write keeps all other misses from evicting until that has ended.
    pub lock: bool,
}

impl WriteBack {
    /// Write the one victim frame, wait, evict it.
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

    /// ACE with batches of `n_w`, and as many evictions where pages are prefetched.
    pub const fn ace(n_w: u32) -> WriteBack {
        WriteBack { batches: true, n_w, n_e: n_w, ..WriteBack::SINGLE }
    }

    /// The same with spare frames, always as many.
    pub fn with_buffers(self, buffers: u32) -> WriteBack {
        WriteBack { buffers, buffers_least: buffers, ..self }
    }

    /// The pages that are written together, by a miss or by the cleaner.
    pub fn batch_pages(&self) -> u32 {
        self.n_w.max(self.cleaner_n_w)
    }

    /// Decides, given the frames in eviction order. `plan` is cleared first.
    pub fn plan(&self, mut order: impl Iterator<Item = FrameId>, frames: &FrameTable, plan: &mut Plan) {
        plan.write.clear();
        // ACE prefetches only when it has written a batch; the others whenever they read.
        plan.prefetch = if self.batches { 0 } else { u32::MAX };
        plan.evict = order.next();
        let Some(victim) = plan.evict else { return };
        if !frames.is_dirty(victim) {
            return;
        }
        plan.write.push(victim);
        if self.batches {
            // The victim frame is one of the `n_e` and of the `n_w` frames.
            plan.prefetch = self.n_e - 1;
            plan.write.extend(order.filter(|frame| frames.is_dirty(*frame)).take(self.n_w as usize - 1));
        }
    }

    /// The cleaner's next batch: `plan.write` is left empty where all frames ahead are clean.
    pub fn plan_cleaning(&self, order: impl Iterator<Item = FrameId>, frames: &FrameTable, plan: &mut Plan) {
        plan.write.clear();
        let ahead = order.take(self.ahead as usize);
        let dirty = ahead.filter(|frame| frames.is_dirty(*frame));
        plan.write.extend(dirty.take(self.cleaner_n_w as usize));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a plan writes, evicts and prefetches: `dirty` says of each frame of the order whether it is dirty.
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

    /// The rule: ACE prefetches beside a batch, into the n_e - 1 frames that follow the victim, and never otherwise.
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

    /// The rule: the cleaner looks at `ahead` frames and at no more, and writes the first n_w dirty ones of them.
    #[test]
    fn the_cleaner_looks_as_far_ahead_as_it_is_told() {
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

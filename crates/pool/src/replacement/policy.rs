//! The interface of a replacement policy, and the values that it exchanges with the pool.

use crate::FrameTable;
use fulgurite_base::{FrameId, PageId};
use std::collections::VecDeque;

/// A replacement policy: a virtual eviction order over the frames that hold pages.
///
/// The order law: evicting until nothing is left gives the frames in exactly the order in which
/// [`ReplacementPolicy::next`] gave them beforehand. It is a property test over every policy.
/// A pool may move between threads, so a policy must be able to.
pub trait ReplacementPolicy: Send {
    /// `page` was asked for and is not in the pool: room is made for it, and then it is inserted.
    /// Policies that remember pages which have left look here; what they return comes with the arrival.
    fn miss(&mut self, _page: PageId) -> Recall {
        Recall::default()
    }

    /// `frame` now holds `page`.
    fn insert(&mut self, frame: FrameId, page: PageId, arrival: Arrival);

    /// The page in `frame` was asked for again.
    fn access(&mut self, frame: FrameId, write: bool);

    /// The page in `frame` was written back and stays.
    fn cleaned(&mut self, _frame: FrameId) {}

    /// The dirty frames of `batch`, in eviction order, are about to be written ahead of their turn.
    fn written_ahead(&mut self, _frames: &FrameTable, _batch: &[FrameId]) {}

    /// `frame` no longer holds a page, for a reason that is not this policy's.
    fn remove(&mut self, frame: FrameId);

    /// The next unpinned frame in eviction order, from `cursor` on; changes only the cursor.
    fn next(&self, frames: &FrameTable, cursor: &mut Cursor) -> Option<FrameId>;

    /// Takes the first frame of the order out of it.
    fn evict(&mut self, frames: &FrameTable) -> Option<FrameId> {
        let frame = self.next(frames, &mut Cursor::default())?;
        self.remove(frame);
        Some(frame)
    }

    /// Whether the policy asks how often erase blocks were erased, which not every drive can tell.
    fn needs_erase_counts(&self) -> bool {
        false
    }

    /// Begins to fetch what [`ReplacementPolicy::access`] will touch.
    #[inline]
    fn prefetch(&self, _frame: u32) {}

    /// A frame that may well leave next: a hint of what to fetch, and no promise.
    #[inline]
    fn likely_victim(&self) -> Option<u32> {
        None
    }
}

/// What a policy remembers of a page that is not in the pool; its own code, zero for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recall(pub u8);

/// How a page comes into the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// It was asked for to be changed.
    pub write: bool,
    /// It was not asked for yet, so it enters where it would leave next.
    pub prefetched: bool,
    /// What [`ReplacementPolicy::miss`] returned.
    pub recall: Recall,
}

/// How far a reader of an eviction order has come. Policies use the fields as they like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Zero before the first frame.
    pub step: u64,
    /// Places in the policy's structures.
    pub places: [Option<u32>; 3],
    /// Numbers.
    pub counts: [u32; 3],
    /// Frames that the order comes back to, each with a number.
    pub queue: VecDeque<(u32, u32)>,
}

impl Cursor {
    /// Back to before the first frame.
    pub fn reset(&mut self) {
        // The queue keeps its memory, because a cursor is reset for every miss.
        let mut queue = std::mem::take(&mut self.queue);
        queue.clear();
        *self = Cursor { queue, ..Cursor::default() };
    }
}

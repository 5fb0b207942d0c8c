//! The interface between a replacement policy and the pool.

use crate::FrameTable;
use fulgurite_base::{FrameId, PageId};
use std::collections::VecDeque;

/// A replacement policy: a virtual eviction order over the frames that hold pages.
///
/// The order law: evicting until nothing is left gives the frames in exactly the order in which
/// [`ReplacementPolicy::next`] gave them before. A property test checks it for every policy. A pool may move
/// between threads, so a policy must be `Send`.
pub trait ReplacementPolicy: Send {
    /// A request for `page` missed. The pool will make room and then insert the page. A policy that remembers
    /// evicted pages looks the page up here; its result is passed on in the [`Arrival`].
    fn miss(&mut self, _page: PageId) -> Recall {
        Recall::default()
    }

    /// `frame` now holds `page`.
    fn insert(&mut self, frame: FrameId, page: PageId, arrival: Arrival);

    /// The page in `frame` was requested again.
    fn access(&mut self, frame: FrameId, write: bool);

    /// The page in `frame` was written back and stays in the pool.
    fn cleaned(&mut self, _frame: FrameId) {}

    /// The dirty frames of `batch`, in eviction order, are about to be written before their eviction.
    fn written_ahead(&mut self, _frames: &FrameTable, _batch: &[FrameId]) {}

    /// `frame` lost its page for a reason other than an eviction by this policy.
    fn remove(&mut self, frame: FrameId);

    /// The next unpinned frame in eviction order after `cursor`. It changes only the cursor.
    fn next(&self, frames: &FrameTable, cursor: &mut Cursor) -> Option<FrameId>;

    /// Removes the first frame of the eviction order and returns it.
    fn evict(&mut self, frames: &FrameTable) -> Option<FrameId> {
        let frame = self.next(frames, &mut Cursor::default())?;
        self.remove(frame);
        Some(frame)
    }

    /// Whether the policy needs the erase counts of erase blocks, which not every drive reports.
    fn needs_erase_counts(&self) -> bool {
        false
    }

    /// Begins to fetch the memory that [`ReplacementPolicy::access`] will use.
    #[inline]
    fn prefetch(&self, _frame: u32) {}

    /// A frame that is probably evicted next: a hint for fetching its memory.
    #[inline]
    fn likely_victim(&self) -> Option<u32> {
        None
    }
}

/// A policy's memory of an evicted page, in the policy's own code; zero if it remembers nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recall(pub u8);

/// How a page is inserted into the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// It was requested for changing.
    pub write: bool,
    /// It was not requested yet, so it is inserted at the head of the eviction order.
    pub prefetched: bool,
    /// The result of [`ReplacementPolicy::miss`].
    pub recall: Recall,
}

/// The position of a reader in an eviction order. Each policy gives the fields its own meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Zero before the first frame.
    pub step: u64,
    /// Places in the policy's structures.
    pub places: [Option<u32>; 3],
    /// Numbers.
    pub counts: [u32; 3],
    /// Frames that the order returns to later, each with a number.
    pub queue: VecDeque<(u32, u32)>,
}

impl Cursor {
    /// Moves back to before the first frame.
    pub fn reset(&mut self) {
        // The queue keeps its memory, because a cursor is reset for every miss.
        let mut queue = std::mem::take(&mut self.queue);
        queue.clear();
        *self = Cursor { queue, ..Cursor::default() };
    }
}

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
    /// Handles a miss on `page`. The pool will make room and then insert the page. A policy that remembers
    /// evicted pages looks the page up here; the returned result is passed on in the [`Arrival`].
    fn miss(&mut self, _page: PageId) -> Recall {
        Recall::default()
    }

    /// Adds `frame`, which now holds `page`, to the eviction order.
    fn insert(&mut self, frame: FrameId, page: PageId, arrival: Arrival);

    /// Handles a further request for the page in `frame`. With `write`, the request changes the page.
    fn access(&mut self, frame: FrameId, write: bool);

    /// Handles the write-back of the page in `frame`, which is now clean and stays in the pool.
    fn cleaned(&mut self, _frame: FrameId) {}

    /// Handles the batch of dirty frames that are about to be written before their eviction, in eviction
    /// order.
    fn written_ahead(&mut self, _frames: &FrameTable, _batch: &[FrameId]) {}

    /// Removes `frame`, which lost its page for a reason other than an eviction by this policy.
    fn remove(&mut self, frame: FrameId);

    /// Returns the next unpinned frame in eviction order after `cursor`. Changes only the cursor.
    fn next(&self, frames: &FrameTable, cursor: &mut Cursor) -> Option<FrameId>;

    /// Removes the first frame of the eviction order and returns it.
    fn evict(&mut self, frames: &FrameTable) -> Option<FrameId> {
        let frame = self.next(frames, &mut Cursor::default())?;
        self.remove(frame);
        Some(frame)
    }

    /// Returns whether the policy needs the erase counts of erase blocks, which not every drive reports.
    fn needs_erase_counts(&self) -> bool {
        false
    }

    /// Begins to fetch the memory that [`ReplacementPolicy::access`] will use into the processor's cache.
    #[inline]
    fn prefetch(&self, _frame: u32) {}

    /// Returns a frame that is probably evicted next, as a hint for fetching its memory.
    #[inline]
    fn likely_victim(&self) -> Option<u32> {
        None
    }
}

/// The policy's memory of an evicted page, encoded as the policy chooses; zero if it remembers nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recall(pub u8);

/// The way in which a page arrives in the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Whether the page was requested for changing.
    pub write: bool,
    /// Whether the page was prefetched and not requested yet, so that it is inserted at the head of the
    /// eviction order.
    pub prefetched: bool,
    /// The result of [`ReplacementPolicy::miss`] for this page.
    pub recall: Recall,
}

/// The position of a reader in an eviction order. Each policy gives the fields its own meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// A phase of the order, such as a round; zero before the first frame.
    pub step: u64,
    /// Positions in the policy's lists; `None` before the first frame of a list.
    pub places: [Option<u32>; 3],
    /// Counts of frames that the policy needs.
    pub counts: [u32; 3],
    /// Frames that the order returns to later, each with a number.
    pub queue: VecDeque<(u32, u32)>,
}

impl Cursor {
    /// Moves the cursor back to the position before the first frame.
    pub fn reset(&mut self) {
        // The queue keeps its allocation, because a cursor is reset for every miss.
        let mut queue = std::mem::take(&mut self.queue);
        queue.clear();
        *self = Cursor { queue, ..Cursor::default() };
    }
}

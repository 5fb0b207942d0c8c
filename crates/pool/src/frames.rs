//! The frames: the page that each of them holds, its latch and its state of writing.

use fulgurite_base::{FrameId, PageId};

/// 16 bytes, so that a frame is a quarter of a cache line.
#[derive(Clone, Copy, Debug)]
struct Frame {
    page: PageId,
    /// Shared latches held, or [`EXCLUSIVE`].
    latches: u32,
    /// A set of [`FrameTable::WRITING`] and the other flags.
    flags: u32,
}

const EXCLUSIVE: u32 = u32::MAX;

/// Returns how often the erase block of a page was erased.
pub(crate) type EraseCounts = Box<dyn Fn(PageId) -> u64>;

/// Every frame of a pool, as policies see them.
pub struct FrameTable {
    frames: Vec<Frame>,
    /// One bit for each frame, because policies look at many at once.
    dirty: Vec<u64>,
    erase_counts: Option<EraseCounts>,
}

impl FrameTable {
    /// The page is being written: it may be read but not changed.
    pub(crate) const WRITING: u32 = 1;
    /// The write keeps the page in its frame, which cannot be evicted.
    pub(crate) const HELD: u32 = 2;
    /// The page was evicted during its write. It can still be found until the write has ended.
    pub(crate) const DETACHED: u32 = 4;
    /// The page was prefetched and not requested yet.
    pub(crate) const PREFETCHED: u32 = 8;
    /// A task waits for the latch. The latch is granted in order, and the page is not evicted.
    pub(crate) const CONTENDED: u32 = 16;

    /// `frames` empty, clean frames.
    pub fn new(frames: u32) -> FrameTable {
        FrameTable {
            frames: vec![Frame { page: PageId(u64::MAX), latches: 0, flags: 0 }; frames as usize],
            dirty: vec![0; (frames as usize).div_ceil(64)],
            erase_counts: None,
        }
    }

    /// How many frames there are.
    pub fn len(&self) -> u32 {
        self.frames.len() as u32
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// The page in `frame`.
    #[inline]
    pub fn page(&self, frame: FrameId) -> PageId {
        self.frames[frame.index()].page
    }

    /// Whether `frame` is in use, so that it cannot be evicted.
    #[inline]
    pub fn is_pinned(&self, frame: FrameId) -> bool {
        let frame = &self.frames[frame.index()];
        frame.latches > 0 || frame.flags & (Self::HELD | Self::CONTENDED) != 0
    }

    /// Whether the page in `frame` differs from the drive's copy and is not being written.
    #[inline]
    pub fn is_dirty(&self, frame: FrameId) -> bool {
        self.dirty[frame.index() / 64] >> (frame.index() % 64) & 1 == 1
    }

    /// [`FrameTable::is_dirty`] of the 64 frames from `64 * word` on, one bit each.
    #[inline]
    pub(crate) fn dirty_word(&self, word: usize) -> u64 {
        self.dirty[word]
    }

    /// How often the erase block of the page in `frame` was erased; 0 if the drive does not report it. A pool
    /// refuses policies that need it then.
    pub fn erases(&self, frame: FrameId) -> u64 {
        self.erase_counts.as_ref().map_or(0, |count| count(self.page(frame)))
    }

    pub(crate) fn set_erase_counts(&mut self, counts: EraseCounts) {
        self.erase_counts = Some(counts);
    }

    /// Puts `page` into `frame`, clean and unused.
    #[inline]
    pub fn load(&mut self, frame: FrameId, page: PageId) {
        self.frames[frame.index()] = Frame { page, latches: 0, flags: 0 };
        self.set_dirty(frame, false);
    }

    /// Marks the page in `frame` as dirty or clean.
    #[inline]
    pub fn set_dirty(&mut self, frame: FrameId, dirty: bool) {
        let (word, bit) = (&mut self.dirty[frame.index() / 64], frame.index() % 64);
        *word = *word & !(1 << bit) | u64::from(dirty) << bit;
    }

    #[inline]
    pub(crate) fn has(&self, frame: FrameId, flag: u32) -> bool {
        self.frames[frame.index()].flags & flag != 0
    }

    #[inline]
    pub(crate) fn set(&mut self, frame: FrameId, flag: u32) {
        self.frames[frame.index()].flags |= flag;
    }

    #[inline]
    pub(crate) fn clear(&mut self, frame: FrameId, flag: u32) {
        self.frames[frame.index()].flags &= !flag;
    }

    /// Begins to fetch `frame` into the cache.
    #[inline]
    pub(crate) fn prefetch(&self, frame: u32) {
        fulgurite_base::prefetch(&self.frames, frame as usize);
    }

    /// Takes the frame's latch, which pins the frame. Returns false and changes nothing if the latch is not
    /// available.
    #[inline]
    pub(crate) fn try_latch(&mut self, frame: FrameId, exclusive: bool) -> bool {
        let frame = &mut self.frames[frame.index()];
        frame.latches = match (frame.latches, exclusive) {
            (0, true) if frame.flags & Self::WRITING == 0 => EXCLUSIVE,
            // This arm also refuses to change a frame that is being written.
            (EXCLUSIVE, _) | (_, true) => return false,
            (shared, false) => shared + 1,
        };
        true
    }

    /// Whether a task may be changing the page in `frame`.
    pub(crate) fn is_latched_exclusively(&self, frame: FrameId) -> bool {
        self.frames[frame.index()].latches == EXCLUSIVE
    }

    /// Undoes one [`FrameTable::try_latch`]. Returns whether a task waits for the latch, and whether the
    /// frame is now unlatched.
    #[inline]
    pub(crate) fn unlatch(&mut self, frame: FrameId) -> (bool, bool) {
        let frame = &mut self.frames[frame.index()];
        assert!(frame.latches > 0, "a latch is released once");
        frame.latches = if frame.latches == EXCLUSIVE { 0 } else { frame.latches - 1 };
        (frame.flags & Self::CONTENDED != 0, frame.latches == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: loading a page makes its frame clean and unused.
    #[test]
    fn loading_a_page_makes_its_frame_clean_and_unused() {
        let mut frames = FrameTable::new(70);
        let frame = FrameId(65);
        frames.load(frame, PageId(1));
        frames.set_dirty(frame, true);
        frames.set(frame, FrameTable::CONTENDED);
        frames.load(frame, PageId(2));
        assert_eq!(
            (frames.page(frame), frames.is_dirty(frame), frames.is_pinned(frame)),
            (PageId(2), false, false)
        );
        assert!(!frames.is_empty() && FrameTable::new(0).is_empty());
    }
}

//! The frames: what each holds, who uses it, whether it must be written back.

use fulgurite_base::{FrameId, PageId};

#[derive(Clone, Copy, Debug)]
struct Frame {
    page: PageId,
    /// Guards and write-backs that hold the frame in place.
    pins: u32,
    /// Shared latches held, or [`EXCLUSIVE`].
    latches: u32,
    dirty: bool,
}

const EXCLUSIVE: u32 = u32::MAX;

/// Every frame of a pool, as policies see them.
#[derive(Clone, Debug)]
pub struct FrameTable(Vec<Frame>);

impl FrameTable {
    /// `frames` empty, clean frames.
    pub fn new(frames: u32) -> FrameTable {
        FrameTable(vec![Frame { page: PageId(u64::MAX), pins: 0, latches: 0, dirty: false }; frames as usize])
    }

    /// How many frames there are.
    pub fn len(&self) -> u32 {
        self.0.len() as u32
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The page in `frame`.
    #[inline]
    pub fn page(&self, frame: FrameId) -> PageId {
        self.0[frame.index()].page
    }

    /// Whether `frame` is in use and may not be evicted.
    #[inline]
    pub fn is_pinned(&self, frame: FrameId) -> bool {
        self.0[frame.index()].pins > 0
    }

    /// Whether the page in `frame` differs from the drive's.
    #[inline]
    pub fn is_dirty(&self, frame: FrameId) -> bool {
        self.0[frame.index()].dirty
    }

    /// Puts `page` into `frame`, clean and unused.
    pub fn load(&mut self, frame: FrameId, page: PageId) {
        self.0[frame.index()] = Frame { page, pins: 0, latches: 0, dirty: false };
    }

    /// Marks the page in `frame` as different from, or the same as, the drive's.
    pub fn set_dirty(&mut self, frame: FrameId, dirty: bool) {
        self.0[frame.index()].dirty = dirty;
    }

    /// Pins `frame` and takes its latch; false, with nothing changed, where the latch is taken.
    #[inline]
    pub(crate) fn try_latch(&mut self, frame: FrameId, exclusive: bool) -> bool {
        let frame = &mut self.0[frame.index()];
        frame.latches = match (frame.latches, exclusive) {
            (0, true) => EXCLUSIVE,
            (EXCLUSIVE, _) | (_, true) => return false,
            (shared, false) => shared + 1,
        };
        frame.pins += 1;
        true
    }

    /// Undoes one [`FrameTable::try_latch`].
    #[inline]
    pub(crate) fn unlatch(&mut self, frame: FrameId) {
        let frame = &mut self.0[frame.index()];
        assert!(frame.pins > 0 && frame.latches > 0, "a latch is released once");
        frame.latches = if frame.latches == EXCLUSIVE { 0 } else { frame.latches - 1 };
        frame.pins -= 1;
    }
}

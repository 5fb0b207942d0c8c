//! The segments: how many valid pages each holds, how far it is written, what it is doing.

/// A segment: the unit of allocation and garbage collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId(pub u32);

/// What a segment is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentState {
    /// Erased; nobody writes to it.
    Free,
    /// The append point of a stream.
    Open,
    /// Full; a candidate for collection.
    Sealed,
    /// Its valid pages are being moved away.
    Victim,
}

/// Every segment of a drive.
#[derive(Clone, Debug)]
pub struct SegmentTable {
    pub(super) segment_pages: u32,
    pub(crate) valid: Vec<u32>,
    pub(crate) written: Vec<u32>,
    pub(crate) state: Vec<SegmentState>,
}

impl SegmentTable {
    pub(super) fn new(segments: u32, segment_pages: u32) -> SegmentTable {
        let n = segments as usize;
        SegmentTable {
            segment_pages,
            valid: vec![0; n],
            written: vec![0; n],
            state: vec![SegmentState::Free; n],
        }
    }

    /// How many segments there are.
    pub fn len(&self) -> u32 {
        self.valid.len() as u32
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.valid.is_empty()
    }

    /// Pages in a segment.
    pub fn segment_pages(&self) -> u32 {
        self.segment_pages
    }

    /// Valid pages in `segment`.
    #[inline]
    pub fn valid(&self, segment: SegmentId) -> u32 {
        self.valid[segment.0 as usize]
    }

    /// Pages written in `segment` since its erase.
    #[inline]
    pub fn written(&self, segment: SegmentId) -> u32 {
        self.written[segment.0 as usize]
    }

    /// What `segment` is doing.
    #[inline]
    pub fn state(&self, segment: SegmentId) -> SegmentState {
        self.state[segment.0 as usize]
    }

    pub(super) fn bytes(&self) -> usize {
        self.valid.len() * (2 * size_of::<u32>() + size_of::<SegmentState>())
    }
}

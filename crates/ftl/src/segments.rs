//! The segments: how many valid pages each holds, how far it is written, what it is doing, how often
//! it was erased.

use fulgurite_base::StreamId;

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
    /// Worn out: never used again.
    Retired,
}

/// Every segment of a drive.
#[derive(Clone, Debug)]
pub struct SegmentTable {
    pub(crate) segment_pages: u32,
    pub(crate) valid: Vec<u32>,
    pub(crate) written: Vec<u32>,
    pub(crate) erases: Vec<u32>,
    pub(crate) state: Vec<SegmentState>,
    /// The stream that wrote it last.
    pub(crate) stream: Vec<u16>,
    /// When it was opened, by [`SegmentTable::now`].
    pub(crate) opened_at: Vec<u64>,
    /// When it was sealed, by the same clock.
    pub(crate) sealed_at: Vec<u64>,
    /// Pages that the host has written.
    pub(crate) now: u64,
    /// Open and sealed segments of each stream.
    pub(crate) in_stream: Vec<u32>,
    pub(crate) groups: Vec<GroupCounters>,
}

/// What was collected of a group: the segments that one stream wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupCounters {
    /// Segments picked as victims.
    pub collected: u64,
    /// Valid pages in them.
    pub valid: u64,
}

impl SegmentTable {
    pub(crate) fn new(segments: u32, segment_pages: u32, streams: u16) -> SegmentTable {
        let n = segments as usize;
        SegmentTable {
            segment_pages,
            valid: vec![0; n],
            written: vec![0; n],
            erases: vec![0; n],
            state: vec![SegmentState::Free; n],
            stream: vec![0; n],
            opened_at: vec![0; n],
            sealed_at: vec![0; n],
            now: 0,
            in_stream: vec![0; usize::from(streams)],
            groups: vec![GroupCounters::default(); usize::from(streams)],
        }
    }

    /// `segment` is written no more.
    pub(crate) fn seal(&mut self, segment: SegmentId) {
        self.state[segment.0 as usize] = SegmentState::Sealed;
        self.sealed_at[segment.0 as usize] = self.now;
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

    /// The stream that wrote `segment` last: its group.
    #[inline]
    pub fn stream(&self, segment: SegmentId) -> StreamId {
        StreamId(self.stream[segment.0 as usize])
    }

    /// Segments of a group, the open one among them.
    #[inline]
    pub fn in_stream(&self, stream: StreamId) -> u32 {
        self.in_stream[usize::from(stream.0)]
    }

    /// The first group that has more segments than `sizes` allows it, by stream.
    pub fn first_above(&self, sizes: &[u32]) -> Option<u16> {
        let above = self.in_stream.iter().zip(sizes).position(|(segments, size)| segments > size);
        above.map(|stream| stream as u16)
    }

    /// What was collected of each group since the drive was new.
    pub fn group_counters(&self) -> &[GroupCounters] {
        &self.groups
    }

    /// When the first page of `segment` was written, by [`SegmentTable::now`].
    pub fn opened_at(&self, segment: SegmentId) -> u64 {
        self.opened_at[segment.0 as usize]
    }

    /// When `segment`, a full one, was last sealed.
    pub fn sealed_at(&self, segment: SegmentId) -> u64 {
        self.sealed_at[segment.0 as usize]
    }

    /// Valid pages of all segments. A scan.
    pub fn valid_pages(&self) -> u64 {
        self.valid.iter().map(|valid| u64::from(*valid)).sum()
    }

    /// The time: pages that the host has written since the drive was new.
    #[inline]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// How often `segment` was erased.
    pub fn erases(&self, segment: SegmentId) -> u32 {
        self.erases[segment.0 as usize]
    }

    /// What `segment` is doing.
    #[inline]
    pub fn state(&self, segment: SegmentId) -> SegmentState {
        self.state[segment.0 as usize]
    }

    /// The least, mean and greatest number of erases of a segment.
    pub fn wear(&self) -> (u32, f64, u32) {
        let least = self.erases.iter().copied().min().unwrap_or(0);
        let most = self.erases.iter().copied().max().unwrap_or(0);
        let sum: u64 = self.erases.iter().map(|erases| u64::from(*erases)).sum();
        (least, sum as f64 / self.erases.len().max(1) as f64, most)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.valid.len()
            * (3 * size_of::<u32>() + 2 * size_of::<u64>() + size_of::<SegmentState>() + size_of::<u16>())
    }
}

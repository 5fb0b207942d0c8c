//! The table of segments: for each segment the number of valid pages, the number of written pages, the state
//! (free, open, sealed, victim or retired) and the number of erases.

use fulgurite_base::StreamId;

/// A segment: the unit of allocation and garbage collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId(pub u32);

/// The state of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentState {
    /// The segment is erased and not open.
    Free,
    /// The segment is open: a stream's pages are written to it.
    Open,
    /// The segment accepts no more writes and is a candidate for collection.
    Sealed,
    /// The segment's valid pages are being moved to other segments.
    Victim,
    /// The segment is worn out and never used again.
    Retired,
}

/// The record of one segment. It has half a cache line, because a write of a page needs most of it.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Segment {
    /// The times at which the segment was opened and sealed, by [`SegmentTable::now`].
    opened_at: u64,
    sealed_at: u64,
    valid: u32,
    written: u32,
    erases: u32,
    /// The stream that wrote the segment last.
    stream: u16,
    state: SegmentState,
}

/// The table of every segment of a drive.
#[derive(Clone, Debug)]
pub struct SegmentTable {
    segment_pages: u32,
    segments: Vec<Segment>,
    /// The number of pages that the host has written.
    now: u64,
    /// The number of open and sealed segments of each stream.
    in_stream: Vec<u32>,
    groups: Vec<GroupCounters>,
}

/// The collections of a group, that is, of the segments that one stream wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupCounters {
    /// The number of segments picked as victims.
    pub collected: u64,
    /// The number of valid pages in the victims when they were picked.
    pub valid: u64,
}

impl SegmentTable {
    pub(crate) fn new(segments: u32, segment_pages: u32, streams: u16) -> SegmentTable {
        let free = Segment {
            opened_at: 0,
            sealed_at: 0,
            valid: 0,
            written: 0,
            erases: 0,
            stream: 0,
            state: SegmentState::Free,
        };
        SegmentTable {
            segment_pages,
            segments: vec![free; segments as usize],
            now: 0,
            in_stream: vec![0; usize::from(streams)],
            groups: vec![GroupCounters::default(); usize::from(streams)],
        }
    }

    #[inline]
    fn at(&self, segment: SegmentId) -> &Segment {
        &self.segments[segment.0 as usize]
    }

    #[inline]
    fn at_mut(&mut self, segment: SegmentId) -> &mut Segment {
        &mut self.segments[segment.0 as usize]
    }

    /// Opens a free `segment` for the writes of `stream`.
    pub(crate) fn open(&mut self, segment: SegmentId, stream: StreamId) {
        let now = self.now;
        let segment = self.at_mut(segment);
        (segment.state, segment.stream, segment.opened_at) = (SegmentState::Open, stream.0, now);
        self.in_stream[usize::from(stream.0)] += 1;
    }

    /// Writes `pages` pages to `segment`. Returns the index of the first page in the segment.
    #[inline]
    pub(crate) fn append(&mut self, segment: SegmentId, pages: u32) -> u32 {
        let segment = self.at_mut(segment);
        let first = segment.written;
        segment.written += pages;
        segment.valid += pages;
        first
    }

    /// Leaves the next `pages` pages of `segment` unwritten; they count as invalid.
    pub(crate) fn skip(&mut self, segment: SegmentId, pages: u32) {
        self.at_mut(segment).written += pages;
    }

    /// Makes a valid page of `segment` invalid.
    #[inline]
    pub(crate) fn invalidate(&mut self, segment: SegmentId) {
        self.at_mut(segment).valid -= 1;
    }

    /// Makes every page of `segment` invalid.
    pub(crate) fn invalidate_all(&mut self, segment: SegmentId) {
        self.at_mut(segment).valid = 0;
    }

    /// Makes an invalid page of `segment` valid again.
    pub(crate) fn revive(&mut self, segment: SegmentId) {
        self.at_mut(segment).valid += 1;
    }

    /// Closes `segment` for writes.
    pub(crate) fn seal(&mut self, segment: SegmentId) {
        let now = self.now;
        let segment = self.at_mut(segment);
        (segment.state, segment.sealed_at) = (SegmentState::Sealed, now);
    }

    /// Assigns a free `segment` to `stream`. The segment was written up to `written` before this table was
    /// created.
    pub(crate) fn adopt(&mut self, segment: SegmentId, stream: StreamId, written: u32) {
        self.open(segment, stream);
        self.at_mut(segment).written = written;
    }

    /// Makes `segment` the victim, and counts the collection for its group.
    pub(crate) fn begin_collection(&mut self, segment: SegmentId) {
        let segment = self.at_mut(segment);
        segment.state = SegmentState::Victim;
        let (group, valid) = (usize::from(segment.stream), u64::from(segment.valid));
        self.groups[group].collected += 1;
        self.groups[group].valid += valid;
    }

    /// Records an erase of `segment`, which then belongs to no group. Returns the number of its erases.
    pub(crate) fn erased(&mut self, segment: SegmentId) -> u32 {
        let segment = self.at_mut(segment);
        segment.written = 0;
        segment.erases += 1;
        let (group, erases) = (usize::from(segment.stream), segment.erases);
        self.in_stream[group] -= 1;
        erases
    }

    /// Makes an erased segment free, or retires it.
    pub(crate) fn set_usable(&mut self, segment: SegmentId, usable: bool) {
        self.at_mut(segment).state = if usable { SegmentState::Free } else { SegmentState::Retired };
    }

    /// Resets the erase counts.
    pub(crate) fn forget_wear(&mut self) {
        self.segments.iter_mut().for_each(|segment| segment.erases = 0);
    }

    /// Records a host page write.
    #[inline]
    pub(crate) fn tick(&mut self) {
        self.now += 1;
    }

    /// Moves every segment to another group: `groups` has the new group of each current group.
    pub(crate) fn regroup(&mut self, groups: &[StreamId]) {
        for (stream, group) in groups.iter().enumerate() {
            // A group that absorbs other groups must keep its own number; otherwise a count would move twice.
            let moved = std::mem::take(&mut self.in_stream[stream]);
            self.in_stream[usize::from(group.0)] += moved;
        }
        for segment in &mut self.segments {
            segment.stream = groups[usize::from(segment.stream)].0;
        }
    }

    /// Moves `segment` to another group.
    pub(crate) fn move_to(&mut self, segment: SegmentId, group: StreamId) {
        let from = std::mem::replace(&mut self.at_mut(segment).stream, group.0);
        self.in_stream[usize::from(from)] -= 1;
        self.in_stream[usize::from(group.0)] += 1;
    }

    /// Returns the number of segments.
    pub fn len(&self) -> u32 {
        self.segments.len() as u32
    }

    /// Returns whether there are no segments.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Returns the number of pages in a segment.
    pub fn segment_pages(&self) -> u32 {
        self.segment_pages
    }

    /// Returns the number of valid pages in `segment`.
    #[inline]
    pub fn valid(&self, segment: SegmentId) -> u32 {
        self.at(segment).valid
    }

    /// Returns the number of pages written in `segment` since its erase.
    #[inline]
    pub fn written(&self, segment: SegmentId) -> u32 {
        self.at(segment).written
    }

    /// Returns the stream that wrote `segment` last; this is the segment's group.
    #[inline]
    pub fn stream(&self, segment: SegmentId) -> StreamId {
        StreamId(self.at(segment).stream)
    }

    /// Returns the number of segments of a group, including the open one.
    #[inline]
    pub fn in_stream(&self, stream: StreamId) -> u32 {
        self.in_stream[usize::from(stream.0)]
    }

    /// Returns the first stream whose group has more segments than `sizes` allows.
    pub(crate) fn first_above(&self, sizes: &[u32]) -> Option<u16> {
        let above = self.in_stream.iter().zip(sizes).position(|(segments, size)| segments > size);
        above.map(|stream| stream as u16)
    }

    /// Returns the collections of each group since the drive was new.
    pub fn group_counters(&self) -> &[GroupCounters] {
        &self.groups
    }

    /// Returns the time at which the first page of `segment` was written, by [`SegmentTable::now`].
    #[inline]
    pub fn opened_at(&self, segment: SegmentId) -> u64 {
        self.at(segment).opened_at
    }

    /// Returns the time at which a full `segment` was last sealed.
    #[inline]
    pub fn sealed_at(&self, segment: SegmentId) -> u64 {
        self.at(segment).sealed_at
    }

    /// Returns the number of valid pages of all segments. This scans the table.
    pub fn valid_pages(&self) -> u64 {
        self.segments.iter().map(|segment| u64::from(segment.valid)).sum()
    }

    /// Returns the time: the number of pages that the host has written since the drive was new.
    #[inline]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Returns the number of erases of `segment`.
    pub fn erases(&self, segment: SegmentId) -> u32 {
        self.at(segment).erases
    }

    /// Returns the state of `segment`.
    #[inline]
    pub fn state(&self, segment: SegmentId) -> SegmentState {
        self.at(segment).state
    }

    /// Returns the least, mean and greatest number of erases of a segment.
    pub fn wear(&self) -> (u32, f64, u32) {
        let erases = || self.segments.iter().map(|segment| segment.erases);
        let sum: u64 = erases().map(u64::from).sum();
        let mean = sum as f64 / self.segments.len().max(1) as f64;
        (erases().min().unwrap_or(0), mean, erases().max().unwrap_or(0))
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.segments[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: the table reports all changes of its segments, with their times.
    #[test]
    fn the_table_reports_all_changes() {
        let mut table = SegmentTable::new(3, 4, 2);
        assert_eq!((table.len(), table.is_empty(), table.segment_pages()), (3, false, 4));
        assert!(SegmentTable::new(0, 4, 2).is_empty());
        let (first, second) = (SegmentId(0), SegmentId(2));
        (0..5).for_each(|_| table.tick());
        table.open(first, StreamId(1));
        table.tick();
        assert_eq!((table.append(first, 3), table.append(first, 1)), (0, 3));
        table.tick();
        table.seal(first);
        table.open(second, StreamId(1));
        table.append(second, 2);
        table.skip(second, 2);
        table.invalidate(first);
        assert_eq!((table.opened_at(first), table.sealed_at(first), table.now()), (5, 7, 7));
        assert_eq!((table.valid(first), table.written(second), table.valid_pages()), (3, 4, 5));
        assert_eq!((table.in_stream(StreamId(0)), table.in_stream(StreamId(1))), (0, 2));
        assert_eq!((table.first_above(&[0, 1]), table.first_above(&[0, 2])), (Some(1), None));
        table.begin_collection(first);
        table.begin_collection(second);
        assert_eq!(table.group_counters()[1], GroupCounters { collected: 2, valid: 5 });
        assert_eq!(table.group_counters()[0], GroupCounters::default());
        table.revive(first);
        table.invalidate_all(second);
        assert_eq!((table.valid(first), table.valid(second)), (4, 0));
        assert_eq!((table.erased(second), table.wear()), (1, (0, 1.0 / 3.0, 1)));
        assert_eq!((table.in_stream(StreamId(1)), table.written(second)), (1, 0));
    }
}

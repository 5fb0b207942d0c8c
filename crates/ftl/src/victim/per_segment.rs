//! A table with a value for every segment of a unit.

use crate::SegmentId;
use std::ops::{Index, IndexMut, Range};

/// A table over a range of segments, which need not begin with the first segment of the drive.
#[derive(Clone, Debug)]
pub(crate) struct PerSegment<T> {
    first: u32,
    values: Vec<T>,
}

impl<T: Clone> PerSegment<T> {
    /// Creates a table with `value` for each of `segments`.
    pub(crate) fn filled(segments: Range<u32>, value: T) -> PerSegment<T> {
        PerSegment { first: segments.start, values: vec![value; segments.len()] }
    }
}

impl<T> PerSegment<T> {
    /// Returns the range of segments.
    pub(crate) fn segments(&self) -> Range<u32> {
        self.first..self.first + self.values.len() as u32
    }
}

impl<T> Index<SegmentId> for PerSegment<T> {
    type Output = T;

    #[inline]
    fn index(&self, segment: SegmentId) -> &T {
        &self.values[(segment.0 - self.first) as usize]
    }
}

impl<T> IndexMut<SegmentId> for PerSegment<T> {
    #[inline]
    fn index_mut(&mut self, segment: SegmentId) -> &mut T {
        &mut self.values[(segment.0 - self.first) as usize]
    }
}

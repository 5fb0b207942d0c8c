//! The hot filter of MiDAS. Two bits for each page, a count, select the pages that were rewritten three times
//! within a short time.
//!
//! HOT is the group of hot pages, and G1 the first group of the other pages. A host write increments the
//! count if the old copy was in HOT, or in a segment of G1 younger than the window. It decrements the count
//! if the segment of G1 was older. A copy out of G1 decrements the count, a copy out of HOT does so twice. At
//! a count of three the page is hot. The window starts at one logical capacity. It follows the age at which
//! HOT's segments are collected, but grows by only a quarter when that age is more than twice the window.

use crate::{SegmentId, SegmentTable};

/// The count at which a page is hot.
const HOT: u8 = 3;

/// The counts of all pages, two bits each, and the window.
#[derive(Clone, Debug)]
pub(super) struct HotFilter {
    counters: Vec<u8>,
    window: u64,
}

impl HotFilter {
    pub(crate) fn new(pages: u32) -> HotFilter {
        HotFilter { counters: vec![0; pages.div_ceil(4) as usize], window: u64::from(pages) }
    }

    #[inline]
    fn counter(&self, lpn: u32) -> u8 {
        self.counters[(lpn / 4) as usize] >> (2 * (lpn % 4)) & 3
    }

    #[inline]
    fn set(&mut self, lpn: u32, counter: u8) {
        let (byte, shift) = (&mut self.counters[(lpn / 4) as usize], 2 * (lpn % 4));
        *byte = *byte & !(3 << shift) | counter << shift;
    }

    /// Returns the count after a host write of a page that is in `segment`.
    #[inline]
    fn counted(&self, lpn: u32, segment: SegmentId, segments: &SegmentTable) -> u8 {
        let counter = self.counter(lpn);
        match segments.stream(segment).0 {
            0 => (counter + 1).min(HOT),
            1 if segments.now() - segments.opened_at(segment) < self.window => (counter + 1).min(HOT),
            1 => counter.saturating_sub(1),
            _ => counter,
        }
    }

    /// Returns whether a page that the host is writing is hot.
    #[inline]
    pub(crate) fn is_hot(&self, lpn: u32, segment: SegmentId, segments: &SegmentTable) -> bool {
        self.counted(lpn, segment, segments) == HOT
    }

    #[inline]
    pub(crate) fn written(&mut self, lpn: u32, segment: SegmentId, segments: &SegmentTable) {
        self.set(lpn, self.counted(lpn, segment, segments));
    }

    /// Records that a valid page is copied out of the group `group`, where 0 is HOT and 1 is G1.
    #[inline]
    pub(crate) fn copied(&mut self, lpn: u32, group: u16) {
        if group <= 1 {
            self.set(lpn, self.counter(lpn).saturating_sub(if group == 0 { 2 } else { 1 }));
        }
    }

    /// Adapts the window to the age at which a segment of HOT is collected.
    pub(crate) fn collected(&mut self, age: u64) {
        let age = if age > 2 * self.window { self.window + self.window / 2 } else { age };
        self.window = u64::midpoint(self.window, age).max(1);
    }

    #[inline]
    pub(crate) fn prefetch(&self, lpn: u32) {
        fulgurite_base::prefetch(&self.counters, (lpn / 4) as usize);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.counters.len()
    }
}

#[cfg(test)]
impl HotFilter {
    /// Returns the count, for tests.
    pub(super) fn count(&self, lpn: u32) -> u8 {
        self.counter(lpn)
    }
}

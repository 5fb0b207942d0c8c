//! MiDAS's hot filter: two bits a page, so that only pages that were written again three times in short order
//! are kept apart.
//!
//! A write counts up if the copy that it makes garbage lay in HOT, or in G1 in a segment younger than the
//! window; it counts down if that segment was older. A page that is copied out of G1 counts down, out of HOT
//! twice. At three the page is hot. The window starts at one logical capacity and follows the age at which
//! HOT's segments are collected, growing by half at most where that more than doubles.

use crate::{SegmentId, SegmentTable};

/// A page is hot at this count.
const HOT: u8 = 3;

/// The counters.
#[derive(Clone, Debug)]
pub(super) struct HotFilter {
    counters: Vec<u8>,
    window: u64,
}

impl HotFilter {
    pub fn new(pages: u32) -> HotFilter {
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

    /// The count after the host writes a page that lies in `segment`.
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

    /// Whether a page that the host writes is hot.
    #[inline]
    pub fn is_hot(&self, lpn: u32, segment: SegmentId, segments: &SegmentTable) -> bool {
        self.counted(lpn, segment, segments) == HOT
    }

    #[inline]
    pub fn written(&mut self, lpn: u32, segment: SegmentId, segments: &SegmentTable) {
        self.set(lpn, self.counted(lpn, segment, segments));
    }

    /// A valid page is copied out of HOT (0) or G1 (1).
    #[inline]
    pub fn copied(&mut self, lpn: u32, group: u16) {
        if group <= 1 {
            self.set(lpn, self.counter(lpn).saturating_sub(if group == 0 { 2 } else { 1 }));
        }
    }

    /// A segment of HOT is collected at this age.
    pub fn collected(&mut self, age: u64) {
        let age = if age > 2 * self.window { self.window + self.window / 2 } else { age };
        self.window = u64::midpoint(self.window, age).max(1);
    }

    #[inline]
    pub fn prefetch(&self, lpn: u32) {
        fulgurite_base::prefetch(&self.counters, (lpn / 4) as usize);
    }

    pub fn bytes(&self) -> usize {
        self.counters.len()
    }
}

#[cfg(test)]
impl HotFilter {
    /// The count, for tests.
    pub fn count(&self, lpn: u32) -> u8 {
        self.counter(lpn)
    }
}
